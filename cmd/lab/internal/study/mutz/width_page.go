package mutz

import (
	"slices"

	"github.com/candor-grid/candor/cmd/lab/internal/study"
)

var axes = map[string]string{"v": "value", "r": "length", "n": "nodes", "d": "cost of delay", "l": "length"}

func (n *widthNumbers) figures() (out []*study.Figure) {
	for k, s := range n.Full {
		out = append(out, draw(widthName+"-"+s.Declares, axes[s.Declares]+" declared",
			[]string{"whole types drawn", "priorities drawn"}, s, n.Priority[k]))
	}
	cubes := timePlot(widthName+"-cube", "jobs", false, n.Whole.perCube(), n.Thesis.perCube())
	cubes.Y.Label = "milliseconds over jobs³"
	return append(out, timePlot(widthName+"-time", "jobs", true, n.Whole, n.Thesis, n.Ours), cubes, imbalancePlot(widthName+"-balance", n.Imbalance))
}

func (n *widthNumbers) page() *study.Page {
	c := widthCrowd
	p := study.NewPage("Honesty in a batch queue of jobs of any width (Mutz, figures 6.1 to 6.7)")
	p.Text("The delay of a job is the difference between two schedules that put the jobs in queue order into their soonest windows, with and without the front job. "+
		"Expectations are over whole types, or over values and costs of delay with lengths and widths as announced (priorities). The thesis gives the declared parameter of each figure only: here %d jobs on %d nodes, widths from 1 to %d, lengths from U[0, %g], costs of delay from U[0, %g], values from U[0, %g]; "+
		"figures 6.3 to 6.5 are of one front job of value %g, length %g and %d nodes, figure 6.6 of a job in the middle of the queue. A dot is the mean over %d groups of others.",
		c.jobs, c.nodes, c.nodes, c.length, c.delay, c.value, wideFront.Value, wideFront.Length, wideFront.Width, n.size.groups)
	p.Section("Time (figures 6.1 and 6.2)")
	p.Text("All payments of a queue from %d draws.", n.size.perRun)
	timeTable(p, "jobs", n.Whole, n.Thesis, n.Ours)
	p.Figure(widthName+"-time", "Time against jobs (figure 6.1)")
	p.Figure(widthName+"-cube", "Time over jobs³ (figure 6.2)")
	p.Section("Incentives (figures 6.3 to 6.6)")
	rows := sweepRows(append(slices.Clone(n.Full), n.Priority...)...)
	for k := range rows {
		rows[k][0] += []string{", whole types", ", priorities"}[k/len(n.Full)]
	}
	p.Table(sweepHead, rows)
	for _, s := range n.Full {
		p.Figure(widthName+"-"+s.Declares, "Payoff by the "+axes[s.Declares]+" declared (figure "+s.Figure+")")
	}
	p.Section("Budget balance (figure 6.7)")
	p.Text("The sum of the payments over the sum of their magnitudes, over %d queues of %d jobs.", n.size.imbalance, n.size.queue)
	imbalanceTable(p, n.Imbalance)
	p.Figure(widthName+"-balance", "Imbalance against draws (figure 6.7)")
	n.verdict(p)
	return p
}

func (n *widthNumbers) verdict(p *study.Page) {
	p.Section("Same, better, different")
	whole, thesis := n.Whole.power(), n.Thesis.power()
	p.Claim(thesis > whole+0.5, "Figures 6.1 and 6.2: with widths, time grows one power faster than the third power of a whole machine.", "with power %.2f instead of %.2f, for the thesis' payments",
		thesis, whole)
	v, r, nodes, d := n.Full[0], n.Full[1], n.Full[2], n.Full[3]
	p.Claim(!v.Lie.pays(), "Figure 6.3: no value declared by the front job clearly gains over the true one of 42.5; outliers can.", "the best of %d lies, %.4g, gains %v (95 %%)",
		len(v.Points)-1, v.Lie.At, &v.Lie)
	p.Claim(v.honest().Mean-v.at(60).Mean < v.at(60).Mean-v.at(100).Mean, "Figure 6.3: declaring up to about 60 costs little, more costs more.",
		"%.4g at the truth, %.4g at 60, %.4g at 100", v.honest().Mean, v.at(60).Mean, v.at(100).Mean)
	p.Claim(!r.Lie.pays() && r.at(2*r.Truth).Mean < r.honest().Mean, "Figure 6.4: to exaggerate the length costs quickly.", "%.4g at the truth, %.4g at twice it; the best lie gains %v",
		r.honest().Mean, r.at(2*r.Truth).Mean, &r.Lie)
	p.Claim(!nodes.Lie.pays(), "Figure 6.5: the true number of nodes gives the most.", "%.4g at the truth, %.4g with all nodes; the best lie gains %v",
		nodes.honest().Mean, nodes.Points[len(nodes.Points)-1].Mean, &nodes.Lie)
	p.Claim(d.spread() < 0.05*v.spread(), "Figure 6.6: the cost of delay that a waiting job declares makes no difference.", "the payoff moves by %.3g over all declarations, that of figure 6.3 by %.3g",
		d.spread(), v.spread())
	first, last := n.Imbalance[0], n.Imbalance[len(n.Imbalance)-1]
	p.Claim(last.Thesis < first.Thesis/2, "Figure 6.7: the imbalance falls towards zero with draws.", "with the thesis' payments %.2f %% with %d, %.2f %% with %d",
		100*first.Thesis, first.Draws, 100*last.Thesis, last.Draws)
	p.Text("- Better: with lengths and widths as announced, delays do not depend on what is drawn, so that two schedules do for all: %g jobs take %.3g ms instead of %.3g s, and time grows "+
		"with power %.2f. Payments for 64 jobs took the thesis more than half an hour on a machine of its time (from its text; its draws it does not give).",
		n.Thesis.At[len(n.Thesis.At)-1], n.Ours.at(n.Thesis.At[len(n.Thesis.At)-1]), n.Thesis.last()/1000, n.Ours.power())
	p.Text("- Better: our payments sum to exactly zero however few the draws.")
	told := n.Priority[1]
	p.Claim(!told.Lie.pays(), "Expectations are over the parameters v and d alone, as its section 6.1.4 defines the types that are drawn.",
		"so the others' externalities, of which the front job pays the mean, are taken at the length it announces: a longer one makes them smaller, and a length of %.4g for one of %.4g gains %v. "+
			"Figures 6.4 and 6.5 come out where lengths and widths are drawn too; v and d are best announced truly either way",
		told.Lie.At, told.Truth, &told.Lie)
}
