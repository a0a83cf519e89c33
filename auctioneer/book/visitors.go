package book

import (
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// visitors finds the visiting jobs, which belong to other sites, and counts them by site.
type visitors struct {
	byVisit map[job.Visit]messages.JobID
	guests  map[messages.Name]VisitingCount
}

// VisitingCount has the number of another site's jobs that have not ended, and the number of that site's jobs that are
// remembered. The limits apply to a site as a whole, because a site can invent any number of users.
type VisitingCount struct{ Pending, Remembered int }

// check returns an error if a visiting job is already here, or its site has too many jobs.
func (v *visitors) check(visit *Visit) error {
	switch {
	case visit == nil:
		return nil
	case v.byVisit[visit.Visit] != 0:
		return messages.Errorf(messages.Conflict, "job %v belongs to another account here", visit.Visit)
	case len(v.byVisit) >= MaxVisits:
		return messages.Errorf(messages.Exhausted, "the site remembers %d jobs of other sites, which is the limit; submit again later", MaxVisits)
	}
	return nil
}

// enter adds a job if it belongs to another site.
func (v *visitors) enter(j *Job) {
	if j.Visit == nil {
		return
	}
	v.byVisit[j.Visit.Visit] = j.ID
	pending := 1
	if j.State.Final() {
		pending = 0
	}
	v.countGuest(j, pending, 1)
}

// countGuest adds `pending` and `remembered` to the counts of the site that sent a visiting job. It ignores jobs of
// this site.
func (v *visitors) countGuest(j *Job, pending, remembered int) {
	if j.Visit == nil {
		return
	}
	g := v.guests[j.Visit.Home]
	g.Pending, g.Remembered = g.Pending+pending, g.Remembered+remembered
	if v.guests[j.Visit.Home] = g; g == (VisitingCount{}) {
		delete(v.guests, j.Visit.Home)
	}
}
