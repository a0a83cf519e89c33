package mutz

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/candor-grid/candor/cmd/lab/internal/study"
)

// sweep is the expected payoff of a participant as a function of one declared parameter. Everything else is fixed.
type sweep struct {
	Figure   string  `json:"figure"`
	Declares string  `json:"declares"`
	Truth    float64 `json:"truth"`
	Points   []point `json:"points"` // in ascending order; the truth is one of them
	Lie      lie     `json:"best_lie"`
}

// point has the payoffs for one declaration. A dot is the payoff in one measurement. Dots with the same index, in the
// points of different declarations, have the same competitors.
type point struct {
	At   float64   `json:"at"`
	Mean float64   `json:"mean"`
	Dots []float64 `json:"dots"`
}

// The type lie describes the false declaration that gains most over the truth. The measurements are in two halves: one
// half selects this declaration, and the other half measures its gain. Gain is the mean gain in the second half. Half
// is half of the width of its 95 % interval.
type lie struct {
	At   float64 `json:"at"`
	Gain float64 `json:"gain"`
	Half float64 `json:"half"`
	Most float64 `json:"most"` // largest gain of any dot at any declaration; not negative
}

// pays reports whether the whole interval of the gain is above zero.
func (l *lie) pays() bool { return l.Gain > l.Half }

func (l *lie) String() string { return fmt.Sprintf("%.3g ± %.2g", l.Gain, l.Half) }

// failure has the first error of a study. After an error, later computations and measurements are skipped.
type failure struct{ err error }

// explore computes the payoffs of a sweep. The declarations are the values in `at` and the true value. For each
// declaration, explore measures the payoff several times; each measured payoff is a dot.
func (f *failure) explore(s sweep, at []float64, dots int, payoff func(x float64, dot int) (float64, error)) *sweep {
	at = append(slices.Clone(at), s.Truth)
	slices.Sort(at)
	for _, x := range slices.Compact(at) {
		p := point{At: x}
		for dot := range dots {
			if f.err != nil {
				return nil
			}
			y, err := payoff(x, dot)
			if err != nil {
				f.err = fmt.Errorf("figure %s, %s %g: %w", s.Figure, s.Declares, x, err)
			}
			p.Dots = append(p.Dots, y)
		}
		p.Mean = stat.Mean(p.Dots, nil)
		s.Points = append(s.Points, p)
	}
	s.measureLies()
	return &s
}

// honest returns the point at which the user declares the true value.
func (s *sweep) honest() *point { return s.at(s.Truth) }

// The method `at` returns the point whose declared value is the nearest to x.
func (s *sweep) at(x float64) *point {
	best := &s.Points[0]
	for k := range s.Points {
		if math.Abs(s.Points[k].At-x) < math.Abs(best.At-x) {
			best = &s.Points[k]
		}
	}
	return best
}

// A point has the payoffs for one declared value. Each payoff is a dot, for one random draw. gains returns, for some
// dots, how much more they are than the payoff of the true declaration in the same draw. It takes every second dot,
// beginning with the index `from`.
func (s *sweep) gains(p *point, from int) (out []float64) {
	for k := from; k < len(p.Dots); k += 2 {
		out = append(out, p.Dots[k]-s.honest().Dots[k])
	}
	return out
}

func (s *sweep) measureLies() {
	var best *point
	most := math.Inf(-1)
	for k := range s.Points {
		p := &s.Points[k]
		if p.At == s.Truth {
			continue
		}
		if g := stat.Mean(s.gains(p, 0), nil); g > most {
			best, most = p, g
		}
		s.Lie.Most = max(s.Lie.Most, slices.Max(append(s.gains(p, 0), s.gains(p, 1)...)))
	}
	e := study.Estimated(s.gains(best, 1))
	s.Lie.At, s.Lie.Gain, s.Lie.Half = best.At, e.Mean, e.Half
}

// spread returns the largest minus the smallest mean payoff of all declarations.
func (s *sweep) spread() float64 {
	return slices.Max(s.means()) - slices.Min(s.means())
}

// draw makes a figure. The mean of each sweep becomes a line. The single measurements (dots) of the first sweep become
// points.
func draw(name, label string, named []string, sweeps ...*sweep) *study.Figure {
	p, first := study.NewFigure(name, label, "payoff"), sweeps[0]
	var x, y []float64
	for _, at := range first.Points {
		for _, dot := range at.Dots[:min(len(at.Dots), mostDots)] {
			x, y = append(x, at.At), append(y, dot)
		}
	}
	p.Points("", 6, x, y)
	for k, s := range sweeps {
		p.Line(named[k], k, s.declared(), s.means())
	}
	p.Points("the truth", 2, []float64{first.Truth}, []float64{first.honest().Mean})
	return p
}

func (s *sweep) declared() []float64 {
	return study.Each(s.Points, func(p *point) float64 { return p.At })
}
func (s *sweep) means() []float64 {
	return study.Each(s.Points, func(p *point) float64 { return p.Mean })
}

// mostDots is the largest number of drawn dots for a declaration.
const mostDots = 20

// steps returns n evenly spaced declarations between two values, both included.
func steps(from, to float64, n int) (out []float64) {
	for k := range n {
		out = append(out, from+(to-from)*float64(k)/float64(n-1))
	}
	return out
}

func sweepRows(sweeps ...*sweep) (out [][]string) {
	for _, s := range sweeps {
		first, last := s.Points[0], s.Points[len(s.Points)-1]
		out = append(out, []string{s.Figure, s.Declares, fmt.Sprintf("%g", s.Truth), fmt.Sprintf("%.4g", s.honest().Mean),
			fmt.Sprintf("%.4g (%.4g)", first.Mean, first.At), fmt.Sprintf("%.4g (%.4g)", last.Mean, last.At),
			fmt.Sprintf("%.4g", s.Lie.At), s.Lie.String(), fmt.Sprintf("%.4g", s.Lie.Most)})
	}
	return out
}

var sweepHead = []string{"figure", "declares", "truth", "payoff of the truth", "of the least declared (at)", "of the most declared (at)", "best lie", "its gain", "most that any dot gains"}
