package shudler

import (
	"fmt"
	"strings"

	"github.com/candor-grid/candor/cmd/lab/internal/study"
)

func (r *results) page(name string) *study.Page {
	p := study.NewPage("Payoffs in a market on the LPC log (Shudler et al., tables II and III)")
	p.Text("%d serial jobs on %d nodes, %d seeds. Each cell: the designer's payoff, the payoff of the aggressive users of group C; "+
		"mean and half of the 95 %% confidence interval, and in parentheses the paper's number.", r.jobs, lpc.nodes, r.seeds)
	for s, title := range []string{"First price (table II)", "k-th price (table III)"} {
		p.Section(title)
		p.Table(betaHead(), tableRows(func(a, b int) string {
			return fmt.Sprintf("%s (%.3f), %s (%.3f)", r.designer[s][a][b], paperDesigner[s][a][b], r.users[groupC][s][a][b], paperUsers[s][a][b])
		}))
	}
	p.Figure(name+"-users", "Payoff of the aggressive users of group C: lines ours, points the paper's.")
	p.Figure(name+"-designer", "Payoff of the designer: lines ours, points the paper's.")
	r.verdict(p)
	r.equilibriaOn(p)
	p.Section("Groups A and B")
	p.Text("The users' payoffs of the two groups of shorter jobs. The paper calls its own nearly identical to group C's and does not print them. " +
		"Here they differ: short jobs that bid low wait a long time relative to their length, so that in these groups shading never pays under preemptive " +
		"highest bid, at either price.")
	for s, price := range prices {
		for g, group := range []string{"A", "B"} {
			p.Text("Group %s, %s price:", group, price)
			p.Table(betaHead(), tableRows(func(a, b int) string { return r.users[g][s][a][b].String() }))
		}
	}
	return p
}

func betaHead() []string {
	return append([]string{"algorithm"}, study.Each(betas, func(b *float64) string { return fmt.Sprintf("β = %.0f %%", 100**b) })...)
}

func tableRows(cell func(algorithm, beta int) string) (out [][]string) {
	for a, algorithm := range algorithms {
		row := []string{string(algorithm)}
		for b := range betas {
			row = append(row, cell(a, b))
		}
		out = append(out, row)
	}
	return out
}

func (r *results) verdict(p *study.Page) {
	p.Section("Same, better, different")
	for _, c := range []struct {
		who   string
		ours  *estimates
		paper *matrix
	}{{"users'", &r.users[2], &paperUsers}, {"designer's", &r.designer, &paperDesigner}} {
		within, same, worst := c.ours.compare(c.paper)
		p.Text("- Of the %s 42 payoffs, the paper's number is within %.2f of ours in %d, and inside our confidence interval in %d; the largest difference is %+.3f.",
			c.who, near, same, within, worst)
	}
	p.Text("What can differ: the paper counts 219,704 jobs where the cleaned log has 220,695 that ran, and gives one set of draws without a spread; " +
		"our intervals are over values, shading and who is aggressive, with the log as it is. The paper's k-th price under WSPT is read as capped at a job's " +
		"own bid, and its normalised utility as the best over the utility, since utilities are negative.")
}

func (r *results) equilibriaOn(p *study.Page) {
	p.Section("Equilibria")
	designer, users := r.designer.means(), r.users[2].means()
	for s, price := range prices {
		p.Text("- %s price: %s; in the paper's numbers %s.", price,
			named(equilibria(&designer[s], &users[s])), named(equilibria(&paperDesigner[s], &paperUsers[s])))
	}
}

func named(cells []cell) string {
	if len(cells) == 0 {
		return "no pure equilibrium"
	}
	var out []string
	for _, c := range cells {
		out = append(out, fmt.Sprintf("%s with β = %.0f %%", algorithms[c.algorithm], 100*betas[c.beta]))
	}
	return strings.Join(out, ", ")
}
