package auctioneer

import (
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
)

// published is a payload and where it goes.
type published struct {
	subject string
	what    any
}

func (l *leader) publish(p published) {
	data, err := messages.Marshal(p.what, messages.Msgpack)
	if err == nil {
		err = l.Bus.Publish(p.subject, data)
	}
	if err != nil {
		l.Log.Warn("cannot publish", zap.String("subject", p.subject), zap.Error(err))
		return
	}
	if _, ok := p.what.(messages.Vector); ok {
		l.metrics.vectors.Inc()
		l.metrics.vectorBytes.Add(float64(len(data)))
	}
}

// nextVector returns the market's next vector if one should go out now. The
// caller holds l.mu.
func (l *leader) nextVector(t *trading, now messages.Time) (published, bool) {
	pending := t.Claimable()
	announce, due := t.pace.due(now, pending)
	if !due {
		return published{}, false
	}
	v, ok := t.publisher.Next(t.Market, now, l.rng, announce)
	t.pace.sent(now, pending, len(l.slots.nodes), ok)
	return published{messages.VectorSubject(l.Site, t.Config.Name), v}, ok
}

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

// wait is how long until due may say yes though nothing changes.
func (p *pace) wait(now messages.Time) time.Duration {
	if p.next == 0 && !p.reallocated {
		return time.Second
	}
	at := max(p.next, p.notBefore)
	return min(max(0, at.Sub(now).Std()), time.Second)
}
