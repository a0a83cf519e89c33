package book

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/spelling"
)

// A task says in a few bytes how its latest attempt went. Earlier attempts, and how nodes
// explain the ends of attempts, are kept of a bounded number of attempts of each job.
const (
	// MaxKept bounds the attempts of a job that are kept: the first ones of each stage
	// that came to nothing, in equal parts.
	MaxKept = 64
	// MaxDetail bounds the detail of one attempt, and maxDetails the different details
	// of one job together, in bytes.
	MaxDetail  = 200
	maxDetails = 4 << 10
)

// Kept is an attempt that came to nothing, or that ended well after its memory limit had ended a process of it.
type Kept struct {
	Stage, Index, Attempt uint32
	Node                  uint32 // position in Book.Nodes
	Reason                messages.EndReason
	Exit                  int32
	Claimed, Ended        messages.Time
	Paused                messages.Duration
	CPU                   messages.Duration
	MaxRSS                int64
	Detail                string
}

// tick is the unit of a task's CPU and Paused.
const tick = messages.Duration(10e6)

// ticks is a duration in ticks, at most as many as a task has room for: more than a year.
func ticks(d messages.Duration) uint32 { return uint32(min(max(d, 0)/tick, math.MaxUint32)) }

// CPUTime is the processor time of the latest attempt, to a hundredth of a second.
func (t *Task) CPUTime() messages.Duration { return messages.Duration(t.CPU) * tick }

// PausedTime is for how long the latest attempt did not run though it was claimed, to a
// hundredth of a second.
func (t *Task) PausedTime() messages.Duration { return messages.Duration(t.Paused) * tick }

// MaxRSS is the peak memory of the latest attempt in bytes, to a kibibyte.
func (t *Task) MaxRSS() int64 { return int64(t.Memory) << 10 }

// attemptEnded notes how the latest attempt of a task ended; f is nil if nobody
// reported the end.
func (c *claims) attemptEnded(r messages.TaskRef, h NodeClaim, why messages.EndReason, f *messages.Finished) {
	j := c.jobs.own(r.Job)
	t := &j.Stages[r.Stage].Tasks[r.Index]
	paused := h.PausedBy(c.clock.now)
	t.Reason, t.Paused = why, ticks(paused)
	k := Kept{Stage: r.Stage, Index: r.Index, Attempt: t.Attempt, Node: t.Node, Reason: why, Claimed: t.Claimed, Ended: cmp.Or(h.until, c.clock.now), Paused: paused}
	if f != nil {
		k.Exit, k.CPU, k.MaxRSS, k.Detail = int32(f.ExitCode), min(max(f.CPU, 0), maxCPU), max(f.MaxRSS, 0), f.Detail
		t.CPU, t.Memory = ticks(k.CPU), uint32(min(k.MaxRSS>>10, math.MaxUint32))
	}
	if why != messages.NoReason && why != messages.EndCancelled && why != messages.EndTaskCancelled && why != messages.EndJobOver { // the task itself says all of that
		j.Kept.add(k, max(1, MaxKept/len(j.Stages)))
	}
}

// Attempts are some attempts of a job that came to nothing, in the order in which they ended.
type Attempts []Kept

// add keeps an attempt, if fewer than most of its stage are kept.
func (a *Attempts) add(k Kept, most int) {
	of, bytes := 0, len(k.Detail)
	for i := range *a {
		o := &(*a)[i]
		if o.Stage == k.Stage {
			of++
		}
		switch {
		case o.Detail == k.Detail:
			k.Detail = o.Detail // in memory once
			bytes -= len(k.Detail)
		case !slices.ContainsFunc((*a)[:i], func(earlier Kept) bool { return earlier.Detail == o.Detail }):
			bytes += len(o.Detail)
		}
	}
	if of >= most {
		return
	}
	if bytes > maxDetails {
		k.Detail = ""
	}
	*a = append(*a, k)
}

// past returns an attempt that is kept, nil if it is not.
func (a Attempts) past(stage, index, attempt uint32) *Kept {
	at := slices.IndexFunc(a, func(k Kept) bool { return k.Stage == stage && k.Index == index && k.Attempt == attempt })
	if at < 0 {
		return nil
	}
	return &a[at]
}

// Of returns those of the tasks of a stage, in the order of index and number.
func (a Attempts) Of(stage int) (out []Kept) {
	for _, k := range a {
		if int(k.Stage) == stage {
			out = append(out, k)
		}
	}
	slices.SortFunc(out, func(a, b Kept) int {
		return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.Attempt, b.Attempt))
	})
	return out
}

// Setbacks says which attempt came to nothing before an instant and was, or is, followed by
// another, and how many there were; "": none. name names a node by its position.
func (j *Job) Setbacks(before messages.Time, name func(node uint32) messages.Name) string {
	var last *Kept
	n := 0
	for i := range j.Kept {
		k := &j.Kept[i]
		t := &j.Stages[k.Stage].Tasks[k.Index]
		if k.Ended >= before || k.Attempt == t.Attempt && t.Phase != Pending || j.Cause != "" && OfTask(k.Reason) { // the end of the task, or told by the cause
			continue
		}
		n, last = n+1, k
	}
	if last == nil {
		return ""
	}
	e := messages.Ending{Reason: last.Reason, ExitCode: int(last.Exit), Detail: last.Detail, Node: name(last.Node)}
	text := fmt.Sprintf("attempt %d of task %s.%d %v", last.Attempt, j.Spec.Stages[last.Stage].Name, last.Index, e)
	if n += j.Omitted; n > 1 {
		return spelling.Number(n, "", "attempts came to nothing") + ": " + text
	}
	return text
}

// MemoryKilled says which task ended well though its memory limit had ended a process of it, and
// how many more are known; "": none.
func (j *Job) MemoryKilled(name func(node uint32) messages.Name) string {
	text, n := "", 0
	for i := range j.Kept {
		k := &j.Kept[i]
		if k.Reason != messages.EndMemoryKilled {
			continue
		}
		if n++; n == 1 {
			e := messages.Ending{Reason: k.Reason, ExitCode: int(k.Exit), Detail: k.Detail, Node: name(k.Node)}
			text = fmt.Sprintf("task %s.%d %v", j.Spec.Stages[k.Stage].Name, k.Index, e)
		}
	}
	if n > 1 {
		text += "; so did " + spelling.Number(n-1, "other task", "other tasks")
	}
	return text
}

// OfTask reports whether a reason is the doing of the task.
func OfTask(r messages.EndReason) bool {
	return r >= messages.EndExitCode && r <= messages.EndCannotStart
}

// Limit is the limit that ended a job whose reason is that its task exceeded a limit.
func (j *Job) Limit() string {
	for i := range j.Kept {
		if r := j.Kept[i].Reason; r == messages.EndMemoryLimit || r == messages.EndDiskLimit {
			return r.String()
		}
	}
	return j.Reason
}

// shareDetails has details that are equal in memory once.
func (a Attempts) shareDetails() {
	for i := range a {
		at := slices.IndexFunc(a, func(k Kept) bool { return k.Detail == a[i].Detail })
		a[i].Detail = a[at].Detail
	}
}

// stopping is why an attempt ends that its node was told to end.
func (j *Job) stopping(h NodeClaim) messages.EndReason {
	switch {
	case h.Why != messages.NoReason:
		return h.Why
	case j.Active():
		return messages.EndAgentStops
	case j.Outcome == messages.Cancelled:
		return messages.EndCancelled
	}
	return messages.EndJobOver
}

// why is why an attempt ended as its node reports it.
func (j *Job) why(f *messages.Finished, h NodeClaim, broken bool) messages.EndReason {
	switch {
	case broken && j.Active():
		return cmp.Or(h.Why, messages.EndGang)
	case f.Outcome == messages.Stopped:
		return j.stopping(h)
	}
	return f.Reason()
}

// failing says which attempt of a task ended a job, and how.
func (x *exchanges) failing(j *Job, r messages.TaskRef, f *messages.Finished, node messages.Name) string {
	e := messages.Ending{Reason: f.Reason(), ExitCode: f.ExitCode, Detail: f.Detail, Node: node}
	text := fmt.Sprintf("task %s.%d %v", j.Spec.Stages[r.Stage].Name, r.Index, e)
	tried, counted := int(f.Attempt.Number), int(j.Stages[r.Stage].Tasks[r.Index].Tries)
	if tried > 1 {
		text += fmt.Sprintf("; tried %d times", tried)
	}
	if counted < tried {
		text += " (" + spelling.Number(counted, "counts as a failure", "count as failures") + ")"
	}
	return text
}
