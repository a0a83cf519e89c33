package audit

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/candor-grid/candor/auctioneer/mechanism/proportional"
	"github.com/candor-grid/candor/deploy/simulated/rules"
)

// mostPresent is the largest number of jobs that share the slots in one computed decision. With more jobs, a single job
// hardly affects the others.
const mostPresent = 80

// manyClasses is the number of classes, and also the number of jobs, for lies about many classes.
const manyClasses = 8

// weights measures lies about utility weights and about the form of the utility, in a market of proportional shares. It
// makes one allocation for the job and its neighbours in the log, together at most `most` jobs. The true weights and
// forms are random. For a linear utility, the gain of a lie is a fraction of the honest utility. A logarithmic utility
// has no such fraction; there the gain is the growth of the shares.
func (a *audit) weights(s sample, r *result, most, classes int) error {
	if a.Market.Mechanism != rules.Proportional {
		return nil
	}
	from := max(0, s.at-most/2)
	until := min(len(a.Bids), from+most)
	if until-from < 2 {
		return nil
	}
	p := &proportional.Problem{Alpha: *a.Market.Alpha, Classes: classes}
	for i := from; i < until; i++ {
		rng := rand.New(rand.NewPCG(a.Seed, uint64(a.Work.Jobs[i].Number)))
		p.Budgets = append(p.Budgets, a.Bids[i].Budget)
		for range classes {
			p.Weights = append(p.Weights, 0.1+rng.Float64())
		}
		p.Log = append(p.Log, rng.IntN(2) == 0)
	}
	me := s.at - from
	truth := *p
	honest, err := utility(p, &truth, me)
	if err != nil {
		return err
	}
	mine := truth.Weights[classes*me : classes*(me+1)]
	r.could, r.runs, r.value = true, 1, honest
	if truth.Log[me] {
		r.value = 0
		for _, w := range mine {
			r.value += w
		}
	}
	for k, told := range falseWeights(mine) {
		for form, other := range []bool{false, true} {
			if told == nil && !other {
				continue // this lie equals the truth
			}
			lie := truth
			lie.Weights, lie.Log = slices.Clone(truth.Weights), slices.Clone(truth.Log)
			lie.Log[me] = truth.Log[me] != other
			if told != nil {
				copy(lie.Weights[classes*me:], told)
			}
			u, err := utility(&lie, &truth, me)
			if err != nil {
				return err
			}
			gain := max(u-honest, -lost*r.value)
			r.lies, r.runs, r.fixed = r.lies+1, r.runs+1, append(r.fixed, fixed{2*k + form, gain})
			if gain > r.gain {
				r.gain, r.best = gain, 2*k+form
			}
		}
	}
	return nil
}

// falseWeights returns declarations of weights. The first declaration, nil, is the truth. In the other declarations,
// one weight is multiplied by a ratio, or all weights are raised to a power. With two classes only one weight changes,
// because only their ratio counts.
func falseWeights(mine []float64) [][]float64 {
	out := [][]float64{nil}
	one := mine
	if len(mine) == 2 {
		one = mine[:1]
	}
	for c := range one {
		for _, x := range ratios {
			told := slices.Clone(mine)
			told[c] *= x
			out = append(out, told)
		}
	}
	for _, x := range powers {
		told := slices.Clone(mine)
		for c := range told {
			told[c] = math.Pow(told[c], x)
		}
		out = append(out, told)
	}
	return out
}

// ratios are factors. A lie multiplies the true weight by one of them.
var ratios = []float64{0.1, 0.25, 0.33, 0.5, 0.67, 0.8, 0.9, 0.97, 1.03, 1.1, 1.25, 1.5, 2, 3, 4, 10}

// powers are exponents to which all weights are raised.
var powers = []float64{0.25, 0.5, 0.75, 0.9, 1.1, 1.5, 2, 3}

// lost is the largest loss of a job, as a multiple of its value. Without this limit, a logarithmic utility with a share
// of 0 would lose infinitely much.
const lost = 100

// utility returns the true worth, for one job, of the shares that the job gets if it declares false weights. The shares
// follow from the weights in `told`, and their worth follows from the weights in `truth`.
func utility(told, truth *proportional.Problem, me int) (float64, error) {
	var s proportional.Solver
	out, err := s.Solve(told)
	if err != nil {
		return 0, err
	}
	return truth.Utility(me, out.Shares[me*truth.Classes:(me+1)*truth.Classes]), nil
}
