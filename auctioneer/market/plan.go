package market

import (
	"cmp"
	"math"
	"slices"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/market"
)

// plan computes which attempts on which nodes start, stop, suspend and resume. A market reuses its plan, so that its
// lists are allocated once.
type plan struct {
	market  *Market
	book    *book.Book // nil between decisions
	now     messages.Time
	places  []place // places of all nodes, ordered by node, then by class
	used    []int   // places that were changed and must be cleared at the end
	suspend []messages.Attempt
	resume  []messages.Attempt
	// attempts to end, because their nodes cannot keep more suspended tasks, or because their gangs do not start
	requeue []messages.Attempt
	start   []mechanism.Directive
	discard []messages.JobID
	cancel  []messages.JobID // jobs to end, because other jobs get their slots
	again   bool             // a task cannot resume, or has no node: the mechanism must decide again

	// The fields homes, apart, shifted, wide and lodgings are for tasks of several slots.
	homes    []home
	apart    []uint32               // nodes that already have a task of the gang that the plan is placing
	shifted  int                    // slots that tasks of several slots take away from other tasks
	wide     []int                  // positions of the directives for tasks of several slots
	lodgings map[[2]uint32]*lodging // the key is a node and a class

	// The next fields describe the job whose claims are being read:
	stages []int   // by stage: position of its tasks in stands
	stands []bool  // by task: its claim is unchanged since it was read
	kept   []int   // by list of claims: how many are unchanged
	added  []claim // new claims of one list
}

// place has what a plan knows about the slots of one class on one node.
type place struct {
	idle   int32 // idle slots in the book
	freed  int32 // slots that the plan frees, minus slots that it gives away
	used   bool  // the plan's list of used places has this place
	looked bool  // idle was read from the book
	wanted bool  // suspended tasks should resume here
}

func (p *plan) begin(m *Market, b *book.Book, now messages.Time) {
	p.market, p.book, p.now = m, b, now
	if n := len(b.Nodes()) * len(m.classes); n > len(p.places) {
		p.places = make([]place, n)
	}
}

func (p *plan) end() {
	for _, at := range p.used {
		p.places[at] = place{}
	}
	p.used, p.book = p.used[:0], nil
}

// draw builds the plan from the directives of the last allocation.
func (p *plan) draw() {
	for _, at := range p.used {
		p.places[at].freed, p.places[at].wanted = 0, false
	}
	p.suspend, p.resume, p.requeue, p.start = p.suspend[:0], p.resume[:0], p.requeue[:0], p.start[:0]
	p.discard, p.cancel, p.again = p.discard[:0], p.cancel[:0], false
	directives, jobs := p.market.orders.Directives, p.market.named
	suspends := slices.ContainsFunc(directives, func(d mechanism.Directive) bool { return d.Action == mechanism.Suspend })
	for i, d := range directives {
		if e := jobs[i]; suspends && d.Action == mechanism.Resume && e != nil && e.front != nil {
			for k := range e.front[d.Class] {
				p.place(&e.front[d.Class][k], d.Class).wanted = true
			}
		}
	}
	p.house(directives, jobs)
	p.free(directives, jobs)
	for _, d := range directives {
		switch d.Action {
		case mechanism.Discard:
			p.discard = append(p.discard, d.Job)
		case mechanism.Start:
			p.start = append(p.start, d)
		}
	}
	for i, d := range directives {
		if d.Action == mechanism.Resume && jobs[i] != nil && !slices.Contains(p.wide, i) {
			p.resumeIn(d, jobs[i])
		}
	}
	if p.market.manner.Directs && p.market.manner.Even {
		p.disband(directives)
	}
}

// disband ends the gangs that have gathered some of their slots, and that this decision does not start.
func (p *plan) disband(directives []mechanism.Directive) {
	for _, e := range p.market.wides {
		if !e.job.Gang() || slices.ContainsFunc(directives, func(d mechanism.Directive) bool { return d.Job == e.job.Job && d.Action == mechanism.Start }) {
			continue
		}
		if gathers := p.gathers(e); len(gathers) > 0 {
			p.requeue = append(p.requeue, gathers[0]) // the book ends the whole gang
		}
	}
}

// The method `free` chooses the tasks that lose their slots, the worst jobs first. The mechanism says how many slots
// must be taken away in total. In this plan, wide tasks may already have taken some slots from jobs. These slots are
// subtracted from the total.
func (p *plan) free(directives []mechanism.Directive, jobs []*entry) {
	var order []int
	owed := -p.shifted
	for i, d := range directives {
		if d.Action == mechanism.Suspend {
			order, owed = append(order, i), owed+d.Slots
		}
	}
	if p.shifted == 0 {
		owed = math.MaxInt
	} else {
		slices.SortStableFunc(order, func(x, y int) int { return p.market.compare(jobs[y], jobs[x]) })
	}
	for _, i := range order {
		owed -= p.freeSlots(directives[i], jobs[i], owed)
	}
}

// place returns the place of a claim: its node and class.
func (p *plan) place(c *claim, class int) *place {
	at := int(c.node)*len(p.market.classes) + class
	x := &p.places[at]
	if !x.used {
		x.used = true
		p.used = append(p.used, at)
	}
	return x
}

// claim is an attempt that has a place on a node. Attempts that are about to end are not claims.
type claim struct {
	messages.Attempt
	node    uint32
	version uint64            // the node's version when the claim was read: see [book.Node]
	since   messages.Time     // when the claim was suspended; only for suspended claims
	claimed messages.Time     // when the claim got its slot; only for running claims
	width   int               // number of slots of the claim
	ran     messages.Duration // how long the claim has run
}

// latest puts the newest of running claims first, because they lose their slots first.
func latest(x, y claim) int {
	return cmp.Or(cmp.Compare(y.claimed, x.claimed), x.Task.Compare(y.Task))
}

// claimed returns the running claims of a job in a class, in the order in which they would lose their slots. A plan
// reads them from the book once after each change of the job.
func (p *plan) claimed(e *entry, class int) []claim {
	if e == nil {
		return nil
	}
	if !e.known {
		p.read(e)
	}
	return e.claims[class]
}

// read updates the lists of a job's claims from the book. Unchanged claims keep their order.
func (p *plan) read(e *entry) {
	r := e.own()
	r.known = true
	if r.claims == nil {
		r.claims = make([][]claim, len(p.market.classes))
	}
	j := p.book.Job(e.job.Job)
	if j == nil {
		clear(r.claims)
		return
	}
	p.stages = p.stages[:0]
	tasks := 0
	for i := range j.Stages {
		p.stages = append(p.stages, tasks)
		tasks += len(j.Stages[i].Tasks)
	}
	p.stands = append(p.stands[:0], make([]bool, tasks)...)
	p.kept = p.kept[:0]
	for at, list := range r.claims {
		r.claims[at] = slices.DeleteFunc(list, func(c claim) bool { return !p.stood(j, &c) })
		p.kept = append(p.kept, len(r.claims[at]))
	}
	for i := range j.Stages {
		if k := p.market.Class(j.Spec.Stages[i].Class); k >= 0 && j.Stages[i].Running > 0 && !j.Finishing(i) {
			r.claims[k] = p.look(j, i, r.claims[k])
		}
	}
	for at, list := range r.claims {
		p.merge(list, p.kept[at])
	}
}

// stood reports whether a claim is the same as when the plan last looked at it. If so, it marks the task in p.stands.
// Most changes of a claim, for example a suspension, raise the version of the node. Two changes do not: the claim's
// task is told to end, or a task that waited on the node gets its slot. stood checks for these two separately.
func (p *plan) stood(j *book.Job, c *claim) bool {
	s := &j.Stages[c.Task.Stage]
	t := &s.Tasks[c.Task.Index]
	same := t.Phase == book.Claimed && t.Attempt == c.Number && t.Claimed == c.claimed && s.Leaving+s.Ahead == 0 && !j.Finishing(int(c.Task.Stage)) &&
		p.book.Nodes()[c.node].Version == c.version
	p.stands[p.stages[c.Task.Stage]+int(c.Task.Index)] = same
	return same
}

// look appends the running claims of a stage to a list. It leaves out the tasks that are marked in p.stands: their
// claims have not changed.
func (p *plan) look(j *book.Job, stage int, list []claim) []claim {
	s, nodes, stands := &j.Stages[stage], p.book.Nodes(), p.stands[p.stages[stage]:]
	// if all claims run, the node's record of the claim is not needed
	goes := s.Suspended+s.Gathering+s.Leaving+s.Ahead == 0
	for k := range s.Tasks {
		t := &s.Tasks[k]
		if t.Phase != book.Claimed || stands[k] {
			continue
		}
		node := nodes[t.Node]
		c := claim{Attempt: messages.Attempt{Task: messages.TaskRef{Job: j.ID, Stage: uint32(stage), Index: uint32(k)}, Number: t.Attempt},
			node: t.Node, version: node.Version, claimed: t.Claimed, width: j.Spec.Stages[stage].Slots()}
		if !goes {
			if h := node.Claims[c.Task]; h.Attempt != t.Attempt || h.Leaving || h.Halt != book.Goes {
				continue
			}
		}
		list = append(list, c)
	}
	return list
}

// merge sorts a list of claims. The argument `first` says how many claims at the beginning of the list are sorted
// already.
func (p *plan) merge(list []claim, first int) {
	p.added = append(p.added[:0], list[first:]...)
	slices.SortFunc(p.added, latest)
	for at, left := len(list)-1, p.added; len(left) > 0; at-- {
		last := len(left) - 1
		if first > 0 && latest(list[first-1], left[last]) > 0 {
			first--
			list[at] = list[first]
		} else {
			list[at], left = left[last], left[:last]
		}
	}
}

// freeSlots chooses tasks of a job that must give up their slots, with at most `most` slots together. It first takes
// tasks on nodes where suspended tasks should resume. Then it takes the tasks that were claimed last. It returns how
// many slots become free.
func (p *plan) freeSlots(d mechanism.Directive, e *entry, most int) (freed int) {
	running := p.claimed(e, d.Class)
	left := cmp.Or(d.Slots, math.MaxInt)
	if e.job.Gang() && most > 0 { // a gang loses either all its slots or none
		most = left
	}
	lost := func(c *claim) bool { return p.shifted > 0 && slices.Contains(p.suspend, c.Attempt) }
	for i := range running {
		if lost(&running[i]) {
			left -= running[i].width
		}
	}
	left = min(left, most)
	for _, wanted := range []bool{true, false} {
		for i := range running {
			if left <= 0 {
				return freed
			}
			c := &running[i]
			if at := p.place(c, d.Class); at.wanted == wanted && !lost(c) {
				left, freed = left-c.width, freed+c.width
				p.lose(c, at)
				if p.market.Config.Preemption == market.PreemptCancel {
					return freed
				}
			}
		}
	}
	return freed
}

// resumeIn chooses which suspended tasks of a job get a slot again. The list `front` of the job has the suspended tasks
// that may get one. The task that has been suspended longest is first. A task can resume only on its own node, and this
// node may have no slot for it. In a market that orders its jobs, such a task is removed from the list, and the
// mechanism decides again.
func (p *plan) resumeIn(d mechanism.Directive, e *entry) {
	if e.front == nil {
		return
	}
	left := cmp.Or(d.Slots, math.MaxInt)
	if e.job.Gang() && slices.ContainsFunc(e.front[d.Class], func(c claim) bool { return !p.hasRoom(&c, d.Class) }) {
		return
	}
	for i := 0; i < len(e.front[d.Class]) && left > 0; i++ {
		c := &e.front[d.Class][i]
		switch {
		case p.hasRoom(c, d.Class):
			p.place(c, d.Class).freed -= int32(c.width)
			left -= c.width
			p.resume = append(p.resume, c.Attempt)
		case e.ordered:
			p.again = true
			p.market.turnAway(e, d.Class, *c)
			i--
		}
	}
}

// hasRoom reports whether a claim is suspended and its node has enough slots for it.
func (p *plan) hasRoom(c *claim, class int) bool {
	at := p.place(c, class)
	if !at.looked {
		at.looked, at.idle = true, int32(p.book.Nodes()[c.node].Idle(p.market.classes[class]))
	}
	return p.waits(c) && at.idle+at.freed >= int32(c.width)
}

// waits reports whether a claim that was suspended when the market last looked at its node is still suspended.
func (p *plan) waits(c *claim) bool {
	h := p.book.Nodes()[c.node].Claims[c.Task]
	return h.Attempt == c.Number && h.Halt == book.Suspended && !h.Leaving
}
