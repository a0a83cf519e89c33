package contract

import (
	"cmp"
	"math"
	"slices"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/auctioneer/mechanism/deadlineaware"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// Quote makes the menu for a job that declares a valuation. It draws other valuations that the job might have declared,
// called surrogates. For each surrogate, the menu has the time at which the job would complete among the jobs of the
// view, and the price. Equal contracts are shown once. If the menu is too long, a uniform sample of it is shown.
func (m *Mechanism) Quote(view *mechanism.View, bid *mechanism.Bid, class []job.Valuation, seed uint64) (*mechanism.Quote, error) {
	if bid.Valuation == nil {
		return nil, messages.Errorf(messages.Invalid, "valuation: is missing: say what the job's completion is worth at each time")
	}
	if err := bid.Valuation.Validate(); err != nil {
		return nil, within("valuation", err)
	}
	if err := plannable(bid); err != nil {
		return nil, err
	}
	sampler, err := m.sampler(bid.Valuation.Class, class)
	if err != nil {
		return nil, err
	}
	d, err := NewDraw(*bid.Valuation, sampler, m.config.Replicas, seed)
	if err != nil {
		return nil, err
	}
	p, at := with(view, bid)
	box := DeadlineAware(p, at)
	if x := look(view, p); x != nil {
		box = x.committed(at, box)
	}
	o, err := NewOffer(&m.solver, d, box)
	if err != nil {
		return nil, err
	}
	q := o.quote(view.Now, p.Jobs[at].Elapsed, Sample(distinct(o.Menu), mostShown, seed))
	each, _ := planning(bid)
	for i := range q.Contracts {
		q.Contracts[i].Planned = messages.Duration(math.Ceil(each * 1e9))
		q.Most = append(q.Most, max(1, Most(&q.Contracts[i], m.config.LateOnly)))
	}
	return q, nil
}

// sampler returns a function that draws a job's type at random. It draws from the given samples of a class, or, if
// there are none, from the market's prior types of this class.
func (m *Mechanism) sampler(class job.ValuationClass, samples []job.Valuation) (Sampler, error) {
	for i := range samples {
		if samples[i].Class != class {
			return nil, messages.Errorf(messages.Invalid, "samples[%d]: is of class %q: must be of the declared class, %q", i, samples[i].Class, class)
		}
	}
	if len(samples) > 0 {
		return FromSamples(samples)
	}
	prior := slices.DeleteFunc(slices.Clone(m.config.Prior), func(v job.Valuation) bool { return v.Class != class })
	if len(prior) == 0 {
		return nil, messages.Errorf(messages.Unavailable, "samples: no type of class %q is known yet: declare a valuation of another class, or ask the operator to give the market prior types", class)
	}
	return FromSamples(prior)
}

// This function adds the job of a bid to the problem of a view, unless the view has the job already. It returns the
// job's index.
func with(view *mechanism.View, bid *mechanism.Bid) (*deadlineaware.Problem, int) {
	p := problem(view)
	if at := slices.IndexFunc(view.Jobs, func(job *mechanism.Job) bool { return job.Job == bid.Job }); at >= 0 {
		return p, at
	}
	fresh := *bid
	fresh.Arrived = cmp.Or(fresh.Arrived, view.Now)
	p.Jobs = append(p.Jobs, planned(view.Now, &mechanism.Job{Bid: &fresh, Pending: []int{max(1, bid.Tasks) * width(&fresh)}}))
	return p, len(view.Jobs)
}

// quote converts contracts to the form of a quote: completion times become points in time, and prices become whole
// microcredits. Rounding never makes a price higher than the promised value.
func (o *Offer) quote(now messages.Time, elapsed float64, shown []Contract) *mechanism.Quote {
	q := &mechanism.Quote{Free: none}
	for i, c := range shown {
		seconds := min(max(0, c.Completion-elapsed), job.MaxValuationTime)
		out := job.Contract{Completion: now + messages.Time(math.Ceil(seconds*1e6)), Promised: c.Value,
			Replica: o.Replicas[c.Replica], Surrogate: o.Surrogates[c.Surrogate]}
		out.Price, _ = messages.RoundCredits(c.Price)
		out.Price = min(out.Price, messages.Credits(math.Floor(c.Value*float64(messages.Credit))))
		if c.Declared {
			q.Declared = i
		}
		if out.Price == 0 && q.Free == none {
			q.Free = i
		}
		q.Contracts = append(q.Contracts, out)
	}
	return q
}

// terms has the parts of a contract that matter to a bidder. If the price is 0, the promised value is left out, because
// it is used only to adjust the price.
type terms struct {
	completion messages.Time
	price      messages.Credits
	promised   float64
}

func (c *Contract) terms() terms {
	t := terms{completion: messages.Time(math.Ceil(c.Completion * 1e6))}
	if t.price, _ = messages.RoundCredits(c.Price); t.price != 0 {
		t.promised = c.Value
	}
	return t
}

// Some contracts of a menu can have equal terms. distinct returns a menu that has only one of these contracts: the
// contract that is marked as Declared, or else the first one.
func distinct(menu []Contract) []Contract {
	seen := make(map[terms]int, len(menu))
	var out []Contract
	for i := range menu {
		t := menu[i].terms()
		at, known := seen[t]
		switch {
		case !known:
			seen[t] = len(out)
			out = append(out, menu[i])
		case menu[i].Declared:
			out[at] = menu[i]
		}
	}
	return out
}
