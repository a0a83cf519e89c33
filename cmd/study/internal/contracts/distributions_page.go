package contracts

import (
	"fmt"

	"github.com/candor-grid/candor/cmd/study/internal/study"
)

// drawnPoints are how many points of a distribution the figure has.
const drawnPoints = 200

func (n *distributionsNumbers) figure() (study.Figure, error) {
	p := study.NewPlot("", "utility, credits", "part of the jobs with at most as much")
	p.Legend.Left = true
	for k := range n.Sets {
		line, u := study.Line{Name: n.Sets[k].Training, Style: k}, n.Sets[k].utilities
		for i := range drawnPoints + 1 {
			at := i * (len(u) - 1) / drawnPoints
			line.Add(u[at], float64(at+1)/float64(len(u)))
		}
		if err := study.AddLines(p, line); err != nil {
			return study.Figure{}, err
		}
	}
	return study.Figure{Name: distributionsName, Plot: p}, nil
}

func (n *distributionsNumbers) page(s size) *study.Page {
	p := study.NewPage("What estimates of types leave the users (Huang et al., figure 6)")
	p.Text("%d jobs, %d times with other draws, arriving by a Poisson process every %d s on average; their work is exponential and takes %.0f %% of the server's time. "+
		"Every user takes the contract of its own type; the price is scaled by the value received. The untruthful types are half the true ones. The same jobs come "+
		"whatever the training set.", s.jobs, s.repetitions, arrivalSeconds, 100*load)
	head := []string{"training set", "mean utility", "mean price agreed"}
	for _, level := range n.Levels {
		head = append(head, fmt.Sprintf("%.0f %%", 100*level))
	}
	var rows [][]string
	for _, d := range n.Sets {
		row := []string{d.Training, d.Mean.String(), fmt.Sprintf("%.3f", d.Price)}
		for _, q := range d.Quantiles {
			row = append(row, fmt.Sprintf("%.2f", q))
		}
		rows = append(rows, row)
	}
	p.Table(head, rows)
	p.Figure(distributionsName, "Distribution of the utilities by training set (figure 6)")
	n.verdict(p)
	return p
}

// verdict compares means within repetitions, which have the same jobs.
func (n *distributionsNumbers) verdict(p *study.Page) {
	over := func(a, b int) study.Estimate {
		var gaps []float64
		for k := range n.Sets[a].Means {
			gaps = append(gaps, n.Sets[a].Means[k]-n.Sets[b].Means[k])
		}
		return study.Estimated(gaps)
	}
	few, lies, worse := over(0, 1), over(0, 2), over(2, 1)
	p.Section("Same, better, different")
	const gap = "%s credits a job, with a 95 %% interval over repetitions"
	p.Claim(few.Mean > few.Half, "500 truthful samples leave users more than 20.", gap, few)
	p.Claim(lies.Mean > lies.Half, "500 truthful samples leave users more than 500 untruthful ones.", gap, lies)
	p.Claim(worse.Mean > worse.Half, "500 untruthful samples leave users more than 20 truthful ones.", gap, worse)
	p.Text("The paper draws each training set once. Repeated, sets of 20 differ more from one another than they do from larger ones, so that a single one can be better or " +
		"worse; its text gives no numbers of the figure, nor the jobs' work.")
}
