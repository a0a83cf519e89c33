package gu

import (
	"fmt"
	"slices"

	"github.com/candor-grid/candor/cmd/lab/internal/study"
)

func (n *figureNumbers) plots() (out []*study.Figure) {
	x := study.Each(n.ByCapacity, func(p *point) float64 { return p.Capacity })
	for _, f := range []struct {
		suffix, label string
		lines         []string
		of            func(*point) []float64
	}{
		{"value", "total value", []string{"offline", "paper's rule, λ = 0.6", "λ = 0", "monotone, λ = 0.6"},
			func(p *point) []float64 {
				return []float64{p.Offline, p.Paper.Value, p.Plain.Value, p.Monotone.Value}
			}},
		{"tasks", "tasks completed", []string{"offline", "paper's rule, λ = 0.6", "λ = 0", "monotone, λ = 0.6"},
			func(p *point) []float64 {
				return []float64{float64(p.OffTasks), float64(p.Paper.Tasks), float64(p.Plain.Tasks), float64(p.Monotone.Tasks)}
			}},
		{"payments", "credits", []string{"value, monotone", "payments, monotone", "payments, λ = 0"},
			func(p *point) []float64 {
				return []float64{p.Monotone.Value, p.Monotone.Payments, p.Plain.Payments}
			}},
		{"groups", "credits", []string{"value, one pool", "value, five groups", "payments, one pool", "payments, five groups"},
			func(p *point) []float64 {
				return []float64{p.Monotone.Value, p.Grouped.Value, p.Monotone.Payments, p.Grouped.Payments}
			}},
	} {
		p := study.NewFigure(figuresName+"-"+f.suffix, "capacity over average capacity", f.label)
		p.Y.Cover(0)
		p.Lines(f.lines, x, func(k int) []float64 { return f.of(&n.ByCapacity[k]) })
		out = append(out, p)
	}
	p := study.NewFigure(figuresName+"-lambda", "λ", "value over its bound")
	for k, r := range n.ByLambda {
		p.Line(fmt.Sprintf("C = %v of average, paper's rule", r.Capacity), k, lambdas, r.Paper)
		p.Points(fmt.Sprintf("C = %v of average, ours", r.Capacity), k, lambdas, r.Monotone)
	}
	return append(out, p)
}

func (n *figureNumbers) page() *study.Page {
	p := study.NewPage("Deadlines on the RICC log (Gu et al., table 6 and figures 3 to 7)")
	p.Text("Records 101 to 10,100, between 100 and 3,000 others that compete. The paper's rule is v/(l−λe); rule monotone is ours, truthful at every λ; " +
		"at λ = 0 they are one.")
	p.Table([]string{"", "ours", "paper"}, [][]string{
		{"tasks", fmt.Sprint(n.Tasks), "318265"},
		{"average length", fmt.Sprintf("%.1f", n.AverageLength), "30.3"},
		{"average capacity", fmt.Sprintf("%.0f", n.AverageCapacity), "4018"},
	})
	p.Section("Value, tasks and payments by capacity (figures 3, 4, 6, 7)")
	p.Table([]string{"C over average", "slots", "offline value", "paper's rule, λ = 0.6", "λ = 0", "monotone, λ = 0.6", "tasks: offline", "paper's", "monotone",
		"payments λ = 0", "monotone", "monotone in five groups", "value in five groups"}, n.capacityRows())
	p.Figure(figuresName+"-value", "Total value (figure 3)")
	p.Figure(figuresName+"-tasks", "Tasks completed (figure 4)")
	p.Figure(figuresName+"-payments", "Payments, at full scale (figure 6)")
	p.Figure(figuresName+"-groups", "One pool and five groups (figure 7)")
	p.Section("λ (figure 5)")
	p.Text("The paper divides by its offline value, which is no bound: its time ends with the last arrival, and tasks go on until their deadlines, so that the online value " +
		"is larger where most tasks come in a short time. Here the online value is divided by what the densest tasks are worth that fit into all slots until the last deadline.")
	p.Table(append([]string{"C over average", "rule"}, study.Cells("λ = %v", lambdas...)...), n.lambdaRows())
	p.Figure(figuresName+"-lambda", "Value over its bound: lines the paper's rule, points rule monotone (figure 5)")
	n.verdict(p)
	return p
}

func (n *figureNumbers) capacityRows() (out [][]string) {
	for _, p := range n.ByCapacity {
		out = append(out, slices.Concat([]string{fmt.Sprint(p.Capacity), fmt.Sprint(p.Slots)},
			study.Cells("%.4g", p.Offline, p.Paper.Value, p.Plain.Value, p.Monotone.Value),
			[]string{fmt.Sprint(p.OffTasks), fmt.Sprint(p.Paper.Tasks), fmt.Sprint(p.Monotone.Tasks)},
			study.Cells("%.4g", p.Plain.Payments, p.Monotone.Payments, p.Grouped.Payments, p.Grouped.Value)))
	}
	return out
}

func (n *figureNumbers) lambdaRows() (out [][]string) {
	for _, r := range n.ByLambda {
		at := fmt.Sprint(r.Capacity)
		out = append(out, append([]string{at, "paper"}, study.Cells("%.4f", r.Paper...)...),
			append([]string{at, "monotone"}, study.Cells("%.4f", r.Monotone...)...))
	}
	return out
}

// verdict compares our numbers with the claims in the paper's text. It cannot use the paper's figures, because they
// print no numbers.
func (n *figureNumbers) verdict(p *study.Page) {
	first, mean, last := &n.ByCapacity[0], &n.ByCapacity[3], &n.ByCapacity[len(n.ByCapacity)-1]
	grows, falls, groups := true, true, true
	for k := 1; k < len(n.ByCapacity); k++ {
		a, b := &n.ByCapacity[k-1], &n.ByCapacity[k]
		grows = grows && b.Paper.Value >= a.Paper.Value && b.Paper.Tasks >= a.Paper.Tasks
		falls = falls && b.Monotone.Payments <= a.Monotone.Payments
	}
	for k := range n.ByCapacity {
		groups = groups && n.ByCapacity[k].Grouped.Payments >= n.ByCapacity[k].Monotone.Payments
	}
	p.Section("Same, better, different")
	p.Claim(grows, "Total value and tasks grow with capacity.", "%.3g to %.3g, %d to %d tasks",
		first.Paper.Value, last.Paper.Value, first.Paper.Tasks, last.Paper.Tasks)
	p.Claim((last.Paper.Value-mean.Paper.Value)/4 < (mean.Paper.Value-first.Paper.Value)/3, "Value grows more slowly above the average capacity.",
		"%+.2g for the first average above a quarter, %+.2g for the one above the average",
		mean.Paper.Value-first.Paper.Value, last.Paper.Value-mean.Paper.Value)
	scarce, ample := n.ByLambda[0].spread(), n.ByLambda[len(n.ByLambda)-1].spread()
	p.Claim(scarce > ample, "λ matters most where capacity is short.",
		"from the worst λ to the best, the ratio moves by %.4f at a quarter of the average, %.4f at the average", scarce, ample)
	p.Claim(falls, "Payments fall as capacity grows.", "%.3g at a quarter, %.3g at the average, %.3g at twice the average",
		first.Monotone.Payments, mean.Monotone.Payments, last.Monotone.Payments)
	p.Claim(groups, "Five random groups pay more than one pool.", "%.3g instead of %.3g at the average capacity, for %.1f %% less value",
		mean.Grouped.Payments, mean.Monotone.Payments, 100*(1-mean.Grouped.Value/mean.Monotone.Value))
	p.Text("Groups pay more where a pool has few slots, so that its tasks compete unevenly: the paper's pool is a sixteenth of this one. At full scale a fifth of " +
		"the slots with a fifth of the tasks sees about the prices of the whole.")
	p.Text("- Different: the average capacity. By the paper's equation 15, its own 318,265 tasks of 30.3 units over 4,018 slots are 2,400 units, but the records " +
		"arrive within 1,470. Ours is the equation's; the paper's is 0.61 of it.")
	p.Text("- Better: payments are of all tasks of the 10,000 records; the paper has them for 1,000 records with 16 tasks taken as one. They are those of rules " +
		"that are truthful; the critical values of the paper's rule with λ > 0 do not make it so.")
}

// spread looks at the ratios that the paper's rule reached with the different λ. It returns the largest ratio minus the
// smallest.
func (r *ratio) spread() float64 {
	return slices.Max(r.Paper) - slices.Min(r.Paper)
}
