package simulate

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"

	"github.com/candor-grid/candor/deploy/simulated/core"
	"github.com/candor-grid/candor/deploy/simulated/measure"
	"github.com/candor-grid/candor/messages"
)

// Figures are 16 by 10 centimetres.
const (
	figureWidth  = 16 * vg.Centimeter
	figureHeight = 10 * vg.Centimeter
)

// draw draws the figures of a study into a directory, which is made if need be.
func draw(dir string, s *measure.Study, r *measure.Report) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return messages.Errorf(messages.Invalid, "--plots: %v", err)
	}
	figures := map[string]func(*measure.Study, *measure.Report) (*plot.Plot, error){
		"wait": drawWait, "slowdown": drawSlowdown, "utilisation": drawUtilisation, "payments": drawPayments, "groups": drawGroups,
	}
	for name, figure := range figures {
		p, err := figure(s, r)
		if err != nil {
			return messages.Errorf(messages.Internal, "--plots: %s: %v", name, err)
		}
		p.Title.Text = r.Market.Name + " (" + r.Market.Mechanism + ") on " + filepath.Base(r.Trace.File)
		for _, kind := range []string{".svg", ".png"} {
			if err := p.Save(figureWidth, figureHeight, filepath.Join(dir, name+kind)); err != nil {
				return messages.Errorf(messages.Invalid, "--plots: %v", err)
			}
		}
	}
	return nil
}

// completed collects a number of each completed job, sorted.
func completed(s *measure.Study, of func(i int) float64) []float64 {
	var out []float64
	for i := range s.Outcome.Jobs {
		if s.Outcome.Jobs[i].Fate == core.Completed {
			out = append(out, of(i))
		}
	}
	slices.Sort(out)
	return out
}

// distribution is the part of the jobs with more than x, on two logarithmic
// axes, at up to 500 points; numbers below least are drawn there.
func distribution(sorted []float64, least float64) plotter.XYs {
	const points = 500
	var xy plotter.XYs
	for k := range min(points, len(sorted)) {
		i := k * len(sorted) / min(points, len(sorted))
		xy = append(xy, plotter.XY{X: max(least, sorted[i]), Y: float64(len(sorted)-i) / float64(len(sorted))})
	}
	if n := len(sorted); n > 0 {
		xy = append(xy, plotter.XY{X: max(least, sorted[n-1]), Y: 1 / float64(n)})
	}
	return xy
}

func logarithmic(x, y string, lines ...any) (*plot.Plot, error) {
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = x, y
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.LogTicks{Prec: -1}, plot.LogTicks{Prec: -1}
	p.Add(plotter.NewGrid())
	if err := plotutil.AddLines(p, lines...); err != nil {
		return nil, err
	}
	p.Legend.Top = true
	if math.IsInf(p.X.Min, 1) { // there is nothing to draw, and a logarithm needs a range
		p.X.Min, p.X.Max, p.Y.Min = 1, 10, 0.1
	}
	p.X.Max, p.Y.Max = max(p.X.Max, 10*p.X.Min), 1
	p.Y.Min = min(p.Y.Min, 0.1)
	return p, nil
}

func drawWait(s *measure.Study, _ *measure.Report) (*plot.Plot, error) {
	wait := completed(s, func(i int) float64 { return s.Outcome.Jobs[i].Start - s.Work.Jobs[i].Submit })
	response := completed(s, func(i int) float64 { return s.Outcome.Jobs[i].Finish - s.Work.Jobs[i].Submit })
	return logarithmic("seconds", "part of the jobs with more", "wait", distribution(wait, 1), "response", distribution(response, 1))
}

func drawSlowdown(s *measure.Study, _ *measure.Report) (*plot.Plot, error) {
	slow := completed(s, func(i int) float64 {
		return (s.Outcome.Jobs[i].Finish - s.Work.Jobs[i].Submit) / max(s.Work.Jobs[i].Runtime, 60)
	})
	return logarithmic("bounded slowdown", "part of the jobs with more", "jobs", distribution(slow, 0.1))
}

func drawPayments(s *measure.Study, _ *measure.Report) (*plot.Plot, error) {
	paid := completed(s, func(i int) float64 { return s.Outcome.Jobs[i].Paid.Float() })
	worth := completed(s, func(i int) float64 { return s.Bids[i].Worth(&s.Work.Jobs[i]) })
	return logarithmic("credits", "part of the jobs with more", "paid", distribution(paid, 1), "value", distribution(worth, 1))
}

// drawUtilisation draws the slots that were used and asked for over time, in 400
// stretches; a suspended job counts as if it ran evenly from start to finish.
func drawUtilisation(s *measure.Study, r *measure.Report) (*plot.Plot, error) {
	const stretches = 400
	from := r.Trace.From
	length := max(1, r.Results.Makespan) / stretches
	used := make([]float64, stretches)
	for i := range s.Outcome.Jobs {
		if job := &s.Outcome.Jobs[i]; job.Used > 0 && job.Finish > job.Start {
			spread(used, (job.Start-from)/length, (job.Finish-from)/length, job.Used/length)
		}
	}
	var xy plotter.XYs
	for k, u := range used {
		xy = append(xy, plotter.XY{X: (from + (float64(k)+0.5)*length) / 86400, Y: u})
	}
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = "days", "slots used"
	p.Y.Min, p.Y.Max = 0, float64(s.Work.Nodes)
	p.Add(plotter.NewGrid())
	return p, plotutil.AddLines(p, "used", xy)
}

// spread adds an amount evenly to the stretches between two positions.
func spread(to []float64, from, until, amount float64) {
	for k := max(0, int(from)); k < len(to) && float64(k) < until; k++ {
		part := min(until, float64(k+1)) - max(from, float64(k))
		to[k] += amount * max(0, part) / (until - from)
	}
}

// drawGroups draws the mean wait of the largest groups.
func drawGroups(_ *measure.Study, r *measure.Report) (*plot.Plot, error) {
	const most = 12
	var values plotter.Values
	var names []string
	for i := range r.Groups[:min(most, len(r.Groups))] {
		values = append(values, r.Groups[i].Response.Mean/3600)
		names = append(names, strings.TrimPrefix(r.Groups[i].Name, r.GroupBy+" "))
	}
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = r.GroupBy, "mean response, hours"
	bars, err := plotter.NewBarChart(values, vg.Points(18))
	if err != nil {
		return nil, err
	}
	bars.Color = plotutil.Color(0)
	p.Add(bars)
	p.NominalX(names...)
	p.Y.Min = 0
	p.Y.Max = max(p.Y.Max, math.SmallestNonzeroFloat32)
	return p, nil
}
