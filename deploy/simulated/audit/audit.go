package audit

import (
	"cmp"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/candor-grid/candor/deploy/simulated/core"
	"github.com/candor-grid/candor/deploy/simulated/grid"
	"github.com/candor-grid/candor/deploy/simulated/rules"
	"github.com/candor-grid/candor/messages"
)

// Options bound an audit.
type Options struct {
	Jobs     int      // in the sample
	Kinds    []string // nil: all
	Seeds    int      // of each payoff, where the mechanism draws lots; 0: 8
	Progress func(done, of int)
}

// sample is a sampled job, and with whom it could collude.
type sample struct {
	at      int
	partner int // −1: none
}

// Run audits a study.
func Run(p *core.Problem, o Options) (*Report, error) {
	if o.Jobs < 1 {
		return nil, messages.Errorf(messages.Invalid, "jobs: must be at least 1, is %d", o.Jobs)
	}
	if o.Kinds == nil {
		o.Kinds = Kinds
	}
	a := &audit{Problem: p, seeds: seedsOf(p, o.Seeds)}
	samples := a.sample(o.Jobs)
	if len(samples) == 0 {
		return nil, messages.Errorf(messages.Invalid, "no job of the study takes any time: there is nothing to lie for")
	}
	r := &Report{Jobs: len(samples), Notes: []string{}}
	results := make([]result, len(samples)*len(o.Kinds))
	err := inParallel(len(results), o.Progress, func(k int) error {
		return a.try(samples[k/len(o.Kinds)], o.Kinds[k%len(o.Kinds)], &results[k])
	})
	if err != nil {
		return nil, err
	}
	for k, kind := range o.Kinds {
		var of []result
		for i := range samples {
			of = append(of, results[i*len(o.Kinds)+k])
		}
		r.add(kind, of)
	}
	return r, nil
}

// audit is one on its way.
type audit struct {
	*core.Problem
	seeds []uint64 // of each payoff
}

// seedsOf are the seeds that each payoff is a mean over.
func seedsOf(p *core.Problem, n int) []uint64 {
	if p.Market.Mechanism != rules.Proportional {
		return []uint64{p.Seed}
	}
	if n == 0 {
		n = 8
	}
	out := make([]uint64, max(2, n))
	for k := range out {
		out[k] = p.Seed + uint64(k)
	}
	return out
}

// sample draws jobs that take time, each with the next job of another user.
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
		s := sample{i, -1}
		for k := i + 1; k < len(a.Work.Jobs) && s.partner < 0; k++ {
			if a.Work.Jobs[k].User != a.Work.Jobs[i].User && a.Work.Jobs[k].Runtime > 0 {
				s.partner = k
			}
		}
		out = append(out, s)
	}
	return out
}

// result is what the lies of a kind do for a sampled job.
type result struct {
	job   int64
	could bool
	lies  int
	runs  int
	best  int     // position of the best lie
	gain  float64 // of it, in credits; 0: the truth is best
	value float64 // of the job, or of the two
}

// try tells all lies of a kind for one job.
func (a *audit) try(s sample, kind string, r *result) error {
	r.job = a.Work.Jobs[s.at].Number
	if kind == Weights {
		return a.weights(s, r)
	}
	liars := []int{s.at}
	if kind == Collusion && s.partner >= 0 {
		liars = append(liars, s.partner)
	}
	t := a.entries(liars)
	for k := range t {
		r.value += t[k].bid.Worth(&t[k].job)
	}
	told := make([][]float64, 0, 16)
	var positions []int
	honest, err := a.payoffs(kind, t, liars, t)
	if err != nil {
		return err
	}
	r.runs = len(a.seeds)
	for k, l := range liesOf(kind) {
		es := a.entries(liars)
		var partner *entry
		if len(es) > 1 {
			partner = &es[1]
		}
		lie := l(&es[0], partner, a.Work.Nodes)
		if lie == nil {
			continue
		}
		payoffs, err := a.payoffs(kind, t, liars, lie)
		if err == nil && kind == Ends {
			err = a.apart(payoffs, honest, t, liars, lie)
		}
		if messages.KindOf(err) == messages.Invalid {
			continue // it would be refused
		}
		if err != nil {
			return err
		}
		told, positions = append(told, payoffs), append(positions, k)
		r.runs += len(a.seeds)
	}
	r.lies, r.could = len(told), len(told) > 0
	best, gain := choose(honest, told)
	if best >= 0 {
		r.best, r.gain = positions[best], gain
	}
	return nil
}

// entries are what honest liars submit: the true value, whatever their bids say.
func (a *audit) entries(liars []int) []entry {
	out := make([]entry, len(liars))
	for k, i := range liars {
		out[k] = entry{job: a.Work.Jobs[i], bid: a.Bids[i], liar: k + 1, spends: a.Market.Mechanism == rules.Proportional,
			demands: a.Market.Mechanism == rules.Proportional && a.Market.SLO > 0}
		out[k].bid.Rate = out[k].bid.Value
	}
	return out
}

// payoffs are those of the liars together, by seed. How a job ends is known to a site
// with all actors alone.
func (a *audit) payoffs(kind string, t []entry, liars []int, told []entry) ([]float64, error) {
	q, owner, ends := variant(a.Problem, liars, told)
	out := make([]float64, len(a.seeds))
	for k, seed := range a.seeds {
		q.Seed = seed
		var o *core.Outcome
		var err error
		if kind == Ends {
			o, _, err = grid.Run(&q, grid.Config{Ends: ends})
		} else {
			o, err = core.Run(&q)
		}
		if err != nil {
			return nil, err
		}
		for at := range ends {
			finish(&q, o, at)
		}
		for me := range t {
			out[k] += t[me].payoff(&q, o, owner, me+1)
		}
	}
	return out, nil
}

// apart takes from payoffs what the same entries gain when they end well: what is gained
// by two halves is another kind of lie.
func (a *audit) apart(payoffs, honest []float64, t []entry, liars []int, told []entry) error {
	well := slices.Clone(told)
	for k := range well {
		well[k].ends = 0
	}
	base, err := a.payoffs(Ends, t, liars, well)
	for k := range base {
		payoffs[k] += honest[k] - base[k]
	}
	return err
}

// choose finds the best lie and its gain, −1 if the truth is best. With several
// seeds, the first half chooses and the second measures.
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

// inParallel does n things on all processors; the first error in order is
// returned.
func inParallel(n int, progress func(done, of int), do func(k int) error) error {
	errs := make([]error, n)
	var running sync.WaitGroup
	var mu sync.Mutex
	begun, done := atomic.Int64{}, 0
	for range min(n, runtime.GOMAXPROCS(0)) {
		running.Go(func() {
			for k := int(begun.Add(1)) - 1; k < n; k = int(begun.Add(1)) - 1 {
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
