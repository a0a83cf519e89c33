package audit

import (
	"math"
	"slices"

	"github.com/candor-grid/candor/messages"
)

// joint searches for the best lie about everything at once. It starts from the truth, changes one thing after another,
// and keeps changes that gain. If there are several seeds, one half of the seeds guides the search, and the other half
// measures the gain.
func (a *audit) joint(t []entry, liars []int, honest []float64, r *result) error {
	const rounds = 2
	half := max(1, len(honest)/2)
	best, most, found := t[0], mean(honest[:half]), honest
	for range rounds {
		for _, change := range changes {
			told := best
			if !change(&told) {
				continue
			}
			payoffs, err := a.payoffs(Joint, t, liars, []entry{told})
			r.runs += len(a.seeds)
			if messages.KindOf(err) == messages.Invalid {
				continue // leave out declarations that the market would refuse
			}
			if err != nil {
				return err
			}
			r.lies++
			if x := mean(payoffs[:half]); x > most {
				best, most, found = told, x, payoffs
			}
		}
	}
	r.could = r.lies > 0
	if from := len(honest) / 2; most > mean(honest[:half]) {
		r.gain = mean(found[from:]) - mean(honest[from:])
	}
	return nil
}

// changes are the steps of the search. Each step changes one thing that a job declares, such as its length. A step
// returns false if it makes no sense for this job.
var changes = slices.Concat(
	steps([]float64{0.5, 0.9, 1.1, 2}, func(e *entry, x float64) bool { *e = e.rated(x); return true }),
	steps([]float64{0.25, 4}, func(e *entry, x float64) bool {
		e.bid.DelayRate = x * e.bid.SaidDelay()
		return e.waits
	}),
	steps([]float64{0.5, 0.8, 1.25, 2}, func(e *entry, x float64) bool {
		e.bid.Deadline = e.job.Submit + math.Ceil(x*(e.bid.Deadline-e.job.Submit))
		return !math.IsInf(e.bid.Deadline, 1)
	}),
	steps([]float64{0.5, 0.8, 1.25, 2}, func(e *entry, x float64) bool {
		e.bid.Length = max(1, math.Ceil(x*e.bid.Length))
		return true
	}),
	steps([]float64{1.25, 2}, func(e *entry, x float64) bool {
		e.job.Runtime = math.Ceil(x * e.job.Runtime)
		return true
	}),
	steps([]float64{60, 600}, func(e *entry, x float64) bool { e.job.Submit += x; return true }),
)

func steps(sizes []float64, change func(e *entry, x float64) bool) (out []func(*entry) bool) {
	for _, x := range sizes {
		out = append(out, func(e *entry) bool { return change(e, x) })
	}
	return out
}
