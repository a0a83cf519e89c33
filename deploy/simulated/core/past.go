package core

import (
	"math"
	"slices"

	"github.com/candor-grid/candor/auctioneer/mechanism/deadline"
	"github.com/candor-grid/candor/deploy/simulated/rules"
	"github.com/candor-grid/candor/messages"
)

// Past is the state of a run at some time. The run of another problem can continue from this state, if two things are
// equal in both problems: the market with its seed, prior and class, and all jobs and bids until this time.
type Past struct {
	until    messages.Time
	queue    *queue
	contract *contracts
	deadline *deadline.Past
	slot     messages.Duration // length of the unit of time, for mechanism deadline
}

// Until runs a problem up to a time, in seconds from the log's beginning. It returns nil for all mechanisms except
// batch-queue, contract and deadline: the other mechanisms run a whole log quickly.
func Until(p *Problem, at float64) (*Past, error) {
	if !slices.Contains([]string{rules.BatchQueue, rules.Contract, rules.Deadline}, p.Market.Mechanism) {
		return nil, nil
	}
	q := *p
	q.Payers, q.Past, q.stop = nil, nil, &Past{until: micros(at)}
	_, err := Run(&q)
	return q.stop, err
}

// stopped reports whether a run that has an end time has reached it.
func (c *course[End]) stopped() bool { return c.stop != nil && c.instant() >= c.stop.until }

func (c *course[End]) resume(past *course[End]) {
	copy(c.out.Jobs, past.out.Jobs[:past.next])
	c.out.Notes, c.out.refused = slices.Clone(past.out.Notes), past.out.refused
	c.next, c.ends = past.next, past.ends.Clone()
}

func (q *queue) resume(past *queue) {
	q.course.resume(&past.course)
	q.free, q.waiting, q.running, q.belief = past.free, slices.Clone(past.waiting), slices.Clone(past.running), past.belief.Clone()
	copy(q.until, past.until[:past.next])
}

func (c *contracts) resume(past *contracts) {
	c.course.resume(&past.course)
	c.free, c.active = past.free, slices.Clone(past.active)
	copy(c.jobs, past.jobs[:past.next])
	copy(c.deals, past.deals[:past.next])
}

// The mechanism deadline counts time in units. past returns the unit at which its run stops. If an earlier run was
// stored, past also returns it, so that the new run can continue from it. The second result is nil if there is no such
// run, or if its units have another length.
func (p *Problem) past() (stop int, past *deadline.Past) {
	if p.Past != nil && p.Past.slot == p.Market.Slot {
		past = p.Past.deadline
	}
	if p.stop != nil {
		stop = int(math.Ceil(seconds(p.stop.until) / p.Market.Slot.Seconds()))
	}
	return stop, past
}
