package market

import (
	"cmp"
	"slices"
	"time"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/auctioneer/mechanism/registry"
	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// Decide makes the mechanism decide. It returns the part of the decision that must be committed, or nil. It reads the
// book only if the mechanism must know each change of the book (see [mechanism.Manner.Attentive]).
func (m *Market) Decide(now messages.Time, read func(func(*book.Book))) (d *book.Decide) {
	now = asOf(now, m.Wake())
	if !m.manner.Attentive {
		m.Allocate(now)
		return m.retariff(read)
	}
	read(func(b *book.Book) {
		m.Charge(func(id messages.JobID) (messages.Credits, messages.Duration) {
			if j := b.Job(id); j != nil {
				return b.Used(j, now)
			}
			return 0, 0
		})
		d = m.remember(m.settleOn(b, now))
		m.view.Charge = nil // so that the book is not read later
	})
	return d
}

// retariff returns a decision with the new tariffs, or nil if the tariffs have not changed.
func (m *Market) retariff(read func(func(*book.Book))) (d *book.Decide) {
	now := tariffs(m)
	if slices.Equal(now, m.tariffs) {
		return nil
	}
	read(func(b *book.Book) {
		if m.tariffs = now; !slices.Equal(now, b.Tariffs(m.Config.Name)) {
			d = &book.Decide{Market: m.Config.Name, Tariffs: now}
		}
	})
	return d
}

// asOf returns the time for which a market decides. A market may have asked to be woken at a certain time. If this time
// has come, at most 100 ms ago, the market decides for this time. Otherwise it decides for the present time.
func asOf(now, wake messages.Time) messages.Time {
	const lateness = messages.Duration(100 * time.Millisecond)
	if wake != 0 && wake <= now && now.Sub(wake) <= lateness {
		return wake
	}
	return now
}

// settleOn repeats the mechanism's decision until two things are true: each task that resumes has a slot on its node,
// and each task of several slots that starts has a node. Each round except the last changes something that cannot
// change back, so the repetition ends. Such a round removes a task from the front of its node (see stuck.go), or finds
// that a task has no node.
func (m *Market) settleOn(b *book.Book, now messages.Time) *book.Decide {
	p := &m.plan
	p.begin(m, b, now)
	defer p.end()
	m.visitNew(b)
	m.seek()
	if m.manner.Order != nil && !m.manner.Displaces {
		p.bar()
	}
	for p.again = true; p.again; {
		m.Allocate(now)
		p.draw()
	}
	p.bound()
	return p.decide()
}

// decide returns the command that carries out the plan. It returns nil if there is nothing to commit.
func (p *plan) decide() *book.Decide {
	m := p.market
	d := &book.Decide{Market: m.Config.Name, Suspend: copied(p.suspend), Resume: copied(p.resume), Requeue: copied(p.requeue)}
	if m.Config.Preemption == market.PreemptRequeue {
		d.Suspend, d.Requeue = nil, append(d.Suspend, d.Requeue...)
	}
	for _, id := range p.discard {
		if j := m.Job(id); j != nil {
			d.Discard = append(d.Discard, discarding(p.now, m, j))
		}
	}
	for _, id := range p.cancel {
		if !slices.Contains(p.discard, id) {
			d.Discard = append(d.Discard, book.Discarding{Job: id, Reason: "Preempted", Message: "its slots went to others, and its market ends jobs that lose their slots",
				Change: []string{"a higher bid, or a market that suspends"}})
		}
	}
	if m.manner.Commits {
		for _, s := range p.start {
			if j := m.Job(s.Job); j != nil {
				d.Start = append(d.Start, starting(p.now, m, j, s))
			}
		}
	}
	now := tariffs(m)
	if !slices.Equal(now, p.book.Tariffs(m.Config.Name)) {
		d.Tariffs = now
	}
	d.Owed = len(d.Requeue) > 0 && len(now) > 0
	if len(d.Suspend)+len(d.Resume)+len(d.Requeue)+len(d.Start)+len(d.Discard)+len(d.Tariffs) == 0 {
		return nil
	}
	return d
}

func copied(list []messages.Attempt) []messages.Attempt {
	return append([]messages.Attempt(nil), list...)
}

// discarding returns the record for a job that the market will not run. The record has the market's reason and
// explanation.
func discarding(now messages.Time, m *Market, job *mechanism.Job) book.Discarding {
	x, _ := m.Explain(now, job.Job)
	d := book.Discarding{Job: job.Job, Reason: x.Reason, Message: x.Message, Change: x.Change}
	if m.manner.Commits {
		_, d.Legs = split(job.Job, m.Settle(now, job, mechanism.End{State: jobmsg.Discarded, Tasks: job.Tasks, Done: job.Done}))
	}
	return d
}

func starting(now messages.Time, m *Market, job *mechanism.Job, s mechanism.Directive) book.Starting {
	out := book.Starting{Job: job.Job, Order: book.Order{Class: m.Config.Classes[s.Class], Slots: max(s.Slots, 1), At: cmp.Or(s.At, now)}}
	out.Fixed, out.Legs = split(job.Job, m.Settle(now, job, mechanism.End{State: jobmsg.Completed, Tasks: job.Tasks, Done: job.Tasks}))
	return out
}

// split divides payments into two kinds. `fixed` is what the job owes the site, to be paid with the job's charge.
// `legs` are the payments of the present round. A job receives a payment only when its market has considered it.
func split(id messages.JobID, payments []mechanism.Payment) (fixed *book.Fixed, legs []book.Leg) {
	for _, p := range payments {
		if p.From == id && p.To == 0 && !p.Now {
			fixed = &book.Fixed{Amount: p.Amount, Reason: p.Reason}
		} else if p.Amount > 0 {
			legs = append(legs, book.Leg{From: p.From, To: p.To, Amount: p.Amount, Reason: p.Reason, Later: p.To != 0 && p.To != id})
		}
	}
	return fixed, legs
}

func tariffs(m *Market) []book.Tariff {
	given := m.Orders().Tariffs
	if len(given) == 0 {
		return nil
	}
	out := make([]book.Tariff, len(given))
	for k, g := range given {
		out[k] = book.Tariff{Class: m.Config.Classes[k], Capped: m.Config.Capped}
		switch g.Basis {
		case mechanism.AtReserve:
			out[k].Price = m.Config.ReservePrice()
		case mechanism.OwnBid:
			out[k].OwnBid = true
		case mechanism.AtLevel:
			out[k].Price, out[k].Length = g.Rate, g.Length
			out[k].Capped = registry.Of(&m.Config).Capped
		case mechanism.Contention:
			out[k].Price, out[k].Contention = g.Rate, true
		}
	}
	return out
}
