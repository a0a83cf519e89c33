package utility

import (
	"math"
	"slices"

	"github.com/candor-grid/candor/messages"
)

// Snapshot is everything that a regression remembers.
type Snapshot struct {
	Form     Form
	M        int
	HalfLife messages.Duration
	Latest   messages.Time
	Runs     int
	Weight   float64
	R        []float64 // m·m numbers: an upper triangular matrix, row by row
	Z        []float64 // a vector of m numbers
	RSS      float64
}

// Snapshot returns a copy of everything that the regression remembers.
func (g *Regression) Snapshot() *Snapshot {
	return &Snapshot{g.form, g.m, g.halfLife, g.latest, g.runs, g.weight, slices.Clone(g.r), slices.Clone(g.z), g.rss}
}

// Restore returns a regression that continues from a snapshot, which it copies. A damaged snapshot is an error.
func Restore(s *Snapshot) (*Regression, error) {
	g, err := New(s.Form, s.M, s.HalfLife)
	if err != nil {
		return nil, err
	}
	if s.Runs < 0 || len(s.R) != len(g.r) || len(s.Z) != len(g.z) || !finite(s.R) || !finite(s.Z) || !finite([]float64{s.Weight, s.RSS}) || s.Weight < 0 || s.RSS < 0 {
		return nil, messages.Errorf(messages.Invalid, "snapshot: is damaged")
	}
	g.latest, g.runs, g.weight, g.rss = s.Latest, s.Runs, s.Weight, s.RSS
	copy(g.r, s.R)
	copy(g.z, s.Z)
	for i := range g.m { // entries below the diagonal must be 0
		clear(g.r[i*g.m : i*g.m+i])
	}
	return g, nil
}

func finite(values []float64) bool {
	return !slices.ContainsFunc(values, func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) })
}
