package book

import "github.com/candor-grid/candor/messages"

// Parked says that a job gets no tasks, by whose word. Users say that the job is on
// hold; a hold in the book is of credits.
type Parked struct {
	By       messages.Name
	Operator bool // who is not the owner: only an operator releases the job
}

// Arrived is since when the job wants slots: a job that was on hold, or waited for its
// time to begin or for other jobs to end, keeps no place in a queue by that.
func (j *Job) Arrived() messages.Time { return max(j.Submitted, j.Released, j.Spec.Begin) }

// Away says whether the job takes no part in its market: it is on hold, and no task of
// it has been started.
func (j *Job) Away() bool { return j.Parked != nil && j.Started == 0 }

// park has a job get no tasks, or releases it.
func (b *Book) park(c *Park) (p Parking, err error) {
	j := b.jobs.own(c.Job)
	switch {
	case j == nil:
		return p, messages.Errorf(messages.NotFound, "there is no job %d", c.Job)
	case !j.Active():
		return p, messages.Errorf(messages.Ended, "job %d is %v already", j.ID, j.Outcome)
	case c.Release && j.Parked != nil && j.Parked.Operator && !c.Operator:
		return p, messages.Errorf(messages.PermissionDenied, "an operator put job %d on hold: only an operator releases it", j.ID)
	case !c.Release && j.Order != nil:
		return p, messages.Errorf(messages.Conflict, "job %d cannot be put on hold: slots are reserved for it from %v on; cancel the job to give the slots up", j.ID, j.Order.At)
	case !c.Release && j.Contract != nil:
		return p, messages.Errorf(messages.Conflict, "job %d cannot be put on hold: it has a contract about its completion", j.ID)
	}
	_, running, _ := j.Count()
	b.watch.touch(j.ID)
	return Parking{State: j.State, Running: running, Changed: j.park(c, b.clock.now)}, nil
}

// park parks or releases the job, and says whether that changed anything. What the owner
// parked an operator can park too, and not the other way.
func (j *Job) park(c *Park, now messages.Time) bool {
	was := j.Parked
	switch operator := c.By != j.Account; {
	case c.Release && was == nil, !c.Release && was != nil && (was.Operator || !operator):
		return false
	case c.Release:
		j.Parked, j.Released = nil, now
	default:
		j.Parked = &Parked{By: c.By, Operator: operator}
	}
	return true
}
