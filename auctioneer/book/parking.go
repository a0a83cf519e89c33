package book

import "github.com/candor-grid/candor/messages"

func (c *claims) park(p *Park) (out Parking, err error) {
	j := c.jobs.own(p.Job)
	switch {
	case j == nil:
		return out, messages.Errorf(messages.NotFound, "there is no job %d", p.Job)
	case !j.Active():
		return out, messages.Errorf(messages.Ended, "job %d is %v already", j.ID, j.Outcome)
	case p.Release && j.Parked != nil && j.Parked.Operator && !p.Operator:
		return out, messages.Errorf(messages.PermissionDenied, "an operator put job %d on hold: only an operator releases it", j.ID)
	case !p.Release && j.Order != nil:
		return out, messages.Errorf(messages.Conflict, "job %d cannot be put on hold: slots are reserved for it from %v on; cancel the job to give the slots up", j.ID, j.Order.At)
	case !p.Release && j.Contract != nil:
		return out, messages.Errorf(messages.Conflict, "job %d cannot be put on hold: it has a contract about its completion", j.ID)
	}
	_, running, _ := j.Count()
	c.watch.touch(j.ID)
	return Parking{State: j.State, Running: running, Changed: j.park(p, c.clock.now)}, nil
}

// park puts the job on hold or releases it, and reports whether this changed anything. If the owner has put the job on
// hold, an operator can also put it on hold. Then only an operator can release it. If an operator has put it on hold,
// the owner cannot take over the hold.
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
