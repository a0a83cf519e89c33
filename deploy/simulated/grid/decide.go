package grid

import (
	"cmp"
	"slices"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/auctioneer/mechanism/highestbid"
	"github.com/candor-grid/candor/messages"
)

// mostRounds bounds how often the mechanism is asked again because a suspended
// task cannot go on where it is.
const mostRounds = 4

// decide has the mechanism decide until every task that is to go on can, and
// returns what of it must last; nil: nothing does.
func (l *leader) decide() *book.Decide {
	if !l.market.Attentive() {
		l.market.Allocate(l.now)
		return nil
	}
	l.market.Charge(func(id messages.JobID) (messages.Credits, messages.Duration) {
		if j := l.book.Job(id); j != nil {
			return l.book.Used(j, l.now)
		}
		return 0, 0
	})
	l.market.Reveal()
	for round := 1; ; round++ {
		l.market.Allocate(l.now)
		p := l.plan()
		if len(p.stuck) == 0 || round == mostRounds {
			return l.command(p)
		}
		for _, s := range p.stuck {
			l.market.Hide(s.job, 0, s.tasks)
		}
	}
}

// plan is the market's directives as attempts on nodes.
type plan struct {
	suspend, resume []messages.Attempt
	discard         []messages.JobID
	stuck           []stuck
}

// stuck is suspended tasks whose nodes have no slot for them.
type stuck struct {
	job   messages.JobID
	tasks int
}

func (l *leader) plan() *plan {
	p := &plan{}
	directives := l.market.Orders().Directives
	wanted, freed := map[uint32]bool{}, map[uint32]int{}
	for _, d := range directives {
		if d.Action == mechanism.Resume {
			for _, c := range l.claims(d.Job, book.Suspended) {
				wanted[c.node] = true
			}
		}
	}
	for _, d := range directives {
		switch d.Action {
		case mechanism.Suspend:
			l.takeSlots(p, d, wanted, freed)
		case mechanism.Discard:
			p.discard = append(p.discard, d.Job)
		}
	}
	for _, d := range directives {
		if d.Action == mechanism.Resume {
			l.goOn(p, d, freed)
		}
	}
	return p
}

// claim is a claim and where it is.
type claim struct {
	messages.Attempt
	node           uint32
	since, claimed messages.Time
}

// claims lists a job's claims that go, or are suspended, in order.
func (l *leader) claims(id messages.JobID, halt book.Halt) (out []claim) {
	j := l.book.Job(id)
	if j == nil || j.Stages[0].Running == 0 {
		return nil
	}
	for k := range j.Stages[0].Tasks {
		t := &j.Stages[0].Tasks[k]
		if t.Phase != book.Claimed {
			continue
		}
		r := messages.TaskRef{Job: id, Index: uint32(k)}
		if h := l.book.Nodes()[t.Node].Claims[r]; h.Attempt == t.Attempt && h.Halt == halt && !h.Leaving {
			out = append(out, claim{messages.Attempt{Task: r, Number: t.Attempt}, t.Node, h.Since, t.Claimed})
		}
	}
	return out
}

// takeSlots chooses the tasks that lose their slots: first where others are to
// go on, then those that began last.
func (l *leader) takeSlots(p *plan, d mechanism.Directive, wanted map[uint32]bool, freed map[uint32]int) {
	running := l.claims(d.Job, book.Goes)
	slices.SortStableFunc(running, func(x, y claim) int {
		if wanted[x.node] != wanted[y.node] {
			if wanted[x.node] {
				return -1
			}
			return 1
		}
		return cmp.Compare(y.claimed, x.claimed)
	})
	if d.Slots > 0 && d.Slots < len(running) {
		running = running[:d.Slots]
	}
	for _, c := range running {
		p.suspend = append(p.suspend, c.Attempt)
		freed[c.node]++
	}
}

// goOn chooses the tasks that get a slot again: those that have waited longest,
// where there is one.
func (l *leader) goOn(p *plan, d mechanism.Directive, freed map[uint32]int) {
	waiting := l.claims(d.Job, book.Suspended)
	slices.SortStableFunc(waiting, func(x, y claim) int { return cmp.Compare(x.since, y.since) })
	left := cmp.Or(d.Slots, len(waiting))
	for _, c := range waiting {
		if left > 0 && l.book.Nodes()[c.node].Idle(class)+freed[c.node] > 0 {
			freed[c.node]--
			left--
			p.resume = append(p.resume, c.Attempt)
		}
	}
	if left > 0 {
		p.stuck = append(p.stuck, stuck{d.Job, left})
	}
}

// command is what is to be committed of a plan; nil if nothing is.
func (l *leader) command(p *plan) *book.Decide {
	d := &book.Decide{Market: l.market.Config.Name, Suspend: p.suspend, Resume: p.resume}
	for _, id := range p.discard {
		d.Discard = append(d.Discard, book.Discarding{Job: id, Reason: "Discarded", Message: "its market does not run it"})
	}
	if now := l.tariffs(); !slices.Equal(now, l.book.Tariffs(d.Market)) {
		d.Tariffs = now
	}
	l.out.Preemptions += len(d.Suspend)
	if len(d.Suspend)+len(d.Resume)+len(d.Discard)+len(d.Tariffs) == 0 {
		return nil
	}
	return d
}

// tariffs are what the market charges from now on.
func (l *leader) tariffs() (out []book.Tariff) {
	m := &l.market.Config
	for _, g := range l.market.Orders().Tariffs {
		t := book.Tariff{Class: class, Capped: m.Capped}
		switch g.Basis {
		case mechanism.AtReserve:
			t.Price = m.ReservePrice()
		case mechanism.OwnBid:
			t.OwnBid = true
		case mechanism.AtLevel:
			t.Price, t.Length = g.Rate, g.Length
			t.Capped = m.Capped || m.Algorithm == string(highestbid.NPHB)
		}
		out = append(out, t)
	}
	return out
}
