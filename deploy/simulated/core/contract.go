package core

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"github.com/candor-grid/candor/auctioneer/mechanism/contract"
	"github.com/candor-grid/candor/auctioneer/mechanism/deadlineaware"
	"github.com/candor-grid/candor/auctioneer/mechanism/valuation"
	"github.com/candor-grid/candor/deploy/simulated/bids"
	"github.com/candor-grid/candor/deploy/simulated/rules"
	"github.com/candor-grid/candor/deploy/simulated/workload"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// runContract offers each job a menu of contracts when it is submitted, and schedules the job by its user's choice.
func runContract(p *Problem) (*Outcome, error) {
	c := &contracts{serial: newSerial(p), deals: make([]deal, len(p.Bids))}
	if p.Past != nil {
		c.resume(p.Past.contract)
	}
	if p.stop != nil {
		p.stop.contract = c
	}
	return c.run(c.end, c.arrive, c.serve)
}

type contracts struct {
	serial
	deals  []deal
	active []int // jobs that have not ended
	solver contract.Solver
}

// deal has the contract that a job's user chose, and the valuations of the two job types in this contract. The payment
// is computed from the valuation `replica`. The scheduler uses the valuation `surrogate`.
type deal struct {
	contract  contract.Contract
	replica   valuation.Curve // the valuation for the payment
	surrogate valuation.Curve // the valuation for the place in the schedule
}

// arrive makes the menu of a new job, and chooses the contract that is best for its user.
func (c *contracts) arrive(now messages.Time, i int) error {
	j, b := &c.Work.Jobs[i], &c.Bids[i]
	c.enter(i)
	c.active = append(c.active, i)
	draw, err := contract.NewDraw(Declared(c.Market.Worth, j, b), c.class(j), c.Market.M, c.DrawSeed()+uint64(j.Number))
	if err != nil {
		return err
	}
	curves, err := draw.Curves()
	if err != nil {
		return err
	}
	offer, err := contract.NewOffer(&c.solver, draw, func(types []job.Valuation) ([]float64, error) {
		p, surrogates := c.plan(now), make([]valuation.Curve, len(types))
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
	offers := make([]Offer, len(offer.Menu))
	for k := range offers {
		offers[k] = Offer{j.Submit + offer.Menu[k].Completion, offer.Menu[k].Price}
	}
	at := Choose(c.Market.Worth, j, b, offers)
	if at < 0 {
		c.active = c.active[:len(c.active)-1]
		c.refuse(c.out, i, NoOffer)
		c.settled(i)
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

// Declared returns the valuation that a job's user declares. Its largest value is the bid for the whole job. The value
// either stays the same until the deadline, or falls until the deadline. After the deadline it is 0.
func Declared(by string, j *workload.Job, b *bids.Bid) job.Valuation {
	return valued(by, b.Rate*j.Work(), b.Length, b.Deadline-j.Submit)
}

func valued(by string, worth, length, within float64) job.Valuation {
	worth, within = min(worth, messages.MaxCredits.Float()), min(within, job.MaxValuationTime)
	if by == rules.ByDecay && within > length {
		return job.Valuation{Class: job.LinearDecay, Max: worth, Mu: length, Delta: within - length}
	}
	return job.Valuation{Class: job.Hard, Max: worth, Deadline: within}
}

// class returns a function that draws valuations for job j. It takes the valuation of a random job of the study, and
// scales it to the slot-seconds and the length of job j.
func (c *contracts) class(j *workload.Job) contract.Sampler {
	return func(r *rand.Rand) job.Valuation { return c.like(j, r) }
}

func (p *Problem) like(j *workload.Job, r *rand.Rand) job.Valuation {
	of := cmp.Or(p.Class, p)
	k := r.IntN(len(of.Bids))
	other := &of.Work.Jobs[k]
	within := (of.Bids[k].Deadline - other.Submit) / max(1, other.Runtime)
	return valued(p.Market.Worth, of.Bids[k].Rate*j.Work(), j.Runtime, within*j.Runtime)
}

// Types draws n valuations from the class of job i.
func (p *Problem) Types(i, n int, seed uint64) []job.Valuation {
	r := rand.New(rand.NewPCG(seed, 0))
	out := make([]job.Valuation, n)
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

// Choose returns the index of the offer with the largest difference between worth and price. If several offers are
// equally good, it takes the offer with the earliest completion. It returns −1 if every offer is a loss.
func Choose(by string, j *workload.Job, b *bids.Bid, offers []Offer) int {
	best, most := -1, 0.0
	for k, o := range offers {
		gain := -o.Price
		if by == rules.ByDecay {
			gain += b.Worth(j) * b.Left(j, o.Completion)
		} else if o.Completion <= b.Deadline {
			gain += b.Worth(j)
		}
		if gain > most || gain == most && (best < 0 || o.Completion < offers[best].Completion) {
			best, most = k, gain
		}
	}
	return best
}

// MostOf returns the highest price that a job with this contract may have to pay when it has ended.
func MostOf(c *job.Contract, lateOnly bool) messages.Credits {
	return max(contract.Most(c, lateOnly), 1)
}

// plan returns the current scheduling problem. The newest job is at the end.
func (c *contracts) plan(now messages.Time) *deadlineaware.Problem {
	p := &deadlineaware.Problem{Slots: c.Work.Nodes}
	for _, i := range c.active {
		left := c.jobs[i].left
		p.Jobs = append(p.Jobs, deadlineaware.Job{Tasks: left, Demand: c.Bids[i].Length * float64(left),
			Elapsed: max(0, seconds(now)-c.Work.Jobs[i].Submit), Valuation: c.deals[i].surrogate})
	}
	return p
}

// serve gives free slots to tasks in the order of the schedule.
func (c *contracts) serve(now messages.Time) error {
	if c.free == 0 || !slices.ContainsFunc(c.active, func(i int) bool { return c.jobs[i].pending > 0 }) {
		return nil
	}
	order, err := deadlineaware.Order(c.plan(now))
	if err != nil {
		return err
	}
	for _, k := range order {
		for i := c.active[k]; c.jobs[i].pending > 0 && c.free > 0; {
			c.begin(now, i)
		}
	}
	return nil
}

// end charges the price when the last task ends. Time beyond the declared length does not count as lateness.
func (c *contracts) end(now messages.Time, i int) error {
	if c.serial.end(now, i) {
		c.active = slices.DeleteFunc(c.active, func(job int) bool { return job == i })
		d, r, j := &c.deals[i], &c.out.Jobs[i], &c.Work.Jobs[i]
		after := r.Finish - j.Submit
		if own := float64(j.Width) * (j.Runtime - c.Bids[i].Length); own > 0 { // contract.Mechanism charges the same
			after = min(after, max(d.contract.Completion, after-own))
		}
		r.Paid = Money(d.contract.Settle(&d.replica, after, c.Market.LateOnly))
	}
	return nil
}
