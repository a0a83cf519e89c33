package book

import (
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// remote are the jobs of this site that other sites run.
type remote struct {
	remoteJobs map[messages.JobID]*RemoteJob
	departed   map[messages.Name]int    // by peer: number of jobs that are not over
	past       map[messages.JobID]*Past // ended jobs with records in the archive
	handed     int                      // how many jobs at the start of returned have their records in the archive
	archive    *archive
	returned   []messages.JobID // ended jobs in memory, ordered by their end
	index      *index
	watch      *watch
	clock      *clock
}

func (b *remote) enter(c *EnterRemote) (RemoteReceipt, error) {
	if len(b.remoteJobs)+len(b.past)-len(b.returned) >= MaxRemoteJobs {
		return RemoteReceipt{}, messages.Errorf(messages.Exhausted, "%d jobs at other sites have not ended; submit again later", MaxRemoteJobs)
	}
	r := &RemoteJob{ID: b.index.number(c.Account, c.Key), Account: c.Account, Key: c.Key, Digest: c.Digest, Payer: c.Payer, Spec: c.Spec,
		Peer: c.Peer, Chosen: c.Chosen, Submitted: b.clock.now}
	r.Status = job.JobSummary{State: job.Waiting, Reason: "Authorising", Tasks: c.Spec.TaskCount()}
	b.remoteJobs[r.ID] = r
	b.departed[r.Peer]++
	b.watch.touch(r.ID)
	return r.Receipt(), nil
}

func (b *remote) advance(c *Advance) (result any) {
	for i := range c.Steps {
		s := &c.Steps[i]
		r := b.remoteJobs[s.Job]
		switch {
		case r == nil && s.Cancel != "":
			result = messages.Errorf(messages.NotFound, "there is no job %d", s.Job)
		case r == nil:
		case s.Cancel != "":
			result = b.recall(r, s.Cancel)
		default:
			b.step(r, s)
		}
	}
	return result
}

func (b *remote) step(r *RemoteJob, s *Step) {
	switch {
	case s.Authorised != nil && r.Phase == Authorising:
		r.Phase, r.Authorisation = Sending, s.Authorised
		r.Status.Reason = "Sending"
	case s.Arrived != nil && r.Phase == Sending:
		b.heard(r, s.Arrived, s.Conclude)
	case s.Status != nil && (r.Phase == Sending || r.Phase == There): // a status may come before Arrived
		b.heard(r, s.Status, s.Conclude)
	case s.Refused != nil && r.Phase < There:
		b.refused(r, s.Refused)
	case s.Told && (r.Phase == There || r.Phase == Releasing):
		r.Told = true
	case s.Forgotten != nil && r.Phase == There: // the rest of the job's credits is given back
		r.Status, r.Told = *s.Forgotten, true
		b.stay(r, s.Forgotten.State, s.Forgotten.Reason)
	case s.Released && r.Phase == Releasing:
		b.over(r)
	case s.Concluded && r.Concluding:
		r.Concluding = false
	default:
		return
	}
	b.watch.touch(r.ID)
}

// The method `refused` is called when the bank or the other site has refused a job. It ends the job with the outcome
// discarded. If the job's user had cancelled it before, the outcome is cancelled.
func (b *remote) refused(r *RemoteJob, why *messages.Error) {
	r.Refused = why
	if r.Cancelled {
		b.stay(r, job.Cancelled, "CancelledBy"+by(r.By, r.Account))
		return
	}
	b.stay(r, job.Discarded, "RefusedBy"+cause(r.Phase))
}

// cause returns who refuses a job, given the phase in which the job is refused.
func cause(p RemotePhase) string {
	if p == Authorising {
		return "Bank"
	}
	return "Site"
}

// heard records the status of a remote job, which the other site has reported. If the status is final, heard ends the
// remote job. If `conclude` is true, it also records that this site's bank does not know the end yet.
func (b *remote) heard(r *RemoteJob, s *job.JobSummary, conclude bool) {
	r.Phase, r.Known = There, b.clock.now
	r.Status = *s
	r.Status.Visit, r.Status.Away = nil, nil
	if s.State.Final() {
		b.index.count(r.Account, -1)
		r.Concluding = conclude && r.Authorisation != nil
		b.over(r)
	}
}

// mostEndSteps is the maximum number of steps in one command that ends remote jobs.
const mostEndSteps = 256

// stay ends a job that will not run at the other site.
func (b *remote) stay(r *RemoteJob, state job.State, reason string) {
	b.index.count(r.Account, -1)
	r.Phase = Releasing
	r.Status.State, r.Status.Reason, r.Status.Ended = state, reason, b.clock.now
}

// recall cancels a job. If the job has not been sent to the other site yet, it ends immediately. Otherwise the other
// site is asked to end it.
func (b *remote) recall(r *RemoteJob, who messages.Name) any {
	was := r.Status.State
	switch {
	case !r.Active() || was == job.Settling:
		return messages.Errorf(messages.Ended, "job %d is %v already", r.ID, was)
	case r.Cancelled:
		return was
	}
	r.Cancelled, r.By = true, who
	if r.Phase == Authorising {
		b.stay(r, job.Cancelled, "CancelledBy"+by(who, r.Account))
	}
	b.watch.touch(r.ID)
	return was
}

// The method over records that a job is over. If the book then has more ended jobs than it keeps, the oldest ones are
// dropped.
func (b *remote) over(r *RemoteJob) {
	r.Phase = Over
	if b.departed[r.Peer]--; b.departed[r.Peer] == 0 {
		delete(b.departed, r.Peer)
	}
	b.returned = append(b.returned, r.ID)
	b.archiveOldest()
	for len(b.returned) > retainEnded {
		id := b.returned[0]
		b.returned, b.handed = b.returned[1:], max(0, b.handed-1)
		if p := b.past[id]; p != nil {
			delete(b.past, id)
			b.index.drop(p.Account, p.Key)
			continue
		}
		old := b.remoteJobs[id]
		b.archive.add(Ended{Remote: old})
		delete(b.remoteJobs, id)
		b.index.remove(old.Account, old.Key, id)
		b.watch.touch(id)
	}
}

// archiveOldest moves the records of ended remote jobs to the archive. The records of the latest jobs stay in the book.
func (b *remote) archiveOldest() {
	for ; b.handed < len(b.returned)-b.archive.whole; b.handed++ {
		r := b.remoteJobs[b.returned[b.handed]]
		if r == nil {
			continue
		}
		b.archive.add(Ended{Remote: r})
		b.past[r.ID] = r.brief()
		delete(b.remoteJobs, r.ID)
		b.index.unlist(r.Account, r.ID)
		b.watch.touch(r.ID)
	}
}
