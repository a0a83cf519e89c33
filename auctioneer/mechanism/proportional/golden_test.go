package proportional

import (
	"math"
	"slices"
	"testing"

	"github.com/candor-grid/candor/auctioneer/mechanism/casefile/casetest"
)

// golden is a sample case. testdata/README.md says where the cases come from.
type golden struct {
	ID     string     `json:"id"`
	Alpha  float64    `json:"alpha"`
	Jobs   []inputJob `json:"jobs"`
	Expect struct {
		Subbudgets [][]float64 `json:"subbudgets"`
		Allocation [][]float64 `json:"allocation"`
		Utilities  []float64   `json:"utilities"`
		OneRound   *struct {
			Subbudgets [][]float64 `json:"subbudgets"`
			Allocation [][]float64 `json:"allocation"`
		} `json:"after_one_round_single_step"`
		Pool       []int   `json:"prolific_pool"`
		Outside    []int   `json:"non_prolific_pool"`
		Profit     float64 `json:"profit"`
		BestGroup  []int   `json:"best_group"`
		BestProfit float64 `json:"best_profit"`
	} `json:"expect"`
}

// ask solves a case as the command line does.
func ask(t *testing.T, c golden, rounds *int) *output {
	t.Helper()
	return casetest.Solve[*output](t, SolveDocument, struct {
		Alpha  float64    `json:"alpha"`
		Jobs   []inputJob `json:"jobs"`
		Rounds *int       `json:"rounds,omitempty"`
	}{c.Alpha, c.Jobs, rounds})
}

// near compares two matrices. In row i, a number may differ from the wanted one by tolerance(i) times the largest
// number of that row.
func near(t *testing.T, what string, got, want [][]float64, tolerance func(row int) float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d rows, want %d", what, len(got), len(want))
	}
	for i := range want {
		for j := range want[i] {
			if d := math.Abs(got[i][j] - want[i][j]); !(d <= tolerance(i)) {
				t.Errorf("%s[%d][%d] = %v, want %v", what, i, j, got[i][j], want[i][j])
			}
		}
	}
}

func TestSampleCases(t *testing.T) {
	for _, c := range casetest.Cases[golden](t, "proportional.json") {
		t.Run(c.ID, func(t *testing.T) {
			budget := func(i int) float64 { return 1e-11 * c.Jobs[i].Budget }
			share := func(int) float64 { return 1e-11 }
			out := ask(t, c, nil)
			near(t, "subbudgets", out.Subbudgets, c.Expect.Subbudgets, budget)
			near(t, "allocation", out.Allocation, c.Expect.Allocation, share)
			for i, want := range c.Expect.Utilities {
				if got := *out.Utilities[i]; math.Abs(got-want) > 1e-10 {
					t.Errorf("utility of job %d: %v, want %v", i, got, want)
				}
			}
			if c.Expect.OneRound != nil {
				one := 1
				out := ask(t, c, &one)
				near(t, "subbudgets after a round", out.Subbudgets, c.Expect.OneRound.Subbudgets, budget)
				near(t, "allocation after a round", out.Allocation, c.Expect.OneRound.Allocation, share)
			}
		})
	}
}

func TestSamplePools(t *testing.T) {
	for _, c := range casetest.Cases[golden](t, "proportional-slo.json") {
		t.Run(c.ID, func(t *testing.T) {
			out, want := ask(t, c, nil), &c.Expect
			if !slices.Equal(out.Prolific, want.Pool) || !slices.Equal(out.NonProlific, want.Outside) {
				t.Fatalf("pool %v, outside %v; want %v and %v", out.Prolific, out.NonProlific, want.Pool, want.Outside)
			}
			if out.Profit != want.Profit || out.BestProfit != want.BestProfit || !out.Complete {
				t.Errorf("profit %v, best %v, complete %v; want %v and %v", out.Profit, out.BestProfit, out.Complete, want.Profit, want.BestProfit)
			}
			if !slices.Equal(out.BestGroup, want.BestGroup) {
				t.Errorf("best group %v, want %v", out.BestGroup, want.BestGroup)
			}
			near(t, "subbudgets", out.Subbudgets, want.Subbudgets, func(i int) float64 { return 1e-11 * c.Jobs[want.Pool[i]].Budget })
			near(t, "allocation", out.Allocation, want.Allocation, func(int) float64 { return 1e-11 })
		})
	}
}
