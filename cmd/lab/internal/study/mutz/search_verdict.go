package mutz

import (
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/candor-grid/candor/cmd/lab/internal/study"
)

func deviation(x []float64) float64 { return stat.StdDev(x, nil) }

func (n *searchNumbers) verdict(p *study.Page) {
	p.Section("Same, better, different")
	n.incentivesVerdict(p)
	shallow, deep := n.Search[0], n.Search[len(n.Search)-1]
	p.Claim(n.Search[1].power() < n.Table.power(), "Figure 7.5: the search's time grows more slowly with the bids than the schedule's for a whole machine.", "with power %.2f, the table's with %.2f",
		n.Search[1].power(), n.Table.power())
	p.Claim(deep.power() < 1.5 && shallow.power() < 1.5, "Figure 7.6: slightly faster than in proportion to the bids, for every depth.", "with power %.2f for depth %d and %.2f for %d",
		shallow.power(), n.size.depths[0], deep.power(), n.size.depths[len(n.size.depths)-1])
	p.Text("- Better: 10,000 orders of 2,000 bids take the thesis roughly 25 s on a machine of its time (from its text); ours, for %d orders of %g bids, %.3g s. Our own search of %d candidates finds more in %.3g s, "+
		"all payments included.", n.size.depths[len(n.size.depths)-1], deep.At[len(deep.At)-1], deep.last()/1000, n.size.depth, n.Finds.last()/1000)
	last := len(n.Small[0].At) - 1
	p.Claim(n.Small[0].Millis[last]/n.Small[0].Millis[last-1] > 4*n.Small[1].Millis[last]/n.Small[1].Millis[last-1], "Figure 7.7: the time of all orders explodes, that of searches does not.",
		"from %g to %g bids all orders take %.1f times as long, depth %d %.2f times", n.Small[0].At[last-1], n.Small[0].At[last], n.Small[0].Millis[last]/n.Small[0].Millis[last-1],
		n.size.depths[0], n.Small[1].Millis[last]/n.Small[1].Millis[last-1])
	n.worthVerdict(p)
	n.depthVerdict(p)
}

func (n *searchNumbers) incentivesVerdict(p *study.Page) {
	for k, says := range []string{
		"Figure 7.1: no value gains over the true one of 470; declarations above about 400 are much the same, lower ones worse.",
		"Figure 7.2: earlier deadlines than the true one of 82 tend to give less.",
		"",
		"Figure 7.4: more nodes than the true number of 6 tend to give less.",
	} {
		if says != "" {
			s := n.Thesis[k]
			p.Claim(!s.Lie.pays() && s.Points[0].Mean+s.Points[len(s.Points)-1].Mean < 2*s.honest().Mean, says, "by the thesis' search the best lie, %.4g, gains %v (95 %%), by ours %v",
				s.Lie.At, &s.Lie, &n.Ours[k].Lie)
		}
	}
	l, ours := n.Thesis[2], n.Ours[2]
	p.Text("- New: figure 7.3, which the thesis left to be run. To exaggerate the length lowers the payoff from %.4g at the true length of %d to %.4g at %g with the thesis' search, from %.4g to %.4g with ours; "+
		"the best lies gain %v and %v.", l.honest().Mean, searched.Length, l.Points[len(l.Points)-1].Mean, l.Points[len(l.Points)-1].At, ours.honest().Mean, ours.Points[len(ours.Points)-1].Mean, &l.Lie, &ours.Lie)
	v := n.Ours[0]
	p.Text("- Better: with orders drawn anew truth is best only roughly, over fixed candidates it is exactly: of %d values declared in %d pools, the most that any gains is %.3g, by the thesis' search %.4g. "+
		"In the other parameters neither is exact: single dots gain up to %.4g (d), %.4g (l) and %.4g (n) with ours, %.4g, %.4g and %.4g with the thesis'.",
		len(v.Points)-1, n.size.pools, v.Lie.Most, n.Thesis[0].Lie.Most, n.Ours[1].Lie.Most, n.Ours[2].Lie.Most, n.Ours[3].Lie.Most, n.Thesis[1].Lie.Most, n.Thesis[2].Lie.Most, n.Thesis[3].Lie.Most)
}

// With at most `fewest` bids, the best schedule can be computed, and the thesis compares its searches with it.
const fewest = 14

func (n *searchNumbers) worthVerdict(p *study.Page) {
	deepest := len(n.size.depths) - 1
	found, ours, all := 0, 0, 0
	for _, w := range n.Few {
		if w.Bids <= fewest {
			found, ours, all = found+w.Optimal[deepest], ours+w.Optimal[deepest+1], all+n.size.tests
		}
	}
	p.Claim(found*10 >= all*9, "Figure 7.8: up to 14 bids, depth 10,000 finds the best in all tests but one.", "in %d of %d tests; ours, with %d candidates, in %d",
		found, all, n.size.depth, ours)
	grows, better := true, 0.0
	for _, w := range n.Many {
		grows = grows && slices.IsSorted(w.ByDepth)
		better = max(better, w.Ours/w.ByDepth[deepest])
	}
	p.Claim(grows, "Figure 7.9: for more bids a deeper search finds more, each time.", "%.5g, then %.5g for depth %d and %d, and %d bids", n.Many[len(n.Many)-1].ByDepth[0],
		n.Many[len(n.Many)-1].ByDepth[deepest], n.size.depths[0], n.size.depths[deepest], n.Many[len(n.Many)-1].Bids)
	p.Text("- Better: ours finds up to %.2f times as much as depth %d, with %d candidates.", better, n.size.depths[deepest], n.size.depth)
}

func (n *searchNumbers) depthVerdict(p *study.Page) {
	shallow, deep := n.Depths[0], n.Depths[len(n.size.depths)-1]
	p.Claim(deviation(deep.Payoffs.honest().Dots) < deviation(shallow.Payoffs.honest().Dots), "Figure 7.10: deeper searches have less noise and a clearer maximum at the truth.",
		"payoffs of the truth deviate by %.3g with %s, by %.3g with %s", deviation(shallow.Payoffs.honest().Dots), shallow.Name, deviation(deep.Payoffs.honest().Dots), deep.Name)
	for k, d := range n.Depths[len(n.size.depths):] {
		thesis := n.Depths[1+k]
		p.Text("- Better: with %s, single dots gain up to %.4g by a lie, against %.4g and %.4g of the thesis'; its payoffs of the truth deviate by %.3g over seeds of the candidates, those of the thesis' search with %s by %.3g.",
			d.Name, d.Payoffs.Lie.Most, shallow.Payoffs.Lie.Most, deep.Payoffs.Lie.Most, deviation(d.Payoffs.honest().Dots), thesis.Name, deviation(thesis.Payoffs.honest().Dots))
	}
	p.Claim(shallow.often(50) > deep.often(50) && deep.often(200) > shallow.often(200), "Figure 7.11: with few orders a job of very low value runs about 30 % of the time; with many it jumps from hardly ever to nearly always at about its price.",
		"declared at 0, 50 and 200 it runs %.0f %%, %.0f %% and %.0f %% of the time with %s, %.0f %%, %.0f %% and %.0f %% with %s", 100*shallow.often(0), 100*shallow.often(50), 100*shallow.often(200), shallow.Name,
		100*deep.often(0), 100*deep.often(50), 100*deep.often(200), deep.Name)
}
