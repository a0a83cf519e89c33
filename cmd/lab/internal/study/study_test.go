package study

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The standard deviation of the numbers 1 to 5 is √2.5. Student's t for 4 degrees of freedom is 2.776.
func TestEstimated(t *testing.T) {
	e := Estimated([]float64{1, 2, 3, 4, 5})
	if want := 2.776 * math.Sqrt(2.5/5); e.Mean != 3 || math.Abs(e.Half-want) > 1e-3 {
		t.Errorf("%+v, want 3 ± %v", e, want)
	}
	if !e.Holds(4.9, 0) || e.Holds(5, 0) || !e.Holds(5, 0.05) {
		t.Error("the interval is not from 1.04 to 4.96")
	}
	if one := Estimated([]float64{7}); one.Mean != 7 || !math.IsInf(one.Half, 1) {
		t.Errorf("%+v", one)
	}
}

func TestReportIsWritten(t *testing.T) {
	page := NewPage("Title")
	page.Section("Part")
	page.Table([]string{"a", "b"}, [][]string{{"1", "2"}})
	dir := filepath.Join(t.TempDir(), "new")
	r := Report{Numbers: []int{1}, Page: page, Figures: []*Figure{NewFigure("f", "x", "y")}}
	if err := r.Write(dir, "n"); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"n.json": "[\n 1\n]\n", "n.md": "# Title\n\n## Part\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n"} {
		if data, err := os.ReadFile(filepath.Join(dir, name)); string(data) != want {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
	if data, err := os.ReadFile(filepath.Join(dir, "f.svg")); len(data) < 500 {
		t.Errorf("f.svg has %d bytes, %v", len(data), err)
	}
}

// If a figure cannot be drawn, no file of a report is written.
func TestFigureThatCannotBeDrawn(t *testing.T) {
	f := NewFigure("f", "x", "y")
	f.Line("l", 0, []float64{1, 2}, []float64{1, math.NaN()})
	dir := filepath.Join(t.TempDir(), "new")
	if err := (&Report{Page: NewPage("Title"), Figures: []*Figure{f}}).Write(dir, "n"); err == nil || !strings.Contains(err.Error(), "figure f: ") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%v", err)
	}
}
