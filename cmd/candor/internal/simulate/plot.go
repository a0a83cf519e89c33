package simulate

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/candor-grid/candor/cmd/internal/chart"
	"github.com/candor-grid/candor/deploy/simulated/core"
	"github.com/candor-grid/candor/deploy/simulated/measure"
)

// draw draws the figures of a study into a directory.
func draw(dir string, s *measure.Study, r *measure.Report) error {
	figures := map[string]func() (*chart.Chart, error){}
	for name, figure := range map[string]func(*measure.Study, *measure.Report) (*chart.Chart, error){
		"wait": drawWait, "slowdown": drawSlowdown, "utilisation": drawUtilisation, "payments": drawPayments, "groups": drawGroups,
	} {
		figures[name] = func() (*chart.Chart, error) { return figure(s, r) }
	}
	return Draw(dir, r.Market.Name+" ("+r.Market.Mechanism+") on "+filepath.Base(r.Trace.File), figures)
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

// distribution is a line of the part of the jobs with more than x, for two
// logarithmic axes, with up to 500 points; numbers below least are drawn there.
func distribution(name string, sorted []float64, least float64) chart.Line {
	const points = 500
	l := chart.Line{Name: name}
	for k := range min(points, len(sorted)) {
		i := k * len(sorted) / min(points, len(sorted))
		l.Add(max(least, sorted[i]), float64(len(sorted)-i)/float64(len(sorted)))
	}
	if n := len(sorted); n > 0 {
		l.Add(max(least, sorted[n-1]), 1/float64(n))
	}
	return l
}

func logarithmic(x string, lines ...chart.Line) (*chart.Chart, error) {
	c := chart.New(x, "part of the jobs with more")
	c.X.Log, c.Y.Log = true, true
	c.Y.Cover(0.1, 1)
	for k := range lines {
		lines[k].Style = k
	}
	return c, c.Add(lines...)
}

func drawWait(s *measure.Study, _ *measure.Report) (*chart.Chart, error) {
	wait := completed(s, func(i int) float64 { return s.Outcome.Jobs[i].Start - s.Work.Jobs[i].Submit })
	response := completed(s, func(i int) float64 { return s.Outcome.Jobs[i].Finish - s.Work.Jobs[i].Submit })
	return logarithmic("seconds", distribution("wait", wait, 1), distribution("response", response, 1))
}

func drawSlowdown(s *measure.Study, _ *measure.Report) (*chart.Chart, error) {
	slow := completed(s, func(i int) float64 {
		return (s.Outcome.Jobs[i].Finish - s.Work.Jobs[i].Submit) / max(s.Work.Jobs[i].Runtime, 60)
	})
	return logarithmic("bounded slowdown", distribution("jobs", slow, 0.1))
}

func drawPayments(s *measure.Study, _ *measure.Report) (*chart.Chart, error) {
	paid := completed(s, func(i int) float64 { return s.Outcome.Jobs[i].Paid.Float() })
	worth := completed(s, func(i int) float64 { return s.Bids[i].Worth(&s.Work.Jobs[i]) })
	return logarithmic("credits", distribution("paid", paid, 1), distribution("value", worth, 1))
}

// drawUtilisation draws the slots that were used and asked for over time, in 400
// stretches; a suspended job counts as if it ran evenly from start to finish.
func drawUtilisation(s *measure.Study, r *measure.Report) (*chart.Chart, error) {
	const stretches = 400
	from := r.Trace.From
	length := max(1, r.Results.Makespan) / stretches
	used := make([]float64, stretches)
	for i := range s.Outcome.Jobs {
		if job := &s.Outcome.Jobs[i]; job.Used > 0 && job.Finish > job.Start {
			spread(used, (job.Start-from)/length, (job.Finish-from)/length, job.Used/length)
		}
	}
	line := chart.Line{Name: "used"}
	for k, u := range used {
		line.Add((from+(float64(k)+0.5)*length)/86400, u)
	}
	c := chart.New("days", "slots used")
	c.Y.Cover(0, float64(s.Work.Nodes))
	return c, c.Add(line)
}

// spread adds an amount evenly to the stretches between two positions.
func spread(to []float64, from, until, amount float64) {
	for k := max(0, int(from)); k < len(to) && float64(k) < until; k++ {
		part := min(until, float64(k+1)) - max(from, float64(k))
		to[k] += amount * max(0, part) / (until - from)
	}
}

// drawGroups draws the mean wait of the largest groups.
func drawGroups(_ *measure.Study, r *measure.Report) (*chart.Chart, error) {
	const most = 12
	var values []float64
	var names []string
	for i := range r.Groups[:min(most, len(r.Groups))] {
		values = append(values, r.Groups[i].Response.Mean/3600)
		names = append(names, strings.TrimPrefix(r.Groups[i].Name, r.GroupBy+" "))
	}
	c := chart.New(r.GroupBy, "mean response, hours")
	return c, c.AddBars(names, chart.Bars{Values: values})
}
