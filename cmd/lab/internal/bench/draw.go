package bench

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// These are the sizes, in pixels, of one plot and of the space for its labels.
const (
	plotWidth, plotHeight = 260.0, 160.0
	plotLeft, plotTop     = 70.0, 30.0
	cellWidth, cellHeight = plotWidth + plotLeft + 30, plotHeight + plotTop + 50
)

// draw returns an SVG. It has one row of plots for each quantity that grows along the x axis. In a row, there is one
// plot for each measured number. Both axes are logarithmic.
func draw(all []curve) string {
	var body strings.Builder
	columns, row := 0, 0
	for _, c := range all {
		if len(c.Points) == 0 {
			continue
		}
		drawn := drawnOf(c.Over)
		columns = max(columns, len(drawn))
		for column, d := range drawn {
			fmt.Fprintf(&body, "<g transform=\"translate(%g %g)\">\n", float64(column)*cellWidth+plotLeft, float64(row)*cellHeight+plotTop)
			plot(&body, c, d[0], d[1])
			body.WriteString("</g>\n")
		}
		row++
	}
	return fmt.Sprintf("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%g\" height=\"%g\" font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n%s</svg>\n",
		float64(columns)*cellWidth, float64(row)*cellHeight, body.String())
}

func drawnOf(over string) [][2]string {
	for _, g := range growths {
		if g.over == over {
			return g.drawn
		}
	}
	return nil
}

type axis struct{ low, high, length float64 }

// newAxis returns an axis that contains the values, between powers of ten.
func newAxis(values []float64, length float64) axis {
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if v > 0 {
			low, high = min(low, math.Floor(math.Log10(v))), max(high, math.Ceil(math.Log10(v)))
		}
	}
	if low > high {
		low, high = 0, 1
	}
	return axis{low, max(high, low+1), length}
}

func (a axis) at(v float64) float64 {
	return (math.Log10(max(v, math.Pow(10, a.low))) - a.low) / (a.high - a.low) * a.length
}

func plot(w *strings.Builder, c curve, name, unit string) {
	var xs, ys []float64
	for _, p := range c.Points {
		xs, ys = append(xs, float64(p.Size)), append(ys, p.Values[name])
	}
	x, y := newAxis(xs, plotWidth), newAxis(ys, plotHeight)
	fmt.Fprintf(w, "<text x=\"0\" y=\"-10\">%s</text>\n<rect width=\"%g\" height=\"%g\" fill=\"none\" stroke=\"#888\"/>\n", html.EscapeString(unit), plotWidth, plotHeight)
	for d := x.low; d <= x.high; d++ {
		fmt.Fprintf(w, "<text x=\"%g\" y=\"%g\" text-anchor=\"middle\">%g</text>\n", x.at(math.Pow(10, d)), plotHeight+15, math.Pow(10, d))
	}
	for d := y.low; d <= y.high; d++ {
		fmt.Fprintf(w, "<text x=\"-6\" y=\"%g\" text-anchor=\"end\">%g</text>\n", plotHeight-y.at(math.Pow(10, d))+4, math.Pow(10, d))
	}
	fmt.Fprintf(w, "<text x=\"%g\" y=\"%g\" text-anchor=\"middle\">%s</text>\n<polyline fill=\"none\" stroke=\"#06c\" points=\"", plotWidth/2, plotHeight+32, html.EscapeString(c.Over))
	for i := range xs {
		fmt.Fprintf(w, "%g,%g ", x.at(xs[i]), plotHeight-y.at(ys[i]))
	}
	w.WriteString("\"/>\n")
	for i := range xs {
		fmt.Fprintf(w, "<circle cx=\"%g\" cy=\"%g\" r=\"3\" fill=\"#06c\"><title>%g: %g</title></circle>\n", x.at(xs[i]), plotHeight-y.at(ys[i]), xs[i], ys[i])
	}
}
