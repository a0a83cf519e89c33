package abacus

import (
	"fmt"
	"slices"

	"github.com/candor-grid/candor/cmd/lab/internal/study"
)

// The paper says that each of its estimates takes at most paperMillis milliseconds.
const paperMillis = 3

func (n *utilitiesNumbers) figures() []*study.Figure {
	scatter := study.NewFigure(utilitiesName+"-weights", "weight on map", "weight on reduce")
	scatter.X.Cover(0)
	scatter.Y.Cover(0)
	onMap := study.Each(n.Points, func(w *[]float64) float64 { return (*w)[0] })
	onReduce := study.Each(n.Points, func(w *[]float64) float64 { return (*w)[1] })
	widest := slices.Max(append([]float64{0}, onMap...))
	scatter.Points(fmt.Sprintf("from %d jobs", pointJobs), 0, onMap, onReduce)
	scatter.Line("true: 6 to 1", 1, []float64{0, widest}, []float64{0, widest / trueRatio})
	jobs := study.Each(n.ByJobs, func(r *recovery) float64 { return float64(r.Jobs) })
	variance := study.NewFigure(utilitiesName+"-variance", "jobs", "variance of the weights")
	methods := []string{"map, least squares", "reduce, least squares", "map, our estimate", "reduce, our estimate"}
	variance.Lines(methods, jobs, func(k int) []float64 {
		return slices.Concat(n.ByJobs[k].Plain.Variance[:], n.ByJobs[k].Estimate.Variance[:])
	})
	times := study.NewFigure(utilitiesName+"-time", "jobs", "milliseconds of an estimate")
	times.Lines([]string{"median", "slowest"}, jobs, func(k int) []float64 { return []float64{n.ByJobs[k].Millis, n.ByJobs[k].Slowest} })
	return []*study.Figure{scatter, variance, times}
}

func (n *utilitiesNumbers) page(repetitions int) *study.Page {
	p := study.NewPage("Weights recovered from runs (Abacus, figure 11)")
	p.Text("User 3 values map and reduce slots 6 to 1. Each of its jobs gets shares from U[0, 1], and its utility fluctuates by 5 %%; the paper's jobs ran on its "+
		"cluster, with shares and fluctuations that it does not report. %d repetitions of each number of jobs. Least squares is the paper's method; our estimate "+
		"also draws weights that the runs leave open towards a default of equal ones.", repetitions)
	p.Figure(utilitiesName+"-weights", fmt.Sprintf("%d estimates by least squares from %d jobs each, and the true ratio (figure 11a)", len(n.Points), pointJobs))
	var rows [][]string
	for _, r := range n.ByJobs {
		row := []string{fmt.Sprint(r.Jobs)}
		for _, e := range []estimator{r.Plain, r.Estimate} {
			row = append(row, fmt.Sprintf("%.2f", e.Ratio), fmt.Sprintf("%.0f %%", 100*e.Within), fmt.Sprintf("%.4f", e.Variance[0]), fmt.Sprintf("%.4f", e.Variance[1]))
		}
		rows = append(rows, append(row, study.Cells("%.3f", r.Millis, r.Slowest)...))
	}
	p.Table([]string{"jobs", "least squares: median ratio", "from 5 to 9", "variance, map", "reduce", "our estimate: median ratio", "from 5 to 9", "variance, map", "reduce",
		"ms", "slowest"}, rows)
	p.Figure(utilitiesName+"-variance", "Variance of the weights against the number of jobs (figure 11b)")
	p.Figure(utilitiesName+"-time", "Time of an estimate, with the drawing of its jobs (figure 11c)")
	n.verdict(p)
	return p
}

func (n *utilitiesNumbers) verdict(p *study.Page) {
	first, last, slowest := &n.ByJobs[0], &n.ByJobs[len(n.ByJobs)-1], 0.0
	for _, r := range n.ByJobs {
		slowest = max(slowest, r.Slowest)
	}
	p.Section("Same, better, different")
	p.Claim(first.Plain.Within > 0.5, "The ratio, truly 6, usually is from 5 to 9 with 5 jobs.", "it is in %.0f %% of the repetitions, and %.2f in the median",
		100*first.Plain.Within, first.Plain.Ratio)
	p.Claim(last.Plain.Variance[0] < first.Plain.Variance[0]/4 && last.Plain.Variance[1] < first.Plain.Variance[1]/4,
		"The variance plunges as the number of jobs increases.", "from %d to %d jobs that of the weight on map falls from %.3f to %.4f, on reduce from %.3f to %.4f",
		first.Jobs, last.Jobs, first.Plain.Variance[0], last.Plain.Variance[0], first.Plain.Variance[1], last.Plain.Variance[1])
	p.Claim(slowest <= paperMillis, "Every estimate finishes within 3 ms.", "the slowest takes %.2f ms on this machine, the median %.3f ms or less", slowest, last.Millis)
	if first.Estimate.Variance[0] < first.Plain.Variance[0] && first.Estimate.Variance[1] < first.Plain.Variance[1] {
		p.Text("- Better: from %d jobs, our estimate varies less than least squares do: %.3f instead of %.3f on map, %.3f instead of %.3f on reduce.", first.Jobs,
			first.Estimate.Variance[0], first.Plain.Variance[0], first.Estimate.Variance[1], first.Plain.Variance[1])
	}
}
