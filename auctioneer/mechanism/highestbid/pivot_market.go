package highestbid

import (
	"cmp"
	"fmt"
	"time"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// PivotMechanism runs a live market at pivot prices, for jobs that run one task at a time. It implements
// mechanism.Incremental, mechanism.Deferred and mechanism.Remembering.
type PivotMechanism struct {
	*Mechanism
	horizon messages.Duration
	past    history
}

// DefaultHorizon is the default of a market's horizon. Prices count the waiting of a job only up to the horizon.
const DefaultHorizon = messages.Duration(24 * time.Hour)

// Describe returns the traits of the mechanism.
func Describe(m *market.Market) mechanism.Traits {
	t := mechanism.Traits{
		Name: market.HighestBid, Make: NewMechanism, Solve: SolveDocument,
		Who:        "the highest bids for a second on a slot; other jobs are suspended",
		Cost:       "the highest bid that waits, or the job's own bid, for each second; with `price: pivot` the bids of the jobs that wait for this job, for the time of their waiting",
		Parameters: []string{"reserve", "algorithm", "price", "capped", "horizon", "preemption", "default_rate"}, Bid: []string{"budget", "rate", "length"},
		Manner: mechanism.Manner{Attentive: true, Directs: true, Wide: m.Price != market.PricePivot, Even: true, Assembles: m.Price != market.PricePivot, Displaces: ruleOf(m).preempts(), Order: Order, Raises: mechanism.Terms{Budget: true, Rate: true}},
		Tells:  mechanism.Prices, Decides: market.TermRate,
		Owes: mechanism.ForTime, Rule: "the price is the time of its slots at present prices", Hourly: m.Price != market.PricePivot && !ruleOf(m).byLength(),
		Gains:  "a bid above the job's worth, a job submitted as two halves, and users who act together",
		Capped: m.Capped || m.Algorithm == string(NPHB),
	}
	if m.Price == market.PricePivot { // the prices of other jobs depend on each bid
		t.Stays, t.Raises.Rate = true, false
		t.Gains = "users who act together, and, if jobs wait longer than the horizon, a bid other than the job's worth; a chain of jobs pays more than one job"
		t.Unasked = "at price " + market.PricePivot + " a bid costs what it made others wait, which is known after the end of the job; the best bid is what the job is worth to you"
		t.Rule = "the price is the time of its slots at the reserve, and the waiting that its bid avoids, at the bids of the jobs that wait instead; the price of the waiting is known afterwards"
	}
	return t
}

// NewMechanism makes the mechanism of a valid market.
func NewMechanism(m market.Market) (mechanism.Mechanism, error) {
	c, err := New(m)
	switch {
	case err != nil:
		return nil, err
	case c.rule.Price != Pivot:
		return c, nil
	}
	c.horizon = cmp.Or(m.Horizon, DefaultHorizon)
	return &PivotMechanism{Mechanism: c, horizon: c.horizon, past: newHistory()}, nil
}

var (
	_ mechanism.Incremental = (*PivotMechanism)(nil)
	_ mechanism.Deferred    = (*PivotMechanism)(nil)
	_ mechanism.Remembering = (*PivotMechanism)(nil)
)

// Admit refuses the bids that Mechanism.Admit refuses. It also refuses a job that can run several tasks at the same
// time. And it refuses a job whose budget is not above the highest cost that a place in the order can have.
func (c *PivotMechanism) Admit(view *mechanism.View, bid *mechanism.Bid) error {
	if err := c.Mechanism.Admit(view, bid); err != nil {
		return err
	}
	if bid.Tasks > 1 && !bid.Serial {
		return messages.Errorf(messages.Invalid, "stages: a job of a market with price %s runs one task at a time: give each stage one task, and name the stage before it in `after`; submit a separate job for each task that can run at the same time as another task", Pivot)
	}
	if most := aside(bid.Rate, c.horizon); bid.Budget <= most {
		return messages.Errorf(messages.Invalid, "budget: must be above %v credits, is %v: the job's place in the order can cost up to this amount (the rate of %v, for %v of waiting), and the job's slot time is charged in addition",
			most, bid.Budget, bid.Rate, c.horizon)
	}
	return nil
}

// aside returns the highest possible price of a job's place in the order of the jobs. At pivot prices, a job pays for
// slots and for this place. This part of the job's budget is set aside, and cannot be used for slots.
func aside(rate messages.Credits, horizon messages.Duration) messages.Credits {
	most, ok := messages.RoundCredits(rate.Float() * horizon.Seconds())
	if !ok {
		return messages.MaxCredits
	}
	return most
}

// Allocate makes the same decision as a market with the k-th price. In addition, it remembers which jobs competed.
func (c *PivotMechanism) Allocate(view *mechanism.View) *mechanism.Allocation {
	c.remember(view, view.Jobs, nil)
	return c.Mechanism.Allocate(view)
}

// Update decides like Allocate, after the given changes.
func (c *PivotMechanism) Update(view *mechanism.View, changed []*mechanism.Job, gone []messages.JobID) *mechanism.Change {
	c.remember(view, changed, gone)
	return c.Mechanism.Update(view, changed, gone)
}

func (c *PivotMechanism) remember(view *mechanism.View, changed []*mechanism.Job, gone []messages.JobID) {
	h := &c.past
	h.now = max(h.now, view.Now)
	for _, id := range gone {
		if r := h.jobs[id]; r != nil && r.ended == 0 {
			h.end(id, view.Now, job.Cancelled, r.received)
			r.settled = true
		}
	}
	for _, job := range changed {
		view.Read(job)
		h.put(job)
	}
	h.offer(max(0, view.Classes[0].Slots))
	h.prune()
}

// SettleAt returns 0 if the price of a job can no longer change. The price is final if the job would have ended by now
// with any bid. It is also final if the horizon has passed since the job's submission, because later times do not count
// in the price. Otherwise SettleAt returns a time at which to ask again, at the latest the end of the horizon.
func (c *PivotMechanism) SettleAt(now messages.Time, job *mechanism.Job, end mechanism.End) messages.Time {
	h := &c.past
	h.now = max(h.now, now)
	ended := cmp.Or(end.At, now)
	if h.jobs[job.Job] == nil {
		h.put(job)
		h.jobs[job.Job].enters = job.Arrived
	}
	h.end(job.Job, ended, end.State, job.Received)
	if _, certain := h.owed(job.Job, job.Received, c.horizon); certain {
		return 0
	}
	const least, part = messages.Time(time.Second / time.Microsecond), 8
	return min(now+max(least, (now-ended)/part), h.jobs[job.Job].enters+messages.Time(c.horizon/1000))
}

// Settle charges the reserve for the time in which the job had a slot, and the price of its place in the order. The
// sum is rounded half to even to the microcredit.
func (c *PivotMechanism) Settle(_ *mechanism.View, job *mechanism.Job, end mechanism.End) []mechanism.Payment {
	place := c.place(job)
	if r := c.past.jobs[job.Job]; r != nil {
		r.settled = true
	}
	reason := fmt.Sprintf("%s: %v for its slots at the reserve price", lower(end.State), job.Accrued)
	if place > 0 {
		reason += fmt.Sprintf(", and %v for its place in the order: the cost of the delay to the jobs that waited, by their bids", place)
	}
	return []mechanism.Payment{{From: job.Job, Amount: min(job.Accrued+place, job.Budget), Reason: reason}}
}

// place returns what a job owes for its place in the order, computed from the events until now. Later events may still
// change the amount.
func (c *PivotMechanism) place(job *mechanism.Job) messages.Credits {
	amount, _ := c.past.owed(job.Job, job.Received, c.horizon)
	rounded, ok := messages.RoundCredits(amount)
	if most := aside(job.Rate, c.horizon); !ok || rounded > most {
		return most
	}
	return rounded
}

// Explain says the same as Mechanism.Explain. It also says what the job's place in the order costs so far, unless that
// would disclose the bid of the only other account.
func (c *PivotMechanism) Explain(view *mechanism.View, job *mechanism.Job) mechanism.Explanation {
	e := c.Mechanism.Explain(view, job)
	if e.Reason != mechanism.Running {
		return e
	}
	if mechanism.OneRival(view, job) {
		e.Message += ", and what its place in the order costs, which is known after its end"
		return e
	}
	c.past.now = max(c.past.now, view.Now)
	e.Message += fmt.Sprintf(", and %v so far for its place in the order", c.place(job))
	return e
}

// noteForm is the number of the format of the market's only note. The note has pairs: a time, and the number of slots
// from this time on. All other state is in the job book.
const noteForm = 1

// Notes implements mechanism.Remembering.
func (c *PivotMechanism) Notes(limit int) (notes []mechanism.Note, whole bool) {
	if c.past.told || limit < 1 {
		return nil, false
	}
	note := mechanism.Note{Numbers: []int64{noteForm}}
	for _, s := range c.past.slots {
		note.Numbers = append(note.Numbers, int64(s.from), int64(s.slots))
	}
	return []mechanism.Note{note}, false
}

// Saved implements mechanism.Remembering.
func (c *PivotMechanism) Saved() (more bool) {
	c.past.told = true
	return false
}

// Recall implements mechanism.Remembering.
func (c *PivotMechanism) Recall(notes []mechanism.Note, jobs []messages.JobID, past func(messages.JobID) mechanism.Past) {
	h := &c.past
	if len(notes) > 0 && notes[0].Job == 0 && len(notes[0].Numbers)%2 == 1 && notes[0].Numbers[0] == noteForm {
		for n := notes[0].Numbers[1:]; len(n) > 0; n = n[2:] {
			h.slots = append(h.slots, capacity{float64(n[0]), int(n[1])})
		}
	}
	for _, id := range jobs {
		p := past(id)
		if p.Bid == nil {
			continue
		}
		h.put(&mechanism.Job{Bid: p.Bid, Received: p.Received})
		if p.Ended {
			h.end(id, p.At, p.State, p.Received)
			h.jobs[id].settled = true // SettleAt sets this to false again if the job is not settled yet
		}
	}
}
