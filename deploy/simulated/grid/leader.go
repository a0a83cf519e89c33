package grid

import (
	"math/rand/v2"
	"slices"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/market"
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
)

// coalesce is how soon a step can follow another, as on a site that is busy
// deciding: what changes meanwhile is decided together.
const coalesce = messages.Duration(3e6)

// leader is the shell of the auctioneer: what it does when the book changes.
type leader struct {
	*Grid
	book      *book.Book
	market    *market.Market
	publisher *market.Publisher
	rng       *rand.Rand
	of        map[messages.JobID]int32 // of the workload
	told      map[uint32]uint64        // by node: the version that it was told of
	touched   []uint32                 // nodes that have changed, ascending
	asked     map[uint64]bool          // effects that are being carried out

	free    messages.Time // from when on a step can be made
	planned messages.Time // the next step; 0: none
	pace    pace
}

func newLeader(g *Grid) (*leader, error) {
	config, manner, mech, err := live(g.Market)
	if err != nil {
		return nil, err
	}
	l := &leader{Grid: g, book: book.New(), market: market.NewIn(manner, config, mech), of: map[messages.JobID]int32{}, told: map[uint32]uint64{}, asked: map[uint64]bool{},
		rng: rand.New(rand.NewPCG(g.Seed, 0x6c6561646572))}
	l.publisher = market.NewPublisher(1, l.market)
	l.book.Watch(true)
	return l, nil
}

// propose commits a command: what a log would hold of it is what is applied.
func (l *leader) propose(c *book.Command) any {
	c.At = l.now
	data, err := c.Encode()
	if err == nil {
		c, err = book.Decode(data)
	}
	if err != nil {
		l.fail("a command cannot be written down: %v", err)
		return err
	}
	l.traffic.Commands++
	result := l.book.Apply(c)
	l.kick(l.now)
	return result
}

// kick plans a step at some time, or as soon after as there can be one.
func (l *leader) kick(at messages.Time) {
	at = max(at, l.free, l.now)
	if l.planned != 0 && l.planned <= at {
		return
	}
	l.planned = at
	l.queue.Push(at, func() {
		if l.planned == at {
			l.planned = 0
			l.free = at.Add(coalesce)
			l.step()
		}
	})
}

// step carries what was applied into the market, lets the mechanism decide, and
// tells whom it concerns.
func (l *leader) step() {
	settlements := l.carry()
	if l.market.Stale(l.now) {
		l.traffic.Decisions++
		if d := l.decide(); d != nil {
			l.propose(&book.Command{Decide: d})
		}
		l.pace.reallocated = true
	}
	l.publish()
	l.direct()
	for i := range settlements {
		l.propose(&book.Command{Settle: &settlements[i]})
	}
	l.carryOut()
	if w := l.market.Wake(); w != 0 {
		l.kick(w)
	}
	if w := l.pace.wake(); w != 0 {
		l.kick(w)
	}
}

// carry brings the market up to date with the book, and returns what is to be
// settled.
func (l *leader) carry() (out []book.Settle) {
	changes := l.book.TakeChanges()
	l.touched = l.touched[:0]
	for i := range changes.Nodes {
		l.touched = append(l.touched, i)
	}
	slices.Sort(l.touched)
	if len(changes.Nodes) > 0 {
		slots, idle := 0, 0
		for _, n := range l.book.Nodes() {
			if n.Up {
				slots, idle = slots+1, idle+n.Idle(class)
			}
		}
		l.market.SetSlots(l.now, []int{slots}, []int{idle})
	}
	ids := make([]messages.JobID, 0, len(changes.Jobs))
	for id := range changes.Jobs {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		if j := l.book.Job(id); j != nil {
			if s := l.carryJob(j); s != nil {
				out = append(out, *s)
			}
		}
	}
	return out
}

func (l *leader) carryJob(j *book.Job) *book.Settle {
	switch {
	case j.State == messages.Settling && !j.Settled:
		return l.settlement(j)
	case !j.Active():
		l.market.Remove(l.now, j.ID)
		return nil
	}
	s := &j.Stages[0]
	p := market.Progress{Started: j.Started, Done: s.Done, Pending: []int{j.Claimable(0)}, Running: []int{s.Running - s.Suspended - s.Leaving}}
	if s.Suspended > 0 {
		p.Suspended = []int{s.Suspended}
	}
	l.market.Put(l.now, func() *mechanism.Bid { return l.market.Bid(j.ID, j.Account, j.Submitted, j.Spec, nil) }, j.ID, p)
	return nil
}

// settlement asks the mechanism what an ended job owes.
func (l *leader) settlement(j *book.Job) *book.Settle {
	job, shares := l.market.Remove(l.now, j.ID)
	if job == nil {
		job = &mechanism.Job{Bid: l.market.Bid(j.ID, j.Account, j.Submitted, j.Spec, nil), Started: j.Started, Pending: []int{0}, Running: []int{0}}
	}
	job.Accrued, job.Received = l.book.Used(j, j.Ended)
	total, _, done := j.Count()
	end := mechanism.End{State: j.Outcome, Tasks: total, Done: done}
	for _, c := range shares {
		end.Shares = append(end.Shares, mechanism.Share{Allocated: c.Allocated, Received: c.Received})
	}
	s := &book.Settle{Job: j.ID}
	for _, p := range l.market.Settle(l.now, job, end) {
		s.Charge, s.Reason = s.Charge+p.Amount, p.Reason
	}
	s.Charge = max(0, min(s.Charge, j.Held-j.Paid))
	return s
}

// publish sends the market's next vector to all agents, if one is due.
func (l *leader) publish() {
	pending := l.market.Claimable()
	announce, due := l.pace.due(l.now, pending)
	if !due {
		return
	}
	v, ok := l.publisher.Next(l.market, l.now, l.rng, announce)
	l.pace.sent(l.now, pending, len(l.agents), ok)
	if !ok {
		return
	}
	l.traffic.Vectors++
	if l.net.Reliable() { // all hear it at once
		l.queue.Push(l.net.Arrival(l.now), func() {
			for _, a := range l.agents {
				a.vector(&v)
			}
		})
		return
	}
	for _, a := range l.agents {
		l.send(auctioneerActor, a.name, func() { a.vector(&v) })
	}
}

// direct tells the nodes that have changed what to end and what to hold.
func (l *leader) direct() {
	for _, i := range l.touched {
		n := l.book.Nodes()[i]
		if len(n.Stop) == 0 && l.told[i] == n.Version {
			continue
		}
		l.told[i] = n.Version
		d := &messages.Directive{Term: 1, Stop: slices.Clone(n.Stop), Held: n.Halted(), Version: n.Version}
		a := l.agents[l.index(n.Name)]
		l.traffic.Directives++
		l.send(auctioneerActor, n.Name, func() {
			a.state.Directive(d)
			a.act()
		})
	}
}
