package proportional

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/auctioneer/mechanism/casefile/casetest"
)

// permuted returns a copy of p in which job i has the position order[i].
func permuted(p *Problem, order []int) *Problem {
	q := &Problem{Alpha: p.Alpha, Classes: p.Classes, Budgets: make([]float64, len(order)),
		Log: make([]bool, len(order)), Weights: make([]float64, len(p.Weights))}
	for i, to := range order {
		q.Budgets[to], q.Log[to] = p.Budgets[i], p.log(i)
		copy(q.Weights[to*p.Classes:(to+1)*p.Classes], p.Weights[i*p.Classes:])
	}
	return q
}

func TestOrderOfJobsDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := contested(t, 6, 4, 0, 0.3, 0.5, 0.9)
		order := rapid.Permutation(casetest.Indices(len(p.Budgets))).Draw(t, "order")
		r, m := slices.Clone(solve(t, p).Shares), p.Classes
		q := solve(t, permuted(p, order)).Shares
		for i, to := range order {
			for j := range m {
				if math.Abs(r[i*m+j]-q[to*m+j]) > 1e-10 {
					t.Fatalf("job %d moved to %d: share %v becomes %v", i, to, r[i*m+j], q[to*m+j])
				}
			}
		}
	})
}

func TestUnitOfMoneyDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := contested(t, 6, 3, 0, 0.3, 0.5, 0.9)
		r := slices.Clone(solve(t, p).Shares)
		unit := math.Pow(10, float64(rapid.IntRange(-9, 9).Draw(t, "unit")))
		for i := range p.Budgets {
			p.Budgets[i] *= unit
		}
		for k, s := range solve(t, p).Shares {
			if math.Abs(s-r[k]) > 1e-10 {
				t.Fatalf("share %d: %v in one unit, %v in another", k, r[k], s)
			}
		}
	})
}

func TestAJobThatWantsNothingChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := contested(t, 6, 3, 0.3, 0.5, 0.9)
		r := slices.Clone(solve(t, p).Shares)
		p.Budgets, p.Log = append(p.Budgets, 1000), append(p.Log, false)
		p.Weights = append(p.Weights, make([]float64, p.Classes)...)
		for k, s := range solve(t, p).Shares {
			if want := append(r, make([]float64, p.Classes)...)[k]; math.Abs(s-want) > 1e-10 {
				t.Fatalf("share %d: %v without it, %v with it", k, want, s)
			}
		}
	})
}

func TestSharesOfAClassAddUpToOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := contested(t, 6, 12, 0, 0.02, 0.3, 0.5, 0.9, 1)
		for k := range p.Weights {
			if rapid.IntRange(0, 2).Draw(t, "zero") == 0 {
				p.Weights[k] = 0
			}
		}
		var s Solver
		r, err := s.Solve(p)
		if err != nil {
			t.Fatal(err)
		}
		for j := range p.Classes {
			sum := 0.0
			for k := j; k < len(r.Shares); k += p.Classes {
				if !(r.Shares[k] >= 0 && r.Shares[k] <= 1+1e-12) || !(r.Subbudgets[k] >= 0) {
					t.Fatalf("share %v, sub-budget %v: %+v", r.Shares[k], r.Subbudgets[k], p)
				}
				sum += r.Shares[k]
			}
			if math.Abs(sum-1) > 1e-9 {
				t.Fatalf("class %d: shares add up to %v", j, sum)
			}
		}
	})
}

func TestExtremes(t *testing.T) {
	none := solve(t, &Problem{Alpha: 0.5})
	if len(none.Shares) != 0 {
		t.Error("shares of nobody")
	}
	one := solve(t, &Problem{Alpha: 0.5, Classes: 2, Budgets: []float64{7}, Weights: []float64{1, 0}})
	if !slices.Equal(one.Shares, []float64{1, 1}) || !slices.Equal(one.Subbudgets, []float64{3.5, 3.5}) {
		t.Errorf("one job: %+v", one)
	}
	apart := solve(t, &Problem{Alpha: 0.5, Classes: 2, Budgets: []float64{1e12, 1e-6}, Weights: []float64{3, 2, 2, 3}})
	for k, s := range apart.Shares[2:] {
		if !(s > 0 && s < 1e-8) {
			t.Errorf("share %d of the poorest is %v", k, s)
		}
	}
	p := workload(1_000_000, 4, 0.5, 0.5)
	r := solve(t, p)
	sum := 0.0
	for k := 0; k < len(r.Shares); k += 4 {
		sum += r.Shares[k]
	}
	if math.Abs(sum-1) > 1e-9 {
		t.Errorf("a million shares add up to %v", sum)
	}
}

func TestSolvingAgainTakesNoMemory(t *testing.T) {
	p := workload(500, 4, 0.5, 0.5)
	var s Solver
	if _, err := s.Solve(p); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(5, func() { s.Solve(p) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestWarmStartIsTheSameInFewerPasses(t *testing.T) {
	p := workload(1000, 4, 0.5, 0.5)
	var s Solver
	if _, err := s.Solve(p); err != nil {
		t.Fatal(err)
	}
	p.Budgets[3] *= 1.5
	cold := solve(t, p)
	warm, err := s.Resolve(p)
	if err != nil || !warm.Converged || warm.Rounds >= cold.Rounds {
		t.Fatalf("%d passes warm, %d cold, error %v", warm.Rounds, cold.Rounds, err)
	}
	for k, b := range cold.Subbudgets {
		if math.Abs(warm.Subbudgets[k]-b) > 1e-10*p.Budgets[k/4] {
			t.Fatalf("sub-budget %d: %v warm, %v cold", k, warm.Subbudgets[k], b)
		}
	}
}

func TestBadDocuments(t *testing.T) {
	const job = `{"budget":1,"kind":"linear","weights":[1,2]}`
	casetest.Refuses(t, SolveDocument, map[string]string{
		``:                                      "ends in the middle",
		`{"alpha":0.5,"jobs":[` + job + `]} {}`: "text follows the end of the document",
		`{"alpha":1.5,"jobs":[` + job + `]}`:    "alpha: must be from 0 to 1",
		`{"alpha":-0.1,"jobs":[]}`:              "alpha: must be from 0 to 1",
		`{"alpha":NaN,"jobs":[]}`:               "alpha: JSON is malformed",
		`{"jobs":[]}`:                           "alpha: the key is missing",
		`{"alpha":0.5,"alfa":1,"jobs":[]}`:      "alfa: is no field",
		`{"alpha":0.5,"alpha":1,"jobs":[]}`:     "alpha: is given twice",
		`{"alpha":0.5,"rounds":-1,"jobs":[]}`:   "rounds: must not be negative",
		`{"alpha":0.5,"jobs":[` + job + `,{"budget":-1,"kind":"linear","weights":[1,2]}]}`: "jobs[1].budget: must be a positive",
		`{"alpha":0.5,"jobs":[{"budget":0,"kind":"linear","weights":[1,2]}]}`:              "jobs[0].budget: must be a positive",
		`{"alpha":0.5,"jobs":[{"budget":1e999,"kind":"linear","weights":[1,2]}]}`:          "jobs[0].budget: 1e999 does not fit",
		`{"alpha":0.5,"jobs":[{"budget":1e99,"kind":"linear","weights":[1,2]}]}`:           "jobs[0].budget: 1e+99 is outside",
		`{"alpha":0.5,"jobs":[{"budget":1,"kind":"cubic","weights":[1,2]}]}`:               "jobs[0].kind: must be",
		`{"alpha":0.5,"jobs":[{"budget":1,"kind":"log","weights":[0,0]}]}`:                 "jobs[0].weights: are all zero",
		`{"alpha":0.5,"jobs":[` + job + `,{"budget":1,"kind":"log","weights":[1]}]}`:       "jobs[1].weights: must have a weight for each",
		`{"alpha":0.5,"jobs":[{"budget":1,"kind":"log","weights":[1,-2]}]}`:                "jobs[0].weights[1]: must be 0 or a positive",
		`{"alpha":0.5,"jobs":[{"budget":1,"kind":"log","weights":[1,2],"sla":1}]}`:         "jobs[0].sla: is no field",
	})
}

func TestNoJobsIsAnEmptyOutcome(t *testing.T) {
	out, err := SolveDocument([]byte(`{"alpha":0.5,"jobs":[]}`))
	if err != nil || !out.(*output).Converged || out.(*output).Allocation == nil {
		t.Fatalf("%+v, %v", out, err)
	}
}

func FuzzSolveDocument(f *testing.F) {
	casetest.Fuzz(f, SolveDocument, 300, func(t *testing.T, out *output) {
		for _, row := range out.Allocation {
			for _, s := range row {
				if !(s >= 0 && s <= 1+1e-9) {
					t.Fatalf("share %v", s)
				}
			}
		}
	},
		`{"alpha":0.5,"jobs":[{"budget":1,"kind":"linear","weights":[1,2],"slo":0.1},{"budget":2,"kind":"log","weights":[0,2]}]}`,
		`{"alpha":1,"rounds":3,"jobs":[{"budget":1e12,"kind":"linear","weights":[1]},{"budget":1e-6,"kind":"log","weights":[4]}]}`)
}
