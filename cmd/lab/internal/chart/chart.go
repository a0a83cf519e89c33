// Package chart draws lines and points as SVG. It has only what the figures of a study need.
package chart

import (
	"math"
	"os"

	"github.com/candor-grid/candor/messages"
)

// Chart is a figure. Its legend is to the right of the frame.
type Chart struct {
	Title string
	X, Y  Axis
	lines []Line
}

// Line is a line of a chart. If Points is true, only its points are drawn. Lines of the same style have the same
// colour.
type Line struct {
	Name   string // name in the legend; "" means not in it
	Style  int
	Points bool
	xy     [][2]float64
	half   []float64 // half of the interval around each point; if it is empty, no intervals are shown
}

// Add adds a point.
func (l *Line) Add(x, y float64) { l.xy = append(l.xy, [2]float64{x, y}) }

// AddInterval adds a point with the interval from y−half to y+half.
func (l *Line) AddInterval(x, y, half float64) {
	l.Add(x, y)
	l.half = append(l.half, half)
}

// Axis is an axis. Its range grows so that it contains all drawn points.
type Axis struct {
	Label     string
	Log       bool // logarithmic: all values must be positive
	low, high float64
	covers    bool // low and high are set
}

// New returns an empty chart.
func New(x, y string) *Chart {
	return &Chart{X: Axis{Label: x}, Y: Axis{Label: y}}
}

// Cover extends the range of the axis so that it contains some values.
func (a *Axis) Cover(values ...float64) {
	for _, v := range values {
		if !a.covers {
			a.low, a.high, a.covers = v, v, true
		}
		a.low, a.high = min(a.low, v), max(a.high, v)
	}
}

// Add adds lines. It returns an error if a point is not finite, or if a logarithmic axis cannot show it.
func (c *Chart) Add(lines ...Line) error {
	for _, l := range lines {
		for k, p := range l.xy {
			if !c.X.shows(p[0]) || !c.Y.shows(p[1]) {
				return messages.Errorf(messages.Internal, "line %.64q has the point %g, %g, which cannot be drawn", l.Name, p[0], p[1])
			}
			c.X.Cover(p[0])
			c.Y.Cover(p[1])
			if k < len(l.half) && c.Y.shows(p[1]-l.half[k]) && c.Y.shows(p[1]+l.half[k]) {
				c.Y.Cover(p[1]-l.half[k], p[1]+l.half[k])
			} else if k < len(l.half) {
				l.half[k] = 0
			}
		}
	}
	c.lines = append(c.lines, lines...)
	return nil
}

func (a *Axis) shows(v float64) bool {
	return !math.IsNaN(v) && !math.IsInf(v, 0) && (v > 0 || !a.Log)
}

// Save writes the chart to a file.
func (c *Chart) Save(path string) error {
	return os.WriteFile(path, c.SVG(), 0o644)
}
