package audit

import (
	"math"
	"math/rand/v2"

	"github.com/candor-grid/candor/auctioneer/mechanism/proportional"
	"github.com/candor-grid/candor/deploy/simulated/rules"
)

// mostPresent bounds how many jobs are looked at together: beyond, a single one
// hardly moves the others.
const mostPresent = 200

// weights lies about utility weights, in a market of proportional shares with
// two classes: one allocation among the job and those submitted next to it.
// Everybody's true weights are drawn by the job's number. The gain is of utility,
// as a part of the honest one.
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
	}
	me := s.at - from
	truth := *p
	honest, err := utility(p, &truth, me)
	if err != nil {
		return err
	}
	const angles = 19
	r.could, r.lies, r.runs, r.value = true, angles, angles+1, honest
	for k := range angles {
		lie := truth
		lie.Weights = append([]float64{}, truth.Weights...)
		angle := float64(k+1) / (angles + 1) * math.Pi / 2
		lie.Weights[2*me], lie.Weights[2*me+1] = math.Cos(angle), math.Sin(angle)
		u, err := utility(&lie, &truth, me)
		if err != nil {
			return err
		}
		if gain := u - honest; gain > r.gain {
			r.gain, r.best = gain, k
		}
	}
	return nil
}

// utility is what the shares of a problem are worth to a job by its true weights.
func utility(told, truth *proportional.Problem, me int) (float64, error) {
	var s proportional.Solver
	out, err := s.Solve(told)
	if err != nil {
		return 0, err
	}
	return truth.Utility(me, out.Shares[me*2:me*2+2]), nil
}
