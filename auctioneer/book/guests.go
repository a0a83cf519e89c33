package book

import "github.com/candor-grid/candor/messages"

// Guests counts the jobs of another site: those that have not ended, and all that
// are remembered. They count as that site's, as it names its users as it likes.
type Guests struct{ Pending, Remembered int }

// Guests counts the jobs of another site.
func (b *Book) Guests(home messages.Name) Guests { return b.guests[home] }

// countGuest adds a job of another site to its counts, or takes it away; a job of
// this one counts as none.
func (b *Book) countGuest(j *Job, pending, remembered int) {
	if j.Visit == nil {
		return
	}
	g := b.guests[j.Visit.Home]
	g.Pending, g.Remembered = g.Pending+pending, g.Remembered+remembered
	if b.guests[j.Visit.Home] = g; g == (Guests{}) {
		delete(b.guests, j.Visit.Home)
	}
}

// recountGuests works out the jobs of all other sites.
func (b *Book) recountGuests() {
	for _, id := range b.visits {
		j, pending := b.jobs[id], 1
		if j.State.Final() {
			pending = 0
		}
		b.countGuest(j, pending, 1)
	}
}
