package book

import (
	"slices"

	"github.com/candor-grid/candor/messages"
)

// Dependable refuses a job that waits for one that does not exist, or that has
// ended as it must not.
func (b *Book) Dependable(spec *messages.JobSpec) error {
	for _, id := range slices.Concat(spec.AfterJobs, spec.AfterOK) {
		if b.jobs[id] == nil {
			return messages.Errorf(messages.NotFound, "after_jobs: there is no job %d, or it ended long ago", id)
		}
	}
	for _, id := range spec.AfterOK {
		if j := b.jobs[id]; !j.Active() && j.Outcome != messages.Completed {
			return messages.Errorf(messages.Ended, "after_ok: job %d is %v, and will not complete", id, j.Outcome)
		}
	}
	return nil
}

// await counts the jobs that a job waits for.
func (b *Book) await(j *Job) {
	j.Blocked = 0
	for _, id := range slices.Concat(j.Spec.AfterJobs, j.Spec.AfterOK) {
		waiters := b.waiters[id]
		twice := len(waiters) > 0 && waiters[len(waiters)-1] == j.ID
		if o := b.jobs[id]; o != nil && o.Active() && !twice {
			j.Blocked++
			b.waiters[id] = append(waiters, j.ID)
		}
	}
}

// release tells those who wait for a job that it has ended.
func (b *Book) release(ended *Job) {
	waiters := b.waiters[ended.ID]
	delete(b.waiters, ended.ID)
	for _, id := range waiters {
		j := b.jobs[id]
		if j == nil || !j.Active() {
			continue
		}
		j.Blocked--
		b.touch(id)
		if ended.Outcome != messages.Completed && slices.Contains(j.Spec.AfterOK, ended.ID) {
			b.end(j, messages.Cancelled, "DependencyFailed")
		}
	}
}

// Awaited are the jobs that a job still waits for.
func (b *Book) Awaited(j *Job) (out []messages.JobID) {
	for _, id := range slices.Concat(j.Spec.AfterJobs, j.Spec.AfterOK) {
		if o := b.jobs[id]; o != nil && o.Active() && !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}
