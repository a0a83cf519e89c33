package book

import "github.com/candor-grid/candor/messages"

// visitors finds the jobs here that are another site's, and counts them by site.
type visitors struct {
	byVisit map[messages.Visit]messages.JobID
	guests  map[messages.Name]VisitingCount
}

// VisitingCount counts the jobs of another site: the jobs that have not ended, and all
// remembered jobs. The limit is for the site, not for its users, because the site can
// invent users.
type VisitingCount struct{ Pending, Remembered int }

// check refuses a visiting job that is here already, or one too many.
func (v *visitors) check(visit *Visit) error {
	switch {
	case visit == nil:
		return nil
	case v.byVisit[visit.Visit] != 0:
		return messages.Errorf(messages.Conflict, "job %v is of another account here", visit.Visit)
	case len(v.byVisit) >= MaxVisits:
		return messages.Errorf(messages.Exhausted, "the site remembers %d jobs of other sites; submit again later", MaxVisits)
	}
	return nil
}

// enter enters a job, should it be another site's.
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

// countGuest changes the counts of a job of another site. It ignores jobs of this site.
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
