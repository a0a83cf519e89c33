package abacus

import (
	"math"

	"github.com/candor-grid/candor/auctioneer/mechanism/proportional"
)

// repeated computes the fixed point in rounds, as in the paper's figure 4. In each round, each job repeats a step of
// algorithm 2 until its own sub-budgets no longer change. The solver of package proportional makes only one step for
// each job in a round. Both methods end at the same fixed point.
type repeated struct {
	p      *proportional.Problem
	bids   []float64 // n·m elements
	totals []float64 // m: sums of the bids' powers
	others []float64 // m elements, temporary
	next   []float64 // m elements, temporary
}

// A job's row has its sub-budgets. If no sub-budget in a row changes by more than settledAt times the job's budget, the
// row counts as unchanged.
const settledAt = 1e-9

// mostSteps is the maximum number of steps that one job makes in a round. If α is near 1, a job may otherwise step
// between the same sub-budgets for ever.
const mostSteps = 2000

func newRepeated(p *proportional.Problem) *repeated {
	m := p.Classes
	r := &repeated{p: p, totals: make([]float64, m), others: make([]float64, m), next: make([]float64, m)}
	for _, b := range p.Budgets {
		for j := range m {
			r.bids = append(r.bids, b/float64(m))
			r.totals[j] += math.Pow(b/float64(m), p.Alpha)
		}
	}
	return r
}

// In a round, one job after another changes its sub-budgets in many small steps, until they hardly move. round returns
// the largest change of a sub-budget in this round, as a part of the job's budget.
func (r *repeated) round() float64 {
	most := 0.0
	for i := range r.p.Budgets {
		most = max(most, r.settle(i))
	}
	return most
}

// A job's row in r.bids has its bid for each class. settle improves the bids of job i, step by step, until its row no
// longer changes. It returns the largest change of a bid in the row.
func (r *repeated) settle(i int) float64 {
	m := r.p.Classes
	row := r.bids[i*m : (i+1)*m]
	before := append([]float64(nil), row...)
	for j, b := range row {
		r.others[j] = r.totals[j] - math.Pow(b, r.p.Alpha)
	}
	for k := 0; k < mostSteps && r.step(i, row) > settledAt; k++ {
	}
	most := 0.0
	for j, b := range row {
		r.totals[j] = r.others[j] + math.Pow(b, r.p.Alpha)
		most = max(most, math.Abs(b-before[j]))
	}
	return most / r.p.Budgets[i]
}

// A step of algorithm 2 makes each sub-budget of job i proportional to (∂u/∂s)·s·(1−s). Here u is the job's utility,
// and s its share of the class. The method step changes `row` in this way. It returns the largest change of a
// sub-budget.
func (r *repeated) step(i int, row []float64) float64 {
	sum, most, budget := 0.0, 0.0, r.p.Budgets[i]
	for j, b := range row {
		own := math.Pow(b, r.p.Alpha)
		total := own + r.others[j]
		r.next[j] = r.p.Weights[i*len(row)+j] * r.others[j] / total
		if !r.p.Log[i] {
			r.next[j] *= own / total
		}
		sum += r.next[j]
	}
	for j := range row {
		b := r.next[j] * budget / sum
		most = max(most, math.Abs(b-row[j]))
		row[j] = b
	}
	return most / budget
}
