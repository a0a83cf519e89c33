package reservation

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	marketmsg "github.com/candor-grid/candor/messages/market"
)

// A market that does not set these parameters gets these values.
const (
	defaultPeriod     = 24 * time.Hour
	defaultGranule    = 15 * time.Minute
	defaultCandidates = 2000
)

// Mechanism runs a live market. It remembers what it sold to a job until the job is settled. It repeats its directives
// until they have been carried out.
type Mechanism struct {
	period     time.Duration // length of the time that is sold in one auction; periods are counted from the Unix epoch
	granule    time.Duration // lengths and deadlines are rounded to granules
	candidates int           // number of candidates in the search for a schedule of bids of different widths
	fixed      bool          // candidates do not depend on the declarations
	rounds     map[messages.JobID]*round
}

type round struct {
	won    bool
	start  messages.Time
	price  messages.Credits
	rivals int // number of bids in the auction
}

// Describe returns the traits of the mechanism.
func Describe(*marketmsg.Market) mechanism.Traits {
	return mechanism.Traits{
		Name: marketmsg.Reservation, Make: mechanism.Maker(NewMechanism), Solve: SolveDocument,
		Who: "the best timetable of the sealed bids of a cycle; gangs start together", Cost: "Vickrey prices",
		Parameters: []string{"mode", "cycle", "granule", "orders", "gang_timeout"}, Modes: []string{"search", marketmsg.ModeFixed}, Bid: []string{"budget", "length", "value", "deadline"},
		Manner: mechanism.Manner{Attentive: true, Directs: true, Commits: true, Gangs: true, Wide: true, Assembles: true, Spans: true},
		Owes:   mechanism.UpToValue, Rule: "the price is at most the bid, and is known when the cycle is sold", Reserves: true,
		Gains: "a later arrival, and another length or number of nodes",
	}
}

// NewMechanism makes the mechanism of a valid market.
func NewMechanism(m marketmsg.Market) (*Mechanism, error) {
	if len(m.Classes) != 1 {
		return nil, messages.Errorf(messages.Invalid, "market %s: classes: a reservation market has one machine: name exactly one class", m.Name)
	}
	return &Mechanism{period: cmp.Or(m.Cycle.Std(), defaultPeriod), granule: cmp.Or(m.Granule.Std(), defaultGranule),
		candidates: cmp.Or(m.Orders, defaultCandidates), fixed: m.Mode == marketmsg.ModeFixed, rounds: map[messages.JobID]*round{}}, nil
}

var _ mechanism.Mechanism = (*Mechanism)(nil)

// Admit refuses a bid that this mechanism cannot compare with other bids, or that its auction could not serve.
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
		return messages.Errorf(messages.Invalid, "length: must be above 0 and at most %v, the period, is %v", c.period, bid.Length)
	case bid.Width < 0 || slots > 0 && bid.Width > slots:
		return messages.Errorf(messages.Invalid, "width: must be from 1 to the machine's %d slots, is %d", slots, bid.Width)
	case bid.Deadline != 0 && c.granules(next, bid.Deadline) < c.length(bid):
		return messages.Errorf(messages.Invalid, "deadline: %v is too soon for a job of %v: the next slots to be sold begin at %v, and their lengths are multiples of %v", bid.Deadline, bid.Length, next, c.granule)
	}
	return nil
}

func (c *Mechanism) micros(d time.Duration) messages.Time { return messages.Time(d / time.Microsecond) }

func (c *Mechanism) startOf(t messages.Time) messages.Time {
	period := c.micros(c.period)
	return t - (t%period+period)%period
}

// length returns a bid's length in granules, rounded up.
func (c *Mechanism) length(bid *mechanism.Bid) int {
	return int((bid.Length.Std() + c.granule - 1) / c.granule)
}

// granules returns the number of whole granules (the market's units of time) between two instants.
func (c *Mechanism) granules(from, to messages.Time) int {
	return int(max(0, to-from) / c.micros(c.granule))
}

// Allocate holds the auction for the period that has begun, among the bids that arrived before the period. It also
// repeats orders of earlier calls that were not carried out yet. The price is the sum of all winners' payments, in
// credits.
func (c *Mechanism) Allocate(view *mechanism.View) *mechanism.Allocation {
	a := &mechanism.Allocation{Weights: make([][]float64, len(view.Jobs)), Prices: make([]float64, len(view.Classes))}
	if bids := c.bidders(view); len(bids) > 0 {
		c.auction(view, bids)
	}
	c.direct(view, a)
	return a
}

// bidders returns the jobs that bid for the present period. They began to wait before the period began.
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

// auction sells slots for the part of the period that is left, from the next granule on. It sells only free slots that
// were not sold before.
func (c *Mechanism) auction(view *mechanism.View, bids []*mechanism.Job) {
	granule := c.micros(c.granule)
	begin := c.startOf(view.Now)
	begin += (view.Now - begin + granule - 1) / granule * granule
	end := c.startOf(view.Now) + c.micros(c.period)
	nodes, end := open(view, begin, end, c.free(view, begin))
	p := &Problem{Nodes: nodes, Horizon: c.granules(begin, end)}
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

// open returns how many of the free slots can be sold in the period from `begin` to `end`, and until when they can be
// sold. Slots that maintenance takes away during the period are not sold. If maintenance takes away all free slots,
// they are all sold, but only until the first maintenance window begins.
func open(view *mechanism.View, begin, end messages.Time, free int) (int, messages.Time) {
	closed, first := 0, end
	for _, w := range view.Classes[0].Closings {
		if w.From < end && w.To > begin {
			closed, first = closed+w.Slots, min(first, max(begin, w.From))
		}
	}
	if left := free - closed; left > 0 {
		return left, end
	}
	return free, first
}

// solve finds the best schedule if every bid takes the whole machine. Otherwise, or if the best schedule would take too
// long, it searches for a good schedule. Which of the two it does depends only on the widths, and on the numbers of
// bids and granules, and not on the declared values.
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

// whole returns the problem in which every bid takes the whole machine. A bid that is wider than the machine cannot be
// served in this problem.
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

// The method `free` returns how many slots can be sold for a time that starts at `begin`. A slot that a job has, or
// that was sold, cannot be sold again, unless the time of that job or sale ends before `begin`. A difference of one
// second (lateness) does not count.
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

// lateness is how long a job may run beyond its reserved time. Messages take time, so the job may have started late.
const lateness = messages.Duration(time.Second)

// The method `over` returns the time at which the reserved time of a running job ends.
func (c *Mechanism) over(job *mechanism.Job) messages.Time {
	if r := c.rounds[job.Job]; r != nil && r.won {
		return r.start + messages.Time(c.length(job.Bid))*c.micros(c.granule)
	}
	return job.Started.Add(job.Length)
}

func width(job *mechanism.Job) int { return max(job.Width, 1) }
