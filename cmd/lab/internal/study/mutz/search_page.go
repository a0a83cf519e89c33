package mutz

import (
	"fmt"
	"slices"

	"github.com/candor-grid/candor/cmd/lab/internal/study"
)

func (n *searchNumbers) figures() (out []*study.Figure) {
	for k, s := range n.Thesis {
		out = append(out, draw(searchName+"-"+s.Declares, reservationAxes[s.Declares]+" declared",
			[]string{"thesis' search, dots of it", "ours"}, s, n.Ours[k]))
	}
	return append(out,
		timePlot(searchName+"-original", "bids", true, n.Table, n.Search[1], n.Finds),
		timePlot(searchName+"-depth", "bids", true, n.Search...),
		timePlot(searchName+"-brute", "bids", true, n.Small...),
		n.worthPlot(searchName+"-few", "value found over the most of any order", n.Few, func(w *worths) float64 { return max(w.Best, 1) }),
		n.worthPlot(searchName+"-many", "value found", n.Many, func(*worths) float64 { return 1 }),
		n.incentivesPlot(), n.likelihoodPlot())
}

// searchNames returns the names of the searches in the figures: one for each depth of the thesis' search, and at the
// end one for our search.
func (n *searchNumbers) searchNames() []string {
	return append(study.Each(n.size.depths, func(depth *int) string { return depthName(*depth) }), "ours, "+depthName(n.size.depth))
}

// found returns the value of the schedule that each search found, in the order of searchNames.
func (w *worths) found() []float64 { return append(slices.Clone(w.ByDepth), w.Ours) }

// worthPlot draws, for each search, the value of the schedule that it finds, divided by the result of the function
// `scale`.
func (n *searchNumbers) worthPlot(name, label string, of []*worths, scale func(*worths) float64) *study.Figure {
	p := study.NewFigure(name, "bids", label)
	bids := study.Each(of, func(w **worths) float64 { return float64((*w).Bids) })
	p.Lines(n.searchNames(), bids, func(k int) []float64 {
		return study.Each(of[k].found(), func(value *float64) float64 { return *value / scale(of[k]) })
	})
	return p
}

func (n *searchNumbers) incentivesPlot() *study.Figure {
	p := study.NewFigure(searchName+"-incentives", "value declared", "payoff")
	for k, d := range n.Depths {
		var x, y []float64
		for _, at := range d.Payoffs.Points {
			for _, dot := range at.Dots {
				x, y = append(x, at.At), append(y, dot)
			}
		}
		p.Points("", k, x, y)
		p.Line(d.Name+", mean", k, d.Payoffs.declared(), d.Payoffs.means())
	}
	return p
}

func (n *searchNumbers) likelihoodPlot() *study.Figure {
	p := study.NewFigure(searchName+"-likelihood", "value declared", "likelihood that the job runs")
	for k, d := range n.Depths {
		p.Line(d.Name, k, d.Payoffs.declared(), d.Runs)
	}
	return p
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

// worthPage writes the page with the values of the orders that the searches find (figures 7.8 and 7.9 of the thesis).
func (n *searchNumbers) worthPage(p *study.Page) {
	p.Section("Worth (figures 7.8 and 7.9)")
	p.Text("Means over %d pools, and of few bids in how many the search finds the most that any order is worth.", n.size.tests)
	head := append(append([]string{"bids"}, n.searchNames()...), "best of all orders")
	var rows [][]string
	for _, w := range slices.Concat(n.Few, n.Many) {
		row, best := []string{fmt.Sprint(w.Bids)}, ""
		for k, value := range w.found() {
			cell := fmt.Sprintf("%.6g", value)
			if w.Optimal != nil {
				cell += fmt.Sprintf(" (%d of %d)", w.Optimal[k], n.size.tests)
				best = fmt.Sprintf("%.6g", w.Best)
			}
			row = append(row, cell)
		}
		rows = append(rows, append(row, best))
	}
	p.Table(head, rows)
	p.Figure(searchName+"-few", "Value found of few bids, relative to the best of all orders (figure 7.8)")
	p.Figure(searchName+"-many", "Value found of many bids (figure 7.9)")
}

func (n *searchNumbers) byDepthPage(p *study.Page) {
	p.Section("Depth and incentives (figures 7.10 and 7.11)")
	p.Text("One pool of competitors, the first in which our search prices the participant near 100, at %g: in the thesis' its likelihood of running jumps near a declared value of 100. %d searches for each declaration, each a dot.",
		n.Price, n.size.runs)
	var rows [][]string
	for _, d := range n.Depths {
		low, honest := d.Payoffs.at(50), d.Payoffs.honest()
		rows = append(rows, slices.Concat([]string{d.Name}, study.Cells("%.4g", low.Mean, honest.Mean, deviation(honest.Dots)),
			study.Cells("%.2f", d.often(50), d.often(150), d.often(searched.Value)), []string{d.Payoffs.Lie.String()},
			study.Cells("%.4g", d.Payoffs.Lie.Most)))
	}
	p.Table([]string{"search", "payoff at 50", "at the truth", "its deviation", "runs at 50", "at 150", "at the truth", "best lie gains", "most that any dot gains"}, rows)
	p.Figure(searchName+"-incentives", "Payoff by the value declared and the depth (figure 7.10)")
	p.Figure(searchName+"-likelihood", "How often the job runs by the value declared and the depth (figure 7.11)")
}

// often returns the fraction of the runs in which the participant's bid is served, if the participant declares the
// value x. It uses the measured value nearest to x.
func (d *byDepth) often(x float64) float64 {
	return d.Runs[slices.Index(d.Payoffs.declared(), d.Payoffs.at(x).At)]
}
