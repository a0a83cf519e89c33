package audit

import (
	"math/rand/v2"
	"slices"

	"github.com/candor-grid/candor/auctioneer/mechanism/proportional"
	"github.com/candor-grid/candor/deploy/simulated/rules"
)

// mostPresent bounds how many jobs are looked at together: beyond, a single one
// hardly moves the others.
const mostPresent = 80

// weights lies about utility weights and about the form of the utility, in a market of
// proportional shares with two classes: one allocation among the job and those submitted
// next to it. Everybody's true weights and form are drawn by the job's number. The gain is
// of utility: of a linear one as a part of the honest one, of a logarithmic one as what its
// shares grow by, as a part of them.
func (a *audit) weights(s sample, r *result) error {
	if a.Market.Mechanism != rules.Proportional {
		return nil
	}
	from := max(0, s.at-mostPresent/2)
	until := min(len(a.Bids), from+mostPresent)
	if until-from < 2 {
		return nil
	}
	p := &proportional.Problem{Alpha: *a.Market.Alpha, Classes: 2}
	for i := from; i < until; i++ {
		rng := rand.New(rand.NewPCG(a.Seed, uint64(a.Work.Jobs[i].Number)))
		p.Budgets = append(p.Budgets, a.Bids[i].Budget)
		p.Weights = append(p.Weights, 0.1+rng.Float64(), 0.1+rng.Float64())
		p.Log = append(p.Log, rng.IntN(2) == 0)
	}
	me := s.at - from
	truth := *p
	honest, err := utility(p, &truth, me)
	if err != nil {
		return err
	}
	r.could, r.lies, r.runs, r.value = true, 2*len(ratios)-1, 2*len(ratios), honest
	if truth.Log[me] {
		r.value = truth.Weights[2*me] + truth.Weights[2*me+1]
	}
	for k := range 2 * len(ratios) {
		if k < len(ratios) && ratios[k] == 1 {
			continue // the truth
		}
		lie := truth
		lie.Weights, lie.Log = slices.Clone(truth.Weights), slices.Clone(truth.Log)
		lie.Weights[2*me] *= ratios[k%len(ratios)]
		lie.Log[me] = truth.Log[me] != (k >= len(ratios))
		u, err := utility(&lie, &truth, me)
		if err != nil {
			return err
		}
		gain := max(u-honest, -lost*r.value)
		r.fixed = append(r.fixed, fixed{k, gain})
		if gain > r.gain {
			r.gain, r.best = gain, k
		}
	}
	return nil
}

// ratios are by how much one weight is told larger than it is.
var ratios = []float64{0.1, 0.25, 0.33, 0.5, 0.67, 0.8, 0.9, 0.97, 1, 1.03, 1.1, 1.25, 1.5, 2, 3, 4, 10}

// lost is how many times its value a job loses at most: a logarithmic utility without a
// share would lose more than any number.
const lost = 100

// utility is what the shares of a problem are worth to a job by its true weights.
func utility(told, truth *proportional.Problem, me int) (float64, error) {
	var s proportional.Solver
	out, err := s.Solve(told)
	if err != nil {
		return 0, err
	}
	return truth.Utility(me, out.Shares[me*2:me*2+2]), nil
}
