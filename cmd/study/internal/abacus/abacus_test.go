package abacus

import (
	"math"
	"strings"
	"testing"

	"github.com/candor-grid/candor/auctioneer/mechanism/proportional"
	"github.com/candor-grid/candor/cmd/study/internal/study"
)

// TestExampleIsThePapers: to the whole dollar, and shares to the 0.001 that
// whole dollars leave open.
func TestExampleIsThePapers(t *testing.T) {
	r, err := Example.Run(study.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Write(t.TempDir(), Example.Name); err != nil {
		t.Fatal(err)
	}
	n := r.Numbers.(exampleNumbers)
	for j := range 2 {
		if math.Abs(n.Subbudgets[0][j]-paperSubbudgets[j]) > 0.5 || math.Abs(n.Shares[0][j]-paperShares[j]) > 0.001 {
			t.Errorf("class %d: sub-budget %v, share %v; want %v and %v", j, n.Subbudgets[0][j], n.Shares[0][j], paperSubbudgets[j], paperShares[j])
		}
		if math.Abs(n.Repeated[j]-paperFirstRound[j]) > 1 {
			t.Errorf("class %d: first step %v, want %v", j, n.Repeated[j], paperFirstRound[j])
		}
	}
	if !(n.Shares[2][1] > n.Shares[1][1]) {
		t.Error("the third job gets no more of the reduce slots than the second")
	}
}

// TestRoundsOfSettledRowsEndAtTheFixedPoint, the solver's.
func TestRoundsOfSettledRowsEndAtTheFixedPoint(t *testing.T) {
	r := newRepeated(running)
	for range 100 {
		r.round()
	}
	var s proportional.Solver
	want, err := s.Solve(running)
	if err != nil {
		t.Fatal(err)
	}
	for k, b := range r.bids {
		if math.Abs(b-want.Subbudgets[k]) > 1e-5 {
			t.Errorf("sub-budget %d is %v, want %v", k, b, want.Subbudgets[k])
		}
	}
}

// TestAuctionBearsThePaperOut in what its text says of figures 6 and 7.
func TestAuctionBearsThePaperOut(t *testing.T) {
	r, err := Auction.Run(study.Options{Seed: 2, Quick: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Write(t.TempDir(), Auction.Name); err != nil {
		t.Fatal(err)
	}
	for _, same := range []string{"Same: It takes no more", "Same: With linear utilities", "Same: With log utilities", "Same: 95 %"} {
		if !strings.Contains(r.Page.String(), same) {
			t.Errorf("the page does not say %q", same)
		}
	}
	for _, m := range r.Numbers.(auctionNumbers)["users"]["linear"] {
		if m.Steps < m.Rounds || m.Exact < m.Steps || m.Passes > 6 {
			t.Errorf("%+v", m)
		}
	}
}

// TestUtilitiesBearThePaperOut in what its text says of figure 11; its times are
// the machine's.
func TestUtilitiesBearThePaperOut(t *testing.T) {
	r, err := Utilities.Run(study.Options{Seed: 2, Quick: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Write(t.TempDir(), Utilities.Name); err != nil {
		t.Fatal(err)
	}
	for _, same := range []string{"Same: The ratio", "Same: The variance"} {
		if !strings.Contains(r.Page.String(), same) {
			t.Errorf("the page does not say %q", same)
		}
	}
	if n := r.Numbers.(*utilitiesNumbers); len(n.Points) != points || len(n.ByJobs) != len(jobCounts) {
		t.Errorf("%d points, %d numbers of jobs", len(n.Points), len(n.ByJobs))
	}
}
