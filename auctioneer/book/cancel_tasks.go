package book

import (
	"fmt"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// cancelTasks cancels tasks of a stage, and returns how many. Tasks that have ended do not change.
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
	if len(skipped) > job.MaxRanges {
		return 0, messages.Errorf(messages.TooLarge, "tasks: the cancelled tasks of job %d are in more than %d ranges; cancel longer runs of indices", j.ID, job.MaxRanges)
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

// cancelTask cancels a task and stops its running attempt. It reports whether the task had not ended yet.
func (x *exchanges) cancelTask(j *Job, r messages.TaskRef) bool {
	s := &j.Stages[r.Stage]
	switch t := &s.Tasks[r.Index]; t.Phase {
	case Pending:
		s.cancelled(t, x.clock.now)
		s.gone++
		return true
	case Paired:
		s.cancelled(t, x.clock.now)
		return true
	case Claimed:
		a := messages.Attempt{Task: r, Number: t.Attempt}
		node, h, ok := x.claims.claimOf(a)
		if !ok || h.Why == job.EndTaskCancelled {
			return false
		}
		x.claims.complete(a.Task, h, ByOwner)
		h.Leaving, h.Why = true, job.EndTaskCancelled
		x.claims.turn(node, r, h)
		x.claims.stop(a)
		return true
	}
	return false
}
