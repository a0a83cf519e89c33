package chart

import (
	"bytes"
	"fmt"
	"html"
	"strings"
	"unicode/utf8"
)

// A chart is 640 by 400 units, without the legend. The frame is inside these margins.
const (
	width, height            = 640.0, 400.0
	left, right, top, bottom = 70.0, 620.0, 30.0, 350.0
	letter                   = 6.2 // about the width of a letter in the legend
)

var (
	// People with any colour vision can distinguish these colours (Okabe and Ito 2008). The palette's yellow is hard to
	// see on white paper, and is left out.
	colours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#737373"}
	dashes  = []string{"", "6 3", "2 2", "4 2 1 2", "8 3 2 3"}
)

type canvas struct {
	bytes.Buffer
	x, y Axis
}

// SVG draws the chart.
func (c *Chart) SVG() []byte {
	d := canvas{x: c.X.ranged(), y: c.Y.ranged()}
	whole := width + c.legendWidth()
	d.add(`<svg xmlns="http://www.w3.org/2000/svg" width="%.4gcm" height="10cm" viewBox="0 0 %.4g %g" font-family="sans-serif" font-size="11">`, whole/40, whole, height)
	d.add(`<rect width="100%%" height="100%%" fill="white"/>`)
	d.text((left+right)/2, 18, "middle", c.Title)
	d.text((left+right)/2, height-10, "middle", c.X.Label)
	d.add(`<text transform="translate(14 %g) rotate(-90)" text-anchor="middle">%s</text>`, (top+bottom)/2, html.EscapeString(c.Y.Label))
	d.axes()
	for i := range c.lines {
		d.band(&c.lines[i])
	}
	for i := range c.lines {
		d.line(&c.lines[i])
	}
	d.legend(c)
	d.add(`</svg>`)
	return d.Bytes()
}

func (d *canvas) add(format string, args ...any) { fmt.Fprintf(d, format+"\n", args...) }

func (d *canvas) text(x, y float64, anchor, s string) {
	d.add(`<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`, x, y, anchor, html.EscapeString(s))
}

func (d *canvas) place(x, y float64) (float64, float64) {
	return left + d.x.at(x)*(right-left), bottom - d.y.at(y)*(bottom-top)
}

func (d *canvas) axes() {
	var grid strings.Builder
	for _, v := range d.y.ticks() {
		_, y := d.place(d.x.low, v)
		fmt.Fprintf(&grid, "M%g %.1fH%g", left, y, right)
		d.text(left-6, y+4, "end", label(v))
	}
	for _, v := range d.x.ticks() {
		x, _ := d.place(v, d.y.low)
		fmt.Fprintf(&grid, "M%.1f %gV%g", x, top, bottom)
		d.text(x, bottom+16, "middle", label(v))
	}
	d.add(`<path d="%s" stroke="#ddd"/>`, grid.String())
	d.add(`<path d="M%g %gV%gH%g" stroke="black" fill="none"/>`, left, top, bottom, right)
}

func (d *canvas) line(l *Line) {
	colour := colours[l.Style%len(colours)]
	var path strings.Builder
	for k, p := range l.xy {
		x, y := d.place(p[0], p[1])
		if l.Points {
			d.glyph(x, y, l.Style)
		} else {
			fmt.Fprintf(&path, "%c%.1f %.1f", "ML"[min(k, 1)], x, y)
		}
	}
	if path.Len() > 0 {
		d.add(`<path d="%s" stroke="%s" stroke-width="1.5" stroke-dasharray="%s" fill="none"/>`, path.String(), colour, dashes[l.Style%len(dashes)])
	}
}

func (d *canvas) band(l *Line) {
	if len(l.half) == 0 {
		return
	}
	var path strings.Builder
	for k, p := range l.xy {
		x, y := d.place(p[0], p[1]+l.half[k])
		fmt.Fprintf(&path, "%c%.1f %.1f", "ML"[min(k, 1)], x, y)
	}
	for k := len(l.xy) - 1; k >= 0; k-- {
		x, y := d.place(l.xy[k][0], l.xy[k][1]-l.half[k])
		fmt.Fprintf(&path, "L%.1f %.1f", x, y)
	}
	d.add(`<path d="%sZ" fill="%s" fill-opacity="0.2"/>`, path.String(), colours[l.Style%len(colours)])
}

// glyph draws a point as a circle, a square or a triangle, by its style.
func (d *canvas) glyph(x, y float64, style int) {
	shape := [...]string{"m-3 0a3 3 0 1 0 6 0a3 3 0 1 0 -6 0", "m-3 -3h6v6h-6z", "m-3 3l3 -6l3 6z"}[style%3]
	d.add(`<path d="M%.1f %.1f%s" stroke="%s" fill="none"/>`, x, y, shape, colours[style%len(colours)])
}

func (c *Chart) named() (named []Line) {
	for _, l := range c.lines {
		if l.Name != "" {
			named = append(named, l)
		}
	}
	return named
}

func (c *Chart) legendWidth() float64 {
	longest := 0
	for _, l := range c.named() {
		longest = max(longest, utf8.RuneCountInString(l.Name))
	}
	if longest == 0 {
		return 0
	}
	return letter*float64(longest) + 26
}

func (d *canvas) legend(c *Chart) {
	const row, mark, text = 16, right + 10, right + 36
	for k, l := range c.named() {
		at := top + 8 + row*float64(k)
		d.text(text, at+4, "start", l.Name)
		if l.Points {
			d.glyph(mark+10, at, l.Style)
		} else {
			d.add(`<path d="M%g %gh20" stroke="%s" stroke-width="1.5" stroke-dasharray="%s"/>`, mark, at, colours[l.Style%len(colours)], dashes[l.Style%len(dashes)])
		}
	}
}
