package shapes

import (
	"fmt"
	"math"

	"github.com/candor-grid/candor/cmd/lab/internal/study"
	"github.com/candor-grid/candor/deploy/simulated/rules"
)

const hour = 3600

func page(numbers map[string][]*outcome) *study.Page {
	p := study.NewPage("Tasks with processors and memory in markets, on the log of RICC")
	for _, k := range kinds {
		of := numbers[k.Name]
		p.Section("Samples of " + k.Name)
		for _, x := range of {
			p.Text("Week %d: %d jobs on %d nodes. The packing sells %.1f %% of the slot time, and nobody more than %.1f %%.", x.Week, x.Jobs, x.Nodes, 100*x.Packing, 100*x.Bound)
		}
		p.Text("Means over the samples, with the least and the most. Waiting times are in hours. The last columns have the parts of the sold slot time that tasks of one slot, of two to seven and of eight slots received.")
		head := []string{"market", "sold, compared with the packing", "mean wait", "compared with `" + beside + "`", "median", "95 %", "1", "2 to 7", "8"}
		var rows [][]string
		for _, m := range mechanisms {
			row := []string{
				"`" + m + "`",
				over(of, "%.3f", func(x *outcome) float64 { return x.Markets[m].Sold / x.Packing }),
				over(of, "%.1f", func(x *outcome) float64 { return x.Markets[m].Mean / hour }),
				over(of, "%.2f", func(x *outcome) float64 { return x.Markets[m].Mean / x.Markets[beside].Mean }),
				over(of, "%.1f", func(x *outcome) float64 { return x.Markets[m].Median / hour }),
				over(of, "%.1f", func(x *outcome) float64 { return x.Markets[m].P95 / hour }),
			}
			for w := range 3 {
				row = append(row, over(of, "%.3f", func(x *outcome) float64 { return x.Markets[m].Shares[w] }))
			}
			rows = append(rows, row)
		}
		p.Table(head, rows)
		p.Text("In `proportional`, a part differs by %s from the part on one node with all slots, where no task waits until a node has its slots.",
			over(of, "%.3f", func(x *outcome) float64 { return differ(x.Markets[rules.Proportional], x.OneNode) }))
	}
	return p
}

// The function `over` writes the mean, the smallest and the largest value of a measure over all outcomes in `of`.
func over(of []*outcome, format string, measure func(*outcome) float64) string {
	sum, least, most := 0.0, math.Inf(1), math.Inf(-1)
	for _, x := range of {
		value := measure(x)
		sum, least, most = sum+value, min(least, value), max(most, value)
	}
	return fmt.Sprintf(format+" ("+format+" to "+format+")", sum/float64(len(of)), least, most)
}

// differ returns the largest difference between the shares of two results for the same width of tasks.
func differ(a, b *result) (most float64) {
	for w := range a.Shares {
		most = max(most, math.Abs(a.Shares[w]-b.Shares[w]))
	}
	return most
}
