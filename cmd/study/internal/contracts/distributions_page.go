package contracts

import (
	"fmt"
	"math"

	"github.com/candor-grid/candor/cmd/study/internal/study"
)

// drawnPoints are how many points of a distribution the figure has.
const drawnPoints = 200

func (n *loaded) figure() *study.Figure {
	p := study.NewFigure(n.named(), "utility, credits", "part of the jobs with at most as much")
	p.Left = true
	for k := range n.Sets {
		var x, y []float64
		u := n.Sets[k].utilities
		for i := range drawnPoints + 1 {
			at := i * (len(u) - 1) / drawnPoints
			x, y = append(x, u[at]), append(y, float64(at+1)/float64(len(u)))
		}
		p.Line(n.Sets[k].Training, k, x, y)
	}
	return p
}

func (n *loaded) named() string { return fmt.Sprintf("%s-%.0f", distributionsName, 100*n.Load) }

func distributionsPage(numbers []loaded, s size) *study.Page {
	p := study.NewPage("What estimates of types leave the users (Huang et al., figure 6)")
	p.Text("%d jobs, %d times with other draws, arriving by a Poisson process every %d s on average; their work is exponential. The paper's jobs ran on its cluster, "+
		"whose load it does not report. Every user takes the contract of its own type; the price is scaled by the value received. The untruthful types are half the "+
		"true ones. The same jobs come whatever the training set.", s.jobs, s.repetitions, arrivalSeconds)
	head := []string{"training set", "mean utility", "mean paid"}
	for _, level := range levels {
		head = append(head, fmt.Sprintf("%.0f %%", 100*level))
	}
	for k := range numbers {
		n := &numbers[k]
		p.Section(fmt.Sprintf("Load %.2f", n.Load))
		p.Table(head, n.rows())
		p.Figure(n.named(), "Distribution of the utilities by training set (figure 6)")
		n.verdict(p)
	}
	p.Section("Same, better, different")
	p.Text("Each section above ends with the paper's sentences and what is so at its load. The paper draws each training set once and its text gives no numbers. The " +
		"untruthful types are more urgent than the true ones. The tables show what users paid beside what they were left with. " +
		"Sets of 20 and of 500 truthful samples are told apart only where the interval excludes 0.")
	return p
}

func (n *loaded) rows() (rows [][]string) {
	for _, d := range n.Sets {
		row := []string{d.Training, d.Mean.String(), fmt.Sprintf("%.3f", d.Price)}
		rows = append(rows, append(row, study.Cells("%.2f", d.Quantiles...)...))
	}
	return rows
}

// verdict compares means within repetitions, which have the same jobs.
func (n *loaded) verdict(p *study.Page) {
	over := func(a, b int) study.Estimate {
		var gaps []float64
		for k := range n.Sets[a].Means {
			gaps = append(gaps, n.Sets[a].Means[k]-n.Sets[b].Means[k])
		}
		return study.Estimated(gaps)
	}
	few, lies, worse := over(0, 1), over(0, 2), over(2, 1)
	for _, c := range []struct {
		gap   study.Estimate
		paper string
	}{
		{few, "500 truthful samples leave users more than 20."},
		{lies, "500 truthful samples leave users more than 500 untruthful ones."},
		{worse, "500 untruthful samples leave users more than 20 truthful ones."},
	} {
		if math.Abs(c.gap.Mean) <= c.gap.Half {
			p.Text("- Open: %s Ours: %s credits a job, too little to tell (95 %% interval over repetitions).", c.paper, c.gap)
			continue
		}
		p.Claim(c.gap.Mean > 0, c.paper, "%s credits a job, with a 95 %% interval over repetitions", c.gap)
	}
}
