package highestbid

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/auctioneer/mechanism/casefile/casetest"
)

// golden is a sample case. testdata/README.md says where the cases come from.
type golden struct {
	ID     string
	Nodes  int
	Jobs   []map[string]float64
	Expect map[string]*Outcome
}

func TestSampleCases(t *testing.T) {
	for _, c := range casetest.Cases[golden](t, "highest-bid.json") {
		for name, want := range c.Expect {
			t.Run(c.ID+"/"+name, func(t *testing.T) {
				algorithm, scheme, _ := strings.Cut(name, "/")
				price, _, _ := strings.Cut(scheme, "_")
				compare(t, casetest.Solve[*Outcome](t, SolveDocument, map[string]any{"nodes": c.Nodes, "jobs": c.Jobs,
					"algorithm": algorithm, "price": price, "capped": scheme == "kth_capped"}), want)
			})
		}
	}
}

// compare compares two outcomes: times exactly, amounts of money to 1e-12.
func compare(t *testing.T, got, want *Outcome) {
	t.Helper()
	for what, pair := range map[string][2][]float64{
		"start": {got.Start, want.Start}, "finish": {got.Finish, want.Finish}, "flow": {got.Flow, want.Flow},
	} {
		if !slices.Equal(pair[0], pair[1]) {
			t.Errorf("%s %v, want %v", what, pair[0], pair[1])
		}
	}
	for what, pair := range map[string][2][]float64{
		"payment": {got.Payment, want.Payment}, "bsd": {got.Slowdown, want.Slowdown}, "utility": {got.Utility, want.Utility},
		"sums": {{got.Revenue, got.Weighted, *got.Designer}, {want.Revenue, want.Weighted, *want.Designer}},
	} {
		if !slices.EqualFunc(pair[0], pair[1], func(a, b float64) bool { return near(a, b, 1e-12) }) {
			t.Errorf("%s %v, want %v", what, pair[0], pair[1])
		}
	}
	if !slices.Equal(got.Severe, want.Severe) {
		t.Errorf("ssj %v, want %v", got.Severe, want.Severe)
	}
	for i := range want.Intervals { // the cases have intervals for HB only
		if !slices.Equal(got.Intervals[i], want.Intervals[i]) {
			t.Errorf("intervals[%d] %v, want %v", i, got.Intervals[i], want.Intervals[i])
		}
	}
}

// near reports whether a and b differ by at most a relative tolerance.
func near(a, b, tolerance float64) bool {
	return a == b || math.Abs(a-b) <= tolerance*max(math.Abs(a), math.Abs(b))
}
