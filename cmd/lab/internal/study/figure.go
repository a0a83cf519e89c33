package study

import "github.com/candor-grid/candor/cmd/lab/internal/chart"

// Figure is a plot, saved as NAME.svg. Its lines are drawn when the report is written.
type Figure struct {
	Name string
	*chart.Chart
	lines []chart.Line
}

// NewFigure returns a figure without lines; x and y are the labels of its axes.
func NewFigure(name, x, y string) *Figure {
	return &Figure{Name: name, Chart: chart.New(x, y)}
}

// Line adds a line of a style through the points (x[k], y[k]), with a name in the legend.
func (f *Figure) Line(name string, style int, x, y []float64) {
	f.add(chart.Line{Name: name, Style: style}, x, y)
}

// Estimates adds a line to the figure. The line goes through the mean values, each with its interval.
func (f *Figure) Estimates(name string, style int, x []float64, of []Estimate) {
	l := chart.Line{Name: name, Style: style}
	for k := range x {
		l.AddInterval(x[k], of[k].Mean, of[k].Half)
	}
	f.lines = append(f.lines, l)
}

// Points adds points in the colour of a style. The name is for the legend. Points without a name ("") are not in the
// legend.
func (f *Figure) Points(name string, style int, x, y []float64) {
	f.add(chart.Line{Name: name, Style: style, Points: true}, x, y)
}

// Lines adds one line for each name. Line i has style i. The function y(k) returns the values of all lines at x[k], in
// the order of the names.
func (f *Figure) Lines(names []string, x []float64, y func(k int) []float64) {
	lines := make([]chart.Line, len(names))
	for l, name := range names {
		lines[l].Name, lines[l].Style = name, l
	}
	for k := range x {
		for l, value := range y(k) {
			lines[l].Add(x[k], value)
		}
	}
	f.lines = append(f.lines, lines...)
}

func (f *Figure) add(l chart.Line, x, y []float64) {
	for k := range x {
		l.Add(x[k], y[k])
	}
	f.lines = append(f.lines, l)
}

// Each calls a function for each value, in order, and returns the results.
func Each[T, R any](values []T, of func(*T) R) (out []R) {
	for k := range values {
		out = append(out, of(&values[k]))
	}
	return out
}
