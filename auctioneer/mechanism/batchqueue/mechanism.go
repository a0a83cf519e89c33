package batchqueue

import (
	"cmp"
	"math"
	"slices"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/auctioneer/mechanism/profile"
	"github.com/candor-grid/candor/messages"
	marketmsg "github.com/candor-grid/candor/messages/market"
)

// Mechanism runs a live market: a queue in the order of arrival. The mechanism decides about the front job when that
// job could start. It remembers its decision about a job until the job is settled, and repeats its orders until they
// are carried out. The payments for a job are made when the job has ended.
type Mechanism struct {
	config marketmsg.Market
	rounds map[messages.JobID]*round
	owed   map[messages.JobID]messages.Credits // what the job owes in all remembered rounds
	belief *Beliefs
}

// These are the values of the setting "pricing" of a market.
const (
	Externality  = "externality" // expected externalities, as in the thesis; the default
	PivotPricing = "pivot"       // taxes and rebates; see Pivot
)

// round has the decision about one front job.
type round struct {
	runs      bool
	value     float64
	threshold float64
	transfers []mechanism.Payment
}

// Describe returns the traits of the mechanism.
func Describe(m *marketmsg.Market) mechanism.Traits {
	t := mechanism.Traits{
		Name: marketmsg.BatchQueue, Make: mechanism.Maker(NewMechanism), Solve: SolveDocument,
		Who:        "first come, first served; the front job is discarded if its run costs the others more than its value",
		Cost:       "jobs that run pay jobs that wait; the payments of a decision sum to zero. With `pricing: pivot` a job pays what the other jobs lose by its bid, and most of the payments are given back",
		Parameters: []string{"mode", "draws", "gang_timeout", "prior_jobs", "pricing"}, Modes: []string{"priority", "full"}, Bid: []string{"budget", "length", "value", "delay"},
		Manner: mechanism.Manner{Attentive: true, Directs: true, Commits: true, Gangs: true, Wide: true, Assembles: true, Spans: true},
		Rule:   "the price is at most the budget",
		Gains:  "a false cost of delay, a later arrival, jobs under false names, and the cancellation of a waiting job",
	}
	if m.Pricing == PivotPricing {
		t.Gains = "jobs under false names, even jobs that nobody needs, and the cancellation of a waiting job"
	}
	return t
}

// NewMechanism makes the mechanism of a valid market.
func NewMechanism(m marketmsg.Market) (*Mechanism, error) {
	if len(m.Classes) != 1 {
		return nil, messages.Errorf(messages.Invalid, "market %s: classes: a batch queue has one machine: name exactly one class", m.Name)
	}
	if m.Pricing != PivotPricing && len(m.PriorJobs) == 0 {
		return nil, messages.Errorf(messages.Invalid, "market %s: prior_jobs: are missing: the market needs typical jobs, because it must not set prices from the bids of the jobs that pay; list typical jobs, or set pricing to pivot, which needs none", m.Name)
	}
	return &Mechanism{config: m, rounds: map[messages.JobID]*round{}, owed: map[messages.JobID]messages.Credits{}, belief: NewBeliefs(m.PriorJobs)}, nil
}

var _ mechanism.Mechanism = (*Mechanism)(nil)

// Admit refuses a bid whose value, delay, length or width is out of range, or whose budget does not cover the value.
func (c *Mechanism) Admit(view *mechanism.View, bid *mechanism.Bid) error {
	slots := 0
	if len(view.Classes) > 0 {
		slots = view.Classes[0].Slots
	}
	switch {
	case bid.Value < 0 || bid.Value > messages.MaxCredits:
		return messages.Errorf(messages.Invalid, "value: must be from 0 to %v credits, is %v", messages.MaxCredits, bid.Value)
	case bid.Delay < 0 || bid.Delay > messages.MaxCredits:
		return messages.Errorf(messages.Invalid, "delay: must be from 0 to %v credits a second, is %v", messages.MaxCredits, bid.Delay)
	case bid.Length <= 0:
		return messages.Errorf(messages.Invalid, "length: must be above 0, is %v: declare the longest run time of the job", bid.Length)
	case bid.Width < 0 || slots > 0 && bid.Width > slots:
		return messages.Errorf(messages.Invalid, "width: must be from 1 to the machine's %d slots, is %d", slots, bid.Width)
	case bid.Budget < bid.Value || bid.Budget > messages.MaxCredits:
		return messages.Errorf(messages.Invalid, "budget: must cover the value, %v, and be at most %v credits, is %v", bid.Value, messages.MaxCredits, bid.Budget)
	}
	return nil
}

// Allocate considers the jobs at the front of the queue, as long as they could start now. The price is the loss of the
// other jobs, in credits, if the next job runs and delays them.
func (c *Mechanism) Allocate(view *mechanism.View) *mechanism.Allocation {
	a := &mechanism.Allocation{Weights: make([][]float64, len(view.Jobs)), Prices: make([]float64, len(view.Classes))}
	q := c.queue(view)
	for len(q.waiting) > 0 {
		d := c.decide(q)
		a.Prices[0] = d.Threshold
		if d.With[0] > 0 {
			a.Wake = messages.Earlier(view.Now+messages.Time(math.Ceil(d.With[0]*1e6)), tooLate(view, q.waiting[0]))
			break
		}
		c.rounds[q.waiting[0].Job] = c.round(q, d)
		if !messages.IsVisitor(q.waiting[0].Account) { // another site could invent accounts that suit its other accounts
			c.belief.Consider(q.waiting[0].Account, typeOf(q.waiting[0]))
		}
		q.next(d.Runs)
	}
	c.direct(view, a)
	return a
}

type queue struct {
	Queue
	waiting []*mechanism.Job // by position in Queue.Jobs
}

// queue returns the queue of a view: the running jobs, and the waiting jobs that are not wider than the machine. It
// leaves out a job that even an empty machine could not run before maintenance, so that jobs behind it can run.
func (c *Mechanism) queue(view *mechanism.View) *queue {
	q, held := &queue{}, 0
	open := profile.New(view.Classes[0].Slots)
	for _, w := range view.Classes[0].Closings {
		w := Closing{From: max(0, w.From.Sub(view.Now).Seconds()), To: w.To.Sub(view.Now).Seconds(), Nodes: w.Slots}
		q.Closings = append(q.Closings, w)
		open.Take(w.From, w.To, w.Nodes)
	}
	for _, job := range view.Jobs {
		r := c.rounds[job.Job]
		switch {
		case job.Running[0] > 0 || r != nil && r.runs && job.Pending[0] > 0:
			n := max(job.Running[0], width(job))
			q.Running = append(q.Running, Hold{Width: n, Remaining: remaining(view.Now, job)})
			held += n
		case r == nil && job.Pending[0] > 0 && open.Soonest(0, job.Length.Seconds(), width(job)) == 0:
			q.waiting = append(q.waiting, job)
		}
	}
	slices.SortStableFunc(q.waiting, func(x, y *mechanism.Job) int { return cmp.Compare(x.Arrived, y.Arrived) })
	q.Nodes = max(held, view.Classes[0].Slots)
	for i, job := range q.waiting {
		q.Jobs = append(q.Jobs, announced(job, i == 0))
	}
	return q
}

// tooLate returns the next time at which it becomes too late to start the job: a job that starts then may still run
// when a maintenance window begins. It returns 0 if there is no such time.
func tooLate(view *mechanism.View, job *mechanism.Job) (at messages.Time) {
	for _, c := range view.Classes[0].Closings {
		if t := c.From.Add(-job.Length) + 1; t > view.Now {
			at = messages.Earlier(at, t)
		}
	}
	return at
}

// next removes the front job from the queue, and adds it to the running jobs if it runs.
func (q *queue) next(runs bool) {
	if front := q.Jobs[0]; runs {
		q.Running = append(q.Running, Hold{Width: front.Width, Remaining: front.Length})
	}
	q.Jobs, q.waiting = q.Jobs[1:], q.waiting[1:]
	if len(q.Jobs) > 0 {
		q.Jobs[0] = announced(q.waiting[0], true)
	}
}

func width(job *mechanism.Job) int { return max(job.Width, 1) }

func announced(job *mechanism.Job, front bool) Job {
	out := Job{Length: job.Length.Seconds(), Width: width(job)}
	if front {
		out.Value = job.Value.Float()
	} else {
		out.Delay = job.Delay.Float()
	}
	return out
}

// remaining returns for how many seconds a job will still hold its slots. If the job has outlived its length, the
// result is 1.
func remaining(now messages.Time, job *mechanism.Job) float64 {
	if job.Started == 0 {
		return job.Length.Seconds()
	}
	return max(1, (job.Length - now.Sub(job.Started)).Seconds())
}

// direct gives an order for each job about which the mechanism has decided: to start it or to discard it. It repeats an
// order until it has been carried out. It also gives a weight to each job that must start.
func (c *Mechanism) direct(view *mechanism.View, a *mechanism.Allocation) {
	total := 0
	for i, job := range view.Jobs {
		a.Weights[i] = make([]float64, len(view.Classes))
		r := c.rounds[job.Job]
		switch {
		case r == nil:
		case !r.runs:
			a.Directives = append(a.Directives, mechanism.Directive{Job: job.Job, Action: mechanism.Discard})
		case job.Pending[0] > 0:
			a.Weights[i][0] = float64(job.Pending[0])
			total += job.Pending[0]
			if job.Running[0] == 0 {
				a.Directives = append(a.Directives, mechanism.Directive{Job: job.Job, Action: mechanism.Start, Slots: width(job)})
			}
		}
	}
	for i := range a.Weights {
		a.Weights[i][0] /= float64(max(total, 1))
	}
}
