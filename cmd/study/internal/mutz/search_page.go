package mutz

import (
	"fmt"

	"github.com/candor-grid/candor/cmd/internal/chart"
	"github.com/candor-grid/candor/cmd/study/internal/study"
)

func (n *searchNumbers) figures() (out []study.Figure, err error) {
	for k, s := range n.Thesis {
		f, err := draw(searchName+"-"+s.Declares, reservationAxes[s.Declares]+" declared", []string{"thesis' search, dots of it", "ours"}, s, n.Ours[k])
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	for _, f := range []struct {
		suffix string
		of     []*series
	}{
		{"original", []*series{n.Table, n.Search[1], n.Finds}},
		{"depth", n.Search},
		{"brute", n.Small},
	} {
		drawn, err := timePlot(searchName+"-"+f.suffix, "bids", true, f.of...)
		if err != nil {
			return nil, err
		}
		out = append(out, drawn)
	}
	few, err := n.worthPlot(searchName+"-few", n.Few, true)
	if err != nil {
		return nil, err
	}
	many, err := n.worthPlot(searchName+"-many", n.Many, false)
	if err != nil {
		return nil, err
	}
	incentives, likelihood, err := n.depthPlots()
	return append(out, few, many, incentives, likelihood), err
}

// worthPlot draws what searches find, relative to the best where it is known.
func (n *searchNumbers) worthPlot(name string, of []*worths, relative bool) (study.Figure, error) {
	p := chart.New("bids", "value found")
	if relative {
		p.Y.Label = "value found over the most of any order"
	}
	lines := make([]chart.Line, len(n.size.depths)+1)
	for k, depth := range n.size.depths {
		lines[k] = chart.Line{Name: depthName(depth), Style: k}
	}
	lines[len(n.size.depths)] = chart.Line{Name: "ours, " + depthName(n.size.depth), Style: len(n.size.depths)}
	for _, w := range of {
		scale := 1.0
		if relative {
			scale = max(w.Best, 1)
		}
		for k, value := range append(append([]float64{}, w.ByDepth...), w.Ours) {
			lines[k].Add(float64(w.Bids), value/scale)
		}
	}
	return study.Figure{Name: name, Plot: p}, p.Add(lines...)
}

// depthPlots are figures 7.10 and 7.11.
func (n *searchNumbers) depthPlots() (incentives, likelihood study.Figure, err error) {
	payoffs, runs := chart.New("value declared", "payoff"), chart.New("value declared", "likelihood that the job runs")
	payoffs.Bottom, runs.Bottom = true, true
	for k, d := range n.Depths {
		dots, mean, often := chart.Line{Style: k, Points: true}, chart.Line{Name: d.Name + ", mean", Style: k}, chart.Line{Name: d.Name, Style: k}
		for i, at := range d.Payoffs.Points {
			for _, y := range at.Dots {
				dots.Add(at.At, y)
			}
			mean.Add(at.At, at.Mean)
			often.Add(at.At, d.Runs[i])
		}
		if err = payoffs.Add(dots, mean); err != nil {
			return incentives, likelihood, err
		}
		if err = runs.Add(often); err != nil {
			return incentives, likelihood, err
		}
	}
	return study.Figure{Name: searchName + "-incentives", Plot: payoffs}, study.Figure{Name: searchName + "-likelihood", Plot: runs}, nil
}

func (n *searchNumbers) page() *study.Page {
	p := study.NewPage("Honesty in reservations of any width (Mutz, figures 7.1 to 7.11)")
	p.Text("A machine of %d nodes, widths from 1 to %d, values from U[1, %d]. For incentives, %d competing bids for %d units of time, lengths and deadlines from U[0, %d], as in chapter 5; "+
		"the participant's value (%g), deadline (%d) and nodes (%d) are the thesis', its length (%d) is ours. For time and worth, a day in quarters of an hour, lengths and deadlines up to it. "+
		"The thesis gives neither nodes nor how many compete; with %d, likelihoods of running are much as it finds them.", nodes, nodes, mostWorth, rivals, units, units, searched.Value, searched.Deadline, searched.Width, searched.Length, rivals)
	p.Text("The thesis' search takes the best of random orders, and draws others for the schedule without a bid, on which its payment depends. Ours takes the best of candidates that are the same " +
		"with and without a bid's value, so that truth in it is exactly best.")
	n.incentives(p)
	p.Section("Time (figures 7.5 to 7.7)")
	timeTable(p, "bids", append([]*series{n.Table}, append(n.Search, n.Finds)...)...)
	p.Figure(searchName+"-original", "Time of a schedule for a whole machine, and of searches for any width (figure 7.5)")
	p.Figure(searchName+"-depth", "Time of a search by its depth (figure 7.6)")
	timeTable(p, "bids", n.Small...)
	p.Figure(searchName+"-brute", "Time of all orders, one by one, and of searches (figure 7.7)")
	n.worthPage(p)
	n.byDepthPage(p)
	n.verdict(p)
	return p
}

func (n *searchNumbers) incentives(p *study.Page) {
	p.Section("Incentives (figures 7.1 to 7.4)")
	p.Text("Each dot is a pool of competitors, of %d; searches of depth %d.", n.size.pools, n.size.depth)
	var rows [][]string
	for k := range n.Thesis {
		pair := sweepRows(n.Thesis[k], n.Ours[k])
		pair[0][0] += ", thesis' search"
		pair[1][0] += ", ours"
		rows = append(rows, pair...)
	}
	p.Table(sweepHead, rows)
	for _, s := range n.Thesis {
		p.Figure(searchName+"-"+s.Declares, "Payoff by the "+reservationAxes[s.Declares]+" declared (figure "+s.Figure+")")
	}
}

// worthPage sets what searches find side by side (figures 7.8 and 7.9).
func (n *searchNumbers) worthPage(p *study.Page) {
	p.Section("Worth (figures 7.8 and 7.9)")
	p.Text("Means over %d pools, and of few bids in how many the search finds the most that any order is worth.", n.size.tests)
	head := []string{"bids"}
	for _, depth := range n.size.depths {
		head = append(head, depthName(depth))
	}
	var rows [][]string
	for _, of := range [][]*worths{n.Few, n.Many} {
		for _, w := range of {
			row := []string{fmt.Sprint(w.Bids)}
			for k, value := range append(append([]float64{}, w.ByDepth...), w.Ours) {
				cell := fmt.Sprintf("%.6g", value)
				if w.Optimal != nil {
					cell += fmt.Sprintf(" (%d of %d)", w.Optimal[k], n.size.tests)
				}
				row = append(row, cell)
			}
			best := ""
			if w.Optimal != nil {
				best = fmt.Sprintf("%.6g", w.Best)
			}
			rows = append(rows, append(row, best))
		}
	}
	p.Table(append(head, "ours, "+depthName(n.size.depth), "best of all orders"), rows)
	p.Figure(searchName+"-few", "Value found of few bids, relative to the best of all orders (figure 7.8)")
	p.Figure(searchName+"-many", "Value found of many bids (figure 7.9)")
}

// byDepthPage is about figures 7.10 and 7.11.
func (n *searchNumbers) byDepthPage(p *study.Page) {
	p.Section("Depth and incentives (figures 7.10 and 7.11)")
	p.Text("One pool of competitors, the first in which our search prices the participant near 100, at %g: in the thesis' its likelihood of running jumps near a declared value of 100. %d searches for each declaration, each a dot.",
		n.Price, n.size.runs)
	var rows [][]string
	for _, d := range n.Depths {
		low, honest := d.Payoffs.at(50), d.Payoffs.honest()
		rows = append(rows, []string{d.Name, fmt.Sprintf("%.4g", low.Mean), fmt.Sprintf("%.4g", honest.Mean), fmt.Sprintf("%.4g", deviation(honest.Dots)),
			fmt.Sprintf("%.2f", d.often(50)), fmt.Sprintf("%.2f", d.often(150)), fmt.Sprintf("%.2f", d.often(searched.Value)), d.Payoffs.Lie.String(), fmt.Sprintf("%.4g", d.Payoffs.Lie.Most)})
	}
	p.Table([]string{"search", "payoff at 50", "at the truth", "its deviation", "runs at 50", "at 150", "at the truth", "best lie gains", "most that any dot gains"}, rows)
	p.Figure(searchName+"-incentives", "Payoff by the value declared and the depth (figure 7.10)")
	p.Figure(searchName+"-likelihood", "How often the job runs by the value declared and the depth (figure 7.11)")
}

// often is how often the participant's bid is met at the declaration nearest to x.
func (d *byDepth) often(x float64) float64 {
	at := d.Payoffs.at(x)
	for k := range d.Payoffs.Points {
		if &d.Payoffs.Points[k] == at {
			return d.Runs[k]
		}
	}
	return 0
}
