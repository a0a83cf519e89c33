package intake

import (
	"slices"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/mechanism/registry"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// MayHold returns an error if the job must not be put on hold, because prices of other jobs depend on it.
func (r *Rules) MayHold(j *book.Job) error {
	if m := r.Find(j.Spec.Market); j.Active() && j.Parked == nil && m != nil && registry.Of(m).Stays {
		return messages.Errorf(messages.Conflict,
			"job %d cannot be put on hold: it competes in market %s, and the prices of other jobs depend on it; cancel the job, or submit a new job on hold", j.ID, m.Name)
	}
	return nil
}

// Change returns the command that changes the description of a job. If the rate changes, Change calls `admit`, which
// returns an error if the market does not accept the job with the new rate.
func (r *Rules) Change(j *book.Job, q *job.ChangeRequest, admit func(*job.JobSpec) error) (*book.Change, error) {
	c := &book.Change{Job: q.Job, Key: q.Key, Budget: q.Budget, Version: j.Changes}
	if q.Key != "" && q.Key == j.ChangeKey { // this change was made before
		return c, nil
	}
	if err := r.mayChange(j, q); err != nil {
		return nil, err
	}
	var err error
	if c.To, err = r.described(j, q, admit); err != nil {
		return nil, err
	}
	c.Unstarted = q.Rate != 0 || q.TimeLimit != 0 || q.Waits != nil
	return c, nil
}

// MayWait is called when a user asks for new conditions under which a job may start. `w` has the new conditions.
// MayWait returns an error if this change is not allowed. The function `visible` returns an error for a job that the
// owner may not see.
func (r *Rules) MayWait(j *book.Job, w *job.Conditions, visible func(messages.JobID) error) error {
	if j.Spec.AfterEach != 0 {
		return messages.Errorf(messages.Conflict, "job %d waits for another array task by task, and this cannot be changed: cancel the job and submit it again", j.ID)
	}
	if m := r.Find(j.Spec.Market); m != nil {
		if t := registry.Of(m); t.Stays || t.FixesTimes() {
			return messages.Errorf(messages.Conflict, "the dependencies of job %d cannot be changed, because prices or times of other jobs in market %s depend on this job: cancel the job and submit it again", j.ID, m.Name)
		}
	}
	for _, id := range slices.Concat(w.AfterJobs, w.AfterOK, w.AfterFailed, w.AfterStart) {
		if id >= j.ID { // a job may wait only for jobs with lower numbers, so jobs never wait for one another in a circle
			return messages.Errorf(messages.Invalid, "job %d can only wait for jobs that were submitted before it, and job %d was not", j.ID, id)
		}
		if err := visible(id); err != nil {
			return err
		}
	}
	return nil
}

// mayChange returns an error for a change of the bid that the mechanism does not allow.
func (r *Rules) mayChange(j *book.Job, q *job.ChangeRequest) error {
	m := r.Find(j.Spec.Market)
	if m == nil {
		return messages.Errorf(messages.Conflict, "market %s of job %d is closed", j.Spec.Market, j.ID)
	}
	raises := registry.Of(m).Raises
	switch {
	case q.Budget != 0 && q.Budget != j.Spec.Budget && !raises.Budget:
		return messages.Errorf(messages.Conflict, "budget: bids in %s markets, such as %s, cannot change; cancel the job and submit it again", m.Mechanism, m.Name)
	case q.Rate != 0 && q.Rate != j.Spec.Rate && !raises.Rate:
		return messages.Errorf(messages.Conflict, "rate: bids in %s markets, such as %s, have no rate that can change", m.Mechanism, m.Name)
	case q.Rate != 0 && q.Rate < j.Spec.Rate:
		return messages.Errorf(messages.Invalid, "rate: the rate of job %d, %s, can only be raised: cancel the job and submit it again to offer less", j.ID, messages.Price(j.Spec.Rate).Words())
	}
	return nil
}

// described returns the description that a job has after a change, without the budget. It returns nil if the
// description does not change.
func (r *Rules) described(j *book.Job, q *job.ChangeRequest, admit func(*job.JobSpec) error) (*job.JobSpec, error) {
	if q.Name == "" && q.Rate == 0 && q.TimeLimit == 0 && q.MaxRunning == nil && q.Comment == nil && q.Waits == nil {
		return nil, nil
	}
	spec := *j.Spec
	spec.Stages = slices.Clone(spec.Stages)
	if q.Name != "" {
		spec.Name = q.Name
	}
	if q.Rate != 0 {
		spec.Rate = q.Rate
	}
	if q.Comment != nil {
		spec.Comment = *q.Comment
	}
	if q.Waits != nil {
		spec.WaitFor(q.Waits)
	}
	if err := restage(&spec, q); err != nil {
		return nil, err
	}
	limits := slices.Clone(spec.Stages)
	m := r.Find(spec.Market)
	if m == nil {
		return nil, r.Missing("market: ", spec.Market)
	}
	if err := r.complete(j.Account, &spec, m); err != nil {
		return nil, err
	}
	for i := range limits {
		if limits[i].TimeLimit != spec.Stages[i].TimeLimit {
			return nil, messages.Errorf(messages.Invalid, "time_limit: market %s allows at most %v", spec.Market, spec.Stages[i].TimeLimit)
		}
	}
	if err := spec.Validate(); err != nil || spec.Rate == j.Spec.Rate {
		return &spec, err
	}
	return &spec, admit(&spec)
}

// A request can change the time limit of a stage, and the number of its tasks that run at the same time. restage makes
// this change in the description `spec`. It returns an error if the request does not say which stage is meant.
func restage(spec *job.JobSpec, q *job.ChangeRequest) error {
	at := 0
	switch {
	case q.TimeLimit == 0 && q.MaxRunning == nil:
		return nil
	case q.Stage != nil:
		at = *q.Stage
	case len(spec.Stages) > 1:
		return messages.Errorf(messages.Invalid, "stage: the job has %d stages; name the stage to change", len(spec.Stages))
	}
	if at < 0 || at >= len(spec.Stages) {
		return messages.Errorf(messages.NotFound, "stage: the job has stages 0 to %d", len(spec.Stages)-1)
	}
	if q.TimeLimit != 0 {
		spec.Stages[at].TimeLimit = q.TimeLimit
	}
	if q.MaxRunning != nil {
		spec.Stages[at].MaxRunning = *q.MaxRunning
	}
	return nil
}
