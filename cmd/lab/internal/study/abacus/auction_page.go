package abacus

import (
	"fmt"
	"slices"

	"github.com/candor-grid/candor/cmd/lab/internal/study"
)

var kinds = []string{"linear", "log"}

// figures draws two figures for each axis: the number of rounds and the time, each with its 95 % quantiles.
func (n auctionNumbers) figures() (out []*study.Figure) {
	for _, sw := range sweeps {
		rounds := study.NewFigure(auctionName+"-rounds-"+sw.name, sw.label, "rounds: means, and 95 % quantiles as points")
		times := study.NewFigure(auctionName+"-time-"+sw.name, sw.label, "milliseconds: medians, and 95 % quantiles as points")
		for k, kind := range kinds {
			of := n[sw.name][kind]
			both := func(f *study.Figure, name string, style int, line, points func(*measured) float64) {
				f.Line(kind+", "+name, style, sw.at, study.Each(of, line))
				f.Points("", style, sw.at, study.Each(of, points))
			}
			both(rounds, "rows that settle", k, func(m *measured) float64 { return m.Rounds }, func(m *measured) float64 { return m.Rounds95 })
			both(rounds, "single steps", k+2, func(m *measured) float64 { return m.Steps }, func(m *measured) float64 { return m.Steps95 })
			both(times, "single steps to 1e-12", k, func(m *measured) float64 { return m.Millis }, func(m *measured) float64 { return m.Millis95 })
			both(times, "our solver", k+2, func(m *measured) float64 { return m.Solver }, func(m *measured) float64 { return m.Solver95 })
		}
		out = append(out, rounds, times)
	}
	return out
}

func (n auctionNumbers) page(runs int) *study.Page {
	p := study.NewPage("How long the auction takes (Abacus, figures 6 to 8)")
	p.Text("%d runs of each setting; %d users, %d types of resources and α = %v where not varied; budgets from U[50, 200], weights from U[0.5, 2]. "+
		"Rounds are counted until no sub-budget moves by more than %v of its budget, half a percent, since the paper does not say when rounds are equal, "+
		"and works in whole dollars.", runs, usual.users, usual.classes, usual.alpha, coarse)
	for _, sw := range sweeps {
		p.Section("Against " + sw.label)
		p.Table([]string{sw.label, "utility", "rounds, rows that settle", "95 %", "rounds, single steps", "95 %", "single steps to 1e-12",
			"their ms", "95 %", "our solver's passes", "its ms", "95 %"}, n.rows(sw.name))
		p.Figure(auctionName+"-rounds-"+sw.name, "Rounds against "+sw.label+" (figures 6 and 7)")
		p.Figure(auctionName+"-time-"+sw.name, "Time against "+sw.label+" (figure 8)")
	}
	n.verdict(p)
	return p
}

func (n auctionNumbers) rows(axis string) (out [][]string) {
	for _, kind := range kinds {
		for _, m := range n[axis][kind] {
			out = append(out, slices.Concat([]string{fmt.Sprint(m.At), kind},
				study.Cells("%.1f", m.Rounds, m.Rounds95, m.Steps, m.Steps95, m.Exact), study.Cells("%.3f", m.Millis, m.Millis95),
				study.Cells("%.1f", m.Passes), study.Cells("%.3f", m.Solver, m.Solver95)))
		}
	}
	return out
}

// verdict compares our numbers with the few numbers that the text of the paper gives.
func (n auctionNumbers) verdict(p *study.Page) {
	users, resources, alpha := n["users"], n["resources"], n["alpha"]
	within, all, gap := 0, 0, 0.0
	for _, axis := range n {
		for _, of := range axis {
			for _, m := range of {
				all++
				if m.Rounds <= 5 {
					within++
				}
				gap = max(gap, m.Rounds95-m.Rounds)
			}
		}
	}
	first := func(of []measured) measured { return of[0] }
	last := func(of []measured) measured { return of[len(of)-1] }
	p.Section("Same, better, different")
	p.Claim(2*within > all, "It takes no more than 5 rounds in most settings.", "rows that settle need no more in %d of %d settings", within, all)
	p.Claim(last(users["linear"]).Rounds < first(users["linear"]).Rounds && last(users["log"]).Rounds <= first(users["log"]).Rounds,
		"More users make it faster.", "from %.2f to %.2f rounds (linear) and %.2f to %.2f (log) from 8 to 128 users",
		first(users["linear"]).Rounds, last(users["linear"]).Rounds, first(users["log"]).Rounds, last(users["log"]).Rounds)
	p.Claim(last(resources["linear"]).Rounds >= first(resources["linear"]).Rounds-0.1, "More types of resources make it slightly slower.",
		"from %.2f to %.2f rounds (linear), from 2 types to 10", first(resources["linear"]).Rounds, last(resources["linear"]).Rounds)
	middle, steep := alpha["linear"][2].Rounds, last(alpha["linear"]).Rounds
	p.Claim(steep > 1.5*middle && steep < 2.5*middle, "With linear utilities rounds almost double from α = 0.5 to 0.9.",
		"%.1f and %.1f rounds", middle, steep)
	p.Claim(last(alpha["log"]).Rounds < first(alpha["log"]).Rounds+0.5, "With log utilities they do not depend on α.",
		"%.1f rounds at 0.1, %.1f at 0.9", first(alpha["log"]).Rounds, last(alpha["log"]).Rounds)
	p.Claim(gap < 2.5, "95 % quantiles are close to the means.", "at most %.1f rounds above", gap)
	slowest := max(last(users["linear"]).Millis, last(users["log"]).Millis)
	p.Text("- Better: 128 users take the paper 7 ms; ours take %.2f ms by rounds, to 1e-12 of each budget, and %.2f ms by our solver, on this machine. "+
		"Our solver finds the fixed point for what the jobs face instead of for what they bid, in 3 to 5 passes; above α = 0.5, where fixed points can be several, "+
		"it does the paper's rounds.", slowest, max(last(users["linear"]).Solver, last(users["log"]).Solver))
	p.Text("Single steps, one to a job in a round, need more rounds and less work: a row that settles takes tens of steps. At α = 0.9 linear jobs need "+
		"%.0f single-step rounds to 1e-12, for moves shrink by about α in each.", last(alpha["linear"]).Exact)
}
