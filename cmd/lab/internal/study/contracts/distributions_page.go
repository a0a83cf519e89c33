package contracts

import (
	"fmt"
	"math"

	"github.com/candor-grid/candor/cmd/lab/internal/study"
)

const drawnPoints = 200

func (n *loaded) figure() *study.Figure {
	p := study.NewFigure(n.named(), "utility, credits", "part of the jobs with at most as much")
	for k := range trainings {
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
	p.Text("The last three rows of each table are controls. Without surrogates every job is scheduled as its own type and nobody pays. If it is the urgency of the " +
		"untruthful types that helps, and not the menu, then types that are less urgent must do harm, and scheduling each job as its own type with its times " +
		"halved must help without any surrogates.")
	return p
}

func (n *loaded) rows() (rows [][]string) {
	for _, d := range n.Sets {
		row := []string{d.Training, d.Mean.String(), d.Paid.String()}
		rows = append(rows, append(row, study.Cells("%.2f", d.Quantiles...)...))
	}
	return rows
}

// causes explains why the results differ between samples from truthful users and samples from untruthful users.
func (n *loaded) causes(p *study.Page, gap func(a, b int, of func(*distribution) []float64) study.Estimate) {
	paid := func(d *distribution) []float64 { return d.Payments }
	received := func(d *distribution) (out []float64) {
		for k := range d.Means {
			out = append(out, d.Means[k]+d.Payments[k])
		}
		return out
	}
	p.Text("- Cause: untruthful less truthful training changes the value that users receive by %s and their payments by %s. Types that are less urgent change the "+
		"value by %s and the payments by %s. Without surrogates users receive %s more than with 500 truthful samples; to halve all times in the eyes of the scheduler changes that by %s, with nothing else changed.",
		gap(2, 0, received), gap(2, 0, paid), gap(3, 0, received), gap(3, 0, paid), gap(4, 0, received), gap(5, 4, received))
}

// verdict compares pairs of training sets. In one repetition, all training sets have the same jobs. So verdict computes
// the difference of each pair in each repetition, and then the mean of these differences.
func (n *loaded) verdict(p *study.Page) {
	gap := func(a, b int, of func(*distribution) []float64) study.Estimate {
		x, y := of(&n.Sets[a]), of(&n.Sets[b])
		var gaps []float64
		for k := range x {
			gaps = append(gaps, x[k]-y[k])
		}
		return study.Estimated(gaps)
	}
	over := func(a, b int) study.Estimate { return gap(a, b, func(d *distribution) []float64 { return d.Means }) }
	defer n.causes(p, gap)
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
