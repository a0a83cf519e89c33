package abacus

import (
	"fmt"

	"github.com/candor-grid/candor/auctioneer/mechanism/proportional"
	"github.com/candor-grid/candor/cmd/internal/chart"
	"github.com/candor-grid/candor/cmd/study/internal/study"
)

const exampleName = "abacus-example"

// Example is the study of figures 2 to 4.
var Example = study.Study{
	Name:  exampleName,
	About: "figures 2-4: the auction of three jobs, its sub-budgets and its rounds",
	Run:   example,
}

// running is the paper's running example. Its text gives the first job, the
// third's utility, and what the first gets; the other numbers are those, in whole
// weights and tens of dollars, that fit it.
var running = &proportional.Problem{
	Alpha:   0.5,
	Log:     make([]bool, 3),
	Classes: 2,
	Budgets: []float64{100, 200, 160},
	Weights: []float64{3, 2, 3, 2, 2, 4},
}

// The paper's numbers of the first job.
var (
	paperShares     = []float64{0.310, 0.236}
	paperFirstRound = []float64{62, 38}
	paperSubbudgets = []float64{64, 36}
)

// exampleNumbers are by job and class; rounds are the first job's sub-budgets
// after each round of single steps.
type exampleNumbers struct {
	Shares     [][]float64 `json:"shares"`
	Subbudgets [][]float64 `json:"subbudgets"`
	Rounds     [][]float64 `json:"rounds"`
	Repeated   []float64   `json:"first_step_repeated"`
}

// shownRounds is how many rounds the figure shows.
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
		n.Rounds = append(n.Rounds, append([]float64(nil), r.Subbudgets[:running.Classes]...))
	}
	report := &study.Report{Numbers: n, Page: examplePage(&n)}
	p := chart.New("round", "sub-budget of the first job, $")
	for j, class := range []string{"map", "reduce"} {
		ours, paper := chart.Line{Name: class, Style: j}, chart.Line{Style: j, Points: true}
		for k, row := range n.Rounds {
			ours.Add(float64(k), row[j])
		}
		paper.Add(1, paperFirstRound[j])
		paper.Add(shownRounds, paperSubbudgets[j])
		if err := p.Add(ours, paper); err != nil {
			return nil, err
		}
	}
	report.Figures = []study.Figure{{Name: exampleName, Plot: p}}
	return report, nil
}

// rows cuts a matrix of the example into its rows.
func rows(v []float64) (out [][]float64) {
	for len(v) > 0 {
		out = append(out, append([]float64(nil), v[:running.Classes]...))
		v = v[running.Classes:]
	}
	return out
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
