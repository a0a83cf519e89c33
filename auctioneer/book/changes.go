package book

import (
	"slices"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

type changes struct {
	jobs         *jobs
	dependencies *dependencies
	effects      *effects
	watch        *watch
}

func (s *changes) change(c *Change) (out Changed, err error) {
	j := s.jobs.own(c.Job)
	switch {
	case j == nil:
		return out, messages.Errorf(messages.NotFound, "there is no job %d", c.Job)
	case c.Key != "" && c.Key == j.ChangeKey:
		return Changed{State: j.State, Effect: j.Raise.Effect}, nil
	case !j.Active():
		return out, messages.Errorf(messages.Ended, "job %d is %v already", j.ID, j.Outcome)
	case j.Started != 0 && (c.Unstarted || c.To != nil && !j.Spec.WaitsAs(c.To)):
		return out, messages.Errorf(messages.Conflict, "a task of job %d has started: the job's rate, its time limit and what it waits for can no longer be changed", j.ID)
	case c.To != nil && c.Version != j.Changes:
		return out, messages.Errorf(messages.Conflict, "job %d was changed at the same time; look at the job and repeat your change", j.ID)
	}
	if err := j.raisable(c.Budget); err != nil {
		return out, err
	}
	out.State, j.ChangeKey = j.State, c.Key
	if c.To != nil {
		if !j.Spec.WaitsAs(c.To) {
			s.dependencies.replace(j, c.To.Conditions())
		}
		j.describe(c.To)
	}
	if more := c.Budget - j.Spec.Budget; c.Budget != 0 && more > 0 {
		s.effects.effect(RaiseBudget, j.ID)
		j.Raise = Raise{Effect: s.effects.last, Amount: more}
		out.Effect = j.Raise.Effect
	}
	s.watch.touch(j.ID)
	return out, nil
}

// raisable returns an error if the job's budget cannot be raised to the given budget. There are two reasons: the given
// budget is below the present one, or the bank has not yet answered an earlier raise. The budget 0 means that no raise
// was asked for, and is no error.
func (j *Job) raisable(budget messages.Credits) error {
	switch {
	case budget == 0:
		return nil
	case j.Visit != nil:
		return messages.Errorf(messages.Invalid, "job %d belongs to site %s, which authorised its budget; the budget cannot change here", j.ID, j.Visit.Visit.Home)
	case j.Raise.Pending():
		return messages.Errorf(messages.Conflict, "the bank has not yet answered the last change of the budget of job %d; try again soon", j.ID)
	case budget < j.Spec.Budget:
		return messages.Errorf(messages.Invalid, "the budget of job %d, %s, can only be raised: cancel the job and submit it again to offer less", j.ID, j.Spec.Budget.Words())
	case budget > messages.MaxCredits:
		return messages.Errorf(messages.TooLarge, "budget: %v is above the limit of %v credits", budget, messages.MaxCredits)
	}
	return nil
}

// describe gives the job a new description. A user may change only some fields of a description. describe takes these
// fields from the argument `to`, and the others from the old description. The old description stays unchanged, because
// images and readers may still use it.
func (j *Job) describe(to *job.JobSpec) {
	spec := *j.Spec
	spec.Name, spec.Comment, spec.Rate, spec.Stages = to.Name, to.Comment, to.Rate, slices.Clone(spec.Stages)
	for i := range min(len(spec.Stages), len(to.Stages)) {
		spec.Stages[i].TimeLimit, spec.Stages[i].MaxRunning = to.Stages[i].TimeLimit, to.Stages[i].MaxRunning
	}
	j.Spec = &spec
	j.Changes++
}

// raised records whether the bank has granted a larger budget to a job.
func (s *changes) raised(e *Effect, o *Confirmation) {
	j := s.jobs.own(e.Job)
	if j == nil || j.Raise.Effect != e.ID {
		return
	}
	if o.Refused == "" {
		spec := *j.Spec
		spec.Budget += j.Raise.Amount
		j.Held += j.Raise.Amount
		j.Spec, j.LastDraw = &spec, e.ID
		j.Changes++
	}
	j.Raise.Amount, j.Raise.Refused = 0, o.Refused
	s.watch.touch(j.ID)
}

// RaisedTo returns the name and the amount of the hold that will replace the job's present hold. The amount is the
// present hold plus the increase of the budget.
func (j *Job) RaisedTo() (hold string, amount messages.Credits) {
	return j.RestID(j.Raise.Effect), j.Held - j.Drawn + j.Raise.Amount
}
