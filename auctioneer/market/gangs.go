package market

import (
	"cmp"
	"slices"
	"time"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
)

// defaultGangTimeout is how long a gang may wait for all its slots if its market sets no time.
const defaultGangTimeout = messages.Duration(10 * time.Second)

// gang names a stage of a job whose tasks start together.
type gang struct {
	job   messages.JobID
	stage uint32
}

// gathering has the time since which a gang gathers slots, and the time until which it may gather them.
type gathering struct{ since, until messages.Time }

// Gangs has the gangs that gather slots. Some tasks of such a gang are claimed, and its other tasks must be claimed
// before a deadline. The zero value of Gangs is ready to use.
type Gangs struct{ gather map[gang]gathering }

// Put brings the list of gangs that gather slots up to date after a change of a job. It adds the job's gangs that
// gather slots now, and removes the job's other gangs.
func (g *Gangs) Put(m *Market, j *book.Job) {
	timeout := cmp.Or(m.Config.GangTimeout, defaultGangTimeout)
	for i := range j.Stages {
		k := gang{j.ID, uint32(i)}
		delete(g.gather, k)
		within := timeout
		if j.Spec.Stages[i].Allocation {
			within = book.GatherFor
		}
		if since := j.Stages[i].Gathered; since != 0 && j.Active() {
			if g.gather == nil {
				g.gather = map[gang]gathering{}
			}
			g.gather[k] = gathering{since, since.Add(within)}
		}
	}
}

// Late returns the commands that end the gathering of gangs whose deadline has passed, ordered by job. Each command may
// get lost, so Late returns it again after the next deadline (defaultGangTimeout).
func (g *Gangs) Late(now messages.Time) (out []*book.Disband) {
	for k, n := range g.gather {
		if n.until <= now {
			out = append(out, &book.Disband{Job: k.job, Stage: k.stage, Since: n.since})
			n.until = now.Add(defaultGangTimeout)
			g.gather[k] = n
		}
	}
	slices.SortFunc(out, func(a, b *book.Disband) int {
		return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Stage, b.Stage))
	})
	return out
}

// The method Late has already returned the command d once. After a call of Again, Late returns d a second time when the
// time `at` has come.
func (g *Gangs) Again(d *book.Disband, at messages.Time) {
	k := gang{d.Job, d.Stage}
	if n, gathers := g.gather[k]; gathers && n.since == d.Since {
		g.gather[k] = gathering{n.since, at}
	}
}

// Next returns the earliest deadline, or 0 if no gang gathers.
func (g *Gangs) Next() (at messages.Time) {
	for _, n := range g.gather {
		at = messages.Earlier(at, n.until)
	}
	return at
}
