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
	slots     *market.Slots
	dues      market.Dues
	gangs     market.Gangs
	rng       *rand.Rand

	of      []int32 // by number of a job of the book: the job of the workload
	told    map[uint32]uint64
	touched []uint32                        // nodes that have changed, ascending
	settles map[messages.JobID]bool         // jobs of which a settlement is under way
	heard   map[messages.Name]messages.Time // of nodes: when last
	retried map[messages.JobID]int          // tasks that came back, as noted
	refused map[int]int                     // by job of the workload: parts that were not taken
	busy    bool                            // effects are being carried out

	free    messages.Time // from when on a step can be made
	planned messages.Time // the next step; 0: none
}

func newLeader(g *Grid, config messages.Market) (*leader, error) {
	live, err := market.Open(config)
	if err != nil {
		return nil, err
	}
	l := &leader{Grid: g, book: book.New(), market: live, publisher: market.NewPublisher(1, live), slots: market.NewSlots([]messages.Market{config}),
		rng: rand.New(rand.NewPCG(g.Seed, 0x6c6561646572)), of: make([]int32, 1, len(g.Bids)+1),
		told: map[uint32]uint64{}, settles: map[messages.JobID]bool{}, heard: map[messages.Name]messages.Time{}, retried: map[messages.JobID]int{}, refused: map[int]int{}}
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
		if d := l.market.Decide(l.now, func(read func(*book.Book)) { read(l.book) }); d != nil {
			l.note(d)
			l.propose(&book.Command{Decide: d})
			l.market.Kept()
		}
		l.publisher.Reallocated()
	}
	if v, ok := l.publisher.Due(l.market, l.now, len(l.agents), l.rng); ok {
		l.publish(&v)
	}
	l.direct()
	for _, s := range settlements {
		l.propose(&book.Command{Settle: s})
		delete(l.settles, s.Job)
	}
	for _, d := range l.gangs.Late(l.now) {
		l.traffic.Disbanded++
		l.propose(&book.Command{Disband: d})
	}
	l.carryOut()
	for _, at := range []messages.Time{l.market.Wake(), l.publisher.Wake(), l.dues.Next(), l.gangs.Next()} {
		if at != 0 {
			l.kick(at)
		}
	}
}

// carry brings the market up to date with the book, and returns what is to be
// settled.
func (l *leader) carry() (out []*book.Settle) {
	changes := l.book.TakeChanges()
	l.touched = l.touched[:0]
	for i := range changes.Nodes {
		l.touched = append(l.touched, i)
	}
	slices.Sort(l.touched)
	for _, i := range l.touched {
		n := market.SlotsOf(i, l.book.Nodes()[i])
		l.slots.Set(&n)
	}
	if len(l.touched) > 0 {
		slots, idle := l.slots.Of(0)
		l.market.SetSlots(l.now, slots, idle)
	}
	ids := make([]messages.JobID, 0, len(changes.Jobs))
	for id := range changes.Jobs {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		if j := l.book.Job(id); j != nil {
			if s := l.carryJob(j); s != nil {
				out = append(out, s)
			}
		}
	}
	return append(out, l.dues.Due(l.now)...)
}

func (l *leader) carryJob(j *book.Job) *book.Settle {
	l.gangs.Put(j.Spec, j.ID, l.market.GatheringOf(j))
	switch {
	case j.State == messages.Settling && !j.Settled && !l.settles[j.ID]:
		l.settles[j.ID] = true
		return l.dues.Take(l.now, l.market.Settlement(l.now, market.EndingOf(l.book, j)))
	case !j.Active():
		l.market.Remove(l.now, j.ID)
		return nil
	}
	l.noteRetries(j)
	l.market.Put(l.now, func() *mechanism.Bid { return l.market.BidOf(j) }, j.ID, l.market.ProgressOf(j))
	return nil
}

// publish sends a vector to all agents.
func (l *leader) publish(v *messages.Vector) {
	l.traffic.Vectors++
	if l.net.Reliable() { // all hear it at once
		l.queue.Push(l.net.Arrival(l.now), func() {
			for _, a := range l.agents {
				a.vector(v)
			}
		})
		return
	}
	for _, a := range l.agents {
		l.send(auctioneerActor, a.name, func() { a.vector(v) })
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
