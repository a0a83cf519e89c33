package proportional

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// slowFixedPoint solves the auction in the simplest way. In each round, algorithm 2 of the paper gives a new row for
// each job, and the job's row moves a little towards the new row. It ends when no row changes. If s is a job's share of
// a class, 1−s is computed as the sum of the other jobs' shares. Classes that only one job wants are ignored. A round
// takes O(n²·m), and there are hundreds to thousands of rounds.
func slowFixedPoint(p *Problem, theta float64) ([]float64, bool) {
	m := p.Classes
	b := make([]float64, len(p.Weights))
	for i, budget := range p.Budgets {
		for j := range m {
			b[i*m+j] = budget / float64(m)
		}
	}
	for range 20_000 {
		move := 0.0
		for i, budget := range p.Budgets {
			next := slowRow(p, b, i)
			for j := range m {
				d := next[j] - b[i*m+j]
				move = max(move, math.Abs(d)/budget)
				b[i*m+j] += theta * d
			}
		}
		if move < 1e-13 {
			return b, true
		}
	}
	return b, false
}

// slowRow returns the new bids of job i after one step of the paper's algorithm 2. The bid in a class is proportional
// to (∂u/∂s)·s·(1−s), where s is the job's share of the class and u is its utility. The bids add up to the budget.
func slowRow(p *Problem, b []float64, i int) []float64 {
	m := p.Classes
	row, sum := make([]float64, m), 0.0
	for j := range m {
		own, others := math.Pow(b[i*m+j], p.Alpha), 0.0
		for l := range p.Budgets {
			if l != i {
				others += math.Pow(b[l*m+j], p.Alpha)
			}
		}
		row[j] = p.Weights[i*m+j] * others / (own + others)
		if !p.log(i) {
			row[j] *= own / (own + others)
		}
		sum += row[j]
	}
	for j := range row {
		row[j] *= p.Budgets[i] / sum
	}
	return row
}

// contested draws auctions in which every job wants every class, with budgets up to some orders of magnitude apart.
func contested(t *rapid.T, most int, orders float64, alphas ...float64) *Problem {
	p := &Problem{
		Alpha:   rapid.SampledFrom(alphas).Draw(t, "alpha"),
		Classes: rapid.IntRange(1, 4).Draw(t, "m"),
	}
	n := rapid.IntRange(2, most).Draw(t, "n")
	for range n {
		p.Budgets = append(p.Budgets, 100*math.Pow(10, orders*rapid.Float64Range(-0.5, 0.5).Draw(t, "orders")))
		p.Log = append(p.Log, rapid.Bool().Draw(t, "log"))
		for range p.Classes {
			p.Weights = append(p.Weights, rapid.Float64Range(0.1, 4).Draw(t, "w"))
		}
	}
	return p
}

func solve(t interface{ Fatalf(string, ...any) }, p *Problem) *Result {
	var s Solver
	r, err := s.Solve(p)
	if err != nil {
		t.Fatalf("%v", err)
	}
	if !r.Converged {
		t.Fatalf("did not converge in %d passes: %+v", r.Rounds, p)
	}
	return r
}

func TestSolveIsTheSlowFixedPoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := contested(t, 5, 3, 0, 0.03, 0.2, 0.5, 0.5, 0.7, 0.8)
		slow, ok := slowFixedPoint(p, 0.5)
		if !ok {
			t.Fatalf("the slow one does not end: %+v", p)
		}
		r := solve(t, p)
		for k, want := range slow {
			if d := math.Abs(r.Subbudgets[k]-want) / p.Budgets[k/p.Classes]; d > 1e-10 {
				t.Fatalf("sub-budget %d: %v, want %v (%g of the budget); %+v", k, r.Subbudgets[k], want, d, p)
			}
		}
	})
}

// A row has the bids of one job. Each row must be the best answer to the other rows: if all jobs answered once more, no
// row would change. This must hold at any alpha, and for budgets that differ by up to 18 orders of magnitude.
func TestEveryRowIsABestAnswer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spread, alphas := rapid.SampledFrom([]float64{1, 5, 18}).Draw(t, "spread"), []float64{0.01, 0.1, 0.3, 0.5, 0.5, 0.6, 0.75, 0.9, 0.95, 0.99}
		if spread < 8 { // with a larger spread, float64 has too few digits for the split at alpha = 1; see doc.go
			alphas = append(alphas, 1, 1)
		}
		p := contested(t, 8, spread, alphas...)
		r := solve(t, p)
		for i, budget := range p.Budgets {
			next := slowRow(p, r.Subbudgets, i)
			for j, b := range r.Subbudgets[i*p.Classes : (i+1)*p.Classes] {
				if d := math.Abs(next[j]-b) / budget; !(d < 1e-9) {
					t.Fatalf("job %d class %d: %v moves on to %v (%g); %+v", i, j, b, next[j], d, p)
				}
			}
		}
	})
}
