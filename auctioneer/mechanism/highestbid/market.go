package highestbid

import (
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
)

// Market is the mechanism as steps, in the integers of a live market: offers
// arrive, slots finish, Decide says who runs from now on. All that happens at an
// instant is told before its one Decide. Times must not go back; an error
// changes nothing. An event costs O(log n), and a decision O(log n) for each
// job whose slots it changes. It is not safe for concurrent use.
type Market struct {
	rule    Rule
	auction *auction
	meter   *meter
	number  map[messages.JobID]int32
	offers  []Offer // by number
	free    []int32 // numbers that can be given away
	gone    []int32 // numbers that can be at the next decision
	changes []Change
}

// Offer is what a job bids.
type Offer struct {
	Job    messages.JobID
	Rate   messages.Credits  // for a slot-second
	Length messages.Duration // by which WSPT and WSEPT divide the rate
	Slots  int               // how many it wants, each by itself
}

// Change is what a decision changes for a job.
type Change struct {
	Job messages.JobID
	Was int // slots it had
	Has int // slots it has now
}

// NewMarket returns a market with so many slots and no jobs.
func NewMarket(r Rule, reserve messages.Credits, slots int) (*Market, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	if reserve < 0 || reserve > MostRate {
		return nil, badReserve(reserve)
	}
	m := &Market{rule: r, meter: newMeter(r, reserve), auction: newAuction(r, 0), number: map[messages.JobID]int32{}}
	return m, m.Resize(0, slots)
}

func badReserve(reserve messages.Credits) error {
	return messages.Errorf(messages.Invalid, "reserve: must be from 0 to %v credits, is %v", MostRate, reserve)
}

// Resize changes the number of slots. Without preemption jobs keep those they have.
func (m *Market) Resize(now messages.Time, slots int) error {
	if slots < 0 || slots > MostNodes {
		return messages.Errorf(messages.Invalid, "slots: must be from 0 to %d, is %d", MostNodes, slots)
	}
	if err := m.meter.advance(now); err != nil {
		return err
	}
	m.auction.nodes = slots
	return nil
}

// Arrive takes an offer. Of equal offers, the one that arrived first is better.
func (m *Market) Arrive(now messages.Time, o Offer) error {
	if _, known := m.number[o.Job]; known {
		return messages.Errorf(messages.Conflict, "job %d: is in the market already", o.Job)
	}
	if err := m.rule.check(o); err != nil {
		return err
	}
	if err := m.meter.advance(now); err != nil {
		return err
	}
	id := m.enter(o)
	m.auction.arrive(id, float64(o.Rate), float64(m.rule.microseconds(o.Length)), o.Slots)
	return nil
}

func (r Rule) check(o Offer) error {
	switch {
	case o.Rate < 0 || o.Rate > MostRate:
		return messages.Errorf(messages.Invalid, "job %d: rate: must be from 0 to %v credits, is %v", o.Job, MostRate, o.Rate)
	case o.Slots < 1 || o.Slots > MostSlots:
		return messages.Errorf(messages.Invalid, "job %d: slots: must be from 1 to %d, is %d", o.Job, MostSlots, o.Slots)
	case r.byLength() && o.Length <= 0:
		return messages.Errorf(messages.Invalid, "job %d: length: must be above 0 for %s, which orders jobs by it, is %v", o.Job, r.Algorithm, o.Length)
	}
	return nil
}

// enter gives an offer a number.
func (m *Market) enter(o Offer) int32 {
	id := int32(len(m.offers))
	if last := len(m.free) - 1; last >= 0 {
		id, m.free = m.free[last], m.free[:last]
	}
	m.offers = resize(m.offers, id)
	m.offers[id], m.number[o.Job] = o, id
	m.meter.enter(id, o.Rate, o.Length)
	return id
}

// Finish says that so many of a job's running slots are done. With the last
// slot that it wants it leaves the market. It returns what it owes by now.
func (m *Market) Finish(now messages.Time, job messages.JobID, slots int) (messages.Credits, error) {
	id, known := m.number[job]
	if !known {
		return 0, notHere(job)
	}
	if b := &m.auction.bidders[id]; slots < 1 || slots > b.running {
		return 0, messages.Errorf(messages.Invalid, "job %d: slots: %d cannot finish, it runs %d", job, slots, b.running)
	}
	return m.leave(now, id, slots, 0)
}

func notHere(job messages.JobID) error {
	return messages.Errorf(messages.NotFound, "job %d: is not in the market", job)
}

// leave takes slots away that a job has, and that it waits for.
func (m *Market) leave(now messages.Time, id int32, running, waiting int) (messages.Credits, error) {
	if err := m.meter.advance(now); err != nil {
		return 0, err
	}
	m.auction.leave(id, running, waiting)
	b := &m.auction.bidders[id]
	m.meter.run(id, b.running)
	if b.running+b.waiting == 0 {
		delete(m.number, m.offers[id].Job)
		m.gone = append(m.gone, id)
	}
	return m.meter.owed(id), nil
}

// Decide says which jobs have other slots from now on, and sets the tariff.
// The result is valid until the next call.
func (m *Market) Decide(now messages.Time) ([]Change, error) {
	if err := m.meter.advance(now); err != nil {
		return nil, err
	}
	m.auction.settled() // what finished is no decision
	m.auction.decide()
	m.changes = m.changes[:0]
	for _, id := range m.auction.changed {
		o, b := &m.offers[id], &m.auction.bidders[id]
		if b.running == b.before {
			continue
		}
		m.changes = append(m.changes, Change{o.Job, b.before, b.running})
		m.meter.run(id, b.running)
	}
	m.auction.settled()
	m.free, m.gone = append(m.free, m.gone...), m.gone[:0]
	m.meter.set(m.auction.tariff(m.rule, func(id int32) (messages.Credits, messages.Duration) { return m.offers[id].Rate, m.offers[id].Length }))
	return m.changes, nil
}

// tariff is the tariff as things stand; bid is what a bidder bids for a slot-second,
// and its length.
func (a *auction) tariff(r Rule, bid func(id int32) (messages.Credits, messages.Duration)) mechanism.Tariff {
	t := mechanism.Tariff{Basis: a.basis(r)}
	if t.Basis == mechanism.AtLevel {
		t.Rate, t.Length = bid(a.waiting.first())
		if !r.byLength() {
			t.Length = 0
		}
	}
	return t
}

// PriceOf is what a slot-second costs a job at a tariff, in credits.
func (r Rule) PriceOf(t mechanism.Tariff, reserve, rate messages.Credits, length messages.Duration) float64 {
	price := reserve.Float()
	switch t.Basis {
	case mechanism.OwnBid:
		price = rate.Float()
	case mechanism.AtLevel:
		price = t.Rate.Float() * float64(r.microseconds(length)) / float64(r.microseconds(t.Length))
	}
	if r.Capped || t.Basis == mechanism.AtLevel && r.capsLevel() {
		price = min(price, rate.Float())
	}
	return price
}
