package market

import (
	"cmp"
	"math"
	"slices"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// A mechanism counts slots over all nodes, but a task of several slots needs all of them on one node. In a market where
// better jobs take slots from worse ones (mechanism.Manner.Displaces), the plan chooses the node:
//
//   - Some nodes may have enough free slots, counting also the slots of tasks that are about to end. Then the plan
//     chooses the node with the fewest slots left over.
//   - Otherwise the plan chooses the node on which the tasks with the worst bids lose their slots. The mechanism may
//     have wanted to end other tasks, on other nodes. The same number of slots is kept for the best of these tasks.
//   - If no node can run the task, the plan tells the mechanism (mechanism.Job.Nowhere), which then
//     decides again without the task. The next decision tries again.
//
// Until the task is claimed, no other task gets the chosen slots.

// home is the node that was chosen for a task of several slots.
type home struct {
	node  uint32
	class int
	job   messages.JobID
	width int
}

// tenant is a claim that runs on a node, for a job of the market.
type tenant struct {
	claim
	job *entry
}

// lodging says how many slots of a class one node has for a new task of several slots.
type lodging struct {
	room    int      // slots that are free, or that the plan takes away from tenants
	leaving int      // slots of tasks that are about to end
	tenants []tenant // claims that keep their slots in this plan, worst first
}

// house chooses nodes for tasks of several slots that will start or resume. The job that is first in the market's order
// chooses first. Suspended tasks of one slot are resumed in the same order.
func (p *plan) house(directives []mechanism.Directive, jobs []*entry) {
	p.homes, p.shifted, p.wide = p.homes[:0], 0, p.wide[:0]
	clear(p.lodgings)
	any := false
	for i, d := range directives {
		if e := jobs[i]; e != nil && (d.Action == mechanism.Start && e.job.Width > 1 || d.Action == mechanism.Resume) {
			p.wide, any = append(p.wide, i), any || e.job.Width > 1
		}
	}
	if !any || !p.market.manner.Displaces {
		p.wide = p.wide[:0]
		return
	}
	slices.SortStableFunc(p.wide, func(x, y int) int { return p.market.compare(jobs[x], jobs[y]) })
	for _, i := range p.wide {
		d, e := directives[i], jobs[i]
		if d.Action == mechanism.Resume {
			p.rehouse(d, e)
			continue
		}
		of := p.stage(e, d.Class)
		if p.apart = p.apart[:0]; of != nil && e.job.Gang() {
			if !p.lodgeAll(e, of, d.Class) {
				p.market.nowhere(e, of, d.Class, 0)
				p.again = true
			}
			continue
		}
		for left := d.Slots; of != nil && left > 0; left -= e.job.Alone {
			if !p.lodge(e, of, d.Class) {
				p.market.nowhere(e, of, d.Class, d.Slots-left)
				p.again = true
				break
			}
		}
	}
}

// lodgeAll chooses different nodes for the tasks of a gang that have no slots yet. It returns false if too few nodes
// can run a task. The nodes are different, so the slots that are freed for one task are not taken by another task of
// the gang.
func (p *plan) lodgeAll(e *entry, of *job.Stage, class int) bool {
	for _, a := range p.gathers(e) {
		p.apart = append(p.apart, p.nodeOf(a))
	}
	missing, can := of.TaskCount()-len(p.apart), 0
	for at := range p.book.Nodes() {
		if l := p.lodging(uint32(at), class); p.suits(of, uint32(at)) && l.displaced(p.market, e, l.room+l.leaving, of.Slots()) >= 0 {
			can++
		}
	}
	if can < missing {
		return false
	}
	for range missing {
		p.lodge(e, of, class)
		p.apart = append(p.apart, p.homes[len(p.homes)-1].node)
	}
	return true
}

// gathers returns the attempts of a gang that already have slots, while the gang waits for more slots.
func (p *plan) gathers(e *entry) (out []messages.Attempt) {
	j := p.book.Job(e.job.Job)
	for i := 0; j != nil && i < len(j.Stages); i++ {
		for k := 0; j.Stages[i].Gathering > 0 && k < len(j.Stages[i].Tasks); k++ {
			if t := &j.Stages[i].Tasks[k]; t.Phase == book.Claimed {
				out = append(out, messages.Attempt{Task: messages.TaskRef{Job: j.ID, Stage: uint32(i), Index: uint32(k)}, Number: t.Attempt})
			}
		}
	}
	return out
}

// suits reports whether a task of a stage may start on a node.
func (p *plan) suits(of *job.Stage, node uint32) bool {
	n := p.book.Nodes()[node]
	return p.market.opens(n) && n.Suits(of) && n.Admits(of, p.now) && !slices.Contains(p.apart, node)
}

// lodge chooses a node for a task of a job, and gives the task slots there. If too few slots are free, it takes slots
// from tasks with worse bids. It returns false if no node can run the task.
func (p *plan) lodge(e *entry, of *job.Stage, class int) bool {
	width, best, worst, found := of.Slots(), uint32(0), 0, false
	for at := range p.book.Nodes() {
		if !p.suits(of, uint32(at)) {
			continue
		}
		l := p.lodging(uint32(at), class)
		switch k := l.displaced(p.market, e, l.room+l.leaving, width); {
		case k < 0 || found && !p.better(l, k, p.lodging(best, class), worst, width):
		default:
			best, worst, found = uint32(at), k, true
		}
	}
	if found {
		l := p.lodging(best, class)
		p.take(best, class, worst, width, l.room+l.leaving)
		p.homes = append(p.homes, home{node: best, class: class, job: e.job.Job, width: width})
	}
	return found
}

// rehouse resumes suspended tasks that take several slots each. Each task resumes on the node on which it was
// suspended. The task that was suspended first comes first.
func (p *plan) rehouse(d mechanism.Directive, e *entry) {
	left := d.Slots
	if e.front != nil && e.job.Gang() {
		i := slices.IndexFunc(e.front[d.Class], func(c claim) bool { return p.inTheWay(e, &c, d.Class) < 0 })
		if i >= 0 {
			p.again = true
			p.market.turnAway(e, d.Class, e.front[d.Class][i])
			return
		}
	}
	for i := 0; e.front != nil && i < len(e.front[d.Class]) && left > 0; i++ {
		c := e.front[d.Class][i]
		if k := p.inTheWay(e, &c, d.Class); k >= 0 {
			p.take(c.node, d.Class, k, c.width, p.lodging(c.node, d.Class).room)
			p.resume = append(p.resume, c.Attempt)
			left -= c.width
			continue
		}
		p.again = true
		p.market.turnAway(e, d.Class, c)
		i--
	}
}

// A suspended claim can resume only if its node has enough free slots. inTheWay returns how many other claims on this
// node must lose their slots for this. The claims with the worst bids lose their slots first. inTheWay returns −1 if
// the claim cannot resume.
func (p *plan) inTheWay(e *entry, c *claim, class int) int {
	if !p.waits(c) || !p.market.opens(p.book.Nodes()[c.node]) {
		return -1
	}
	l := p.lodging(c.node, class)
	return l.displaced(p.market, e, l.room, c.width)
}

// stage returns the first stage of a class with a task to start, or nil.
func (p *plan) stage(e *entry, class int) *job.Stage {
	j := p.book.Job(e.job.Job)
	if j == nil {
		return nil
	}
	for i := range j.Stages {
		if of := &j.Spec.Stages[i]; of.Class == p.market.classes[class] && p.book.Claimable(j, i) > 0 {
			return of
		}
	}
	return nil
}

// lodging returns how many slots of a class a node has for new tasks. A plan reads this from the book only once, and
// keeps it in p.lodgings.
func (p *plan) lodging(node uint32, class int) *lodging {
	key := [2]uint32{node, uint32(class)}
	if l := p.lodgings[key]; l != nil {
		return l
	}
	n, name := p.book.Nodes()[node], p.market.classes[class]
	l := &lodging{room: n.Idle(name)}
	for r, h := range n.Claims {
		switch x := p.market.number.get(r.Job); {
		case h.Class != name || h.Halt != book.Goes:
		case h.Leaving:
			l.leaving += max(h.Width, 1)
		case x != nil && p.book.Job(r.Job) != nil && p.book.Job(r.Job).Finishing(int(r.Stage)):
			l.leaving += max(h.Width, 1)
		case x != nil:
			c := claim{Attempt: messages.Attempt{Task: r, Number: h.Attempt}, node: node, width: max(h.Width, 1)}
			if j := p.book.Job(r.Job); j != nil {
				c.claimed = j.Stages[r.Stage].Tasks[r.Index].Claimed
			}
			l.tenants = append(l.tenants, tenant{c, x})
		}
	}
	slices.SortFunc(l.tenants, func(x, y tenant) int { return cmp.Or(p.market.compare(y.job, x.job), latest(x.claim, y.claim)) })
	if p.lodgings == nil {
		p.lodgings = map[[2]uint32]*lodging{}
	}
	p.lodgings[key] = l
	return l
}

// The tenants of a node are the tasks that have slots on it, the worst first. displaced returns how many of the worst
// tenants must lose their slots so that a task of the job gets `width` slots. The argument `room` is the number of free
// slots. The result is −1 if there are too few slots even after all tenants that are worse than the job have lost
// theirs.
func (l *lodging) displaced(m *Market, e *entry, room, width int) int {
	for k := 0; ; k++ {
		switch {
		case room >= width:
			return k
		case k == len(l.tenants) || m.compare(e, l.tenants[k].job) >= 0:
			return -1
		}
		room += l.tenants[k].width
	}
}

// better compares two nodes for a new task. A tenant is a task that has slots on the node. Node x would lose its j
// worst tenants, and node y its k worst. A node that loses no tenant is better than a node that loses some. If neither
// loses a tenant, the node with fewer free slots left is better. If both lose tenants, look at the best tenant that
// each node loses. The node for which this tenant has the lower rank is better.
func (p *plan) better(x *lodging, j int, y *lodging, k, width int) bool {
	switch {
	case j == 0 || k == 0:
		return j < k || j == k && x.room+x.leaving < y.room+y.leaving
	default:
		return p.market.compare(x.tenants[j-1].job, y.tenants[k-1].job) > 0
	}
}

// take gives a task `width` slots of a node. The argument `room` is the number of free slots. A tenant is a task that
// has slots on the node; the tenants are in a list, the worst first. If too few slots are free, take ends or suspends
// tenants from the beginning of the list, but keeps the best of them whose slots are not needed.
func (p *plan) take(node uint32, class, tenants, width, room int) {
	l := p.lodging(node, class)
	at := p.place(&claim{node: node}, class)
	for _, t := range l.tenants[:tenants] {
		room += t.width
	}
	var stay []tenant
	for k := tenants - 1; k >= 0; k-- {
		t := l.tenants[k]
		if room-t.width >= width {
			room -= t.width
			stay = append(stay, t)
			continue
		}
		l.room += t.width
		p.shifted += t.width
		p.market.least(t.job, class, t.width)
		p.lose(&t.claim, at)
		if t.job.job.Gang() {
			p.breakUp(t, class)
		}
	}
	slices.Reverse(stay)
	l.tenants = append(stay, l.tenants[tenants:]...)
	l.room -= width
	at.freed -= int32(width)
}

// breakUp takes away the slots of a gang's other tasks, after one of its tasks has lost its slots.
func (p *plan) breakUp(lost tenant, class int) {
	for _, c := range p.claimed(lost.job, class) {
		if c.Attempt == lost.Attempt {
			continue
		}
		l := p.lodging(c.node, class)
		l.tenants = slices.DeleteFunc(l.tenants, func(t tenant) bool { return t.Attempt == c.Attempt })
		l.room += c.width
		p.shifted += c.width
		p.market.least(lost.job, class, c.width)
		p.lose(&c, p.place(&c, class))
	}
}

// lose takes away the slots of a claim. The market's Preemption decides whether the job is cancelled, or the task
// starts again, or the task is suspended.
func (p *plan) lose(c *claim, at *place) {
	switch p.market.Config.Preemption {
	case market.PreemptCancel:
		if !slices.Contains(p.cancel, c.Task.Job) {
			p.cancel = append(p.cancel, c.Task.Job)
		}
		return
	case market.PreemptRequeue:
	default:
		at.freed += int32(c.width)
	}
	p.suspend = append(p.suspend, c.Attempt)
}

// least is called when a job loses slots of a class. It lowers the number of slots that the job may have before the
// next decision. So the job does not claim other slots in place of the lost ones.
func (m *Market) least(e *entry, class, slots int) {
	e.most[class] -= slots
	m.count(e)
}

// nowhere is called when the nodes have room for only `housed` slots of a job's pending tasks. If the job may run on
// any node, there is no room either for later jobs whose tasks are at least as wide. nowhere records this too.
func (m *Market) nowhere(e *entry, of *job.Stage, class, housed int) {
	m.stray(e, class, housed)
	if of.NamesNodes() || e.job.Gang() {
		return
	}
	for _, x := range m.wides {
		if x.job.Alone >= e.job.Alone && m.compare(e, x) < 0 {
			m.stray(x, class, 0)
		}
	}
}

// The pending tasks of a job may need more slots than the nodes have room for. stray records that there is room for
// only `housed` of these slots.
func (m *Market) stray(e *entry, class, housed int) {
	if e.job.Nowhere == nil {
		e.job.Nowhere = make([]int, len(m.classes))
		m.astray = append(m.astray, e)
	}
	e.job.Nowhere[class] = max(0, e.pending()[class]-housed)
	m.change(e)
}

// bar marks the jobs whose tasks no node can start now. Such a task needs more slots than the node has, or would not
// end before the node's next maintenance window. Jobs behind a marked job may start before it. bar is for markets
// without preemption, where an earlier job otherwise blocks the later ones.
func (p *plan) bar() {
	for _, e := range p.market.wides {
		for k := range p.market.classes {
			of := p.stage(e, k)
			if of != nil && !book.Before(p.now, of.TimeLimit, p.market.freeOn(p.book, of, p.now)) {
				p.market.stray(e, k, 0)
			}
		}
	}
}

// A decision can choose a node as the home of a task of several slots. atHome returns the jobs whose tasks have this
// node as their home, if the tasks fit in the node's free slots. The result `spare` is how many free slots these tasks
// leave.
func (m *Market) atHome(b *book.Book, node messages.Name, class int) (jobs []messages.JobID, spare int) {
	at, known := b.Position(node)
	if len(m.plan.homes) == 0 || !known {
		return nil, math.MaxInt
	}
	spare = math.MaxInt
	for _, h := range m.plan.homes {
		if h.node != at || h.class != class || m.Pending(h.job, class) < h.width {
			continue
		}
		if spare == math.MaxInt {
			spare = b.Nodes()[at].Idle(m.classes[class])
		}
		if spare -= h.width; spare >= 0 && !slices.Contains(jobs, h.job) {
			jobs = append(jobs, h.job)
		}
	}
	return jobs, max(spare, 0)
}

// In an earlier decision, no node was found for some jobs. seek makes the next decision look for nodes for these jobs
// again.
func (m *Market) seek() {
	for _, e := range m.astray {
		if e.job.Nowhere = nil; !e.gone {
			m.change(e)
		}
	}
	m.astray = m.astray[:0]
}
