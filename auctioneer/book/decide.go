package book

import (
	"slices"

	"github.com/candor-grid/candor/messages"
)

// Decide is what a market decided: it is carried out as one. What it says of
// attempts that have ended or moved on meanwhile is let pass. Result: nil.
type Decide struct {
	Market  messages.Name
	Suspend []messages.Attempt
	Resume  []messages.Attempt
	Requeue []messages.Attempt // to end and be run again
	Start   []Starting
	Discard []Discarding
	Tariffs []Tariff // of all classes of the market; none: as before
	Notes   []Note   // for the mechanism to remember
	Forget  bool     // instead of all its notes before
}

// Starting orders the start of a job for good.
type Starting struct {
	Job   messages.JobID
	Order Order
	Fixed *Fixed
	Legs  []Leg // what its decision moves between jobs
}

// Discarding ends a job that its market will not run.
type Discarding struct {
	Job     messages.JobID
	Reason  string // stable CamelCase
	Message string
	Change  []string
	Legs    []Leg
}

// Leg is credits that one job's account pays to another's.
type Leg struct {
	From, To messages.JobID
	Amount   messages.Credits
	Reason   string
}

func (b *Book) decide(c *Decide) any {
	if c.Tariffs != nil {
		b.setTariffs(c.Market, c.Tariffs)
	}
	if c.Notes != nil || c.Forget {
		b.note(c.Market, c.Notes, c.Forget)
	}
	for _, a := range c.Suspend {
		b.suspend(a)
	}
	for _, a := range c.Requeue {
		b.requeue(a)
	}
	for _, a := range c.Resume {
		b.resume(a)
	}
	for i := range c.Start {
		b.start(&c.Start[i])
	}
	for i := range c.Discard {
		b.discard(&c.Discard[i])
	}
	return nil
}

func (b *Book) start(s *Starting) {
	j := b.jobs[s.Job]
	if j == nil || !j.Active() || j.Order != nil {
		return
	}
	order := s.Order
	j.Order, j.Fixed = &order, s.Fixed
	b.ordered[j.ID] = j
	if j.Fixed != nil {
		j.Fixed.Amount = max(0, min(j.Fixed.Amount, j.Left()))
	}
	b.round(j, s.Legs)
	b.touch(j.ID)
}

func (b *Book) discard(d *Discarding) {
	j := b.jobs[d.Job]
	if j == nil || !j.Active() {
		return
	}
	j.Message, j.Change = d.Message, d.Change
	b.round(j, d.Legs)
	b.end(j, messages.Discarded, d.Reason)
}

// round moves credits between jobs' accounts, if everybody can pay.
func (b *Book) round(of *Job, legs []Leg) {
	if len(legs) == 0 || !b.payable(legs) {
		return
	}
	for _, l := range legs {
		b.jobs[l.From].Paid += l.Amount
		b.jobs[l.To].Gained += l.Amount
	}
	for part := range slices.Chunk(legs, mostLegs) {
		b.effect(Round, of.ID, slices.Clone(part)...)
	}
}

// mostLegs is how many legs the bank is asked for at a time: each is at most three
// transfers, which together must be no more than the bank takes as one chain. The
// holds cover all legs, so that they need not move as one.
const mostLegs = messages.MaxLegs / 3

// payable says whether every payer's hold covers what it is to pay.
func (b *Book) payable(legs []Leg) bool {
	due := map[messages.JobID]messages.Credits{}
	for _, l := range legs {
		payer := b.jobs[l.From]
		if payer == nil || b.jobs[l.To] == nil || payer.Settled || l.Amount <= 0 || l.Amount > messages.MaxCredits {
			return false
		}
		if due[l.From] += l.Amount; due[l.From] > payer.Left()-payer.reserved() {
			return false
		}
	}
	return true
}

// reserved is what a job will owe to the site for certain.
func (j *Job) reserved() messages.Credits {
	if j.Fixed == nil {
		return 0
	}
	return j.Fixed.Amount
}

// rounded takes the bank's answer to a round: the payers' holds are now what is
// left of them, or if the bank refused, as they were.
func (b *Book) rounded(e *Effect, o *Confirmation) {
	for _, l := range e.Legs {
		from, to := b.jobs[l.From], b.jobs[l.To]
		if from != nil && o.Refused != "" {
			from.Paid -= l.Amount
		}
		if to != nil && o.Refused != "" {
			to.Gained -= l.Amount
		}
		if from != nil && o.Refused == "" {
			from.Drawn += l.Amount
			from.LastDraw = e.ID
		}
		b.touch(l.From)
		b.touch(l.To)
	}
}

// Live is the number of jobs of a market that are not final.
func (b *Book) Live(market messages.Name) (n int) {
	for _, j := range b.jobs {
		if j.Spec.Market == market && !j.State.Final() {
			n++
		}
	}
	return n
}
