package contracts

import (
	"slices"

	"github.com/candor-grid/candor/auctioneer/mechanism/contract"
	"github.com/candor-grid/candor/auctioneer/mechanism/deadlineaware"
	"github.com/candor-grid/candor/auctioneer/mechanism/valuation"
	jobmsg "github.com/candor-grid/candor/messages/job"
)

// job is a job in the cluster. Times are in seconds.
type job struct {
	arrived  float64
	work     float64           // the remaining work
	own      valuation.Curve   // valuation of the user
	declared valuation.Curve   // valuation with which the job is scheduled: its surrogate's
	contract contract.Contract // the contract that the user chose
	paid     float64           // payment; set when the job has completed
	utility  float64
}

// cluster is one server and its jobs, in the order of service.
type cluster struct {
	now    float64
	jobs   []*job
	done   []*job
	solver contract.Solver
}

func (c *cluster) problem() *deadlineaware.Problem {
	p := &deadlineaware.Problem{Slots: 1}
	for _, j := range c.jobs {
		p.Jobs = append(p.Jobs, deadlineaware.Job{Tasks: 1, Demand: j.work, Elapsed: c.now - j.arrived, Valuation: j.declared})
	}
	return p
}

// join adds a job of a user whose true type is t. The job is also scheduled by this type, until another type is
// declared.
func (c *cluster) join(t jobmsg.Valuation, work float64) (*job, error) {
	curve, err := valuation.New(t)
	if err != nil {
		return nil, err
	}
	j := &job{arrived: c.now, work: work, own: curve, declared: curve}
	c.jobs = append(c.jobs, j)
	return j, nil
}

// offer returns the menu of contracts for the job that joined last. The argument `declared` is the type that its user
// declares.
func (c *cluster) offer(declared jobmsg.Valuation, class contract.Sampler, seed uint64) (*contract.Offer, error) {
	d, err := contract.NewDraw(declared, class, replicas, seed)
	if err != nil {
		return nil, err
	}
	return contract.NewOffer(&c.solver, d, contract.DeadlineAware(c.problem(), len(c.jobs)-1))
}

// arrive adds a job of type t, offers it a menu, and takes the contract that is best for this type. Then it schedules
// all jobs again. If the argument `class` is nil, there is no menu: the job is scheduled by its own type, but the times
// of the type are first multiplied by `part`.
func (c *cluster) arrive(t jobmsg.Valuation, work float64, class contract.Sampler, seed uint64, part float64) error {
	j, err := c.join(t, work)
	if err != nil {
		return err
	}
	if class == nil {
		if j.declared, err = valuation.New(typed([]float64{part * t.Mu, part * t.Delta})); err != nil {
			return err
		}
		return c.order()
	}
	o, err := c.offer(t, class, seed)
	if err != nil {
		return err
	}
	j.contract = o.Menu[slices.IndexFunc(o.Menu, func(k contract.Contract) bool { return k.Declared })]
	if j.declared, err = valuation.New(o.Surrogates[j.contract.Surrogate]); err != nil {
		return err
	}
	return c.order()
}

func (c *cluster) order() error {
	s, err := deadlineaware.New(c.problem())
	if err != nil {
		return err
	}
	ordered := make([]*job, len(c.jobs))
	for k, i := range s.Order {
		ordered[k] = c.jobs[i]
	}
	c.jobs = ordered
	return nil
}

// run lets the server work until a time. When a job completes, it pays its agreed price, multiplied by the part of the
// promised value that it received.
func (c *cluster) run(until float64) {
	for len(c.jobs) > 0 && c.now+c.jobs[0].work <= until {
		j := c.jobs[0]
		c.now += j.work
		took := c.now - j.arrived
		if j.contract.Price > 0 {
			j.paid = j.contract.Settle(&j.own, took, false)
		}
		j.utility = j.own.At(took) - j.paid
		c.jobs, c.done = c.jobs[1:], append(c.done, j)
	}
	if len(c.jobs) > 0 {
		c.jobs[0].work -= until - c.now
	}
	c.now = until
}
