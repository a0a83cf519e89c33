package contracts

import (
	"fmt"
	"math"

	"github.com/candor-grid/candor/cmd/lab/internal/study"
)

// tie is the largest difference, in credits, of two utilities that count as equal: the rounding error of the matching.
const tie = 1e-9

func (c *competition) figures() []*study.Figure {
	prices := study.NewFigure(c.named("prices"), "expected completion, seconds", "price, credits")
	utilities := study.NewFigure(c.named("utilities"), "expected completion, seconds", "value minus price, credits")
	for k, m := range c.Menus {
		name, own := fmt.Sprintf("μ = %.0f, δ = %.0f", m.Mu, m.Delta), m.Contracts[m.Declared]
		x := study.Each(m.Contracts, func(c *offered) float64 { return c.Completion })
		prices.Line(name, k, x, study.Each(m.Contracts, func(c *offered) float64 { return c.Price }))
		prices.Points("", k, []float64{own.Completion}, []float64{own.Price})
		utilities.Line(name, k, x, study.Each(m.Contracts, func(c *offered) float64 { return c.Utility }))
		utilities.Points("", k, []float64{own.Completion}, []float64{own.Utility})
	}
	return []*study.Figure{prices, utilities}
}

// named returns the file name of a figure: menusName, the suffix, and the number of other jobs that wait in this case.
func (c *competition) named(suffix string) string {
	return fmt.Sprintf("%s-%s-%d", menusName, suffix, c.Others)
}

func menusPage(numbers []competition) *study.Page {
	p := study.NewPage("Menus of contracts (Huang et al., figures 4 and 5)")
	p.Text("Four jobs, each offered %d contracts; types estimated from 500 truthful samples. The utility of a contract is the user's value of its completion less its "+
		"price. The paper does not report the competition it had; here other jobs with %d s of work on average wait, few or many.", replicas, workSeconds)
	for k := range numbers {
		c := &numbers[k]
		p.Section(fmt.Sprintf("Beside %d others", c.Others))
		p.Table([]string{"μ", "δ", "completions, s", "prices", "earliest free, s", "best contract, s", "its utility", "its own type's, s", "its utility"}, c.rows())
		p.Figure(c.named("prices"), "Prices by completion (figure 4); points are the contracts of the users' own types")
		p.Figure(c.named("utilities"), "Utilities by completion (figure 5)")
		c.verdict(p)
	}
	p.Section("Same, better, different")
	p.Text("Each section above ends with the paper's sentences and what is so beside as many others. Utility can only be largest near μ if the scheduler has " +
		"completions near μ on offer and an earlier one has a price: where all jobs can be done early, everything is free. Where more work waits than deadlines " +
		"allow, prices take nearly all of what a job is worth to a user without patience.")
	return p
}

func (c *competition) rows() (rows [][]string) {
	for _, m := range c.Menus {
		first, last := m.Contracts[0], m.Contracts[len(m.Contracts)-1]
		best, own := m.Contracts[m.Best], m.Contracts[m.Declared]
		rows = append(rows, []string{fmt.Sprintf("%.0f", m.Mu), fmt.Sprintf("%.0f", m.Delta), fmt.Sprintf("%.0f to %.0f", first.Completion, last.Completion),
			fmt.Sprintf("%.2f to %.2f", last.Price, first.Price), m.freeFrom(), fmt.Sprintf("%.0f", best.Completion), fmt.Sprintf("%.2f", best.Utility),
			fmt.Sprintf("%.0f", own.Completion), fmt.Sprintf("%.2f", own.Utility)})
	}
	return rows
}

func (m *menu) freeFrom() string {
	if m.Free < 0 {
		return "none"
	}
	return fmt.Sprintf("%.0f", m.Contracts[m.Free].Completion)
}

func (c *competition) verdict(p *study.Page) {
	falls, free, low, near, own, farthest, short := true, 0, 0, 0, 0, 0.0, 0.0
	for k := range c.Menus {
		m := &c.Menus[k]
		top, after := m.Contracts[0].Price, 0.0
		for i := 1; i < len(m.Contracts); i++ {
			falls = falls && m.Contracts[i].Price <= m.Contracts[i-1].Price+tie
		}
		for _, c := range m.Contracts {
			if c.Completion > m.Mu+m.Delta {
				after = max(after, c.Price)
			}
		}
		if m.Free >= 0 {
			free++
		}
		if after <= top/2 {
			low++
		}
		away := math.Abs(m.Contracts[m.Best].Completion - m.Mu)
		if farthest = max(farthest, away); away <= m.Delta {
			near++
		}
		lost := m.Contracts[m.Best].Utility - m.Contracts[m.Declared].Utility
		if short = max(short, lost); lost <= tie {
			own++
		}
	}
	n := len(c.Menus)
	p.Claim(falls, "Better service never costs less.", "prices do not rise with completion on any of the %d menus: %t", n, falls)
	p.Claim(free == n, "There always is a free contract.", "on %d of %d menus", free, n)
	p.Claim(low == n, "Prices are low after the job's deadline.", "no contract beyond μ+δ costs more than half of the dearest on %d of %d menus", low, n)
	p.Claim(near == n, "Utility is largest at a completion around μ.", "within δ of μ for %d of %d jobs, at most %.0f s away", near, n, farthest)
	p.Claim(own == n, "The contract of one's own type is the best.", "for %d of %d jobs; at most %.3g credits are lost by taking it", own, n, short)
}
