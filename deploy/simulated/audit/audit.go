package audit

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/candor-grid/candor/deploy/simulated/core"
	"github.com/candor-grid/candor/deploy/simulated/grid"
	"github.com/candor-grid/candor/deploy/simulated/rules"
	"github.com/candor-grid/candor/deploy/simulated/workload"
	"github.com/candor-grid/candor/messages"
)

// Options set the size of an audit.
type Options struct {
	Jobs     int      // number of jobs in each sample
	Kinds    []string // kinds of lies; nil: all
	Progress func(done, of int)
	// Redraws is the number of samples. For each sample, all bids of the study are drawn anew. 0 means one sample, with
	// the bids of the study.
	Redraws int
	// If the channel Until is closed, the audit ends early. The report then covers the part that was done.
	Until <-chan struct{}

	forgetful bool // a fault that a test inserts: see grid.Config
}

// sample is a job whose owner's lies are measured. The field `partners` has the next jobs of other users. The job's
// owner could collude with these users.
type sample struct {
	at       int
	partners []int
	past     func() (*core.Past, error) // the run up to the job's submission
}

// Run audits a study.
func Run(p *core.Problem, o Options) (*Report, error) {
	if o.Jobs < 1 {
		return nil, messages.Errorf(messages.Invalid, "jobs: must be at least 1, is %d", o.Jobs)
	}
	if o.Kinds == nil {
		o.Kinds = Kinds
	}
	var trials []trial
	r := &Report{Notes: []string{}, Redraws: max(1, o.Redraws)}
	draws := 8 // how often the random choices are drawn for each payoff
	if p.Work.Parallel == workload.Wide {
		draws = 2 // fewer draws, because a run with all actors is slower
	}
	audits, samples := make([]*audit, r.Redraws), make([][]sample, r.Redraws)
	for k := range audits {
		audits[k] = &audit{Problem: redrawn(p, k), seeds: seedsOf(p, draws), forgetful: o.forgetful}
		samples[k] = audits[k].sample(o.Jobs)
	}
	for i := range samples[0] { // all samples have the same length, so ending early cuts all of them alike
		for k, a := range audits {
			r.Jobs++
			for _, kind := range o.Kinds {
				trials = append(trials, trial{audit: a, sample: samples[k][i], kind: kind})
			}
		}
	}
	if r.Jobs == 0 {
		return nil, messages.Errorf(messages.Invalid, "all jobs of the study have a run time of 0, so no lie can gain anything")
	}
	err := inParallel(len(trials), o.Progress, o.Until, func(k int) error {
		t := &trials[k]
		t.done = true
		return t.audit.try(t.sample, t.kind, &t.result)
	})
	if err != nil {
		return nil, err
	}
	left := 0
	for i, kind := range o.Kinds {
		var of []*trial
		for k := i; k < len(trials); k += len(o.Kinds) {
			if trials[k].done {
				of = append(of, &trials[k])
			} else {
				left++
			}
		}
		grows := 0.0
		if kind == Value {
			if grows, err = further(of, o); err != nil {
				return nil, err
			}
		}
		r.add(kind, of, grows)
	}
	if left > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("interrupted: %d of %d searches were not begun, and the numbers above do not count these searches", left, len(trials)))
	}
	return r, nil
}

// trial is the search for the most profitable lie of one kind for one sampled job.
type trial struct {
	audit  *audit
	sample sample
	kind   string
	done   bool
	result
}

// redrawn returns version k of a study. Version 0 has the study's own bids; every other version has newly drawn bids.
// In each version the operator's beliefs are computed from these honest bids and then stay fixed, so that a lie cannot
// change them.
func redrawn(p *core.Problem, k int) *core.Problem {
	own := *p
	if k > 0 {
		own.Seed += uint64(k) * 0x9e3779b97f4a7c15
		own.Bids, own.Prior = own.Market.Bids.Draw(own.Work, own.Seed), nil
	}
	own.Prior = own.PriorJobs()
	class := own
	own.Class = &class
	return &own
}

type audit struct {
	*core.Problem
	seeds []uint64 // each payoff is a mean over these seeds

	forgetful bool // a fault that a test inserts
}

// neighbours is the number of jobs around a sampled job that run together with this job, if all actors run. They are
// the nearest jobs in the log.
const neighbours = 24

// The function `around` returns the part of a study with job i and its nearest jobs in the log, at most n jobs in
// total. It also returns the position of the first job of this part.
func around(p *core.Problem, i, n int) (*core.Problem, int) {
	from, until := max(0, i-n/2), min(len(p.Bids), i+n/2)
	q, w := *p, *p.Work
	w.Jobs, q.Work, q.Bids = p.Work.Jobs[from:until], &w, p.Bids[from:until]
	return &q, from
}

// seedsOf returns the seeds over which each payoff is averaged: n seeds for a mechanism with random choices, otherwise
// one.
func seedsOf(p *core.Problem, n int) []uint64 {
	if p.Market.Mechanism != rules.Proportional {
		return []uint64{p.Seed}
	}
	out := make([]uint64, n)
	for k := range out {
		out[k] = p.Seed + uint64(k)
	}
	return out
}

// sample draws jobs with a run time above 0. For each of these jobs, it also takes the next job in the log that another
// user submitted.
func (a *audit) sample(n int) []sample {
	var takes []int
	for i := range a.Work.Jobs {
		if a.Work.Jobs[i].Runtime > 0 {
			takes = append(takes, i)
		}
	}
	rng := rand.New(rand.NewPCG(a.Seed, 0x6175646974))
	rng.Shuffle(len(takes), func(i, j int) { takes[i], takes[j] = takes[j], takes[i] })
	out := make([]sample, 0, n)
	for _, i := range takes[:min(n, len(takes))] {
		s, users := sample{at: i, past: sync.OnceValues(func() (*core.Past, error) { return core.Until(a.Problem, a.Work.Jobs[i].Submit) })}, []int{a.Work.Jobs[i].User}
		for k := i + 1; k < len(a.Work.Jobs) && len(s.partners) < among(Three)-1; k++ {
			if j := &a.Work.Jobs[k]; !slices.Contains(users, j.User) && j.Runtime > 0 {
				s.partners, users = append(s.partners, k), append(users, j.User)
			}
		}
		out = append(out, s)
	}
	return out
}

// result is about one sampled job and one kind of lie. It has the gain of each lie of this kind.
type result struct {
	job   int64
	could bool
	lies  int
	runs  int
	best  int     // position of the best lie
	gain  float64 // gain of the best lie, in credits; 0: the truth is best
	value float64 // value of the job, or of all colluding jobs
	fixed []fixed // gain of each lie that could be told
	// controls are the gains of lies that always gain. If the audit does not find these gains, it does not work.
	// Finding.Control reports one of them.
	controls []fixed

	honest []float64   // payoffs of the truth, by seed
	told   [][]float64 // payoffs of the lies, by seed
}

type fixed struct {
	lie  int
	gain float64
}

// try measures all lies of one kind for one job.
func (a *audit) try(s sample, kind string, r *result) error {
	r.job = a.Work.Jobs[s.at].Number
	switch kind {
	case Weights:
		return a.weights(s, r, mostPresent, 2)
	case Classes:
		return a.weights(s, r, manyClasses, manyClasses)
	}
	a, liars, err := a.from(s, kind)
	if err != nil {
		return err
	}
	t := a.entries(liars)
	for k := range t {
		r.value += t[k].bid.Worth(&t[k].job)
	}
	for k, c := range a.controlsOf(kind) {
		if err := a.control(kind, t, liars, r, k, c); err != nil {
			return err
		}
	}
	if r.honest, err = a.payoffs(kind, t, liars, t); err != nil {
		return err
	}
	r.runs += len(a.seeds)
	if kind == Joint {
		return a.joint(t, liars, r.honest, r)
	}
	lies := liesOf(kind)
	if among(kind) > 1 {
		lies = append(lies, s.ring(a.Problem, liars))
	}
	for k, l := range lies {
		if err := a.tell(liars, kind, k, l, r); err != nil {
			return err
		}
	}
	return nil
}

// The method `from` returns an audit whose simulation starts when the sampled job arrives, to save the time before. It
// also returns the jobs whose users tell a lie of this kind together.
func (a *audit) from(s sample, kind string) (*audit, []int, error) {
	liars := append([]int{s.at}, s.partners[:min(len(s.partners), among(kind)-1)]...)
	if a.Work.Parallel == workload.Wide { // all actors run, so only the neighbours in the log take part
		near, first := around(a.Problem, s.at, neighbours)
		liars = slices.DeleteFunc(liars, func(i int) bool { return i >= first+len(near.Bids) })
		for k := range liars {
			liars[k] -= first
		}
		return &audit{Problem: near, seeds: a.seeds, forgetful: a.forgetful}, liars, nil
	}
	past, err := s.past()
	from := *a.Problem
	from.Past = past
	return &audit{Problem: &from, seeds: a.seeds, forgetful: a.forgetful}, liars, err
}

// tell runs the market in which the liars tell the lie `l`. If the lie is impossible for these liars, tell does
// nothing. The argument `at` is the position of the lie among the lies of its kind.
func (a *audit) tell(liars []int, kind string, at int, l lie, r *result) error {
	lie := l(a.entries(liars), a.mostNodes())
	if lie == nil {
		return nil
	}
	t := a.entries(liars)
	payoffs, err := a.payoffs(kind, t, liars, lie)
	if err == nil && kind == Ends {
		err = a.apart(payoffs, r.honest, t, liars, lie)
	}
	if messages.KindOf(err) == messages.Invalid {
		return nil // the market would refuse this lie
	}
	if err != nil {
		return err
	}
	r.told = append(r.told, payoffs)
	r.fixed = append(r.fixed, fixed{at, mean(payoffs) - mean(r.honest)})
	r.runs += len(a.seeds)
	r.lies, r.could = len(r.told), true
	if best, gain := choose(r.honest, r.told); best >= 0 {
		r.best, r.gain = r.fixed[best].lie, gain
	}
	return nil
}

// mostNodes returns the largest number of slots that a job can declare.
func (a *audit) mostNodes() int {
	if a.Work.Parallel == workload.Wide {
		return min(a.Work.Nodes, workload.NodeSlots)
	}
	return a.Work.Nodes
}

// entries returns the honest submission of each liar, before its lie. The declared rate is the job's true value. In the
// study itself, the job may bid another rate.
func (a *audit) entries(liars []int) []entry {
	out := make([]entry, len(liars))
	for k, i := range liars {
		out[k] = entry{job: a.Work.Jobs[i], bid: a.Bids[i], liar: k + 1, spends: a.Market.Mechanism == rules.Proportional,
			demands: a.Market.Mechanism == rules.Proportional && a.Market.SLO > 0, waits: a.Market.Mechanism == rules.BatchQueue}
		if a.Work.Parallel == workload.Wide && a.Market.Mechanism == rules.Deadline {
			out[k].bid.Length++ // with all actors a task takes time to start; its owner declares this time too
		}
		if out[k].bid.Rate = out[k].bid.Value; out[k].waits { // each job needs an account of its own
			out[k].name = 1 + mostNames*k
		}
	}
	return out
}

// mostNames is how many accounts a liar can have.
const mostNames = 8

// payoffs returns the sum of the liars' payoffs, by seed.
func (a *audit) payoffs(kind string, t []entry, liars []int, told []entry) ([]float64, error) {
	return a.payoffsBy(kind, t, liars, told, (*entry).payoff)
}

// payoffsBy computes the payoffs of the liars like payoffs. The argument `payoff` is the function that computes the
// payoff of one liar.
func (a *audit) payoffsBy(kind string, t []entry, liars []int, told []entry,
	payoff func(t *entry, q *core.Problem, o *core.Outcome, owner []int, me int) float64) ([]float64, error) {
	q, owner, of := variant(a.Problem, liars, told)
	out := make([]float64, len(a.seeds))
	for k, seed := range a.seeds {
		q.Seed = seed
		var o *core.Outcome
		var err error
		if live(kind) || q.Work.Parallel == workload.Wide {
			o, _, err = grid.Run(&q, grid.Config{Owners: of, Forgetful: a.forgetful})
		} else {
			o, err = core.Run(&q)
		}
		if err != nil {
			return nil, err
		}
		for at := range of {
			finish(&q, o, at)
		}
		for me := range t {
			out[k] += payoff(&t[me], &q, o, owner, me+1)
		}
	}
	return out, nil
}

// control is a pair of a lie and a wrong payment rule, with which the lie must gain. Under the rule, each completed job
// pays its announced value times a number that depends on the number of its slots. If no control gains, the sample is
// too weak to show gains of other lies.
type control struct {
	lie  lie
	part func(slots int) float64
}

// controlsOf returns the controls of a kind of lie. A control is a lie under a changed payment rule; under this rule
// the lie must gain. In one control, jobs pay all that they announce, and the lie halves the value. In another, no job
// pays, and the lie multiplies the value by four. In two more, a task of k slots pays k times what it announces, and
// the lie narrows a task to a half or a quarter.
func (a *audit) controlsOf(kind string) []control {
	to := func(x float64, change func(float64, *entry, int) []entry) lie { return each([]float64{x}, change)[0] }
	switch {
	case kind == Value:
		return []control{{to(0.5, anotherRate), func(int) float64 { return 1 }}, {to(4, anotherRate), func(int) float64 { return 0 }}}
	case kind == Nodes && a.Work.Parallel == workload.Wide:
		square := func(slots int) float64 { return float64(slots) }
		return []control{{to(0.5, onOthers), square}, {to(0.25, onOthers), square}}
	}
	return nil
}

func (a *audit) control(kind string, t []entry, liars []int, r *result, k int, c control) error {
	payoff := func(t *entry, q *core.Problem, o *core.Outcome, owner []int, me int) float64 {
		return t.asBid(q, o, owner, me, c.part)
	}
	told := c.lie(a.entries(liars), a.mostNodes())
	if told == nil {
		return nil
	}
	honest, err := a.payoffsBy(kind, t, liars, t, payoff)
	if err != nil {
		return err
	}
	lie, err := a.payoffsBy(kind, t, liars, told, payoff)
	if messages.KindOf(err) == messages.Invalid {
		return nil // the market would refuse this lie
	}
	r.runs += 2 * len(a.seeds)
	r.controls = append(r.controls, fixed{k, mean(lie) - mean(honest)})
	return err
}

// Some lies are about how jobs end. Such a lie may also change other things, for example split a job in two. apart
// computes the gain of the same entries if their jobs end in the ordinary way. It subtracts this gain from the payoffs,
// so only the gain from the unusual end is left.
func (a *audit) apart(payoffs, honest []float64, t []entry, liars []int, told []entry) error {
	well := slices.Clone(told)
	for k := range well {
		well[k].owner = nil
	}
	base, err := a.payoffs(Ends, t, liars, well)
	for k := range base {
		payoffs[k] += honest[k] - base[k]
	}
	return err
}

// choose finds the best lie and its gain. The first result is −1 if the truth is best. With several seeds, the results
// of the first half of the seeds choose the lie. The results of the second half measure the gain of this lie.
func choose(honest []float64, told [][]float64) (best int, gain float64) {
	half := len(honest) / 2
	best = -1
	most := 0.0
	for k := range told {
		if g := mean(told[k][:max(1, half)]) - mean(honest[:max(1, half)]); g > most {
			best, most = k, g
		}
	}
	if best >= 0 {
		gain = mean(told[best][half:]) - mean(honest[half:])
	}
	return best, gain
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// inParallel calls the function `do` for the numbers 0 to n−1, on all processors. If calls return errors, it returns
// the error of the smallest number. When the channel `until` is closed, it starts no further calls.
func inParallel(n int, progress func(done, of int), until <-chan struct{}, do func(k int) error) error {
	errs := make([]error, n)
	var running sync.WaitGroup
	var mu sync.Mutex
	begun, done := atomic.Int64{}, 0
	for range min(n, runtime.GOMAXPROCS(0)) {
		running.Go(func() {
			for k := int(begun.Add(1)) - 1; k < n; k = int(begun.Add(1)) - 1 {
				select {
				case <-until:
					return
				default:
				}
				errs[k] = do(k)
				mu.Lock()
				if done++; progress != nil {
					progress(done, n)
				}
				mu.Unlock()
			}
		})
	}
	running.Wait()
	return cmp.Or(errs...)
}
