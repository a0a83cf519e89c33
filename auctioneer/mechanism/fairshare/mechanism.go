package fairshare

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/auctioneer/mechanism/posted"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/market"
)

// Mechanism runs a live market by fair share.
type Mechanism struct {
	*posted.Desk
	halfLife messages.Duration         // slots that were used this long ago count half
	weights  map[messages.Name]float64 // by user; 1 for users that are not listed
	accounts map[messages.Name]*account
	present  []*account // accounts with jobs in the view, sorted by name
	claims   []claim
	shares   []float64
	seen     messages.Time
}

// account is a user, or all users of another site together, and the use of each class.
type account struct {
	name  messages.Name
	use   []use
	jobs  []int                       // positions of its jobs in the view
	waits []float64                   // by class: number of users in `names` that have pending tasks
	names map[messages.Name][]float64 // by user, then class: number of jobs with pending tasks
	share []float64                   // by class: the account's part of the freed slots
}

// part returns a job's part of its account's share of class j. The job must have pending tasks in the class. An account
// can stand for several users; each user gets an equal part, which is divided evenly among the user's jobs.
func (u *account) part(job *mechanism.Job, j int) float64 {
	return u.share[j] / u.waits[j] / u.names[job.Account][j]
}

// Describe returns the traits of the mechanism.
func Describe(*market.Market) mechanism.Traits {
	t := posted.Traits(market.FairShare, "the account that used least, by its weight; past use fades", "half_life", "weights")
	t.Make = mechanism.Maker(func(m market.Market) (*Mechanism, error) { return New(m), nil })
	t.Solve, t.Wide, t.Assembles = SolveDocument, true, true
	return t
}

// New makes the mechanism of a valid market. The default half-life is a day.
func New(m market.Market) *Mechanism {
	f := &Mechanism{Desk: posted.NewDesk(m), halfLife: cmp.Or(m.HalfLife, messages.Duration(24*time.Hour)),
		weights: map[messages.Name]float64{}, accounts: map[messages.Name]*account{}}
	for _, w := range m.Weights {
		f.weights[w.Class] = w.Weight
	}
	return f
}

var _ mechanism.Mechanism = (*Mechanism)(nil)

// Allocate divides each class among the users, so that the users' levels (usage divided by weight) are as equal as
// possible. Then it divides each user's part among the user's jobs.
func (f *Mechanism) Allocate(view *mechanism.View) *mechanism.Allocation {
	f.meet(view)
	a := f.Allocation(view)
	for j := range f.Classes {
		f.divide(view, j)
		for _, u := range f.present {
			for _, i := range u.jobs {
				if view.Jobs[i].Pending[j] > 0 {
					a.Weights[i][j] = u.part(view.Jobs[i], j)
				}
			}
		}
	}
	if len(view.Jobs) > 0 {
		a.Wake = messages.Earlier(a.Wake, view.Now.Add(f.period()))
	}
	return a
}

// period returns how long the market may wait before it decides again, if nothing changes except that past use fades.
func (f *Mechanism) period() messages.Duration {
	return max(1e9, min(60e9, f.halfLife/64))
}

func (f *Mechanism) meet(view *mechanism.View) {
	f.advance(view.Now)
	for _, u := range f.present {
		u.jobs = u.jobs[:0]
		clear(u.waits)
		clear(u.names)
		for j := range u.use {
			u.use[j].held = 0
		}
	}
	f.present = f.present[:0]
	for i, job := range view.Jobs {
		u := f.account(messages.Participant(job.Account))
		if len(u.jobs) == 0 {
			f.present = append(f.present, u)
		}
		u.jobs = append(u.jobs, i)
		if u.names[job.Account] == nil {
			u.names[job.Account] = make([]float64, len(f.Classes))
		}
		for j, n := range job.Pending {
			u.use[j].held += float64(job.Running[j])
			if n > 0 {
				if u.names[job.Account][j] == 0 {
					u.waits[j]++
				}
				u.names[job.Account][j]++
			}
		}
	}
	slices.SortFunc(f.present, func(a, b *account) int { return cmp.Compare(a.name, b.name) })
}

func (f *Mechanism) account(name messages.Name) *account {
	u, known := f.accounts[name]
	if !known {
		m := len(f.Classes)
		u = &account{name: name, use: make([]use, m), waits: make([]float64, m), names: map[messages.Name][]float64{}, share: make([]float64, m)}
		f.accounts[name] = u
	}
	return u
}

// advance computes the accounts' recent use at the time `now`. It removes accounts that have no jobs and whose recent
// use is negligible.
func (f *Mechanism) advance(now messages.Time) {
	elapsed := now.Sub(f.seen).Seconds()
	if f.seen == 0 || elapsed <= 0 {
		f.seen = max(f.seen, now)
		return
	}
	f.seen = now
	for name, u := range f.accounts { // accounts are independent, so the order does not matter
		faded := len(u.jobs) == 0
		for j := range u.use {
			u.use[j].at = 0
			u.use[j].advance(elapsed, f.halfLife.Seconds())
			faded = faded && u.use[j].recent < 1e-6
		}
		if faded {
			delete(f.accounts, name)
		}
	}
}

// divide computes each user's share of the slots of class j. A user demands as many slots as the user has tasks pending
// or running. A user's level is the user's recent and present use of slots, divided by the user's weight. It can happen
// that all users with pending tasks would get a share of 0. Then the slots that become free go to the users with the
// lowest level.
func (f *Mechanism) divide(view *mechanism.View, j int) {
	f.claims = f.claims[:0]
	slots := float64(view.Classes[j].Slots)
	for _, u := range f.present {
		f.claims = append(f.claims, claim{Weight: f.weight(u), Had: u.use[j].recent, Demand: f.demand(view, u, j)})
	}
	f.shares = divide(max(slots, 1), f.claims, f.shares)
	sum := 0.0
	for k, u := range f.present {
		u.share[j] = 0
		if u.waits[j] > 0 {
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

// toPoorest divides the slots of class j among the users with pending tasks. A user's level is the user's recent and
// present use of slots, divided by the user's weight. Users with the lowest level get equal shares, and all other users
// get none. toPoorest returns the sum of the shares.
func (f *Mechanism) toPoorest(j int) float64 {
	least, sum := math.Inf(1), 0.0
	level := func(u *account) float64 { return (u.use[j].recent + u.use[j].held) / f.weight(u) }
	for _, u := range f.present {
		if u.waits[j] > 0 {
			least = min(least, level(u))
		}
	}
	for _, u := range f.present {
		if u.waits[j] > 0 && level(u) == least {
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
	if w, ok := f.weights[u.name]; ok {
		return w
	}
	return 1
}

// The user with the lowest level gets the next slot. Explain says how many users have a lower level than the job's
// user.
func (f *Mechanism) Explain(view *mechanism.View, job *mechanism.Job) mechanism.Explanation {
	u, known := f.accounts[messages.Participant(job.Account)]
	if !known {
		return f.Desk.Explain(view, job, 0, "the market has not decided about this job yet")
	}
	share, ahead := 0.0, 0
	for j, n := range job.Pending {
		if n > 0 && len(u.names[job.Account]) > 0 && u.names[job.Account][j] > 0 {
			share = max(share, u.part(job, j))
		}
	}
	for _, other := range view.Jobs {
		if share == 0 && f.goesFirst(other, job) {
			ahead++
		}
	}
	return f.Desk.Explain(view, job, ahead, "its share of the slots that become free is "+strconv.FormatFloat(100*share, 'g', 3, 64)+
		"%, because of its user's recent and present use")
}

// goesFirst reports whether the job `other` is served before the job `job`, whose account has no share. This is so if
// the account of `other` has a share of a class in which both jobs have pending tasks.
func (f *Mechanism) goesFirst(other, job *mechanism.Job) bool {
	u, known := f.accounts[messages.Participant(other.Account)]
	for j, n := range job.Pending {
		if known && n > 0 && other.Pending[j] > 0 && u.share[j] > 0 {
			return true
		}
	}
	return false
}
