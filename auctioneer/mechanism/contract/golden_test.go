package contract

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/candor-grid/candor/auctioneer/mechanism/casefile/casetest"
)

// golden is a sample case. testdata/README.md says where the cases come from.
type golden struct {
	ID      string      `json:"id"`
	M       int         `json:"M"`
	Weights [][]float64 `json:"weights"`
	Expect  struct {
		MaxWeight  float64   `json:"max_weight"`
		Surrogates []float64 `json:"price_by_surrogate"`
		Unique     bool      `json:"unique"`
		Matching   []int     `json:"matching"`
		Exact      bool      `json:"exact"`
		Replicas   []float64 `json:"price_by_replica"`
		Utility    []float64 `json:"utility_by_replica"`
	} `json:"expect"`
}

func sampleCases(t *testing.T) (matchings []golden, exPost []map[string]float64) {
	t.Helper()
	var file struct {
		Cases  []golden
		ExPost []map[string]float64 `json:"ex_post"`
	}
	casetest.Read(t, "contract.json", &file)
	if len(file.Cases) == 0 || len(file.ExPost) == 0 {
		t.Fatalf("%d matchings and %d adjustments", len(file.Cases), len(file.ExPost))
	}
	return file.Cases, file.ExPost
}

// near checks that numbers differ by at most a tolerance.
func near(t *testing.T, what string, got, want []float64, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	for i := range want {
		if !(math.Abs(got[i]-want[i]) <= tolerance) {
			t.Errorf("%s[%d] = %v, want %v", what, i, got[i], want[i])
		}
	}
}

func TestSampleMatchings(t *testing.T) {
	cases, _ := sampleCases(t)
	for _, c := range cases {
		t.Run(c.ID, func(t *testing.T) {
			out := casetest.Solve[*output](t, SolveDocument, map[string]any{"M": c.M, "weights": c.Weights})
			tolerance := 1e-9 * c.Expect.MaxWeight
			if c.Expect.Exact {
				tolerance = 0
			}
			near(t, "max_weight", []float64{out.MaxWeight}, []float64{c.Expect.MaxWeight}, tolerance)
			near(t, "price_by_surrogate", out.Surrogates, c.Expect.Surrogates, tolerance)
			if out.Unique != c.Expect.Unique {
				t.Errorf("unique: %v", out.Unique)
			}
			if c.Expect.Unique {
				if !slices.Equal(out.Matching, c.Expect.Matching) {
					t.Errorf("matching %v, want %v", out.Matching, c.Expect.Matching)
				}
				near(t, "price_by_replica", out.Replicas, c.Expect.Replicas, tolerance)
				near(t, "utility_by_replica", out.Utility, c.Expect.Utility, tolerance)
			}
		})
	}
}

func TestSampleAdjustments(t *testing.T) {
	_, cases := sampleCases(t)
	var list []map[string]float64
	var always, late []float64
	for i, c := range cases {
		one := map[string]float64{"price": c["price"], "v_expected": c["v_expected"], "v_actual": c["v_actual"]}
		out := casetest.Solve[*adjusted](t, SolveDocument, map[string]any{"ex_post": one})
		what := fmt.Sprintf("ex_post[%d]", i)
		near(t, what, []float64{out.Adjusted, out.Always}, []float64{c["adjusted_eq2"], c["adjusted_eq2"]}, 0)
		timed := map[string]float64{"x_expected": c["x_expected"], "x_actual": c["x_actual"]}
		maps.Copy(timed, one)
		out = casetest.Solve[*adjusted](t, SolveDocument, map[string]any{"ex_post": timed, "late_only": true})
		near(t, what, []float64{out.Adjusted, out.LateOnly}, []float64{c["adjusted_late_only"], c["adjusted_late_only"]}, 0)
		list, always, late = append(list, timed), append(always, c["adjusted_eq2"]), append(late, c["adjusted_late_only"])
	}
	out := casetest.Solve[*adjustedList](t, SolveDocument, map[string]any{"ex_post": list})
	near(t, "adjusted", out.Adjusted, always, 0)
	near(t, "adjusted_late_only", out.LateOnly, late, 0)
}
