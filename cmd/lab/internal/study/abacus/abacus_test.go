package abacus

import (
	"math"
	"testing"

	"github.com/candor-grid/candor/auctioneer/mechanism/proportional"
	"github.com/candor-grid/candor/cmd/lab/internal/study"
	"github.com/candor-grid/candor/cmd/lab/internal/study/studytest"
)

// Amounts must agree with the paper to the dollar, because the paper prints whole dollars. Shares must agree to 0.001.
func TestExampleIsThePapers(t *testing.T) {
	r := studytest.Run(t, Example, study.Options{})
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

// A row has a job's sub-budgets. In a round, each job in turn repeats its step until its row no longer changes. Many
// such rounds must end at the same bids that the solver computes.
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

// A small study must confirm the statements of the paper's text about figures 6 and 7.
func TestAuctionBearsThePaperOut(t *testing.T) {
	r := studytest.Quick(t, Auction, 2)
	studytest.Same(t, r, "It takes no more", "With linear utilities", "With log utilities", "95 %")
	for _, m := range r.Numbers.(auctionNumbers)["users"]["linear"] {
		if m.Steps < m.Rounds || m.Exact < m.Steps || m.Passes > 6 {
			t.Errorf("%+v", m)
		}
	}
}

// A small study must confirm the paper's text about figure 11. Times depend on the machine.
func TestUtilitiesBearThePaperOut(t *testing.T) {
	r := studytest.Quick(t, Utilities, 2)
	studytest.Same(t, r, "The ratio", "The variance")
	if n := r.Numbers.(*utilitiesNumbers); len(n.Points) != points || len(n.ByJobs) != len(jobCounts) {
		t.Errorf("%d points, %d numbers of jobs", len(n.Points), len(n.ByJobs))
	}
}
