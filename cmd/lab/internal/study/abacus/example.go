package abacus

import (
	"fmt"
	"slices"

	"github.com/candor-grid/candor/auctioneer/mechanism/proportional"
	"github.com/candor-grid/candor/cmd/lab/internal/study"
)

const exampleName = "abacus-example"

// Example is the study of figures 2 to 4 of the Abacus paper.
var Example = study.Study{
	Name:  exampleName,
	About: "figures 2-4: the auction of three jobs, its sub-budgets and its rounds",
	Run:   example,
}

// The variable running has the paper's example. The paper's text describes the first job, the third job's utility, and
// the first job's result. The other numbers are our choice, and give this result.
var running = &proportional.Problem{
	Alpha:   0.5,
	Log:     make([]bool, 3),
	Classes: 2,
	Budgets: []float64{100, 200, 160},
	Weights: []float64{3, 2, 3, 2, 2, 4},
}

// These are the numbers that the paper gives for the first job.
var (
	paperShares     = []float64{0.310, 0.236}
	paperFirstRound = []float64{62, 38}
	paperSubbudgets = []float64{64, 36}
)

// exampleNumbers are the results of the paper's example, by job and class. Rounds has the first job's sub-budgets after
// each round. In a round, each job changes its bids by one step of the paper's method.
type exampleNumbers struct {
	Shares     [][]float64 `json:"shares"`
	Subbudgets [][]float64 `json:"subbudgets"`
	Rounds     [][]float64 `json:"rounds"`
	Repeated   []float64   `json:"first_step_repeated"`
}

const shownRounds = 8

func example(study.Options) (*study.Report, error) {
	var s proportional.Solver
	r, err := s.Solve(running)
	if err != nil {
		return nil, err
	}
	first := newRepeated(running)
	first.settle(0)
	settled := first.bids[:running.Classes]
	n := exampleNumbers{Shares: rows(r.Shares), Subbudgets: rows(r.Subbudgets), Repeated: settled}
	for k := range shownRounds + 1 {
		if r, err = s.Rounds(running, k); err != nil {
			return nil, err
		}
		n.Rounds = append(n.Rounds, slices.Clone(r.Subbudgets[:running.Classes]))
	}
	p := study.NewFigure(exampleName, "round", "sub-budget of the first job, $")
	for j, class := range []string{"map", "reduce"} {
		var at, ours []float64
		for k, row := range n.Rounds {
			at, ours = append(at, float64(k)), append(ours, row[j])
		}
		p.Line(class, j, at, ours)
		p.Points("", j, []float64{1, shownRounds}, []float64{paperFirstRound[j], paperSubbudgets[j]})
	}
	return &study.Report{Numbers: n, Page: examplePage(&n), Figures: []*study.Figure{p}}, nil
}

// rows copies a matrix of the example and returns its rows. The solver changes the matrix later.
func rows(v []float64) [][]float64 {
	return slices.Collect(slices.Chunk(slices.Clone(v), running.Classes))
}

func examplePage(n *exampleNumbers) *study.Page {
	p := study.NewPage("An auction of three jobs (Abacus, figures 2 to 4)")
	p.Text("Budgets of $100, $200 and $160, utilities 3x + 2y, 3x + 2y and 2x + 4y, α = 0.5. The paper's text gives the first job, the third's utility " +
		"and the first's outcome; the rest is chosen to fit them.")
	p.Table([]string{"first job", "map: ours", "paper", "reduce: ours", "paper"}, [][]string{
		beside("share", "%.3f", n.Shares[0], paperShares),
		beside("sub-budget, $", "%.1f", n.Subbudgets[0], paperSubbudgets),
		beside("after a first step, repeated until it settles, $", "%.1f", n.Repeated, paperFirstRound),
		beside("after a first round of single steps, $", "%.1f", n.Rounds[1], paperFirstRound),
	})
	p.Figure(exampleName, "Sub-budgets of the first job, round by round: lines ours, points the paper's after its first round and at the end.")
	p.Section("Same, better, different")
	p.Text("- Same: sub-budgets in whole dollars, and the shares to 0.001; the paper works its shares out from the whole dollars. The third job gets more " +
		"of the reduce slots than the second, which pays more.")
	p.Text("- Same within a dollar: the first step, if the row is repeated until it settles. Applied once in a round, as ours is, it is another, but both end " +
		"at the same point.")
	return p
}

func beside(what, format string, ours, paper []float64) []string {
	row := []string{what}
	for j := range ours {
		row = append(row, fmt.Sprintf(format, ours[j]), fmt.Sprintf("%v", paper[j]))
	}
	return row
}
