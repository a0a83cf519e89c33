package fairshare

import (
	"math"

	"github.com/candor-grid/candor/auctioneer/mechanism/casefile"
	"github.com/candor-grid/candor/auctioneer/mechanism/rigid"
)

// Schedule runs the jobs of a machine by fair share. A user's level is the user's use of the machine divided by the
// user's weight. While nodes are free, the next job is the oldest job of the user with the lowest level. If this job
// does not fit, all other jobs wait for it. Past use counts less with time: half as much after each half-life. If the
// half-life is 0, past use does not count.
func Schedule(in *rigid.Instance, halfLife float64) (*rigid.Schedule, error) {
	if !(halfLife >= 0 && halfLife <= rigid.Largest) {
		return nil, casefile.Invalid("half_life", "must be from 0 to %g, is %g", rigid.Largest, halfLife)
	}
	weights := in.Weights
	if len(weights) == 0 {
		weights = []float64{1}
	}
	return rigid.Run(in, &policy{halfLife: halfLife, weights: weights, users: make([]user, len(weights))})
}

// input is the document of `candor solve fairshare`.
type input struct {
	rigid.Input
	HalfLife float64 `json:"half_life,omitempty"`
}

// SolveDocument answers the JSON document described in package rigid, with one more key, "half_life". If half_life is 0
// or absent, past use does not count.
func SolveDocument(data []byte) (any, error) {
	in, err := casefile.Read[input](data)
	if err != nil {
		return nil, err
	}
	return in.Solve(func(i *rigid.Instance) (*rigid.Schedule, error) { return Schedule(i, in.HalfLife) })
}

// policy is fair share among users for jobs of fixed width.
type policy struct {
	halfLife float64
	weights  []float64
	users    []user
	waiting  []int // users with waiting jobs
}

type user struct {
	use
	jobs []int // waiting jobs, the oldest first
	next int
}

// use is the number of slots that a user holds, and the mean number that the user held recently.
type use struct {
	held   float64 // number of slots that the user holds now
	recent float64 // number of slots, averaged over the past with falling weight
	at     float64 // the time for which recent was computed
}

// advance computes the field `recent` for the time `now`. The difference between `recent` and `held` becomes half as
// large in each half-life.
func (u *use) advance(now, halfLife float64) {
	if now <= u.at {
		return
	}
	if halfLife > 0 {
		u.recent = u.held + (u.recent-u.held)*math.Exp2(-(now-u.at)/halfLife)
	}
	u.at = now
}

func (p *policy) Arrive(m *rigid.Machine, job int) {
	at := m.Jobs[job].User
	u := &p.users[at]
	if u.next == len(u.jobs) {
		p.waiting = append(p.waiting, at)
	}
	u.jobs = append(u.jobs, job)
}

func (p *policy) End(m *rigid.Machine, job int) { p.hold(m, job, -1) }

// hold adds the job's width to the slots of its user (sign 1), or subtracts it (sign −1).
func (p *policy) hold(m *rigid.Machine, job, sign int) {
	u := &p.users[m.Jobs[job].User]
	u.advance(m.Now, p.halfLife)
	u.held += float64(sign * m.Jobs[job].Width)
}

func (p *policy) Decide(m *rigid.Machine) {
	for m.Free > 0 && len(p.waiting) > 0 {
		i := p.poorest(m)
		u := &p.users[p.waiting[i]]
		job := u.jobs[u.next]
		if m.Jobs[job].Width > m.Free {
			return
		}
		m.Start(job)
		p.hold(m, job, 1)
		u.next++
		if u.next == len(u.jobs) {
			last := len(p.waiting) - 1
			p.waiting[i] = p.waiting[last]
			p.waiting = p.waiting[:last]
		}
	}
}

// poorest returns a position in the list p.waiting: the position of the user with the lowest level. Among users with
// the same level, it chooses the user with the oldest job.
func (p *policy) poorest(m *rigid.Machine) int {
	best, least := 0, math.Inf(1)
	for i, at := range p.waiting {
		u := &p.users[at]
		u.advance(m.Now, p.halfLife)
		level := (u.recent + u.held) / p.weights[at]
		if level < least || level == least && p.older(m, i, best) {
			best, least = i, level
		}
	}
	return best
}

func (p *policy) older(m *rigid.Machine, i, j int) bool {
	a, b := p.front(i), p.front(j)
	x, y := m.Jobs[a].Submit, m.Jobs[b].Submit
	return x < y || x == y && a < b
}

func (p *policy) front(i int) int {
	u := &p.users[p.waiting[i]]
	return u.jobs[u.next]
}
