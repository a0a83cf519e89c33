package study

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// NewPlot is an empty plot with a grid and its legend at the top.
func NewPlot(title, x, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Add(plotter.NewGrid())
	p.Legend.Top = true
	p.Legend.TextStyle.Font.Size = vg.Points(8)
	return p
}

// Line is a line of a plot, or its points alone. Lines of one style have one
// colour.
type Line struct {
	Name   string // in the legend; "": not there
	Style  int
	Points bool
	xy     plotter.XYs
}

// Add adds a point.
func (l *Line) Add(x, y float64) { l.xy = append(l.xy, plotter.XY{X: x, Y: y}) }

// AddLines adds lines to a plot. A point that is not a finite number is an error.
func AddLines(p *plot.Plot, lines ...Line) error {
	for _, l := range lines {
		var drawn plot.Plotter
		if l.Points {
			points, err := plotter.NewScatter(l.xy)
			if err != nil {
				return err
			}
			points.GlyphStyle = draw.GlyphStyle{Color: plotutil.Color(l.Style), Radius: vg.Points(2.5), Shape: plotutil.Shape(l.Style)}
			if drawn = points; l.Name != "" {
				p.Legend.Add(l.Name, points)
			}
		} else {
			line, err := plotter.NewLine(l.xy)
			if err != nil {
				return err
			}
			line.Color, line.Dashes = plotutil.Color(l.Style), plotutil.Dashes(l.Style)
			if drawn = line; l.Name != "" {
				p.Legend.Add(l.Name, line)
			}
		}
		p.Add(drawn)
	}
	return nil
}
