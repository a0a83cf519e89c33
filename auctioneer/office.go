package auctioneer

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// office is what lasts for a term: that requests are answered, and what is known
// of agents and other sites. Whoever leads in it may be replaced, as when markets
// are applied; requests that the one before has begun to answer it answers.
type office struct {
	*Auctioneer
	term    uint64
	leases  *leases
	travel  *travel
	current atomic.Pointer[inCharge]

	life    context.Context // the term
	cancel  context.CancelFunc
	end     func() // of who leads
	serving sync.WaitGroup
}

// inCharge is how requests are answered.
type inCharge struct {
	services []bus.Service
	handlers map[string]bus.Handler // by subject
	relieved chan struct{}          // closed when others are
}

// take begins to lead in a term.
func (a *Auctioneer) take(ctx context.Context, term uint64) *office {
	o := &office{Auctioneer: a, term: term, leases: newLeases()}
	o.life, o.cancel = context.WithCancel(ctx)
	o.travel = newTravel(o.life.Done())
	o.end = a.lead(o)
	o.serving.Go(o.keepServing)
	a.metrics.leading.Set(1)
	return o
}

// anew has another leader take over, whose markets are those of the book now.
func (o *office) anew() {
	o.end()
	o.end = o.lead(o)
}

// close ends the term.
func (o *office) close() {
	o.metrics.leading.Set(0)
	o.cancel()
	o.serving.Wait()
	o.end()
}

// hand has requests go to these services from now on.
func (o *office) hand(services []bus.Service) {
	next := &inCharge{services: services, handlers: map[string]bus.Handler{}, relieved: make(chan struct{})}
	for _, s := range services {
		for _, e := range s.Endpoints {
			next.handlers[e.Subject] = e.Handle
		}
	}
	if last := o.current.Swap(next); last != nil {
		close(last.relieved)
	}
}

// services are those of whoever leads, by way of the office.
func (o *office) services() []bus.Service {
	services := o.current.Load().services
	for _, s := range services {
		for i := range s.Endpoints {
			e := &s.Endpoints[i]
			e.Handle = func(ctx context.Context, r bus.Request) ([]byte, error) { return o.answer(ctx, e.Subject, r) }
		}
	}
	return services
}

// reliefWithin is how long whoever has just applied markets takes at most to be
// relieved.
const reliefWithin = time.Second

// answer has a request answered, again if it was refused because markets were
// applied meanwhile.
func (o *office) answer(ctx context.Context, subject string, r bus.Request) ([]byte, error) {
	for {
		now := o.current.Load()
		reply, err := now.handlers[subject](ctx, r)
		if messages.KindOf(err) != messages.NotLeader {
			return reply, err
		}
		select {
		case <-now.relieved:
		case <-o.life.Done():
			return reply, err
		case <-ctx.Done():
			return reply, err
		case <-time.After(reliefWithin):
			return reply, err
		}
	}
}

// keepServing serves until the term ends. While the bus is cut it tries again: a leader
// that nobody can reach would keep everybody waiting.
func (o *office) keepServing() {
	const pause = 100 * time.Millisecond
	for {
		stop, err := o.serve()
		if err == nil {
			<-o.life.Done()
			stop()
			return
		}
		o.Log.Warn("cannot serve yet", zap.Error(err))
		stop()
		if !sleep(o.life, pause) {
			return
		}
	}
}

// serve opens the leader's services; what it opened before an error is for
// stop to close.
func (o *office) serve() (stop func(), err error) {
	var open []bus.Subscription
	stop = func() {
		for _, s := range open {
			_ = s.Stop()
		}
	}
	for _, s := range o.services() {
		sub, err := o.Bus.Serve(s)
		if err != nil {
			return stop, err
		}
		open = append(open, sub)
	}
	return stop, nil
}
