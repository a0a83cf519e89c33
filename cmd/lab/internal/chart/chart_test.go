package chart

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
)

// wellFormed returns the text of a chart. The text must be valid XML.
func wellFormed(t *testing.T, c *Chart) string {
	t.Helper()
	text := string(c.SVG())
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v:\n%s", err, text)
		}
	}
	if strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
		t.Errorf("a coordinate is not a number:\n%s", text)
	}
	return text
}

// On all kinds of axes, a line from the least to the largest values goes from one corner of the frame to the opposite
// one.
func TestLines(t *testing.T) {
	for _, log := range []bool{false, true} {
		c := New("x < y", "y")
		c.X.Log, c.Y.Log, c.Title = log, log, "a & b"
		line, points := Line{Name: "ours"}, Line{Name: "theirs", Style: 1, Points: true}
		for _, v := range []float64{1, 10, 1000} {
			line.Add(v, 2*v)
			points.Add(v, 3)
		}
		if err := c.Add(line, points); err != nil {
			t.Fatal(err)
		}
		text := wellFormed(t, c)
		for _, want := range []string{"x &lt; y", "a &amp; b", ">ours<", ">theirs<", "M70.0 350.0L", "L620.0 30.0"} {
			if !strings.Contains(text, want) {
				t.Errorf("log %v: %s is missing:\n%s", log, want, text)
			}
		}
	}
}

// Charts without data, or with one point, must have axes.
func TestNothingToDraw(t *testing.T) {
	for _, log := range []bool{false, true} {
		c := New("x", "y")
		c.X.Log = log
		wellFormed(t, c)
		one := Line{Name: "one"}
		one.Add(5, 0)
		if err := c.Add(one); err != nil {
			t.Fatal(err)
		}
		wellFormed(t, c)
	}
}

func TestWhatCannotBeDrawn(t *testing.T) {
	for _, v := range []float64{math.NaN(), math.Inf(1), 0, -1} {
		c := New("x", "y")
		c.Y.Log = true
		l := Line{}
		l.Add(1, v)
		if err := c.Add(l); messages.KindOf(err) != messages.Internal {
			t.Errorf("%v: %v", v, err)
		}
	}
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		axis Axis
		want []float64
	}{
		{Axis{low: 0, high: 10}, []float64{0, 2, 4, 6, 8, 10}},
		{Axis{low: -1, high: 1}, []float64{-1, -0.5, 0, 0.5, 1}},
		{Axis{low: 3, high: 400}, []float64{100, 200, 300, 400}},
		{Axis{low: 1, high: 1000, Log: true}, []float64{1, 10, 100, 1000}},
		{Axis{low: 2, high: 8, Log: true}, []float64{2, 3, 4, 5, 6, 7, 8}},
	} {
		if got := c.axis.ticks(); !slices.EqualFunc(got, c.want, func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }) {
			t.Errorf("from %v to %v: %v, want %v", c.axis.low, c.axis.high, got, c.want)
		}
	}
}

// The band around a line shows its intervals. It must lie around the line, and must not leave the range of the axis. A
// line without intervals must have no band.
func TestIntervals(t *testing.T) {
	c, l := New("x", "y"), Line{Name: "mean"}
	l.AddInterval(0, 1, 1)
	l.AddInterval(10, 1, 0.5)
	if err := c.Add(l); err != nil {
		t.Fatal(err)
	}
	if text := wellFormed(t, c); !strings.Contains(text, "M70.0 30.0L620.0 110.0L620.0 270.0L70.0 350.0Z") {
		t.Error(text)
	}
}
