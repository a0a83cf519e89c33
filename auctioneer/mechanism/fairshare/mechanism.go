package fairshare

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/auctioneer/mechanism/posted"
	"github.com/candor-grid/candor/messages"
)

// Config describes a market run by fair share.
type Config struct {
	posted.Config
	// HalfLife is the time after which past use counts half; 0: a day,
	// negative: the past does not count.
	HalfLife messages.Duration
	// Weights are the users' weights; 1 where none is given.
	Weights map[messages.Name]float64
	// ByBudget splits a user's share over the user's jobs by budget, not equally.
	ByBudget bool
}

// Validate checks the configuration.
func (c *Config) Validate() error {
	for name, w := range c.Weights {
		if !(w > 0) || math.IsInf(w, 1) {
			return messages.Errorf(messages.Invalid, "market %s: weights.%.64s: must be a finite number above 0, is %v", c.Market.Name, name, w)
		}
	}
	return c.Config.Validate()
}

// Mechanism runs a live market by fair share.
type Mechanism struct {
	config   Config
	desk     *posted.Desk
	accounts map[messages.Name]*account
	present  []*account // those with jobs in the view, by name
	claims   []Claim
	shares   []float64
	seen     messages.Time
}

// account is a user, with the use of each class.
type account struct {
	name  messages.Name
	use   []use
	jobs  []int     // positions in the view
	total []float64 // by class: of the jobs with work pending, their number or budgets
	share []float64 // by class
}

// NewMechanism makes the mechanism of a market.
func NewMechanism(c Config) (*Mechanism, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	desk, err := posted.NewDesk(c.Config)
	if err != nil {
		return nil, err
	}
	if c.HalfLife == 0 {
		c.HalfLife = messages.Duration(24 * 3600e9)
	}
	return &Mechanism{config: c, desk: desk, accounts: map[messages.Name]*account{}}, nil
}

var _ mechanism.Mechanism = (*Mechanism)(nil)

// Admit checks a bid; see package posted.
func (f *Mechanism) Admit(view *mechanism.View, bid *mechanism.Bid) error {
	return f.desk.Admit(view, bid)
}

// Settle charges the posted price; see package posted.
func (f *Mechanism) Settle(view *mechanism.View, job *mechanism.Job, end mechanism.End) []mechanism.Payment {
	return f.desk.Settle(view, job, end)
}

// Allocate levels, class by class, the users' recent and present use for their
// weight, and splits each user's part over the user's jobs.
func (f *Mechanism) Allocate(view *mechanism.View) *mechanism.Allocation {
	f.meet(view)
	a := f.desk.Allocation(view)
	for j := range f.desk.Classes {
		f.divide(view, j)
		for _, u := range f.present {
			for _, i := range u.jobs {
				if view.Jobs[i].Pending[j] > 0 {
					a.Weights[i][j] = u.share[j] * f.stake(view.Jobs[i]) / u.total[j]
				}
			}
		}
	}
	if f.config.HalfLife > 0 && len(view.Jobs) > 0 {
		a.Wake = view.Now.Add(f.period())
	}
	return a
}

// period is how often to decide again while nothing changes but the past.
func (f *Mechanism) period() messages.Duration {
	return max(1e9, min(60e9, f.config.HalfLife/64))
}

// stake is a job's part in what its user's jobs share.
func (f *Mechanism) stake(job *mechanism.Job) float64 {
	if f.config.ByBudget {
		return job.Budget.Float()
	}
	return 1
}

// meet brings the accounts up to the view's time and in line with its jobs.
func (f *Mechanism) meet(view *mechanism.View) {
	f.advance(view.Now)
	for _, u := range f.present {
		u.jobs = u.jobs[:0]
		clear(u.total)
		for j := range u.use {
			u.use[j].held = 0
		}
	}
	f.present = f.present[:0]
	for i, job := range view.Jobs {
		u := f.account(job.Account)
		if len(u.jobs) == 0 {
			f.present = append(f.present, u)
		}
		u.jobs = append(u.jobs, i)
		for j, n := range job.Pending {
			u.use[j].held += float64(job.Running[j])
			if n > 0 {
				u.total[j] += f.stake(job)
			}
		}
	}
	slices.SortFunc(f.present, func(a, b *account) int { return cmp.Compare(a.name, b.name) })
}

func (f *Mechanism) account(name messages.Name) *account {
	u, known := f.accounts[name]
	if !known {
		m := len(f.desk.Classes)
		u = &account{name: name, use: make([]use, m), total: make([]float64, m), share: make([]float64, m)}
		f.accounts[name] = u
	}
	return u
}

// advance lets the past fade. An account whose use is no longer worth
// remembering is forgotten.
func (f *Mechanism) advance(now messages.Time) {
	elapsed := now.Sub(f.seen).Seconds()
	if f.seen == 0 || elapsed <= 0 {
		f.seen = max(f.seen, now)
		return
	}
	f.seen = now
	for name, u := range f.accounts { // each on its own: the order does not matter
		faded := len(u.jobs) == 0
		for j := range u.use {
			u.use[j].at = 0
			u.use[j].advance(elapsed, f.config.HalfLife.Seconds())
			faded = faded && u.use[j].recent < 1e-6
		}
		if faded {
			delete(f.accounts, name)
		}
	}
}

// divide works out the users' shares of a class. A user asks for as many slots
// as it has tasks pending or running there; where users with work pending would
// all be given nothing more, the least well off get what comes free.
func (f *Mechanism) divide(view *mechanism.View, j int) {
	f.claims = f.claims[:0]
	slots := float64(view.Classes[j].Slots)
	for _, u := range f.present {
		f.claims = append(f.claims, Claim{Weight: f.weight(u), Had: u.use[j].recent, Demand: f.demand(view, u, j)})
	}
	f.shares = divide(max(slots, 1), f.claims, f.shares)
	sum := 0.0
	for k, u := range f.present {
		u.share[j] = 0
		if u.total[j] > 0 {
			u.share[j] = f.shares[k]
			sum += f.shares[k]
		}
	}
	if sum == 0 {
		sum = f.toPoorest(j)
	}
	for _, u := range f.present {
		if sum > 0 {
			u.share[j] /= sum
		}
	}
}

// toPoorest gives the users with work pending whose use is least for their
// weight equal parts, and returns the sum.
func (f *Mechanism) toPoorest(j int) float64 {
	least, sum := math.Inf(1), 0.0
	level := func(u *account) float64 { return (u.use[j].recent + u.use[j].held) / f.weight(u) }
	for _, u := range f.present {
		if u.total[j] > 0 {
			least = min(least, level(u))
		}
	}
	for _, u := range f.present {
		if u.total[j] > 0 && level(u) == least {
			u.share[j] = 1
			sum++
		}
	}
	return sum
}

func (f *Mechanism) demand(view *mechanism.View, u *account, j int) float64 {
	n := 0
	for _, i := range u.jobs {
		n += view.Jobs[i].Pending[j] + view.Jobs[i].Running[j]
	}
	return float64(n)
}

func (f *Mechanism) weight(u *account) float64 {
	if w, ok := f.config.Weights[u.name]; ok {
		return w
	}
	return 1
}

// Explain says how many users go first.
func (f *Mechanism) Explain(view *mechanism.View, job *mechanism.Job) mechanism.Explanation {
	u, known := f.accounts[job.Account]
	if !known {
		return f.desk.Explain(view, job, 0, "the market has not decided on it yet")
	}
	share, ahead := 0.0, 0
	for j, n := range job.Pending {
		if n > 0 && u.total[j] > 0 {
			share = max(share, u.share[j]*f.stake(job)/u.total[j])
		}
	}
	for _, other := range view.Jobs {
		if share == 0 && f.goesFirst(other, job) {
			ahead++
		}
	}
	return f.desk.Explain(view, job, ahead, "its part of what comes free is "+strconv.FormatFloat(100*share, 'g', 3, 64)+
		"%, by its user's recent and present use")
}

// goesFirst says whether another job has a share of a class in which this one,
// which has none, has work pending.
func (f *Mechanism) goesFirst(other, job *mechanism.Job) bool {
	u, known := f.accounts[other.Account]
	for j, n := range job.Pending {
		if known && n > 0 && other.Pending[j] > 0 && u.share[j] > 0 {
			return true
		}
	}
	return false
}
