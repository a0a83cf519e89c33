package shudler

import (
	"fmt"
	"slices"

	"github.com/candor-grid/candor/auctioneer/mechanism/highestbid"
	"github.com/candor-grid/candor/cmd/lab/internal/study"
)

// These are the simulated settings that the figures compare. Their names occur in the figures.
var (
	honestFirst = run{highestbid.HB, highestbid.First, false}
	honestKth   = run{highestbid.HB, highestbid.Kth, false}
	shadeFirst  = run{highestbid.HB, highestbid.First, true}
	shadeKth    = run{highestbid.HB, highestbid.Kth, true}
	shadeNPHB   = run{highestbid.NPHB, highestbid.First, true}
	shadeWSPT   = run{highestbid.WSPT, highestbid.First, true}
	shadeWSEPT  = run{highestbid.WSEPT, highestbid.First, true}
)

// figure is a figure of the paper. It shows one curve for each of its runs.
type figure struct {
	name, caption, label string
	runs                 []run
	of                   func(*crowdTally) *tally
	from                 float64 // smallest value that the figure shows
}

func slowdown(c *crowdTally) *tally { return &c.slowdown }
func severe(c *crowdTally) *tally   { return &c.severe }
func utility(group int) func(*crowdTally) *tally {
	return func(c *crowdTally) *tally { return &c.utility[group] }
}

var paperFigures = []figure{
	{"2", "Bounded slowdown (figure 2)", "mean bounded slowdown", []run{honestFirst, shadeFirst}, slowdown, 0},
	{"3", "Severely slowed jobs (figure 3)", "severely slowed, %", []run{honestFirst, shadeFirst}, severe, 0},
	{"4", "Bounded slowdown of the aggressive by algorithm (figure 4)", "mean bounded slowdown", []run{shadeFirst, shadeNPHB, shadeWSPT, shadeWSEPT}, slowdown, 0},
	{"5", "Severely slowed jobs of the aggressive by algorithm (figure 5)", "severely slowed, %", []run{shadeFirst, shadeNPHB, shadeWSPT, shadeWSEPT}, severe, 0},
	{"6a", "Utility at first price, group A (figure 6a)", "mean utility", []run{honestFirst, shadeFirst}, utility(0), 0},
	{"6b", "Utility at first price, group B (figure 6b)", "mean utility", []run{honestFirst, shadeFirst}, utility(1), 0},
	{"6c", "Utility at first price, group C (figures 6c, 7a)", "mean utility", []run{honestFirst, shadeFirst}, utility(groupC), 0},
	{"7b", "Utility at first price of high values, group C (figure 7b)", "mean utility", []run{honestFirst, shadeFirst}, utility(groupC), highValue},
	{"7c", "Utility at k-th price of high values, group C (figure 7c)", "mean utility", []run{honestKth, shadeKth}, utility(groupC), highValue},
	{"8", "Utility at both prices of high values, group C (figure 8)", "mean utility", []run{honestFirst, shadeFirst, honestKth, shadeKth}, utility(groupC), highValue},
}

func (r run) String() string {
	if r.shades {
		return fmt.Sprintf("%s, %s price, aggressive", r.algorithm, r.price)
	}
	return fmt.Sprintf("%s, %s price, all honest", r.algorithm, r.price)
}

// drawCurves draws the figures of a study. The result `numbers` has the drawn curves. Its keys are first the name of
// the figure, and then the run.
func drawCurves(name string, of map[run]*crowdTally) (out []*study.Figure, numbers map[string]map[string]curve) {
	numbers = map[string]map[string]curve{}
	for _, f := range paperFigures {
		numbers[f.name] = map[string]curve{}
		p := study.NewFigure(name+"-"+f.name, "private value", f.label)
		for k, r := range f.runs {
			c := f.of(of[r]).curve()
			numbers[f.name][r.String()] = c
			from, _ := slices.BinarySearch(c.Value, f.from)
			p.Line(r.String(), k, c.Value[from:], c.Mean[from:])
		}
		out = append(out, p)
	}
	return out, numbers
}

func curvesPage(of map[run]*crowdTally, jobs, seeds int) *study.Page {
	p := study.NewPage("Slowdown and utility by private value on the LPC log (Shudler et al., figures 2 to 8)")
	p.Text("%d serial jobs on %d nodes, %d seeds; means over jobs by private value, in steps of %d. \"All honest\" is all jobs when everybody bids the value; "+
		"\"aggressive\" the tenth that shades by up to 90 %%, when the others shade by up to 10 %%.", jobs, lpc.nodes, seeds, binWidth)
	for _, f := range paperFigures {
		p.Figure(figuresName+"-"+f.name, f.caption)
	}
	p.Section("Same, better, different")
	curvesVerdict(p, of)
	return p
}

// claim has a sentence of the paper, two of our numbers, and whether these numbers confirm the sentence.
type claim struct {
	paper string
	a, b  float64
	holds bool
}

func below(paper string, a, b float64) claim { return claim{paper, a, b, a < b} }

// about returns a claim that a and b are about equal. It holds if they differ by at most 3 %.
func about(paper string, a, b float64) claim {
	return claim{paper, a, b, a/b > 0.97 && a/b < 1.03}
}

// curvesVerdict checks the paper's statements about its figures. If a statement is about low values, curvesVerdict
// takes the values below highValue.
func curvesVerdict(p *study.Page, of map[run]*crowdTally) {
	for _, c := range claimsOf(of) {
		p.Claim(c.holds, c.paper, "%.5g and %.5g, in the order named", c.a, c.b)
	}
}

type claims []claim

func claimsOf(of map[run]*crowdTally) claims {
	low := func(r run, t func(*crowdTally) *tally) float64 { return t(of[r]).mean(0, highValue) }
	high := func(r run, t func(*crowdTally) *tally) float64 { return t(of[r]).mean(highValue, bins*binWidth) }
	return []claim{
		below("Shading raises the slowdown of low bids (figure 2).", low(honestFirst, slowdown), low(shadeFirst, slowdown)),
		below("It raises that of high bids a little as well.", high(honestFirst, slowdown), high(shadeFirst, slowdown)),
		below("More low bids are severely slowed (figure 3).", low(honestFirst, severe), low(shadeFirst, severe)),
		below("WSPT slows low bids less than WSEPT (figure 4).", low(shadeWSPT, slowdown), low(shadeWSEPT, slowdown)),
		below("WSEPT slows low bids less than HB.", low(shadeWSEPT, slowdown), low(shadeFirst, slowdown)),
		below("HB slows low bids less than NPHB.", low(shadeFirst, slowdown), low(shadeNPHB, slowdown)),
		below("HB slows high bids less than NPHB.", high(shadeFirst, slowdown), high(shadeNPHB, slowdown)),
		below("HB has fewer severely slowed jobs than NPHB (figure 5).", low(shadeFirst, severe), low(shadeNPHB, severe)),
		below("HB has fewer severely slowed jobs than WSPT.", low(shadeFirst, severe), low(shadeWSPT, severe)),
		below("At first price low values of group A lose by shading (figure 6).", low(shadeFirst, utility(0)), low(honestFirst, utility(0))),
		below("So do those of group B.", low(shadeFirst, utility(1)), low(honestFirst, utility(1))),
		below("So do those of group C.", low(shadeFirst, utility(groupC)), low(honestFirst, utility(groupC))),
		below("High values of group C gain by it (figure 7b).", high(honestFirst, utility(groupC)), high(shadeFirst, utility(groupC))),
		about("At k-th price they gain nothing (figure 7c).", high(shadeKth, utility(groupC)), high(honestKth, utility(groupC))),
		below("k-th price gives the honest of high value more than first price (figure 8).", high(honestFirst, utility(groupC)), high(honestKth, utility(groupC))),
		below("It gives the aggressive more as well.", high(shadeFirst, utility(groupC)), high(shadeKth, utility(groupC))),
	}
}
