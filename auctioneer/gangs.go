package auctioneer

import (
	"cmp"
	"context"
	"time"

	"go.uber.org/zap"

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

// gathering is a gang of which some tasks are claimed, and since when.
type gathering struct {
	gang
	since messages.Time
}

// gather notes which gangs of a job gather. The caller holds l.mu.
func (l *leader) gather(n *jobNews) {
	for i := range n.job.Spec.Stages {
		if n.job.Spec.Stages[i].Gang {
			delete(l.gangs, gang{n.id, uint32(i)})
		}
	}
	for _, g := range n.gangs {
		l.gangs[g.gang] = g.since
	}
}

// gangEnds is when a gang has gathered for too long.
func (l *leader) gangEnds(g gang, since messages.Time) messages.Time {
	timeout := defaultGangTimeout
	l.replica.read(func(b *book.Book) {
		if j := b.Job(g.job); j != nil {
			if t := l.market(j.Spec.Market); t != nil {
				timeout = cmp.Or(t.Config.GangTimeout, timeout)
			}
		}
	})
	return since.Add(timeout)
}

// disband gives back the tasks of gangs that do not come together in time.
func (l *leader) disband(ctx context.Context, now messages.Time) {
	l.mu.Lock()
	var late []*book.Disband
	for g, since := range l.gangs {
		if l.gangEnds(g, since) <= now {
			late = append(late, &book.Disband{Job: g.job, Stage: g.stage, Since: since})
			l.gangs[g] = now // asked for: again only if that is lost
		}
	}
	l.mu.Unlock()
	for _, d := range late {
		go func() {
			_, err := l.propose(ctx, &book.Command{Disband: d})
			l.Log.Info("a gang did not come together in time", zap.Stringer("job", d.Job), zap.Error(err))
		}()
	}
}
