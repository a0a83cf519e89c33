package mutz

import (
	"math"
	"math/rand/v2"

	"github.com/candor-grid/candor/auctioneer/mechanism/batchqueue"
)

// crowd says how queues are drawn. The front job's value, the other jobs' costs of delay, and all lengths are uniform
// between 0 and their maximum. Widths are uniform from 1 to the number of nodes.
type crowd struct {
	jobs, nodes int // if nodes is 0, every job takes the whole machine
	scale
	length float64
}

func (c *crowd) job(i int, r *rand.Rand) (job batchqueue.Job) {
	job.Length = c.length * r.Float64()
	if i == 0 {
		job.Value = c.value * r.Float64()
	} else {
		job.Delay = c.delay * r.Float64()
	}
	if c.nodes > 0 {
		job.Width = 1 + r.IntN(c.nodes)
	}
	return job
}

func (c *crowd) queue(r *rand.Rand) *batchqueue.Queue {
	q := &batchqueue.Queue{Nodes: c.nodes}
	for i := range c.jobs {
		q.Jobs = append(q.Jobs, c.job(i, r))
	}
	return q
}

// expectation returns the distributions of the jobs' types, from which the mechanism computes payments. They are the
// distributions from which the types of the crowd are drawn.
func (c *crowd) expectation(mode batchqueue.Mode, draws int, seed uint64) *batchqueue.Expectation {
	e := &batchqueue.Expectation{Mode: mode, Draws: draws, Seed: seed}
	for i := range c.jobs {
		e.Priors = append(e.Priors, batchqueue.Prior{Sample: c.sample(mode, i)})
	}
	return e
}

// sample returns a function that makes the job at position i from a random number u, which is uniform between 0 and 1.
// In the mode Priority, only the job's value or cost of delay is drawn, and grows with u. In the mode Full, the whole
// job is drawn, and u is the seed.
func (c *crowd) sample(mode batchqueue.Mode, i int) func(u float64) batchqueue.Job {
	switch {
	case mode == batchqueue.Full:
		return func(u float64) batchqueue.Job {
			return c.job(i, rand.New(rand.NewPCG(math.Float64bits(u), uint64(i))))
		}
	case i == 0:
		return func(u float64) batchqueue.Job { return batchqueue.Job{Value: c.value * u} }
	}
	return func(u float64) batchqueue.Job { return batchqueue.Job{Delay: c.delay * u} }
}

// participant is the user whose declarations are varied.
type participant struct {
	position int
	truth    batchqueue.Job
	declare  func(job *batchqueue.Job, x float64)
}

// effort says how many times the computations of a figure are repeated. With more repetitions, the payoffs are more
// precise.
type effort struct {
	dots   int // number of dots (measurements) for each declaration
	groups int // number of groups of competitors; a dot is the mean over all groups
	draws  int // number of random draws for each expectation
}

// payoff returns a function that computes one measurement (dot). The function gets a declaration x and the number of
// the dot. It returns the mean payoff of the participant if it declares x. The competitors depend only on the seed and
// the number of the dot.
func (c *crowd) payoff(p *participant, e effort, seed uint64, pay payer) func(x float64, dot int) (float64, error) {
	return func(x float64, dot int) (float64, error) {
		sum := 0.0
		for g := range e.groups {
			group := uint64(dot*e.groups + g)
			q := c.queue(rand.New(rand.NewPCG(seed, group)))
			q.Jobs[p.position] = p.truth
			p.declare(&q.Jobs[p.position], x)
			runs, delay, payment, err := pay(q, p.position, group)
			if err != nil {
				return 0, err
			}
			if sum -= payment; runs && p.position == 0 {
				sum += p.truth.Value
			} else if runs {
				sum -= p.truth.Delay * delay
			}
		}
		return sum / float64(e.groups), nil
	}
}

// payer decides whether the front job of a queue runs. For the job at `position`, it also returns the delay and the
// payment that follow from this decision.
type payer func(q *batchqueue.Queue, position int, seed uint64) (runs bool, delay, payment float64, err error)

// The method `ours` returns a payer that decides and pays as Candor does.
func (c *crowd) ours(mode batchqueue.Mode, draws int) payer {
	return func(q *batchqueue.Queue, position int, seed uint64) (bool, float64, float64, error) {
		d, err := batchqueue.Decide(q)
		if err != nil {
			return false, 0, 0, err
		}
		p, err := batchqueue.Pay(q, c.expectation(mode, draws, seed))
		if err != nil {
			return false, 0, 0, err
		}
		return d.Runs, d.Delays[position], p.Net[position], nil
	}
}

// thesis returns a payer that computes the payments of the thesis. Equation 4.2 of the thesis multiplies the cost of
// delay of each waiting job by a length. As printed, this is the length of the waiting job. We assume that this is a
// mistake, and that the length of the front job is meant. If `printed` is true, the payer uses the equation as printed.
// Otherwise it uses the length of the front job.
func (c *crowd) thesis(draws int, printed bool) payer {
	return func(q *batchqueue.Queue, position int, seed uint64) (bool, float64, float64, error) {
		a := newAnew(q, c.scale, draws, rand.New(rand.NewPCG(seed, 1)))
		a.printed = printed
		a.weigh()
		threshold := 0.0
		for l := 1; l < len(q.Jobs); l++ {
			threshold += a.cost[l] * q.Jobs[l].Delay
		}
		delay := a.loss[position]
		return q.Jobs[0].Value >= threshold, delay, a.payment(position), nil
	}
}
