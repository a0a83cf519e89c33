package abacus

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/candor-grid/candor/cmd/lab/internal/study"
)

func (n sloNumbers) figures() (out []*study.Figure) {
	for k, d := range settings {
		p := study.NewFigure(fmt.Sprintf("%s-%d", sloName, k+1), "workload over capacity", "profit over all budgets")
		for k, name := range schedulers {
			p.Estimates(name, k, rates, study.Each(n[d.Name], func(at *profits) study.Estimate { return at.Parts[k] }))
		}
		out = append(out, p)
	}
	return out
}

func (n sloNumbers) page(repeats int) *study.Page {
	p := study.NewPage("Profit from jobs with deadlines (Abacus, figure 14)")
	p.Text("The ten kinds of jobs of study %s on %d machines, submitted within %d minutes; a workload is the work of the jobs over what the class of slots that they ask most of can do in that time. "+
		"Budgets from U[%d, %d], earned if the job is completed by its deadline, of 500 to 1,000 seconds or normal around their mean, 12.5 minutes: the paper gives the variances 2 and 3, here in square minutes, "+
		"and neither mean nor budgets. %d repetitions; the same jobs under each scheduler.", efficiencyName, sloMachines, submitSeconds/60, leastBudget, mostBudget, repeats)
	p.Text("Abacus forms its pool of jobs by budget, each joining if all are estimated to be in time at the auction's shares; others have what the pool leaves, by chance. " +
		"ARIA serves jobs by deadline, each with the fewest slots that it needs to be in time. Both estimate by ARIA's bounds.")
	head := append([]string{"workload", "jobs"}, schedulers...)
	for k, d := range settings {
		p.Section("Deadlines: " + d.Name)
		var rows [][]string
		for _, at := range n[d.Name] {
			row := []string{fmt.Sprint(at.Rate), fmt.Sprintf("%.0f", at.Jobs)}
			for _, part := range at.Parts {
				row = append(row, part.String())
			}
			rows = append(rows, append(row, percent(at.Over)))
		}
		p.Table(append(head, "Abacus over ARIA"), rows)
		p.Figure(fmt.Sprintf("%s-%d", sloName, k+1), "Profit over all budgets, deadlines "+d.Name+" (figure 14)")
	}
	n.verdict(p)
	return p
}

func percent(e study.Estimate) string {
	return fmt.Sprintf("%+.1f ± %.1f %%", 100*e.Mean, 100*e.Half)
}

// competitive is the limit that we assume for the word "competitive" in the ABACUS paper. A profit is competitive if it
// is lower than ARIA's profit by at most this fraction.
const competitive = 0.1

// verdict compares our results with the paper. It makes one judgement for all settings and rates together, because the
// paper's text says only one sentence about this figure.
func (n sloNumbers) verdict(p *study.Page) {
	var all []profits
	for _, d := range settings {
		all = append(all, n[d.Name]...)
	}
	byOver := func(a, b profits) int { return cmp.Compare(a.Over.Mean, b.Over.Mean) }
	worst, best, worse := slices.MinFunc(all, byOver), slices.MaxFunc(all, byOver), 0
	for _, at := range all {
		if at.Over.Mean < -competitive {
			worse++
		}
	}
	p.Section("Same, better, different")
	p.Claim(worse == 0, "The overall profit is competitive with ARIA's.", "from %s, at workload %g, to %s, at workload %g; more than %.0f %% below in %d of %d settings",
		percent(worst.Over), worst.Rate, percent(best.Over), best.Rate, 100*competitive, worse, len(all))
	p.Text("Where there is more work than can be in time, the earliest deadline is that of the job that is nearest to being late: ARIA works on jobs until their deadlines pass, whatever they would " +
		"bring in, and few are completed before. Abacus postpones those it cannot fit, and takes those of larger budgets first. Where there is no more work than slots, " +
		"it loses a little by what its estimates, in whole slots, do not dare.")
}
