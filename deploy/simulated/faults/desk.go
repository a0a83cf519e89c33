package faults

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/federation"
	"github.com/candor-grid/candor/auctioneer/market"
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
)

// desk is the shell of a leader of the book. What it decides is decided by the
// market of package market, as on a site that is not simulated.
type desk struct {
	*site
	r    *replica
	term uint64
	rng  *rand.Rand

	market    *market.Market
	publisher *market.Publisher
	slots     *market.Slots
	dues      market.Dues
	settled   map[messages.JobID]bool // a settlement is under way
	deciding  bool                    // a decision is being committed
	asked     map[uint64]bool         // effects that are being carried out
	moving    int                     // of them, those that move credits
	gangs     map[messages.JobID]messages.Time
	errands   *federation.Errands
	visits    *federation.Visits
	polls     []func(late bool) bool // of peers that wait for a change
	told      map[uint32]uint64      // by node: the version that it was told of
	heard     map[messages.Name]messages.Time
	planned   messages.Time // the next step, by the world's clock; 0: none
}

// turn is how long a desk waits at most before it looks again.
const turn = second / 2

func newDesk(s *site, r *replica) *desk {
	mech, err := market.NewMechanism(s.market)
	if err != nil {
		s.violate("the market cannot be opened: %v", err)
		return nil
	}
	d := &desk{site: s, r: r, term: r.term, rng: rand.New(rand.NewPCG(s.seed, r.term)),
		market: market.NewIn(market.MannerOf(s.market.Mechanism), s.market, audited(s, mech)),
		slots:  market.NewSlots([]messages.Market{s.market}), settled: map[messages.JobID]bool{}, asked: map[uint64]bool{},
		gangs: map[messages.JobID]messages.Time{}, errands: federation.NewErrands(roamFor, rand.New(rand.NewPCG(s.seed, r.term))), visits: federation.NewVisits(r.term), told: map[uint32]uint64{}, heard: map[messages.Name]messages.Time{}}
	d.publisher = market.NewPublisher(d.term, d.market)
	d.book().Watch(true)
	d.applied()
	return d
}

// gone says whether somebody else leads.
func (d *desk) gone() bool { return d.r.shell != d || d.r.host.down }

func (d *desk) book() *book.Book { return d.r.state.(*bookState).Book }

func (d *desk) propose(c *book.Command, answered func(any)) {
	c.At = d.r.clock()
	data, err := c.Encode()
	if err != nil {
		d.violate("a command cannot be written down: %v", err)
		return
	}
	d.r.propose(data, answered)
}

// applied has the desk look soon; what comes until then is looked at together.
func (d *desk) applied() { d.plan(d.now.Add(second / 200)) }

func (d *desk) plan(at messages.Time) {
	at = max(at, d.now+1)
	if d.planned > d.now && d.planned <= at {
		return
	}
	d.planned = at
	d.after(&d.r.host.host, at.Sub(d.now), func() {
		if d.planned == at && !d.gone() {
			d.planned = 0
			d.step()
		}
	})
}

// step carries what was applied into the market, lets it decide, and tells
// whom it concerns.
func (d *desk) step() {
	now := d.r.clock()
	settlements := d.carry(now)
	if d.market.Stale(now) && !d.deciding {
		d.decide(now)
	}
	d.publish(now)
	for _, s := range settlements {
		d.propose(&book.Command{Settle: s}, nil)
	}
	d.carryOut()
	d.runErrands()
	d.expire(now)
	d.disband(now)
	d.plan(d.next(now))
}

// next is when to look again though nothing changes, by the world's clock.
func (d *desk) next(now messages.Time) messages.Time {
	next := now.Add(turn)
	for _, at := range []messages.Time{d.publisher.Wake(), d.dues.Next()} {
		if at != 0 {
			next = min(next, at)
		}
	}
	if at := d.market.Wake(); at != 0 && !d.deciding {
		next = min(next, at)
	}
	if at, known := d.errands.Wake(); known {
		next = min(next, epoch.Add(at).Add(d.r.host.offset))
	}
	return max(next, now.Add(second/500)).Add(-d.r.host.offset)
}

// carry brings the market up to date with the book, and returns what is to be
// settled.
func (d *desk) carry(now messages.Time) (out []*book.Settle) {
	b := d.book()
	changes := b.TakeChanges()
	for _, i := range sorted(changes.Nodes) {
		n := b.Nodes()[i]
		slots := market.SlotsOf(i, n)
		d.slots.Set(&slots)
		if len(n.Stop) > 0 || d.told[i] != n.Version {
			d.told[i] = n.Version
			d.direct(n)
		}
	}
	if len(changes.Nodes) > 0 {
		slots, idle := d.slots.Of(0)
		d.market.SetSlots(now, slots, idle)
	}
	for _, id := range sorted(changes.Jobs) {
		if j := b.Job(id); j != nil {
			if s := d.carryJob(now, j); s != nil {
				out = append(out, s)
			}
		}
	}
	d.errands.Changed(b, changes.Jobs)
	if d.visits.Changed(b, changes.Jobs) {
		d.polls = slices.DeleteFunc(d.polls, func(tell func(bool) bool) bool { return tell(false) })
	}
	return append(out, d.dues.Due(now)...)
}

func sorted[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

func (d *desk) carryJob(now messages.Time, j *book.Job) *book.Settle {
	delete(d.gangs, j.ID)
	switch {
	case j.State == messages.Settling && !j.Settled:
		if d.settled[j.ID] {
			return nil
		}
		d.settled[j.ID] = true
		return d.dues.Take(now, d.market.Settlement(now, market.EndingOf(d.book(), j)))
	case !j.Active():
		d.market.Remove(now, j.ID)
		return nil
	}
	if since := j.Stages[0].Gathered; since != 0 {
		d.gangs[j.ID] = since
	}
	d.market.Put(now, func() *mechanism.Bid { return d.market.BidOf(j) }, j.ID, d.market.ProgressOf(j))
	return nil
}

func (d *desk) decide(now messages.Time) {
	decision := d.market.Decide(now, func(read func(*book.Book)) { read(d.book()) })
	d.publisher.Reallocated()
	if decision == nil {
		return
	}
	d.deciding = true
	d.propose(&book.Command{Decide: decision}, func(any) {
		d.deciding = false
		d.market.Kept()
	})
}

// publish sends the market's next vector to all agents, if one is due.
func (d *desk) publish(now messages.Time) {
	v, due := d.publisher.Due(d.market, now, len(d.agents), d.rng)
	if !due {
		return
	}
	for _, a := range d.agents {
		d.send(d.r.host.name, a.actor, func() { a.vector(&v) })
	}
}

// direct tells a node what to end and what to hold.
func (d *desk) direct(n *book.Node) {
	word := &messages.Directive{Term: d.term, Stop: slices.Clone(n.Stop), Held: n.Halted(), Version: n.Version}
	for _, a := range d.agents {
		if a.name == n.Name {
			d.send(d.r.host.name, a.actor, func() { a.directive(word) })
		}
	}
}

// expire takes back the claims of nodes that were not heard.
func (d *desk) expire(now messages.Time) {
	for _, n := range d.book().Nodes() {
		if !n.Up {
			continue
		}
		if _, known := d.heard[n.Name]; !known {
			d.heard[n.Name] = now
		}
		if now.Sub(d.heard[n.Name]) > lease+lease/4 {
			d.heard[n.Name] = now
			d.propose(&book.Command{Lost: &book.Lost{Node: n.Name, Session: n.Session}}, nil)
		}
	}
}

// disband gives back the tasks of gangs that do not come together in time.
func (d *desk) disband(now messages.Time) {
	for _, id := range sorted(d.gangs) {
		if since := d.gangs[id]; now.Sub(since) > lease {
			d.propose(&book.Command{Disband: &book.Disband{Job: id, Since: since}}, nil)
			d.gangs[id] = now // asked for: again only if that is lost
		}
	}
}
