package reservation

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
)

// The defaults of a market's parameters.
const (
	defaultPeriod     = 24 * time.Hour
	defaultGranule    = 15 * time.Minute
	defaultCandidates = 2000
)

// Mechanism runs a live market. What was sold is remembered until the job is
// settled; it is ordered again until it is done.
type Mechanism struct {
	period     time.Duration // what is sold at once; periods are counted from the Unix epoch
	granule    time.Duration // what lengths and deadlines are rounded to
	candidates int           // of the search for a schedule of bids of different widths
	fixed      bool          // no declaration shapes them
	rounds     map[messages.JobID]*round
}

// round is what the auction decided about a job.
type round struct {
	won    bool
	start  messages.Time
	price  messages.Credits
	rivals int // bids in the auction
}

// Describe says what the mechanism is.
func Describe(*messages.Market) mechanism.Traits {
	return mechanism.Traits{
		Name: messages.Reservation, Make: mechanism.Maker(NewMechanism), Solve: SolveDocument,
		Who: "the best timetable of the sealed bids of a cycle; gangs start together", Cost: "Vickrey prices",
		Parameters: []string{"mode", "cycle", "granule", "orders", "gang_timeout"}, Modes: []string{"search", messages.ModeFixed}, Bid: []string{"budget", "length", "value", "deadline"},
		Manner: mechanism.Manner{Attentive: true, Directs: true, Commits: true, Gangs: true, Wide: true, Spans: true},
		Owes:   mechanism.UpToValue, Rule: "the price is at most the bid, and is known when the cycle is sold", Reserves: true,
	}
}

// NewMechanism makes the mechanism of a market that is valid in itself.
func NewMechanism(m messages.Market) (*Mechanism, error) {
	if len(m.Classes) != 1 {
		return nil, messages.Errorf(messages.Invalid, "market %s: classes: reservations are of one machine: name exactly one class", m.Name)
	}
	return &Mechanism{period: cmp.Or(m.Cycle.Std(), defaultPeriod), granule: cmp.Or(m.Granule.Std(), defaultGranule),
		candidates: cmp.Or(m.Orders, defaultCandidates), fixed: m.Mode == messages.ModeFixed, rounds: map[messages.JobID]*round{}}, nil
}

var _ mechanism.Mechanism = (*Mechanism)(nil)

// Admit refuses a bid that this market cannot weigh, or that the auction it
// would be in could not meet.
func (c *Mechanism) Admit(view *mechanism.View, bid *mechanism.Bid) error {
	slots := 0
	if len(view.Classes) > 0 {
		slots = view.Classes[0].Slots
	}
	next := c.startOf(view.Now) + c.micros(c.period)
	switch {
	case bid.Value <= 0 || bid.Value > messages.MaxCredits:
		return messages.Errorf(messages.Invalid, "value: must be above 0 and at most %v credits, is %v", messages.MaxCredits, bid.Value)
	case bid.Budget < bid.Value || bid.Budget > messages.MaxCredits:
		return messages.Errorf(messages.Invalid, "budget: must cover the value, %v, and be at most %v credits, is %v", bid.Value, messages.MaxCredits, bid.Budget)
	case bid.Length <= 0 || bid.Length.Std() > c.period:
		return messages.Errorf(messages.Invalid, "length: must be above 0 and at most the period, %v, is %v", c.period, bid.Length)
	case bid.Width < 0 || slots > 0 && bid.Width > slots:
		return messages.Errorf(messages.Invalid, "width: must be from 1 to the machine's %d slots, is %d", slots, bid.Width)
	case bid.Deadline != 0 && c.granules(next, bid.Deadline) < c.length(bid):
		return messages.Errorf(messages.Invalid, "deadline: %v is too soon for %v: the slots that are sold now begin at %v, in granules of %v", bid.Deadline, bid.Length, next, c.granule)
	}
	return nil
}

func (c *Mechanism) micros(d time.Duration) messages.Time { return messages.Time(d / time.Microsecond) }

// startOf is the start of the period that an instant is in.
func (c *Mechanism) startOf(t messages.Time) messages.Time {
	period := c.micros(c.period)
	return t - (t%period+period)%period
}

// length is a bid's in granules, rounded up: it asks for no less.
func (c *Mechanism) length(bid *mechanism.Bid) int {
	return int((bid.Length.Std() + c.granule - 1) / c.granule)
}

// granules is how many whole granules lie between two instants.
func (c *Mechanism) granules(from, to messages.Time) int {
	return int(max(0, to-from) / c.micros(c.granule))
}

// Allocate holds the auction of the period that has begun, among the bids that
// arrived before it, and orders what was decided and is not done yet. The price
// is what the winners of it pay together, in credits.
func (c *Mechanism) Allocate(view *mechanism.View) *mechanism.Allocation {
	a := &mechanism.Allocation{Weights: make([][]float64, len(view.Jobs)), Prices: make([]float64, len(view.Classes))}
	if bids := c.bidders(view); len(bids) > 0 {
		c.auction(view, bids)
	}
	c.direct(view, a)
	return a
}

// bidders are the jobs that are to be decided now: those that have waited since
// before the period.
func (c *Mechanism) bidders(view *mechanism.View) []*mechanism.Job {
	var bids []*mechanism.Job
	begin := c.startOf(view.Now)
	for _, job := range view.Jobs {
		if c.rounds[job.Job] == nil && job.Running[0] == 0 && job.Pending[0] > 0 && job.Arrived < begin {
			bids = append(bids, job)
		}
	}
	return bids
}

// auction sells what is left of the period, from the next granule on, on the
// slots that no job has now or was sold before.
func (c *Mechanism) auction(view *mechanism.View, bids []*mechanism.Job) {
	granule := c.micros(c.granule)
	begin := c.startOf(view.Now)
	begin += (view.Now - begin + granule - 1) / granule * granule
	end := c.startOf(view.Now) + c.micros(c.period)
	p := &Problem{Nodes: c.free(view, begin), Horizon: c.granules(begin, end)}
	for _, job := range bids {
		latest := p.Horizon
		if job.Deadline != 0 {
			latest = c.granules(begin, job.Deadline)
		}
		p.Bids = append(p.Bids, Bid{Length: c.length(job.Bid), Deadline: latest, Value: job.Value.Float(), Width: width(job)})
	}
	o, err := c.solve(p, uint64(begin))
	for i, job := range bids {
		r := &round{rivals: len(bids)}
		if err == nil && o.Start[i] != Lost {
			price, _ := messages.RoundCredits(o.Payments[i])
			r.won, r.start, r.price = true, begin+messages.Time(o.Start[i])*granule, min(price, job.Value)
		}
		c.rounds[job.Job] = r
	}
}

// solve finds the schedule: the best there is if every bid takes the whole
// machine. Which way is taken depends on widths only, and on how many bids and granules
// there are: where the best schedule would take too long to find, a good one is searched.
func (c *Mechanism) solve(p *Problem, seed uint64) (*Outcome, error) {
	if p.Nodes == 0 {
		o := &Outcome{Start: slices.Repeat([]int{Lost}, len(p.Bids)), Without: make([]float64, len(p.Bids)), Payments: make([]float64, len(p.Bids))}
		return o, nil
	}
	if !c.fixed && !slices.ContainsFunc(p.Bids, func(b Bid) bool { return b.Width < p.Nodes }) {
		if o, err := Solve(p.whole()); messages.KindOf(err) != messages.TooLarge {
			return o, err
		}
	}
	r, err := Find(p, Search{Candidates: c.candidates, Seed: seed, Fixed: c.fixed})
	if err != nil {
		return nil, err
	}
	return &r.Outcome, nil
}

// whole is the problem with every bid taking the whole machine; wider ones are
// bids that cannot be met.
func (p *Problem) whole() *Problem {
	out := &Problem{Horizon: p.Horizon, Bids: slices.Clone(p.Bids)}
	for i := range out.Bids {
		if b := &out.Bids[i]; b.Width > p.Nodes {
			b.Length, b.Deadline = 1, 0
		}
		out.Bids[i].Width = 0
	}
	return out
}

// free is how many slots are to be sold from begin on: none that a job has or was
// sold before, unless its time is over by then.
func (c *Mechanism) free(view *mechanism.View, begin messages.Time) int {
	free := view.Classes[0].Slots
	for _, job := range view.Jobs {
		r := c.rounds[job.Job]
		sold := r != nil && r.won && job.Pending[0] > 0
		if sold || job.Running[0] > 0 && c.over(job).Sub(begin) > lateness {
			free -= max(job.Running[0], width(job))
		}
	}
	return min(max(0, free), math.MaxInt32)
}

// lateness is how much later than its reservation ends a job may be seen to end:
// it began later by the time that messages take.
const lateness = messages.Duration(time.Second)

// over is when the time of a job that runs is over.
func (c *Mechanism) over(job *mechanism.Job) messages.Time {
	if r := c.rounds[job.Job]; r != nil && r.won {
		return r.start + messages.Time(c.length(job.Bid))*c.micros(c.granule)
	}
	return job.Started.Add(job.Length)
}

func width(job *mechanism.Job) int { return max(job.Width, 1) }
