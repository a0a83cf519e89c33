package abacus

import (
	"fmt"
	"maps"
	"math"

	"github.com/candor-grid/candor/cmd/lab/internal/study"
)

const timeName = "abacus-time"

// Time is the study of figures 10 and 13.
var Time = study.Study{
	Name:  timeName,
	About: "figures 10 and 13: the total time of all jobs, against first in, first out",
	Run:   totalTime,
}

// timeAxes are the horizontal axes of figures 10a to 10c, 13a and 13b.
var timeAxes = []axis{
	{"10a", "users", []float64{1, 2, 3, 4, 5, 6, 8}, func(x float64) *cluster { return private(int(x)) }},
	{"10b", "budget of user 3", []float64{50, 100, 200, 400, 800}, func(x float64) *cluster { return third(private(3), budgeted(x)) }},
	{"10c", "map over reduce weight that user 3 reports (truly 6)", []float64{0.25, 1, 2, 4, 6, 9}, func(x float64) *cluster { return third(private(3), reporting(x)) }},
	{"13a", "users, with as many machines for each", []float64{4, 6, 8, 10}, func(x float64) *cluster { return public(int(x), int(1.5*x)) }},
	{"13b", "users, on 15 machines", []float64{4, 8, 10, 15, 20, 30}, func(x float64) *cluster { return public(int(x), 15) }},
}

func totalTime(o study.Options) (*study.Report, error) {
	n, err := runBoth(o, timeAxes, often(o))
	if err != nil {
		return nil, err
	}
	for k := range variations {
		varied, err := runBoth(o, variations[k].axes(), often(o)/fewer)
		if err != nil {
			return nil, err
		}
		maps.Copy(n, varied)
	}
	report := &study.Report{Numbers: n, Page: timePage(n)}
	for _, a := range timeAxes {
		p := study.NewFigure(timeName+"-"+a.name, a.label, "total time, seconds")
		total := func(e *estimates) study.Estimate { return e.Total }
		p.Estimates("auction", 0, a.at, study.Each(n[a.name].Auction, total))
		p.Estimates("first in, first out", 1, a.at, study.Each(n[a.name].FIFO, total))
		report.Figures = append(report.Figures, p)
	}
	return report, nil
}

func timePage(n map[string]both) *study.Page {
	p := study.NewPage("The total time of all jobs (Abacus, figures 10 and 13)")
	p.Text("The clusters and users of study %s: users submit for 30 minutes, and the total time is until the last job is completed. Means with 95 %% confidence "+
		"intervals; the same jobs under the auction and first in, first out.", efficiencyName)
	for _, a := range timeAxes {
		p.Section("Figure " + a.name)
		var rows [][]string
		for k, x := range a.at {
			b := n[a.name]
			rows = append(rows, []string{fmt.Sprint(x), seconds(b.Auction[k].Total), seconds(b.FIFO[k].Total), change(b.over(k))})
		}
		p.Table([]string{a.label, "auction, s", "first in, first out, s", "auction over that"}, rows)
		p.Figure(timeName+"-"+a.name, "Total time, figure "+a.name)
	}
	timeVerdict(p, n)
	variationSection(p, n)
	return p
}

// over returns the total time under the auction divided by the total time of first in, first out.
func (b *both) over(k int) float64 { return b.Auction[k].Total.Mean / b.FIFO[k].Total.Mean }

// change writes a ratio as a change in per cent.
func change(ratio float64) string { return fmt.Sprintf("%+.1f %%", 100*(ratio-1)) }

// span returns the smallest and the largest ratio along the axis. The method `over` computes the ratio at a point of
// the axis.
func (b *both) span() (low, high float64) {
	low = math.Inf(1)
	for k := range b.Auction {
		low, high = min(low, b.over(k)), max(high, b.over(k))
	}
	return low, high
}

func timeVerdict(p *study.Page, n map[string]both) {
	span := func(name string) (low, high float64) {
		b := n[name]
		return b.span()
	}
	few, crowded := n["10a"], n["13b"]
	last := len(crowded.Auction) - 1
	p.Section("Same, better, different")
	p.Claim(few.over(1) < 1 && few.over(2) < 1, "With fewer than five users the auction is faster in most settings (10a).", "%+.1f %% with two, %+.1f %% with three",
		100*(few.over(1)-1), 100*(few.over(2)-1))
	low, high := span("10a")
	p.Claim(high <= 1.05, "It never takes more than 5 % longer (10a).", "from %+.1f to %+.1f %%", 100*(low-1), 100*(high-1))
	low, high = span("10c")
	p.Claim(high < 0.85, "It saves about 20 % whatever user 3 reports (10c).", "from %+.1f to %+.1f %%", 100*(low-1), 100*(high-1))
	low, high = span("13a")
	p.Claim(high < 1, "With machines in proportion to users it is always faster (13a).", "from %+.1f to %+.1f %%", 100*(low-1), 100*(high-1))
	p.Claim(crowded.over(0) < 1 && crowded.over(last) > 1, "On 15 machines it is faster with few users and slower with many (13b).",
		"%+.1f %% with the fewest, %+.1f %% with the most", 100*(crowded.over(0)-1), 100*(crowded.over(last)-1))
	p.Text("Both give every free slot to a job that has a task for it, and no switch costs time here, so that totals differ only by how well maps and reduces of different " +
		"jobs overlap. Jobs that share the map slots all end their maps late, so that reduce slots stand idle before and are short afterwards; one job after another " +
		"keeps both busy. More users and more unequal budgets make that worse. That the auction saves time, by up to 20 %% in the paper, takes " +
		"what this model leaves out: where the data of maps are, as the next section shows.")
}
