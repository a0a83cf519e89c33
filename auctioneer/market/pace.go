package market

import (
	"math/rand/v2"
	"time"

	"github.com/candor-grid/candor/messages"
)

// Due returns the market's next vector if one should go out now, to so many
// nodes. It is to be asked after every step, and at Wake.
func (p *Publisher) Due(m *Market, now messages.Time, nodes int, rng *rand.Rand) (v messages.Vector, ok bool) {
	pending := m.Claimable()
	announce, due := p.pace.due(now, pending)
	if !due {
		return v, false
	}
	v, ok = p.Next(m, now, rng, announce)
	p.pace.sent(now, pending, nodes, ok)
	return v, ok
}

// Reallocated has Due look for weights that have changed.
func (p *Publisher) Reallocated() { p.pace.reallocated = true }

// Wake is when Due may have a vector though nothing changes; 0: never.
func (p *Publisher) Wake() messages.Time { return p.pace.wake() }

// pace decides when a market's vector goes out: when weights changed, when
// idle slots have more work than agents were told of, and again, ever more
// rarely, while work and idle slots do not find each other; but never so
// often that handing it to every node would be all the site does.
type pace struct {
	reallocated bool
	pending     int           // in classes with idle slots, as last published
	next        messages.Time // of the next reminder; 0: none
	after       time.Duration // what the last reminder waited
	notBefore   messages.Time
}

const (
	remindFirst = 20 * time.Millisecond
	remindMost  = time.Second
	fanOutCost  = 50 * time.Microsecond // to hand a vector to one node
)

// due says whether to publish though no weight may have changed, and whether
// to publish at all, given how many tasks are pending in classes with idle slots.
func (p *pace) due(now messages.Time, pending int) (announce, due bool) {
	if pending == 0 {
		p.pending, p.next = 0, 0
	}
	announce = pending > 0 && (pending > p.pending || now >= p.next)
	return announce, now >= p.notBefore && (announce || p.reallocated)
}

// sent plans the next time.
func (p *pace) sent(now messages.Time, pending, nodes int, published bool) {
	p.reallocated = false
	if !published {
		return
	}
	if pending != p.pending || p.after == 0 {
		p.after = remindFirst
	} else {
		p.after = min(2*p.after, remindMost)
	}
	p.pending, p.next = pending, 0
	if pending > 0 {
		p.next = now.Add(messages.Duration(p.after))
	}
	p.notBefore = now.Add(messages.Duration(nodes) * messages.Duration(fanOutCost))
}

// wake is when due may say yes though nothing changes; 0: never.
func (p *pace) wake() messages.Time {
	if p.next == 0 && !p.reallocated {
		return 0
	}
	return max(p.next, p.notBefore)
}
