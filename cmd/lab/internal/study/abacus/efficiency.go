package abacus

import (
	"fmt"
	"slices"

	"github.com/candor-grid/candor/cmd/lab/internal/study"
)

const efficiencyName = "abacus-efficiency"

// Efficiency is the study of figures 9 and 12.
var Efficiency = study.Study{
	Name:  efficiencyName,
	About: "figures 9 and 12: users' response times against a budget, the weights reported, and α",
	Run:   efficiency,
}

// These are the axes of figures 9a to 9c, 12a and 12b.
var efficiencyAxes = []axis{
	{"9a", "budget of user 3", []float64{50, 100, 200, 400, 800}, func(x float64) *cluster { return third(private(3), budgeted(x)) }},
	{"9b", "map over reduce weight that user 3 reports (truly 6)", []float64{0.25, 1, 2, 4, 6, 9}, func(x float64) *cluster { return third(private(3), reporting(x)) }},
	{"9c", "α", []float64{0.1, 0.3, 0.5, 0.7, 0.9}, func(x float64) *cluster {
		c := third(private(3), budgeted(200))
		c.alpha = x
		return c
	}},
	{"12a", "budget of user 3", []float64{50, 100, 200, 400, 800}, func(x float64) *cluster { return third(public(10, 15), budgeted(x)) }},
	{"12b", "map over reduce weight that user 3 reports (truly 4)", []float64{0.25, 1, 2, 4, 8}, func(x float64) *cluster { return third(public(10, 15), reporting(x)) }},
}

const shownUsers = 3

// both has the results of two schedulers: the auction, and first in, first out. There is one result for each point of
// an axis.
type both struct {
	Auction []estimates `json:"auction"`
	FIFO    []estimates `json:"fifo"`
}

// runBoth measures the auction and first-come-first-served. It makes n measurements with each of them at each point of
// the axes.
func runBoth(o study.Options, axes []axis, n int) (map[string]both, error) {
	out := map[string]both{}
	for k := range axes {
		auction, err := axes[k].run(false, n, o.Seed)
		if err != nil {
			return nil, err
		}
		fifo, err := axes[k].run(true, n, o.Seed)
		if err != nil {
			return nil, err
		}
		out[axes[k].name] = both{auction, fifo}
		last := len(auction) - 1
		o.Tell(k+1, len(axes), "figure %s: the last total time is %s s by auction, %s s first in, first out", axes[k].name, auction[last].Total, fifo[last].Total)
	}
	return out, nil
}

func efficiency(o study.Options) (*study.Report, error) {
	n, err := runBoth(o, efficiencyAxes, often(o))
	if err != nil {
		return nil, err
	}
	report := &study.Report{Numbers: n, Page: efficiencyPage(n)}
	for _, a := range efficiencyAxes {
		p := study.NewFigure(efficiencyName+"-"+a.name, a.label, "mean response time, seconds")
		for i := range shownUsers {
			response := func(e *estimates) study.Estimate { return e.Response[i] }
			p.Estimates(fmt.Sprintf("user %d, auction", i+1), i, a.at, study.Each(n[a.name].Auction, response))
			p.Points(fmt.Sprintf("user %d, first in, first out", i+1), i, a.at, study.Each(n[a.name].FIFO, func(e *estimates) float64 { return e.Response[i].Mean }))
		}
		report.Figures = append(report.Figures, p)
	}
	return report, nil
}

func efficiencyPage(n map[string]both) *study.Page {
	p := study.NewPage("What a bid does for its user (Abacus, figures 9 and 12)")
	p.Text("Map and reduce slots in virtual time; users submit for 30 minutes by Poisson processes, and all jobs are completed. A free slot goes to the job with least " +
		"of its share; nothing is interrupted. Figure 9: three users on 72 slots of each class, with budgets of 100 (in 9c user 3 has 200); figure 12: ten users on 15 machines " +
		"with two slots of each class, budgets of 200. The paper's text does not give its tables of jobs; ours have the ratios that it names. Mean response times with " +
		"95 %% confidence intervals, the same jobs at every place of an axis.")
	for _, a := range efficiencyAxes {
		p.Section("Figure " + a.name)
		var rows [][]string
		for k, x := range a.at {
			row := []string{fmt.Sprint(x)}
			for i := range shownUsers {
				row = append(row, seconds(n[a.name].Auction[k].Response[i]), fmt.Sprintf("%.0f", n[a.name].FIFO[k].Response[i].Mean))
			}
			rows = append(rows, row)
		}
		p.Table([]string{a.label, "user 1, s", "FIFO", "user 2, s", "FIFO", "user 3, s", "FIFO"}, rows)
		p.Figure(efficiencyName+"-"+a.name, "Response times: lines by auction, points first in, first out")
	}
	efficiencyVerdict(p, n)
	return p
}

func seconds(e study.Estimate) string { return fmt.Sprintf("%.0f ± %.0f", e.Mean, e.Half) }

func efficiencyVerdict(p *study.Page, n map[string]both) {
	of := func(name string, k, user int) float64 { return n[name].Auction[k].Response[user-1].Mean }
	spread := func(k int) float64 {
		all := []float64{of("9c", k, 1), of("9c", k, 2), of("9c", k, 3)}
		return slices.Max(all) / slices.Min(all)
	}
	best := func(name string, at []float64) float64 {
		least := 0
		for k := range at {
			if of(name, k, 3) < of(name, least, 3) {
				least = k
			}
		}
		return at[least]
	}
	p.Section("Same, better, different")
	early, late := (of("9a", 0, 3)-of("9a", 2, 3))/150, (of("9a", 2, 3)-of("9a", 4, 3))/600
	p.Claim(early > late && late > 0, "A larger budget makes user 3's jobs faster, by less and less (9a).", "%.0f s with 50, %.0f with 200, %.0f with 800: for each "+
		"credit %.2f s up to 200, %.2f beyond", of("9a", 0, 3), of("9a", 2, 3), of("9a", 4, 3), early, late)
	quick, rest := of("12a", 1, 3)-of("12a", 3, 3), of("12a", 3, 3)-of("12a", 4, 3)
	p.Claim(quick > 2*rest, "On the public cluster the gain is between 100 and 400, and not significant beyond (12a).", "%.0f s faster from 100 to 400, %.0f from 400 to 800", quick, rest)
	p.Claim(of("9a", 4, 1) > of("9a", 0, 1) && of("9a", 4, 2) > of("9a", 0, 2), "It makes the others' slower (9a).", "user 1 from %.0f to %.0f s, user 2 from %.0f to %.0f",
		of("9a", 0, 1), of("9a", 4, 1), of("9a", 0, 2), of("9a", 4, 2))
	p.Claim(of("12a", 0, 3) > n["12a"].FIFO[0].Response[2].Mean, "With less than the others, user 3's jobs are slower than first in, first out (12a).",
		"%.0f s with 50, %.0f first in, first out", of("12a", 0, 3), n["12a"].FIFO[0].Response[2].Mean)
	near9, near12 := best("9b", efficiencyAxes[1].at), best("12b", efficiencyAxes[4].at)
	p.Claim(near9 == 4 || near9 == 6 || near9 == 9, "User 3 does best by reporting the ratio nearest to its own, 6 (9b).", "best at %v", near9)
	p.Claim(near12 == 4, "So it does on the public cluster, at 4 (12b).", "best at %v; all from 2 on are from %.0f to %.0f s, less apart than the means are uncertain", near12,
		min(of("12b", 2, 3), of("12b", 3, 3), of("12b", 4, 3)), max(of("12b", 2, 3), of("12b", 3, 3), of("12b", 4, 3)))
	p.Claim(spread(4) > spread(0), "A larger α tells users apart more (9c).", "the slowest user's time over the fastest's is %.2f at 0.1 and %.2f at 0.9", spread(0), spread(4))
	p.Text("Jobs that share slots all complete late, jobs one after another each on its own: so first in, first out has the smaller mean response times here, except " +
		"for those who pay most. The intervals are of means over different jobs; between places of an axis, which have the same jobs, differences vary less.")
}
