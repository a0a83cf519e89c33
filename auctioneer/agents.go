package auctioneer

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/market"
	"github.com/candor-grid/candor/messages"
)

// Limits on what an agent may say.
const (
	maxSlots     = 1 << 16 // of a class of a node
	maxClasses   = 32      // of a node
	maxAbilities = 32
)

func (l *leader) register(ctx context.Context, node messages.Name, r messages.RegisterRequest) (reply messages.RegisterReply, err error) {
	if err := checkNode(node, &r); err != nil {
		return reply, err
	}
	result, err := l.propose(ctx, &book.Command{Register: &book.Register{Node: node, Session: r.Session, Slots: r.Slots, Running: r.Running, Abilities: r.Abilities, MostSuspended: r.MostSuspended}})
	if err != nil {
		return reply, err
	}
	l.leases.renew(node, time.Now())
	l.informed.Delete(node)
	reply = messages.RegisterReply{Lease: l.Lease, Term: l.term, Stop: stops(result.([]messages.Attempt))}
	reply.Markets = l.served(node, r.Slots)
	return reply, nil
}

// served are the markets that allocate slots of a node.
func (l *leader) served(node messages.Name, slots []messages.ClassSlots) (out []messages.Market) {
	for _, m := range l.configs {
		if serves(&m, node) && slices.ContainsFunc(slots, func(s messages.ClassSlots) bool { return slices.Contains(m.Classes, s.Class) }) {
			m.Nodes = nil // which may be many, and of which an agent has no use
			out = append(out, m)
		}
	}
	return out
}

// inform returns a node's markets with the answer to its first exchange under
// this leader, and whenever that is repeated, where markets have been applied:
// the node may have registered under others.
func (l *leader) inform(n *book.Node, seq uint64) []messages.Market {
	if !l.reapplied {
		return nil
	}
	if first, known := l.informed.LoadOrStore(n.Name, seq); known && first != seq {
		return nil
	}
	if m := l.served(n.Name, n.Slots); m != nil {
		return m
	}
	return []messages.Market{}
}

// serves says whether a node's slots are a market's, as far as their classes are.
func serves(m *messages.Market, node messages.Name) bool {
	return len(m.Nodes) == 0 || slices.Contains(m.Nodes, node)
}

func checkNode(node messages.Name, r *messages.RegisterRequest) error {
	if !messages.ValidName(node) {
		return messages.Errorf(messages.Invalid, "node %q is not a valid name", node)
	}
	if r.Session == 0 {
		return messages.Errorf(messages.Invalid, "session: must not be 0; choose one at random when the agent starts")
	}
	if len(r.Slots) == 0 || len(r.Slots) > maxClasses {
		return messages.Errorf(messages.Invalid, "slots: a node offers between 1 and %d classes, not %d", maxClasses, len(r.Slots))
	}
	for i, s := range r.Slots {
		twice := slices.ContainsFunc(r.Slots[:i], func(o messages.ClassSlots) bool { return o.Class == s.Class })
		if !messages.ValidName(s.Class) || s.Slots < 1 || s.Slots > maxSlots || twice {
			return messages.Errorf(messages.Invalid, "slots[%d]: a class is named once, with 1 to %d slots", i, maxSlots)
		}
	}
	if len(r.Abilities) > maxAbilities || slices.ContainsFunc(r.Abilities, func(a messages.Name) bool { return !messages.ValidName(a) }) {
		return messages.Errorf(messages.Invalid, "abilities: must be at most %d names", maxAbilities)
	}
	if r.MostSuspended < 0 || r.MostSuspended > messages.MaxSuspended {
		return messages.Errorf(messages.Invalid, "most_suspended: %d must be from 1 to %d suspended tasks; leave it out for the default", r.MostSuspended, messages.MaxSuspended)
	}
	return nil
}

// exchange commits what an agent finished and claims. One that carries neither
// only renews the lease, which needs no commit.
func (l *leader) exchange(ctx context.Context, node messages.Name, x messages.Exchange) (reply messages.ExchangeReply, err error) {
	heard := time.Now()
	l.metrics.exchanges.Inc()
	reply.Seq = x.Seq
	if len(x.Finished) == 0 && len(x.Claims) == 0 && !l.examines(node) {
		if err := l.heartbeat(ctx, node, &x); err != nil {
			return reply, err
		}
	} else {
		result, err := l.propose(ctx, &book.Command{Exchange: &book.Exchange{
			Node: node, Session: x.Session, Seq: x.Seq, Finished: brief(x.Finished), Claims: l.resolve(node, x.Claims),
			Rules: book.RulesHealth}})
		if err != nil {
			return reply, err
		}
		reply.Grants = result.([]messages.Grant)
	}
	l.leases.renew(node, heard)
	l.metrics.finishes.Add(float64(len(x.Finished)))
	l.metrics.grants.Add(float64(len(reply.Grants)))
	l.replica.read(func(b *book.Book) {
		n := b.Node(node)
		reply.Programs = market.Programs(b, node, reply.Grants)
		if n != nil && n.Session == x.Session {
			reply.Stop = stops(n.Stop)
			reply.Held, reply.Version = n.Halted(), n.Version
			l.health.note(l.Auctioneer, n)
			reply.Markets = l.inform(n, x.Seq)
		}
	})
	return reply, nil
}

func (l *leader) heartbeat(ctx context.Context, node messages.Name, x *messages.Exchange) error {
	if err := l.verify(ctx); err != nil {
		return err
	}
	var valid bool
	l.replica.read(func(b *book.Book) {
		n := b.Node(node)
		valid = n != nil && n.Up && n.Session == x.Session
	})
	if !valid {
		return messages.Errorf(messages.Fenced, "session %x of node %s is over; stop its tasks and register again", x.Session, node)
	}
	return nil
}

// brief is what the book needs to know of the ends of tasks: not how they explain
// themselves, which for many of them is more than a command may have. Of probes
// there is one at a time.
func brief(finished []messages.Finished) []messages.Finished {
	out := slices.Clone(finished)
	for i := range out {
		if out[i].Attempt.Task.Job != 0 {
			out[i].Detail = ""
		}
	}
	return out
}

// stops are the attempts that a node is told to end now: the others are told when
// these have ended.
func stops(all []messages.Attempt) []messages.Attempt {
	return slices.Clone(all[:min(len(all), market.MostStops)])
}

// resolve gives each claim its jobs in order of preference: the one the agent
// sampled and, where that has too little work left, others drawn by their
// shares, as far as the answer has room. A claim that makes no sense finds nothing: the agent may not know yet
// that its market is no more.
func (l *leader) resolve(node messages.Name, claims []messages.Claim) []book.Claim {
	claims = claims[:min(len(claims), market.MostRequests)]
	out := make([]book.Claim, 0, len(claims))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.replica.read(func(b *book.Book) {
		for i := range claims {
			c := &claims[i]
			l.metrics.claims.Inc()
			if t := l.market(c.Market); t != nil && t.Class(c.Class) >= 0 && c.Slots >= 1 && c.Slots <= maxSlots && serves(&t.Config, node) {
				out = append(out, t.Resolve(b, c, l.rng))
			}
		}
		out = market.Fit(b, node, out)
	})
	return out
}

// vector answers an agent that missed a change.
func (l *leader) vector(_ context.Context, _ messages.Name, r messages.VectorRequest) (messages.Vector, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.market(r.Market)
	if t == nil {
		return messages.Vector{}, messages.Errorf(messages.NotFound, "there is no market %q; the site has %s", r.Market, marketNames(l.configs))
	}
	return t.publisher.Whole(t.Market), nil
}

func marketNames(markets []messages.Market) string {
	names := make([]messages.Name, len(markets))
	for i, m := range markets {
		names[i] = m.Name
	}
	return fmt.Sprint(names)
}
