package book

import (
	"fmt"
	"slices"

	"github.com/candor-grid/candor/messages"
)

// cancelTasks cancels tasks of a stage of a job that goes on with its other tasks. Tasks
// that are over stay as they are. The result is how many tasks the command cancelled.
func (x *exchanges) cancelTasks(c *CancelTasks) (n int, err error) {
	j := x.jobs.own(c.Job)
	switch {
	case j == nil:
		return 0, messages.Errorf(messages.NotFound, "there is no job %d", c.Job)
	case !j.Active():
		return 0, messages.Errorf(messages.Ended, "job %d is %v already", j.ID, j.Outcome)
	case c.Stage < 0 || c.Stage >= len(j.Stages):
		return 0, messages.Errorf(messages.NotFound, "stage: job %d has stages 0 to %d", j.ID, len(j.Stages)-1)
	case j.Order != nil || j.Contract != nil:
		return 0, messages.Errorf(messages.Conflict, "job %d has reserved slots for all its tasks; cancel the whole job", j.ID)
	case j.Spec.Stages[c.Stage].Gang:
		return 0, messages.Errorf(messages.Conflict, "stage %s of job %d is a gang, and all tasks of a gang run together; cancel the whole job", j.Spec.Stages[c.Stage].Name, j.ID)
	}
	s := &j.Stages[c.Stage]
	begun, rest, err := s.divide(c.Tasks)
	if err != nil {
		return 0, err
	}
	skipped := s.with(rest)
	if len(skipped) > messages.MaxRanges {
		return 0, messages.Errorf(messages.TooLarge, "tasks: the cancelled tasks of job %d are in more than %d ranges; cancel longer runs", j.ID, messages.MaxRanges)
	}
	n = int(skipped.Count() - s.Skipped.Count())
	s.Cancelled, s.Skipped = s.Cancelled+n, skipped
	s.pass(x.clock.now)
	for _, index := range begun {
		if x.cancelTask(j, messages.TaskRef{Job: j.ID, Stage: uint32(c.Stage), Index: index}) {
			n++
		}
	}
	if 2*s.gone > len(s.Again) {
		s.forgetGone()
	}
	if n == 0 {
		return 0, messages.Errorf(messages.Ended, "these tasks of job %d are over already", j.ID)
	}
	if who := by(c.By, j.Account); j.Failures() == 0 {
		j.Reason = "CancelledBy" + who
		j.Cause = fmt.Sprintf("cancelled in part by %s, %s", c.By, cancellers[who])
	}
	x.watch.touch(j.ID)
	if s.over() && j.Started == 0 {
		x.endings.forfeit(j, &Cancel{By: c.By, Window: c.Window})
	}
	x.conclude(j, c.Stage)
	return n, nil
}

// cancellers describes who may cancel.
var cancellers = map[string]string{"User": "its owner", "Operator": "an operator"}

// divide divides positions of a stage into tasks that were claimed before and other tasks.
func (s *Stage) divide(tasks messages.Array) (begun []uint32, rest []int64, err error) {
	if n := tasks.Count(); n == 0 || n > int64(s.Total) {
		return nil, nil, messages.Errorf(messages.Invalid, "tasks: %d are named, and the stage has %d", n, s.Total)
	}
	for at := range tasks.Indices {
		switch {
		case at >= int64(s.Total):
			return nil, nil, messages.Errorf(messages.NotFound, "tasks: there is no task %d, as the stage has tasks 0 to %d", at, s.Total-1)
		case at < int64(len(s.Tasks)):
			begun = append(begun, uint32(at))
		default:
			rest = append(rest, at)
		}
	}
	return begun, rest, nil
}

// with is the tasks that no node is to claim, with others; it may have too many ranges. It looks at
// ranges, and at the other positions.
func (s *Stage) with(positions []int64) (all messages.Array) {
	slices.Sort(positions)
	positions = slices.Compact(positions)
	for _, r := range s.Skipped {
		for len(positions) > 0 && positions[0] <= r.Last {
			at := positions[0]
			positions = positions[1:]
			if over := at - r.First; over >= 0 && over%r.Step == 0 {
				continue
			} else if over > 0 {
				all = join(all, messages.Range{First: r.First, Last: at - over%r.Step, Step: r.Step})
				r.First = at - over%r.Step + r.Step
			}
			all = all.With(at)
		}
		all = join(all, r)
	}
	for _, at := range positions {
		all = all.With(at)
	}
	return all
}

// join adds a range to an array that ends before the range.
func join(all messages.Array, r messages.Range) messages.Array {
	if r.First == r.Last {
		return all.With(r.First)
	}
	if n := len(all); n > 0 {
		last := &all[n-1]
		if last.Last+r.Step == r.First && (last.Step == r.Step || last.First == last.Last) {
			last.Last, last.Step = r.Last, r.Step
			return all
		}
	}
	return append(all, r)
}

// pass passes over the next tasks of a stage that no node is to claim.
func (s *Stage) pass(now messages.Time) {
	for len(s.Skipped) > 0 && s.Skipped[0].First == int64(len(s.Tasks)) {
		s.Tasks = append(s.Tasks, Task{Phase: Failed, Reason: messages.EndTaskCancelled, Ended: now})
		if r := &s.Skipped[0]; r.First == r.Last {
			s.Skipped = s.Skipped[1:]
		} else {
			r.First += r.Step
		}
	}
	if len(s.Skipped) == 0 {
		s.Skipped = nil // as an image has it
	}
}

// cancelTask cancels a task that a node claimed before, and says whether the task was not
// over. An attempt that runs is stopped.
func (x *exchanges) cancelTask(j *Job, r messages.TaskRef) bool {
	s := &j.Stages[r.Stage]
	switch t := &s.Tasks[r.Index]; t.Phase {
	case Pending:
		s.cancelled(t, x.clock.now)
		s.gone++
		return true
	case Claimed:
		a := messages.Attempt{Task: r, Number: t.Attempt}
		node, h, ok := x.claims.claimOf(a)
		if !ok || h.Why == messages.EndTaskCancelled {
			return false
		}
		x.claims.complete(a.Task, h, ByOwner)
		h.Leaving, h.Why = true, messages.EndTaskCancelled
		x.claims.turn(node, r, h)
		x.claims.stop(a)
		return true
	}
	return false
}

// forgetGone takes the tasks that were cancelled off those to be claimed again.
func (s *Stage) forgetGone() {
	s.Again = slices.DeleteFunc(s.Again, func(index uint32) bool { return s.Tasks[index].Phase != Pending })
	s.gone = 0
}

// cancelled ends a task for good that was cancelled.
func (s *Stage) cancelled(t *Task, now messages.Time) {
	t.Phase, t.Reason, t.Ended = Failed, messages.EndTaskCancelled, now
	s.Cancelled++
}

// giveBack ends an attempt that its node lost. A task that was cancelled does not run again.
func (x *exchanges) giveBack(r messages.TaskRef, h NodeClaim, why messages.EndReason) {
	j := x.jobs.own(r.Job)
	if h.Why != messages.EndTaskCancelled || j == nil || !j.Active() {
		x.claims.giveBack(r, h, why)
		return
	}
	s := &j.Stages[r.Stage]
	s.Running--
	x.claims.attemptEnded(r, h, h.Why, nil)
	s.cancelled(&s.Tasks[r.Index], x.clock.now)
	x.watch.touch(j.ID)
	x.conclude(j, int(r.Stage))
}
