package core

import (
	"math"
	"math/rand/v2"

	"github.com/candor-grid/candor/auctioneer/mechanism/contract"
	"github.com/candor-grid/candor/auctioneer/mechanism/deadlineaware"
	"github.com/candor-grid/candor/auctioneer/mechanism/valuation"
	"github.com/candor-grid/candor/deploy/simulated/bids"
	"github.com/candor-grid/candor/deploy/simulated/clock"
	"github.com/candor-grid/candor/deploy/simulated/workload"
	"github.com/candor-grid/candor/messages"
)

// runContract offers each job a menu of contracts when it is submitted, and schedules
// the job by the contract that its user chooses.
func runContract(p *Problem) (*Outcome, error) {
	c := &contracts{Problem: p, out: NewOutcome(p), free: p.Work.Nodes, deals: make([]deal, len(p.Bids))}
	for c.next < len(p.Work.Jobs) || c.ends.Len() > 0 {
		if err := c.instant(); err != nil {
			return nil, err
		}
	}
	return c.out, nil
}

// contracts is the state of a run.
type contracts struct {
	*Problem
	out    *Outcome
	next   int // the next job to be submitted
	free   int // slots
	deals  []deal
	active []int // jobs that have not ended
	solver contract.Solver
	ends   clock.Queue[int] // of tasks: the job
}

// deal is the contract that a job's user chose, and the job's progress.
type deal struct {
	contract  contract.Contract
	replica   valuation.Curve // by which it pays
	surrogate valuation.Curve // by which it is scheduled
	tasks
}

func (c *contracts) instant() error {
	now := c.ends.Next()
	if c.next < len(c.Work.Jobs) {
		if at := micros(c.Work.Jobs[c.next].Submit); c.ends.Len() == 0 || at < now {
			now = at
		}
	}
	for c.ends.Len() > 0 && c.ends.Next() <= now {
		c.end(now, c.ends.Pop())
	}
	for ; c.next < len(c.Work.Jobs) && micros(c.Work.Jobs[c.next].Submit) <= now; c.next++ {
		if err := c.arrive(now, c.next); err != nil {
			return err
		}
	}
	return c.serve(now)
}

// arrive makes a job's menu, and chooses the contract that is best for its user.
func (c *contracts) arrive(now messages.Time, i int) error {
	if c.Progress != nil {
		c.Progress(i, len(c.Bids)) // a menu takes long
	}
	j, b := &c.Work.Jobs[i], &c.Bids[i]
	if j.Runtime == 0 {
		c.complete(c.out, i, j.Submit, j.Submit, 0)
		return nil
	}
	c.deals[i].tasks = tasks{j.Width, j.Width}
	c.active = append(c.active, i)
	draw, err := contract.NewDraw(Declared(j, b), c.class(j), c.Market.M, c.DrawSeed()+uint64(j.Number))
	if err != nil {
		return err
	}
	curves, err := draw.Curves()
	if err != nil {
		return err
	}
	offer, err := contract.NewOffer(&c.solver, draw, func(types []messages.Valuation) ([]float64, error) {
		p, err := c.plan(now)
		if err != nil {
			return nil, err
		}
		surrogates := make([]valuation.Curve, len(types))
		for k := range types {
			if surrogates[k], err = valuation.New(types[k]); err != nil {
				return nil, err
			}
		}
		return deadlineaware.CompletionTimes(p, len(p.Jobs)-1, surrogates)
	})
	if err != nil {
		return err
	}
	c.out.Decisions++
	offers := make([]Offer, len(offer.Menu))
	for k := range offers {
		offers[k] = Offer{j.Submit + offer.Menu[k].Completion, offer.Menu[k].Price}
	}
	at := Choose(j, b, offers)
	if at < 0 {
		c.active = c.active[:len(c.active)-1]
		c.refuse(c.out, i, NoOffer)
		return nil
	}
	best := &offer.Menu[at]
	surrogate, err := valuation.New(draw.Surrogates[best.Surrogate])
	if err != nil {
		return err
	}
	d := &c.deals[i]
	d.contract, d.replica, d.surrogate = *best, curves[best.Replica], surrogate
	return nil
}

// Declared is the valuation that a job's user declares: all of its bid up to
// the deadline.
func Declared(j *workload.Job, b *bids.Bid) messages.Valuation {
	return hard(b.Rate*j.Work(), b.Deadline-j.Submit)
}

func hard(worth, within float64) messages.Valuation {
	return messages.Valuation{Class: messages.Hard, Max: min(worth, messages.MaxCredits.Float()), Deadline: min(within, messages.MaxValuationTime)}
}

// class draws valuations of jobs like a given one: that of a random job of the
// workload, scaled to the given job's slot-seconds and length.
func (c *contracts) class(j *workload.Job) contract.Sampler {
	return func(r *rand.Rand) messages.Valuation { return c.like(j, r) }
}

func (p *Problem) like(j *workload.Job, r *rand.Rand) messages.Valuation {
	k := r.IntN(len(p.Bids))
	other := &p.Work.Jobs[k]
	within := (p.Bids[k].Deadline - other.Submit) / max(1, other.Runtime)
	return hard(p.Bids[k].Rate*j.Work(), within*j.Runtime)
}

// Types draws n valuations of jobs like job i, as class draws them.
func (p *Problem) Types(i, n int) []messages.Valuation {
	r := rand.New(rand.NewPCG(p.DrawSeed(), uint64(i)))
	out := make([]messages.Valuation, n)
	for k := range out {
		out[k] = p.like(&p.Work.Jobs[i], r)
	}
	return out
}

// Offer is a contract as a user sees it.
type Offer struct {
	Completion float64 // seconds from the log's beginning
	Price      float64
}

// Choose is the offer that is worth most to a job's user less the price, the
// sooner of those worth as much; -1: everything is a loss.
func Choose(j *workload.Job, b *bids.Bid, offers []Offer) int {
	best, most := -1, 0.0
	for k, o := range offers {
		gain := -o.Price
		if o.Completion <= b.Deadline {
			gain += b.Worth(j)
		}
		if gain > most || gain == most && (best < 0 || o.Completion < offers[best].Completion) {
			best, most = k, gain
		}
	}
	return best
}

// MostOf is the highest price that a contract can have in the end.
func MostOf(c *messages.Contract, lateOnly bool) messages.Credits {
	return max(contract.Most(c, lateOnly), 1)
}

// plan is the scheduler's problem as it stands, the newest job last.
func (c *contracts) plan(now messages.Time) (*deadlineaware.Problem, error) {
	p := &deadlineaware.Problem{Slots: c.Work.Nodes}
	for _, i := range c.active {
		d, length := &c.deals[i], c.Bids[i].Length
		p.Jobs = append(p.Jobs, deadlineaware.Job{Tasks: d.left, Demand: length * float64(d.left),
			Elapsed: max(0, seconds(now)-c.Work.Jobs[i].Submit), Valuation: d.surrogate})
	}
	return p, nil
}

// serve gives free slots to tasks in the order of the schedule.
func (c *contracts) serve(now messages.Time) error {
	pending := false
	for _, i := range c.active {
		pending = pending || c.deals[i].pending > 0
	}
	if c.free == 0 || !pending {
		return nil
	}
	p, err := c.plan(now)
	if err != nil {
		return err
	}
	order, err := deadlineaware.Order(p)
	if err != nil {
		return err
	}
	for _, k := range order {
		i := c.active[k]
		for d := &c.deals[i]; d.pending > 0 && c.free > 0; d.pending-- {
			if math.IsNaN(c.out.Jobs[i].Start) {
				c.out.Jobs[i].Start = seconds(now)
			}
			c.free--
			c.ends.Push(now+micros(c.Work.Jobs[i].Runtime), i)
		}
	}
	return nil
}

func (c *contracts) end(now messages.Time, i int) {
	c.free++
	j, d, r := &c.Work.Jobs[i], &c.deals[i], &c.out.Jobs[i]
	if seconds(now) <= c.Bids[i].Deadline {
		r.InTime += 1 / float64(j.Width)
	}
	if d.left--; d.left > 0 {
		return
	}
	for k, job := range c.active {
		if job == i {
			c.active = append(c.active[:k], c.active[k+1:]...)
			break
		}
	}
	r.Finish, r.InTime, r.Used = seconds(now), min(1, r.InTime), j.Work()
	r.Paid = money(d.contract.Settle(&d.replica, r.Finish-j.Submit, c.Market.LateOnly))
}
