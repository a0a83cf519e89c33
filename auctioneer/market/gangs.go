package market

import (
	"cmp"
	"slices"
	"time"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
)

// defaultGangTimeout is how long a gang gathers where its market does not say.
const defaultGangTimeout = messages.Duration(10 * time.Second)

// gang is a stage whose tasks start together.
type gang struct {
	job   messages.JobID
	stage uint32
}

// Gathering is a gang of which some tasks are claimed.
type Gathering struct {
	gang
	since, until messages.Time
}

// GatheringOf says which gangs of a job of the market gather.
func (m *Market) GatheringOf(j *book.Job) (out []Gathering) {
	timeout := cmp.Or(m.Config.GangTimeout, defaultGangTimeout)
	for i := range j.Stages {
		if at := j.Stages[i].Gathered; at != 0 && j.Active() {
			out = append(out, Gathering{gang{j.ID, uint32(i)}, at, at.Add(timeout)})
		}
	}
	return out
}

// Gangs remembers which gangs gather, and until when. Its zero value is ready.
type Gangs struct{ gather map[gang]Gathering }

// Put notes which gangs of a job gather now, of all of its stages.
func (g *Gangs) Put(job *messages.JobSpec, id messages.JobID, now []Gathering) {
	for i := range job.Stages {
		if job.Stages[i].Gang {
			delete(g.gather, gang{id, uint32(i)})
		}
	}
	for _, n := range now {
		if g.gather == nil {
			g.gather = map[gang]Gathering{}
		}
		g.gather[n.gang] = n
	}
}

// Late returns what gives back the tasks of gangs that did not come together in
// time, in the order of their jobs. Each comes again after a while, should it be lost.
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

// Next is when the first gang will have gathered for too long; 0: none gathers.
func (g *Gangs) Next() (at messages.Time) {
	for _, n := range g.gather {
		if at == 0 || n.until < at {
			at = n.until
		}
	}
	return at
}
