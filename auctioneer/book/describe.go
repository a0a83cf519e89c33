package book

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/spelling"
)

// Summary returns the job's line in a list.
func (j *Job) Summary() job.JobSummary {
	total, running, done := j.Count()
	s := job.JobSummary{
		Job: j.ID, Name: j.Spec.Name, Account: j.Account, Payer: j.Payer, Market: j.Spec.Market, State: j.State, Reason: j.Reason,
		Budget: j.Spec.Budget, Charged: j.Cost(), Tasks: total, Running: running, Done: done,
		Submitted: j.Submitted, Started: j.Started, Ended: j.Ended, ExitCode: j.exitCode(), Failed: j.Failures(), Labels: j.Spec.Labels,
	}
	for i := range j.Stages {
		s.Suspended += j.Stages[i].Suspended
	}
	s.CPUs = j.Spec.Stages[0].CPUs
	if j.Spec.Stages[0].Allocation {
		s.CPUs = 0
		for i, end := j.gang(0); i < end; i++ {
			nodes := j.Spec.Stages[i].TaskCount()
			s.Nodes, s.CPUs = s.Nodes+nodes, s.CPUs+nodes*j.Spec.Stages[i].CPUs
		}
	}
	if len(j.Spec.Stages) == 1 {
		s.Array = j.Spec.Stages[0].Array
		s.Numbered = j.Spec.Numbered && j.Spec.Stages[0].Repeats == nil
	}
	if j.Visit != nil {
		s.Visit = &j.Visit.Visit
	}
	return s
}

// Use returns what an ended job used of each class, in the order of its stages.
func (j *Job) Use() (out []job.ClassUse) {
	for i := range j.Stages {
		s, had := &j.Spec.Stages[i], float64(j.Stages[i].Meter.Micros)/3600e6
		if had == 0 {
			continue
		}
		k := slices.IndexFunc(out, func(u job.ClassUse) bool { return u.Class == s.Class })
		if k < 0 {
			k, out = len(out), append(out, job.ClassUse{Class: s.Class})
		}
		each := had / float64(s.Slots())
		out[k].SlotHours, out[k].CPUHours, out[k].GPUHours = out[k].SlotHours+had, out[k].CPUHours+each*float64(s.CPUs), out[k].GPUHours+each*float64(s.GPUs)
		out[k].MemoryHours += each * float64(s.Memory) / (1 << 30)
	}
	return out
}

// exitCode returns the exit code of a job that completed or failed. It returns NoExit if there is none, for example
// because a task could not start.
func (j *Job) exitCode() job.Exit {
	if j.Outcome == job.Completed || j.Failures() > 0 && j.ExitCode > 0 {
		return job.Exit(j.ExitCode)
	}
	return job.NoExit
}

// StageStatuses returns the status of each stage for the owner.
func (j *Job) StageStatuses() []job.StageStatus {
	out := make([]job.StageStatus, len(j.Stages))
	for i := range j.Stages {
		s, spec := &j.Stages[i], &j.Spec.Stages[i]
		out[i] = job.StageStatus{Name: spec.Name, Class: spec.Class, Tasks: s.Total, Pending: j.Claimable(i) + s.Ahead + s.Nodes, Running: s.Running - s.Ahead,
			Done: s.Done, Retried: s.Retried, Started: s.Started, Ended: s.Ended, SlotTime: s.SlotTime, Suspended: s.Suspended, CPU: s.CPU, MaxRSS: s.MaxRSS,
			Failed: s.Failed, Requeued: s.Requeued, Lost: s.Lost, Cut: s.Cut, Cancelled: s.Cancelled}
	}
	return out
}

// PastShares returns the shares of each class from which the job's charge was computed. It returns nil if no charge has
// been computed.
func (j *Job) PastShares() []job.ClassShare {
	var out []job.ClassShare
	for _, s := range j.Shares {
		out = append(out, job.ClassShare{Class: s.Class, Allocated: float64(s.Allocated) / 1e6, Received: float64(s.Received) / 1e6, Over: s.Over})
	}
	return out
}

// Setbacks describes the latest failed attempt of the job, and says how many attempts failed. An attempt counts if it
// ended before the given instant, and the task was tried again after it. Setbacks returns "" if there are none. The
// function `name` returns the name of the node with a number.
func (j *Job) Setbacks(before messages.Time, name func(node uint32) messages.Name) string {
	var last *Kept
	n := 0
	for i := range j.Kept {
		k := &j.Kept[i]
		t := &j.Stages[k.Stage].Tasks[k.Index]
		// skip an attempt that ended too late, the last attempt of an ended task, and a failure that j.Cause already
		// describes
		if k.Ended >= before || k.Attempt == t.Attempt && t.Phase != Pending || j.Cause != "" && OfTask(k.Reason) {
			continue
		}
		n, last = n+1, k
	}
	if last == nil {
		return ""
	}
	e := job.Ending{Reason: last.Reason, ExitCode: int(last.Exit), Detail: last.Detail, Node: name(last.Node)}
	text := fmt.Sprintf("attempt %d of task %s.%d %v", last.Attempt, j.Spec.Stages[last.Stage].Name, last.Index, e)
	if n += j.Omitted; n > 1 {
		return spelling.Number(n, "", "attempts came to nothing") + ": " + text
	}
	return text
}

// Some tasks ended well although their memory limits killed one of their processes. MemoryKilled returns a text that
// describes the first of these tasks and says how many others there are. It returns "" if there is none.
func (j *Job) MemoryKilled(name func(node uint32) messages.Name) string {
	text, n := "", 0
	for i := range j.Kept {
		k := &j.Kept[i]
		if k.Reason != job.EndMemoryKilled {
			continue
		}
		if n++; n == 1 {
			e := job.Ending{Reason: k.Reason, ExitCode: int(k.Exit), Detail: k.Detail, Node: name(k.Node)}
			text = fmt.Sprintf("task %s.%d %v", j.Spec.Stages[k.Stage].Name, k.Index, e)
		}
	}
	if n > 1 {
		text += "; so did " + spelling.Number(n-1, "other task", "other tasks")
	}
	return text
}

// Limit returns the memory or disk limit that a task exceeded, or else the reason of the job's end.
func (j *Job) Limit() string {
	for i := range j.Kept {
		if r := j.Kept[i].Reason; r == job.EndMemoryLimit || r == job.EndDiskLimit {
			return r.String()
		}
	}
	return j.Reason
}

// OfTask reports whether the task itself caused an end with this reason.
func OfTask(r job.EndReason) bool {
	return r >= job.EndExitCode && r <= job.EndCannotStart
}

// stopping returns the reason why the leader tells a node to end an attempt.
func (j *Job) stopping(h NodeClaim) job.EndReason {
	switch {
	case h.Why != job.NoReason:
		return h.Why
	case j.Active():
		return job.EndAgentStops
	case j.Outcome == job.Cancelled:
		return job.EndCancelled
	}
	return job.EndJobOver
}

// The method `why` returns the reason for the end of an attempt, from its node's report.
func (j *Job) why(f *agent.Finished, h NodeClaim, broken bool) job.EndReason {
	switch {
	case broken && j.Active():
		return cmp.Or(h.Why, job.EndGang)
	case f.Outcome == agent.Stopped:
		return j.stopping(h)
	}
	return f.Reason()
}
