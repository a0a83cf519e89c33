package audit

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/candor-grid/candor/deploy/simulated/core"
	"github.com/candor-grid/candor/deploy/simulated/grid"
	"github.com/candor-grid/candor/deploy/simulated/rules"
	"github.com/candor-grid/candor/deploy/simulated/workload"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/market"
)

// VerbOptions are the settings of a search for the sequence of commands with the largest gain.
type VerbOptions struct {
	Jobs     int // number of jobs in the sample that measures the gain
	Tries    int // number of random sequences at the beginning
	Window   int // number of jobs of the log around each sampled job; 0 means 24
	Slots    int // slots of each node; 0 means 8 in markets that share slot time, and otherwise 1
	Progress func(done, of int)
	Until    <-chan struct{}

	hole hole
}

// Verbed is the best sequence of requests of an owner that a search found, with its gain. The JSON keys are stable.
type Verbed struct {
	Hole     string     `json:"hole,omitempty"` // the rule that was removed from the market; "" means none
	Sequence string     `json:"sequence"`
	Tried    int        `json:"tried"` // number of sequences that were tried
	Runs     int        `json:"runs"`
	Jobs     int        `json:"jobs"` // number of jobs that measured the gain; none of them was used to choose the sequence
	Mean     float64    `json:"mean"` // gain, as a part of the job's value
	CI       [2]float64 `json:"mean_95"`
	Gainers  int        `json:"gainers"`
	// Bounded is a mean gain in which each gain or loss counts as at most the job's value. Without this limit, one
	// short job could decide the mean: waiting can cost it a thousand times its value.
	Bounded   float64    `json:"bounded"`
	BoundedCI [2]float64 `json:"bounded_95"`
	plan      plan
}

// Fired reports whether an owner surely gains from the sequence of requests that the search found. This is so if one of
// two confidence intervals lies above 0: the interval of the mean gain, or the interval of the mean in which each gain
// is at most the job's value.
func (v *Verbed) Fired() bool { return v.CI[0] > Rounding || v.BoundedCI[0] > Rounding }

// Verbs has the result of a search for sequences of requests with which a user could gain, and the results of its
// control searches.
type Verbs struct {
	Found Verbed `json:"found"`
	// Controls show that the search would find a gain. They are results of the same search in markets from which a rule
	// was removed, so that a gain is possible. Each of these searches begins with half as many random sequences as the
	// main search.
	Controls []Verbed `json:"controls"`
}

// hole describes a market from which a test has removed one rule. This is a fault, and the search must find it.
type hole string

// These are the rules that can be removed. In earlier versions, each of these rules was missing in some market, and
// users could gain by this.
const (
	noHole   hole = ""
	unpriced hole = "prices do not count a failed attempt as a completion"
	unowed   hole = "a job that does not end well owes nothing"
	shopped  hole = "each request for a menu draws a new menu"
	byStarts hole = "shares count only the tasks that start"
)

// flawsFor returns the rules of a market that can be removed on purpose. Without such a rule, users can gain by lies,
// and the audit must find such a lie.
func flawsFor(m *rules.Market) []hole {
	switch {
	case m.Mechanism == rules.Contract:
		return []hole{unpriced, shopped}
	case m.Mechanism == rules.Deadline || m.Settle == market.SettleOnCompletion:
		return []hole{unpriced}
	case m.Mechanism == rules.Proportional:
		return []hole{unowed, byStarts}
	}
	return []hole{unowed}
}

// SearchVerbs searches for the sequence of commands that gains most. It repeats the search for each hole, which is the
// market without one of its rules.
func SearchVerbs(p *core.Problem, o VerbOptions) (v *Verbs, err error) {
	if o.Jobs < 1 || o.Tries < 1 {
		return nil, messages.Errorf(messages.Invalid, "jobs and tries: must be at least 1, are %d and %d", o.Jobs, o.Tries)
	}
	v = new(Verbs)
	if o.Slots == 0 && p.Market.Mechanism == rules.Proportional { // a node with one slot cannot share slot time
		o.Slots = 8
	}
	if v.Found, err = search(p, o); err != nil {
		return nil, err
	}
	o.Tries = max(1, o.Tries/2)
	for _, o.hole = range flawsFor(p.Market) {
		found, err := search(p, o)
		if err != nil {
			return nil, err
		}
		v.Controls = append(v.Controls, found)
	}
	return v, nil
}

// scene is a part of the log: a sampled job and its neighbours.
type scene struct {
	*audit
	at     int
	truth  entry
	honest float64 // payoff of the honest owner: worth minus payments
	paid   float64 // payments of the honest owner
	value  float64
	void   bool
}

// candidate is a plan that the search is trying. It has the gain of the plan in each scene that was tried so far. (A
// scene is a sampled job with its neighbours in the log.)
type candidate struct {
	plan
	gains []float64
	void  bool // the market refuses the plan
}

// score returns the mean gain of the candidate. Each gain counts as at most the job's value. If there are enough jobs,
// score subtracts the standard error. Without this, a candidate with a large gain of a few jobs, by chance, could win
// over a candidate with a small gain of all jobs.
func (c *candidate) score() float64 {
	if c.void || len(c.gains) == 0 {
		return math.Inf(-1)
	}
	m, ci := confidence(bounded(c.gains))
	if len(c.gains) > first {
		m -= (ci[1] - m) / 1.96
	}
	return m
}

// bounded returns the gains. A gain or loss above the value of the job is reduced to this value.
func bounded(gains []float64) []float64 {
	out := slices.Clone(gains)
	for k, g := range out {
		out[k] = max(-1, min(1, g))
	}
	return out
}

type hunt struct {
	VerbOptions
	problem *core.Problem
	steps   []step
	rng     *rand.Rand
	tried   map[string]bool
	runs    int
}

func newHunt(p *core.Problem, o VerbOptions) *hunt {
	o.Window = cmp.Or(o.Window, neighbours)
	return &hunt{VerbOptions: o, problem: p, steps: stepsOf(p.Market), rng: rand.New(rand.NewPCG(p.Seed, 0x7665726273)), tried: map[string]bool{}}
}

// These are the numbers of scenes on which the search tries plans: in its first round, in its second round, and in its
// last round. A scene is a sampled job with its neighbours in the log.
const first, second, last = 8, 16, 32

// search looks for the plan with the largest gain. A plan is a sequence of steps of an owner. A scene is a sampled job
// with its neighbours in the log. First, search draws plans. It tries them on more and more scenes, and in each round
// it keeps the better half. Second, it changes the kept plans step by step. Third, it tries the best five plans, and
// parts of plans, on new scenes, and chooses one. At last, it measures the gain of the chosen plan on scenes that were
// not used before.
func search(p *core.Problem, o VerbOptions) (v Verbed, err error) {
	h := newHunt(p, o)
	var pool []*candidate
	for k := range h.steps {
		pool = h.add(pool, plan{k})
	}
	for k := range outs() { // combine each way to end a job that has its result with each declaration
		for d := range declarations(p.Market) {
			pool = h.add(pool, plan{k, len(h.steps) - 1 - d})
		}
	}
	for misses, all := 0, len(pool)+o.Tries; len(pool) < all && misses < 100*o.Tries; misses++ {
		pool = h.add(pool, draw(h.rng, h.steps, 2+h.rng.IntN(longest-1)))
	}
	scenes, err := h.telling(min(last, 2*o.Jobs))
	if err != nil {
		return v, err
	}
	for _, round := range []struct{ scenes, keep, neighbours int }{{min(first, o.Jobs/2), len(pool) / 4, 0}, {min(second, o.Jobs), 8, 4}, {min(second, o.Jobs), 8, 4}, {last, 5, 0}} {
		for _, c := range slices.Clone(pool[:min(len(pool), 8)]) {
			for range round.neighbours {
				pool = h.add(pool, c.neighbour(h.rng, h.steps))
			}
		}
		if pool, err = h.best(pool, scenes[:min(max(1, round.scenes), len(scenes))], max(1, round.keep)); err != nil {
			return v, err
		}
	}
	chosen := min(2*last, o.Jobs)
	fresh, err := h.scenes(chosen+o.Jobs, 1)
	if err != nil {
		return v, err
	}
	pool = withParts(pool)
	for _, c := range pool {
		c.gains = nil
	}
	chosen = min(chosen, (len(fresh)+1)/2) // there may be fewer scenes than requested, because the gain cannot be computed for some jobs
	if pool, err = h.best(pool, fresh[:chosen], len(pool)); err != nil {
		return v, err
	}
	pool = []*candidate{simplest(pool)}
	pool[0].gains = nil
	if _, err = h.best(pool, fresh[min(chosen, len(fresh)-1):], 1); err != nil {
		return v, err
	}
	v = Verbed{Hole: string(o.hole), plan: pool[0].plan, Sequence: pool[0].words(h.steps), Tried: len(h.tried), Runs: h.runs, Jobs: len(pool[0].gains)}
	v.Mean, v.CI = confidence(pool[0].gains)
	v.Bounded, v.BoundedCI = confidence(bounded(pool[0].gains))
	for _, g := range pool[0].gains {
		if g > Rounding {
			v.Gainers++
		}
	}
	return v, nil
}

// withParts extends the pool of plans. For each plan with at least two steps, it adds all plans that leave out one
// step.
func withParts(pool []*candidate) []*candidate {
	for _, c := range slices.Clone(pool) {
		for k := range c.plan {
			part := slices.Delete(slices.Clone(c.plan), k, k+1)
			if len(part) > 0 && !slices.ContainsFunc(pool, func(o *candidate) bool { return slices.Equal(o.plan, part) }) {
				pool = append(pool, &candidate{plan: part})
			}
		}
	}
	return pool
}

// simplest returns the best candidate, or a shorter candidate that gains about as much. All steps of the shorter
// candidate must also be steps of the best one. A step that adds little gain was probably chosen by luck. The pool must
// be sorted, the best candidate first.
func simplest(pool []*candidate) *candidate {
	best := pool[0]
	for _, c := range pool[1:] {
		if c.void || len(c.plan) >= len(best.plan) || slices.ContainsFunc(c.plan, func(k int) bool { return !slices.Contains(best.plan, k) }) {
			continue
		}
		more, less := bounded(best.gains), bounded(c.gains)
		for k := range more {
			more[k] -= less[k]
		}
		if m, ci := confidence(more); m <= (ci[1]-m)/1.96 {
			best = c
		}
	}
	return best
}

func (h *hunt) add(pool []*candidate, s plan) []*candidate {
	if key := fmt.Sprint(s); !h.tried[key] {
		h.tried[key] = true
		pool = append(pool, &candidate{plan: s})
	}
	return pool
}

// best tries each candidate (a plan of the owner) in each given scene in which it was not tried before. A scene is a
// sampled job of the log, with its neighbours. best returns the best candidates, at most `keep` of them.
func (h *hunt) best(pool []*candidate, scenes []*scene, keep int) ([]*candidate, error) {
	type trial struct {
		c  *candidate
		at int
	}
	var trials []trial
	for _, c := range pool {
		had := len(c.gains)
		c.gains = slices.Grow(c.gains, len(scenes))[:max(had, len(scenes))]
		for at := had; at < len(scenes); at++ {
			trials = append(trials, trial{c, at})
		}
	}
	refused := make([]bool, len(trials))
	err := inParallel(len(trials), h.Progress, h.Until, func(k int) (err error) {
		t := trials[k]
		t.c.gains[t.at], err = h.gain(scenes[t.at], t.c.plan)
		if messages.KindOf(err) == messages.Invalid {
			refused[k], err = true, nil
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	select {
	case <-h.Until:
		return nil, messages.Errorf(messages.Unavailable, "interrupted: the search has not chosen a sequence yet")
	default:
	}
	for k, t := range trials {
		t.c.void = t.c.void || refused[k]
	}
	h.runs += len(trials)
	slices.SortStableFunc(pool, func(a, b *candidate) int { return cmp.Compare(b.score(), a.score()) })
	return pool[:min(keep, len(pool))], nil
}

func (h *hunt) gain(s *scene, of plan) (float64, error) {
	told := of.build(s.truth, h.steps, s.Problem)
	if told == nil {
		return 0, messages.Errorf(messages.Invalid, "these commands cannot be given for this job")
	}
	worth, paid, err := h.payoff(s, told)
	return (worth - paid - s.honest) / s.value, err
}

// telling returns n scenes that show the differences between the plans under test. A scene is a sampled job of the log
// with its neighbours. telling takes three kinds of scene in turn: a scene whose job pays much, a scene whose job
// misses much of its value, and any scene. Random scenes would show no differences, because most jobs get all of their
// value for free, under every plan.
func (h *hunt) telling(n int) (out []*scene, err error) {
	const drawn = 6
	rest, err := h.scenes(drawn*n, 0)
	for turn := 0; len(out) < n && len(rest) > 0; turn++ {
		at := 0
		for k, s := range rest {
			if stakes := s.stakes(); turn%3 < len(stakes) && stakes[turn%3] > rest[at].stakes()[turn%3] {
				at = k
			}
		}
		out, rest = append(out, rest[at]), slices.Delete(rest, at, at+1)
	}
	return out, err
}

// stakes returns two numbers for the honest job, both divided by the job's value and at most 1. The first is the job's
// payment. The second is the part of its value that it did not get, because it was late or did not complete.
func (s *scene) stakes() [2]float64 {
	return [2]float64{min(1, s.paid/s.value), min(1, 1-(s.honest+s.paid)/s.value)}
}

// scenes returns n parts of the log: sampled jobs, each with its neighbours. Another value of `draw` gives other bids,
// other random choices and other sampled jobs.
func (h *hunt) scenes(n, draw int) ([]*scene, error) {
	p := redrawn(h.problem, draw)
	p.Seed += uint64(draw) * 0x632be59bd9b4e019
	var takes []int
	for i := range p.Work.Jobs {
		if p.Work.Jobs[i].Runtime > 0 {
			takes = append(takes, i)
		}
	}
	if len(takes) == 0 {
		return nil, messages.Errorf(messages.Invalid, "all jobs of the study have a run time of 0, so commands cannot gain anything")
	}
	order := rand.New(rand.NewPCG(p.Seed, 0x7363656e65)).Perm(len(takes)) // each job is used once before any is used again
	out := make([]*scene, n)
	for k := range out {
		out[k] = h.scene(p, takes[order[k%len(order)]], p.Seed+uint64(k))
	}
	h.runs += n
	err := inParallel(n, nil, nil, func(k int) (err error) {
		s := out[k]
		var worth float64
		worth, s.paid, err = h.payoff(s, plan{}.build(s.truth, nil, s.Problem))
		s.honest = worth - s.paid
		if s.void = messages.KindOf(err) == messages.Invalid; s.void {
			err = nil
		}
		return err
	})
	out = slices.DeleteFunc(out, func(s *scene) bool { return s.void }) // leave out jobs that the market refuses anyway
	if err == nil && len(out) == 0 {
		err = messages.Errorf(messages.Invalid, "no sampled job completes in this market, so commands cannot gain anything")
	}
	return out, err
}

func (h *hunt) scene(p *core.Problem, i int, seed uint64) *scene {
	q, from := around(p, i, h.Window)
	q.Seed = seed
	s := &scene{audit: &audit{Problem: q, seeds: []uint64{seed}}, at: i - from}
	s.truth = s.entries([]int{s.at})[0]
	if q.Market.Mechanism == rules.Deadline && q.Work.Parallel != workload.Wide { // a program takes time to start; its owner declares this time too
		s.truth.bid.Length++
	}
	if q.Market.Worth == rules.ByDelay {
		s.truth.bid.Deadline = math.Inf(1)
	}
	s.value = s.truth.bid.Worth(&s.truth.job)
	return s
}

// payoff runs a site with all its actors. The owner of the scene's job submits the entries in `told` instead of the
// job. payoff returns the value that this owner gets, and the amount that the owner pays.
func (h *hunt) payoff(s *scene, told []entry) (worth, paid float64, err error) {
	q, _, of := variant(s.Problem, []int{s.at}, told)
	o, _, err := grid.Run(&q, grid.Config{Owners: of, Slots: h.Slots, Forgetful: h.hole == unpriced, Shopping: h.hole == shopped, ByStarts: h.hole == byStarts})
	if err != nil {
		return 0, 0, err
	}
	ways := map[int]*way{}
	for at := range q.Bids {
		owner := of[at]
		if owner == nil {
			continue
		}
		r, e := &o.Jobs[at], &told[slices.IndexFunc(told, func(e entry) bool { return e.owner == owner })]
		if h.hole != unowed || r.Fate == core.Completed {
			paid += r.Paid.Float()
		}
		if e.ghost {
			continue
		}
		if r.Start < s.truth.job.Submit { // the job cannot run before its true submission, so this sequence makes no sense
			return 0, 0, messages.Errorf(messages.Invalid, "the job starts before its true time of submission")
		}
		if ways[e.copy] == nil {
			ways[e.copy] = &way{start: math.Inf(1)}
		}
		ways[e.copy].join(r, o.Results, at)
	}
	had := s.truth.had(ways)
	if had.Fate != core.Completed && q.Market.Worth == rules.ByDelay { // each second of waiting has a cost, and this owner waits without end
		return 0, 0, messages.Errorf(messages.Invalid, "the agent never has its result")
	}
	return s.truth.worth(q.Market.Worth, had), paid, nil
}

// way describes some jobs that an agent submitted to get one result; each job gives a part of the result. The first job
// began at `start`, and the last one ended at `over`. The result was complete at the time `at`.
type way struct{ start, at, over float64 }

func (w *way) join(r *core.Job, results map[int]float64, i int) {
	if !math.IsNaN(r.Start) {
		w.start = min(w.start, r.Start)
	}
	at, has := results[i]
	if !has {
		at = math.Inf(1)
	}
	w.at, w.over = max(w.at, at), max(w.over, r.Finish)
}

// had returns the outcome of all ways in which an owner asked for one result. For example, the owner submitted two
// copies of a job. The owner takes the first result that comes.
func (t *entry) had(ways map[int]*way) *core.Job {
	best := &way{at: math.Inf(1)}
	over := t.job.Submit
	for _, k := range slices.Sorted(maps.Keys(ways)) {
		w := ways[k]
		over = max(over, w.over)
		if w.at < best.at {
			best = w
		}
	}
	if math.IsInf(best.at, 1) {
		return &core.Job{Start: math.Inf(1), Finish: over, Fate: core.Expired}
	}
	whole := &core.Job{Start: best.start, Finish: best.at, Fate: core.Completed}
	if best.at <= t.bid.Deadline {
		whole.InTime = 1
	}
	return whole
}
