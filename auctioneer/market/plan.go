package market

import (
	"cmp"
	"slices"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
)

// plan is a market's directives on the way to attempts on nodes. A market has one, so that
// its lists are made once.
type plan struct {
	market  *Market
	book    *book.Book // nil between decisions
	now     messages.Time
	places  []place // by node, then class
	used    []int   // places with something to forget
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
	job   *entry
	class int
	tasks int
}

// place is what a plan knows of a node's slots of a class.
type place struct {
	idle   int32 // in the book
	freed  int32 // by the plan, less those that it gives away
	used   bool  // it is in the plan's list of these
	looked bool  // idle is known
	wanted bool  // it has tasks to resume
}

// begin is for when a market is about to decide.
func (p *plan) begin(m *Market, b *book.Book, now messages.Time) {
	p.market, p.book, p.now = m, b, now
	if n := len(b.Nodes()) * len(m.classes); n > len(p.places) {
		p.places = make([]place, n)
	}
}

// end is for when a market has decided.
func (p *plan) end() {
	for _, at := range p.used {
		p.places[at] = place{}
	}
	p.used, p.book = p.used[:0], nil
}

// draw plans by the directives of the last allocation.
func (p *plan) draw() {
	for _, at := range p.used {
		p.places[at].freed, p.places[at].wanted = 0, false
	}
	p.suspend, p.resume, p.requeue, p.start = p.suspend[:0], p.resume[:0], p.requeue[:0], p.start[:0]
	p.discard, p.cancel, p.stuck = p.discard[:0], p.cancel[:0], p.stuck[:0]
	directives, jobs := p.market.orders.Directives, p.market.named
	suspends := slices.ContainsFunc(directives, func(d mechanism.Directive) bool { return d.Action == mechanism.Suspend })
	for i, d := range directives {
		if suspends && d.Action == mechanism.Resume {
			for _, c := range p.claimed(jobs[i], d.Class, book.Suspended) {
				p.place(&c, d.Class).wanted = true
			}
		}
	}
	for i, d := range directives {
		switch d.Action {
		case mechanism.Suspend:
			p.freeSlots(d, jobs[i])
		case mechanism.Discard:
			p.discard = append(p.discard, d.Job)
		case mechanism.Start:
			p.start = append(p.start, d)
		}
	}
	for i, d := range directives {
		if d.Action == mechanism.Resume && jobs[i] != nil {
			p.resumeIn(d, jobs[i])
		}
	}
}

// place is the place of a claim.
func (p *plan) place(c *claim, class int) *place {
	at := int(c.node)*len(p.market.classes) + class
	x := &p.places[at]
	if !x.used {
		x.used = true
		p.used = append(p.used, at)
	}
	return x
}

// claim is a claim that is not about to end, and where it is.
type claim struct {
	messages.Attempt
	node    uint32
	since   messages.Time // of its halt
	claimed messages.Time
	ran     messages.Duration // since it was claimed
}

// claimed are the claims of a job's class that go, the last ones first, or that are
// suspended, those for longest first. They are read once after each change of the job.
func (p *plan) claimed(e *entry, class int, halt book.Halt) []claim {
	if e == nil {
		return nil
	}
	at, classes := 2*class, p.market.classes
	order, most := func(x, y claim) int { return cmp.Compare(y.claimed, x.claimed) }, e.running()[class]
	if halt == book.Suspended {
		at++
		order, most = func(x, y claim) int { return cmp.Compare(x.since, y.since) }, suspended(e, class)
	}
	if e.claims == nil {
		e.own().claims = make([][]claim, 2*len(classes))
	}
	if e.claims[at] == nil {
		list := claims(p.book, e.job.Job, classes[class], halt, make([]claim, 0, most))
		slices.SortFunc(list, func(x, y claim) int { return cmp.Or(order(x, y), compareTasks(x.Task, y.Task)) })
		e.claims[at] = list
	}
	return e.claims[at]
}

// claims appends the claims of a job's class that go, or are suspended, in the
// order of stage and index.
func claims(b *book.Book, id messages.JobID, class messages.Name, halt book.Halt, out []claim) []claim {
	j := b.Job(id)
	if j == nil {
		return out
	}
	for i := range j.Stages {
		s := &j.Stages[i]
		if none := s.Running == 0 || halt == book.Suspended && s.Suspended == 0; none || j.Spec.Stages[i].Class != class {
			continue
		}
		all := halt == book.Goes && s.Suspended+s.Gathering+s.Leaving+s.Ahead == 0 // so that the node need not be asked
		for k := range j.Stages[i].Tasks {
			t := &j.Stages[i].Tasks[k]
			if t.Phase != book.Claimed {
				continue
			}
			r := messages.TaskRef{Job: id, Stage: uint32(i), Index: uint32(k)}
			if all {
				out = append(out, claim{Attempt: messages.Attempt{Task: r, Number: t.Attempt}, node: t.Node, claimed: t.Claimed})
			} else if h := b.Nodes()[t.Node].Claims[r]; h.Attempt == t.Attempt && h.Halt == halt && !h.Leaving {
				out = append(out, claim{Attempt: messages.Attempt{Task: r, Number: t.Attempt}, node: t.Node, since: h.Since, claimed: t.Claimed})
			}
		}
	}
	return out
}

// freeSlots chooses the tasks that lose their slots: first those on nodes where
// suspended tasks are to resume, then those that were claimed last.
func (p *plan) freeSlots(d mechanism.Directive, e *entry) {
	running := p.claimed(e, d.Class, book.Goes)
	if p.market.Config.Preemption == messages.PreemptCancel {
		if len(running) > 0 {
			p.cancel = append(p.cancel, d.Job)
		}
		return
	}
	left := cmp.Or(d.Slots, len(running))
	for _, wanted := range []bool{true, false} {
		for i := range running {
			if left == 0 {
				return
			}
			c := &running[i]
			if at := p.place(c, d.Class); at.wanted == wanted {
				left--
				p.suspend = append(p.suspend, c.Attempt)
				if p.market.Config.Preemption != messages.PreemptRequeue {
					at.freed++
				}
			}
		}
	}
}

// resumeIn chooses the suspended tasks that get a slot again: the ones suspended
// longest, if their node has a slot.
func (p *plan) resumeIn(d mechanism.Directive, e *entry) {
	waiting := p.claimed(e, d.Class, book.Suspended)
	left := cmp.Or(d.Slots, len(waiting))
	for i := 0; i < len(waiting) && left > 0; i++ {
		c := &waiting[i]
		at := p.place(c, d.Class)
		if !at.looked {
			at.looked, at.idle = true, int32(p.book.Nodes()[c.node].Idle(p.market.classes[d.Class]))
		}
		if at.idle+at.freed > 0 {
			at.freed--
			left--
			p.resume = append(p.resume, c.Attempt)
		}
	}
	if left > 0 {
		p.stuck = append(p.stuck, stuck{e, d.Class, left})
	}
}
