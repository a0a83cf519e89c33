package mutz

import (
	"fmt"

	"github.com/candor-grid/candor/cmd/lab/internal/study"
)

func (n *batchNumbers) figures() []*study.Figure {
	return []*study.Figure{
		draw(batchName+"-front", "value declared", []string{"ours", "thesis' payments", "equation 4.2 as printed"},
			n.Front, n.FrontThesis, n.FrontPrinted),
		draw(batchName+"-queued", "cost of delay declared", []string{"ours", "thesis' payments"}, n.Queued, n.QueuedThesis),
		timePlot(batchName+"-jobs", "jobs", true, n.ByJobs[:]...),
		timePlot(batchName+"-draws", "draws of an expectation", false, n.ByDraws[:]...),
		imbalancePlot(batchName+"-balance", n.Imbalance),
	}
}

func imbalancePlot(name string, of []unbalanced) *study.Figure {
	p := study.NewFigure(name, "draws of an expectation", "imbalance, %")
	p.X.Log = true
	draws := study.Each(of, func(u *unbalanced) float64 { return float64(u.Draws) })
	p.Lines([]string{"expectations anew", "ours"}, draws, func(k int) []float64 { return []float64{100 * of[k].Thesis, 100 * of[k].Ours} })
	return p
}

func imbalanceTable(p *study.Page, of []unbalanced) {
	var rows [][]string
	for _, u := range of {
		rows = append(rows, []string{fmt.Sprint(u.Draws), fmt.Sprintf("%.3f %%", 100*u.Thesis), fmt.Sprintf("%.3g %%", 100*u.Ours)})
	}
	p.Table([]string{"draws", "expectations anew", "ours"}, rows)
}

func (n *batchNumbers) page() *study.Page {
	c := batchCrowd
	p := study.NewPage("Honesty in a batch queue (Mutz, figures 4.1 to 4.5)")
	p.Text("Every job takes the whole machine. The thesis does not say how many jobs wait in figures 4.1 and 4.2, nor from what ranges they are drawn: here %d jobs, "+
		"lengths from U[0, %g] hours, costs of delay from U[0, %g] an hour, values from U[0, %g]; the participant of figure 4.1 takes %g hours, that of 4.2 is number %d in the queue. "+
		"A dot is the mean over %d groups of others. The decision is by the front job's length; equation 4.2 prints each job's own.",
		c.jobs, c.length, c.delay, c.value, frontParticipant.truth.Length, queued.position+1, n.size.groups)
	p.Section("Incentives (figures 4.1 and 4.2)")
	rows := sweepRows(n.Front, n.FrontThesis, n.FrontPrinted, n.Queued, n.QueuedThesis)
	for k, by := range []string{"ours", "thesis' payments", "as printed", "ours", "thesis' payments"} {
		rows[k][0] += ", " + by
	}
	p.Table(sweepHead, rows)
	p.Figure(batchName+"-front", "Payoff of the front job by the value it declares; dots are ours (figure 4.1)")
	p.Figure(batchName+"-queued", "Payoff of a job further back by the cost of delay it declares; dots are ours (figure 4.2)")
	p.Section("Time (figures 4.3 and 4.4)")
	p.Text("All payments of a queue from %d draws, and of a queue of %d jobs.", n.size.perRun, n.size.queue)
	timeTable(p, "jobs", n.ByJobs[:]...)
	p.Figure(batchName+"-jobs", "Time against jobs (figure 4.3)")
	timeTable(p, "draws", n.ByDraws[:]...)
	p.Figure(batchName+"-draws", "Time against draws (figure 4.4)")
	p.Section("Budget balance (figure 4.5)")
	p.Text("The sum of the payments over the sum of their magnitudes, over %d queues of %d jobs.", n.size.imbalance, n.size.queue)
	imbalanceTable(p, n.Imbalance)
	p.Figure(batchName+"-balance", "Imbalance against draws (figure 4.5)")
	n.verdict(p)
	return p
}

func (n *batchNumbers) verdict(p *study.Page) {
	thesis, ours := n.ByJobs[0], n.ByJobs[1]
	first, last := n.Imbalance[0], n.Imbalance[len(n.Imbalance)-1]
	p.Section("Same, better, different")
	p.Claim(!n.Front.Lie.pays(), "Figure 4.1: no value declared by the front job gains over the true one.", "the best of %d lies, %.4g, gains %v (95 %%)",
		len(n.Front.Points)-1, n.Front.Lie.At, &n.Front.Lie)
	p.Claim(!n.Queued.Lie.pays(), "Figure 4.2: nor does any cost of delay.", "the best lie, %.4g, gains %v; all declarations are within %.3g of each other, of %.4g",
		n.Queued.Lie.At, &n.Queued.Lie, n.Queued.spread(), n.Queued.honest().Mean)
	p.Claim(thesis.power() > 2.7 && thesis.power() < 3.3, "Figure 4.3: time grows with the third power of the jobs.", "with the thesis' payments, with power %.2f", thesis.power())
	p.Claim(n.ByDraws[0].power() > 0.9 && n.ByDraws[0].power() < 1.1, "Figure 4.4: time is proportional to draws.", "with the thesis' payments it grows with power %.2f", n.ByDraws[0].power())
	p.Claim(last.Thesis < first.Thesis/4, "Figure 4.5: the imbalance falls towards zero with draws: 7 % with 8 of them, below 1 % with 1,024 (from its text).",
		"with the thesis' payments %.2f %% with %d, %.2f %% with %d", 100*first.Thesis, first.Draws, 100*last.Thesis, last.Draws)
	p.Text("- Better: ours estimates each expectation once and leaves each job out of one sum, so that the same number of draws for %g jobs takes %.3g ms instead of %.3g s, "+
		"and time grows with power %.2f. The thesis' simulator took more than two hours for 244 jobs on a machine of its time (from its text).",
		thesis.At[len(thesis.At)-1], ours.at(thesis.At[len(thesis.At)-1]), thesis.last()/1000, ours.power())
	p.Text("- Better: our payments sum to exactly zero however few the draws.")
	p.Claim(!n.FrontPrinted.Lie.pays(), "Equation 4.2, as printed, multiplies each cost of delay by the length of the waiting job.",
		"so read, a value of %.4g declared for one of %.4g gains %v: the decision is not the one that is best for all, and who can mend it is paid for it. "+
			"We take the front job's length, by which the jobs are delayed; the thesis' figures have honesty best, as only that has it",
		n.FrontPrinted.Lie.At, n.FrontPrinted.Truth, &n.FrontPrinted.Lie)
}
