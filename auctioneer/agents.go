package auctioneer

import (
	"context"
	"time"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/desk"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
)

type agents struct {
	*term
	inputs      *inbox
	quarantines *quarantines
}

func (a agents) register(ctx context.Context, node messages.Name, r agent.RegisterRequest) (reply agent.RegisterReply, err error) {
	if r.Leaving {
		_, err = propose[int](ctx, a.site, &book.Command{Lost: &book.Lost{Node: node, Session: r.Session, Stopped: true}})
		return reply, err
	}
	var command *book.Command
	a.with(func(d *desk.Desk) { command, err = d.Register(node, &r) })
	if err != nil {
		return reply, err
	}
	end, err := propose[[]messages.Attempt](ctx, a.site, command)
	if err != nil {
		return reply, err
	}
	a.with(func(d *desk.Desk) { reply = d.Registered(a.instant(), node, &r, end) })
	return reply, nil
}

// exchange commits the finished tasks and the claims of an agent. If the exchange has no finished tasks and no claims,
// exchange only renews the node's lease. This needs no commit.
func (a agents) exchange(ctx context.Context, node messages.Name, x agent.Exchange) (reply agent.ExchangeReply, err error) {
	heard := a.instant()
	a.metrics.exchanges.Inc()
	var commits bool
	a.replica.read(func(b *book.Book) { commits = desk.MustCommit(b, heard.Wall, node, &x) })
	var grants []agent.Grant
	if commits {
		grants, err = a.commit(ctx, node, &x)
	} else {
		err = a.verify(ctx)
	}
	if err != nil {
		return reply, err
	}
	var slots []job.ClassSlots
	a.replica.read(func(b *book.Book) {
		if reply, err = desk.Answer(b, node, &x, grants); err != nil {
			return
		}
		if n := b.Node(node); n != nil && n.Session == x.Session {
			slots = n.Slots
			a.quarantines.note(a.site, n)
		}
	})
	if err != nil {
		return reply, err
	}
	a.inputs.add(desk.Heard{Node: node, At: heard.Mono})
	if a.inForce().Informs() && slots != nil {
		a.with(func(d *desk.Desk) { d.Inform(node, slots, &reply) })
	}
	return reply, nil
}

// proposal builds the log command for an exchange. If a market is about to decide about the claims of the exchange,
// proposal first waits for the decision. Otherwise the node would learn the decision only from the market's next
// vector, and a site with many nodes rarely publishes vectors. If all tasks that the node could get are reserved, the
// command is not urgent. It may wait for the next log entry, because that entry often frees a reserved task.
func (a agents) proposal(ctx context.Context, node messages.Name, x *agent.Exchange) (p desk.Proposal) {
	var late <-chan time.Time
	for over := false; ; {
		var stepped <-chan struct{}
		a.with(func(d *desk.Desk) {
			if !over && d.AwaitsDecision(x) {
				stepped = a.stepped
			} else {
				if d.AllReserved(node, x) {
					p.Patience = desk.SharedWithin
				}
				p.Command = d.Exchange(node, x)
			}
		})
		if p.Command != nil {
			return p
		}
		if late == nil {
			late = time.After(desk.DecidingWithin.Std())
		}
		select {
		case <-stepped:
		case <-late:
			over = true
		case <-ctx.Done():
			over = true
		}
	}
}

func (a agents) commit(ctx context.Context, node messages.Name, x *agent.Exchange) ([]agent.Grant, error) {
	a.metrics.claims.Add(float64(len(x.Claims)))
	p := a.proposal(ctx, node, x)
	grants, err := propose[[]agent.Grant](patiently(ctx, p), a.site, p.Command)
	if ungranted := desk.Ungranted(p.Command.Exchange, grants); len(ungranted) > 0 {
		a.with(func(d *desk.Desk) { d.Unreserve(ungranted) })
	}
	if err != nil {
		return nil, err
	}
	a.metrics.finishes.Add(float64(len(x.Finished)))
	a.metrics.grants.Add(float64(len(grants)))
	if grants == nil { // nil would mean that no exchange was committed
		grants = []agent.Grant{}
	}
	return grants, nil
}

// vector sends the current vector to an agent that missed a change.
func (a agents) vector(_ context.Context, _ messages.Name, r agent.VectorRequest) (v agent.Vector, err error) {
	a.with(func(d *desk.Desk) { v, err = d.Vector(r.Market) })
	return v, err
}
