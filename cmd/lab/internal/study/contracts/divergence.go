package contracts

import (
	"fmt"
	"math"
	"slices"

	"github.com/candor-grid/candor/cmd/lab/internal/study"
	"github.com/candor-grid/candor/estimator/density"
)

const divergenceName = "contracts-divergence"

// Divergence is the study of figure 7 of the contracts paper.
var Divergence = study.Study{
	Name:  divergenceName,
	About: "figure 7: the divergence of estimated types from the true ones, against the number of samples",
	Run:   divergence,
}

// sampleCounts are the counts for which the figure is drawn.
var sampleCounts = []int{5, 10, 20, 30, 50, 75, 100, 150, 200}

// The number of repetitions is the one in the paper. The paper does not give the number of draws from which a
// divergence is computed, so it is our choice.
const (
	repetitions      = 1000
	quickRepetitions = 20
	draws            = 1000
	quickDraws       = 300
)

// rules are the two rules for the bandwidth that are compared. The paper does not say which rule it used; it only cites
// a book with several rules. Silverman's rules are left out, because in two dimensions they equal Scott's.
var rules = []density.Rule{density.ScottFull, density.ScottDiag}

// point has results for one number of samples: the mean and the variance of the divergence, in nats, over the
// repetitions.
type point struct {
	Samples  int     `json:"samples"`
	Mean     float64 `json:"mean"`
	Variance float64 `json:"variance"`
}

// divergenceNumbers has the results for each rule of bandwidth.
type divergenceNumbers map[density.Rule][]point

func divergence(o study.Options) (*study.Report, error) {
	times, each := study.Sized(o, repetitions, quickRepetitions), study.Sized(o, draws, quickDraws)
	n := divergenceNumbers{}
	for _, rule := range rules {
		points, err := convergence(figure7(), rule, sampleCounts, times, each, o.Seed)
		if err != nil {
			return nil, err
		}
		n[rule] = points
	}
	return &study.Report{Numbers: n, Page: n.page(times, each), Figures: n.figures()}, nil
}

func (n divergenceNumbers) figures() []*study.Figure {
	mean := study.NewFigure(divergenceName+"-mean", "samples", "mean divergence, nats")
	variance := study.NewFigure(divergenceName+"-variance", "samples", "variance of the divergence")
	for k, rule := range rules {
		x := study.Each(n[rule], func(p *point) float64 { return float64(p.Samples) })
		mean.Line(string(rule), k, x, study.Each(n[rule], func(p *point) float64 { return p.Mean }))
		variance.Line(string(rule), k, x, study.Each(n[rule], func(p *point) float64 { return p.Variance }))
	}
	return []*study.Figure{mean, variance}
}

func (n divergenceNumbers) page(times, each int) *study.Page {
	p := study.NewPage("How many samples an estimate of types takes (Huang et al., figure 7)")
	p.Text("Types (μ, δ), normal around (2000, 1000) with standard deviations 1000 and 500. For each number of samples an estimate is made %d times, and its "+
		"Kullback-Leibler divergence from the truth taken from %d draws. Nats.", times, each)
	head := []string{"samples"}
	for _, rule := range rules {
		head = append(head, string(rule)+": mean", "variance")
	}
	var rows [][]string
	for i, samples := range sampleCounts {
		row := []string{fmt.Sprint(samples)}
		for _, rule := range rules {
			row = append(row, fmt.Sprintf("%.4f", n[rule][i].Mean), fmt.Sprintf("%.5f", n[rule][i].Variance))
		}
		rows = append(rows, row)
	}
	p.Table(head, rows)
	p.Figure(divergenceName+"-mean", "Mean of the divergence (figure 7)")
	p.Figure(divergenceName+"-variance", "Variance of the divergence (figure 7)")
	n.verdict(p)
	return p
}

// The method `at` returns the measured point with the given number of samples, for the bandwidth rule that our
// estimator uses (density.ScottFull). If there is none, the values of the point are NaN.
func (n divergenceNumbers) at(samples int) point {
	of := n[density.ScottFull]
	if k := slices.IndexFunc(of, func(p point) bool { return p.Samples == samples }); k >= 0 {
		return of[k]
	}
	return point{Samples: samples, Mean: math.NaN(), Variance: math.NaN()}
}

// verdict judges two statements of the paper about the divergence, which is measured in nats (natural logarithms). The
// first is that the variance becomes nearly zero: it must become at most a hundredth of the variance with the fewest
// samples. The second is that the mean converges from some number of samples on: four times as many samples must lower
// the mean by less than 0.1 nats.
func (n divergenceNumbers) verdict(p *study.Page) {
	five, twenty, fifty, last := n.at(5), n.at(20), n.at(50), n.at(200)
	p.Section("Same, better, different")
	p.Claim(twenty.Variance < five.Variance/100, "The variance is nearly zero after 20 samples.",
		"%.3g with 5, %.3g with 20, %.3g with 50 (%s), where nearly zero is taken as a hundredth of that with 5",
		five.Variance, twenty.Variance, fifty.Variance, density.ScottFull)
	p.Claim(fifty.Mean-last.Mean < 0.1, "The mean has converged after 50 samples.", "%.3f nats with 5, %.3f with 20, %.3f with 50, and still falling, to %.3f with 200",
		five.Mean, twenty.Mean, fifty.Mean, last.Mean)
	p.Text("With 20 samples the divergence still deviates by %.2f nats around its mean: that one estimate is as good as another cannot be said before 50, where it "+
		"deviates by %.2f.", math.Sqrt(twenty.Variance), math.Sqrt(fifty.Variance))
	p.Text("The paper's text gives no numbers of its curves, nor its rule of bandwidth. Silverman's rules are Scott's in two dimensions. From few samples the rule with " +
		"a diagonal matrix is nearer to these types, whose coordinates are independent; it cannot follow types whose are not.")
}
