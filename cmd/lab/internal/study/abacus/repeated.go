package abacus

import (
	"math"

	"github.com/candor-grid/candor/auctioneer/mechanism/proportional"
)

// repeated runs rounds, as in the paper's figure 4. In each round, each job repeats the step of algorithm 2 until its
// row of sub-budgets no longer changes. Our solver makes only one step for each job. Both methods end at the same fixed
// point.
type repeated struct {
	p      *proportional.Problem
	bids   []float64 // n·m
	totals []float64 // m: sums of the bids' powers
	others []float64 // m, temporary
	next   []float64 // m, temporary
}

// settledAt is the largest change in a row, divided by the budget, that counts as no change.
const settledAt = 1e-9

// mostSteps is the largest number of steps of a row. If α is near 1, the steps may repeat without end.
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

// round makes each job settle: one job after another repeats its step until its sub-budgets hardly move. round returns
// the largest move of a sub-budget, as a part of its budget.
func (r *repeated) round() float64 {
	most := 0.0
	for i := range r.p.Budgets {
		most = max(most, r.settle(i))
	}
	return most
}

// settle repeats the step in which job i changes its bids (its row), until the row no longer changes. It returns how
// far the row has moved.
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

// step makes the row of job i proportional to (∂u/∂s)·s·(1−s), and returns how far the row has moved.
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
