package market

import (
	"cmp"
	"slices"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
)

// plan is a market's directives on the way to attempts on nodes.
type plan struct {
	market  *Market
	book    *book.Book
	now     messages.Time
	suspend []messages.Attempt
	resume  []messages.Attempt
	requeue []messages.Attempt // that would be suspended, but for their node's bound
	start   []mechanism.Directive
	discard []messages.JobID
	cancel  []messages.JobID // because their slots go to others
	stuck   []stuck
}

// stuck is suspended tasks whose node has no slot for them.
type stuck struct {
	job   messages.JobID
	class int
	tasks int
}

func newPlan(m *Market, b *book.Book, now messages.Time) *plan {
	p := &plan{market: m, book: b, now: now}
	directives := m.orders.Directives
	wanted := p.wantedNodes(directives)
	freed := make([]int, len(b.Nodes())) // slots by node
	for _, d := range directives {
		switch d.Action {
		case mechanism.Suspend:
			p.freeSlots(d, wanted, freed)
		case mechanism.Discard:
			p.discard = append(p.discard, d.Job)
		case mechanism.Start:
			p.start = append(p.start, d)
		}
	}
	for _, d := range directives {
		if d.Action == mechanism.Resume {
			p.resumeIn(d, freed)
		}
	}
	return p
}

// wantedNodes are the nodes with tasks to resume; nil: there are none.
func (p *plan) wantedNodes(directives []mechanism.Directive) (out []bool) {
	for _, d := range directives {
		if d.Action == mechanism.Resume {
			for _, c := range p.claimed(d, book.Suspended) {
				if out == nil {
					out = make([]bool, len(p.book.Nodes()))
				}
				out[c.node] = true
			}
		}
	}
	return out
}

// claim is a claim that is not about to end, and where it is.
type claim struct {
	messages.Attempt
	node    uint32
	since   messages.Time // of its halt
	claimed messages.Time
	ran     messages.Duration // since it was claimed
}

// claimed are the claims of a directive's job and class that go, the last ones first,
// or that are suspended, those for longest first. They are read once after each
// change of the job.
func (p *plan) claimed(d mechanism.Directive, halt book.Halt) []claim {
	e, at, classes := p.market.number.get(d.Job), 2*d.Class, p.market.classes
	if e == nil || p.book.Job(d.Job) == nil { // what was read before is of a job that is gone
		return nil
	}
	order := func(x, y claim) int { return cmp.Compare(y.claimed, x.claimed) }
	if halt == book.Suspended {
		at++
		order = func(x, y claim) int { return cmp.Compare(x.since, y.since) }
	}
	if e.claims == nil {
		e.own().claims = make([][]claim, 2*len(classes))
	}
	if e.claims[at] == nil {
		e.claims[at] = append([]claim{}, claims(p.book, d.Job, classes[d.Class], halt)...)
		slices.SortStableFunc(e.claims[at], order)
	}
	return e.claims[at]
}

// claims lists the claims of a job's class that go, or are suspended, in the
// order of stage and index.
func claims(b *book.Book, id messages.JobID, class messages.Name, halt book.Halt) (out []claim) {
	j := b.Job(id)
	if j == nil {
		return nil
	}
	for i := range j.Stages {
		s := &j.Stages[i]
		if none := s.Running == 0 || halt == book.Suspended && s.Suspended == 0; none || j.Spec.Stages[i].Class != class {
			continue
		}
		for k := range j.Stages[i].Tasks {
			t := &j.Stages[i].Tasks[k]
			if t.Phase != book.Claimed {
				continue
			}
			r := messages.TaskRef{Job: id, Stage: uint32(i), Index: uint32(k)}
			if h := b.Nodes()[t.Node].Claims[r]; h.Attempt == t.Attempt && h.Halt == halt && !h.Leaving {
				out = append(out, claim{Attempt: messages.Attempt{Task: r, Number: t.Attempt}, node: t.Node, since: h.Since, claimed: t.Claimed})
			}
		}
	}
	return out
}

// freeSlots chooses the tasks that lose their slots: first those on nodes where
// suspended tasks are to resume, then those that were claimed last.
func (p *plan) freeSlots(d mechanism.Directive, wanted []bool, freed []int) {
	running := p.claimed(d, book.Goes)
	if wanted != nil {
		running = slices.Clone(running)
		slices.SortStableFunc(running, func(x, y claim) int { return yesFirst(wanted[x.node], wanted[y.node]) })
	}
	if d.Slots > 0 && d.Slots < len(running) {
		running = running[:d.Slots]
	}
	if p.market.Config.Preemption == messages.PreemptCancel {
		if len(running) > 0 {
			p.cancel = append(p.cancel, d.Job)
		}
		return
	}
	for _, c := range running {
		p.suspend = append(p.suspend, c.Attempt)
		if p.market.Config.Preemption != messages.PreemptRequeue {
			freed[c.node]++
		}
	}
}

func yesFirst(x, y bool) int {
	switch {
	case x == y:
		return 0
	case x:
		return -1
	}
	return 1
}

// resumeIn chooses the suspended tasks that get a slot again: the ones suspended
// longest, if their node has a slot.
func (p *plan) resumeIn(d mechanism.Directive, freed []int) {
	class := p.market.classes[d.Class]
	waiting := p.claimed(d, book.Suspended)
	left := cmp.Or(d.Slots, len(waiting))
	for _, c := range waiting {
		if left > 0 && p.book.Nodes()[c.node].Idle(class)+freed[c.node] > 0 {
			freed[c.node]--
			left--
			p.resume = append(p.resume, c.Attempt)
		}
	}
	if left > 0 {
		p.stuck = append(p.stuck, stuck{d.Job, d.Class, left})
	}
}
