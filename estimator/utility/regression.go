package utility

import (
	"math"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// Regression remembers the runs of one kind of job in m·(m+3)/2 numbers: the triangular factor R and the vector z with
// ‖Rw−z‖² + rss = Σ weight·(y−x·w)² for every w. It is not safe for concurrent use.
type Regression struct {
	form     Form
	m        int
	halfLife messages.Duration
	latest   messages.Time // when the latest run ended

	runs   int
	weight float64   // sum of the weights of the runs; older runs weigh less
	r      []float64 // m·m, upper triangular, row by row
	z      []float64 // length m
	rss    float64
	row    []float64 // scratch
}

// New returns a regression over m resources. If another run ends the time `halfLife` after a run, the weight of the
// earlier run is halved. If `halfLife` is 0, weights never change.
func New(form Form, m int, halfLife messages.Duration) (*Regression, error) {
	if form != job.Linear && form != job.Log {
		return nil, messages.Errorf(messages.Invalid, "form: must be %q or %q, is %.64q", job.Linear, job.Log, string(form))
	}
	if m < 1 || m > MaxResources {
		return nil, messages.Errorf(messages.Invalid, "m: must be from 1 to %d resources, is %d", MaxResources, m)
	}
	if halfLife < 0 {
		return nil, messages.Errorf(messages.Invalid, "half-life: must not be negative, is %v", halfLife)
	}
	return &Regression{form: form, m: m, halfLife: halfLife,
		r: make([]float64, m*m), z: make([]float64, m), row: make([]float64, m)}, nil
}

// Runs returns the number of observed runs. Runs count fully, even if their weight has faded.
func (g *Regression) Runs() int { return g.runs }

// Observe adds a run. The argument `ended` is the time at which the run ended. The argument `average` has one number
// for each of the m resources: the run's average share of this resource, in [0, 1]. In the logarithmic form of the
// regression, the shares must be positive. Runs may come in any order. If Observe returns an error, nothing has
// changed. Observe takes O(m²) and allocates nothing.
func (g *Regression) Observe(ended messages.Time, average []float64, utility float64) error {
	if len(average) != g.m {
		return messages.Errorf(messages.Invalid, "average: must be one share for each of %d resources, there are %d", g.m, len(average))
	}
	if !(math.Abs(utility) <= Largest) {
		return messages.Errorf(messages.Invalid, "utility: must be finite and of magnitude below %g, is %g", Largest, utility)
	}
	if err := features(g.form, average, g.row); err != nil {
		return err
	}
	g.rotate(g.fade(ended), utility)
	g.runs++
	return nil
}

// fade is called for a new run. If the new run ended later than all earlier runs, fade reduces the weights of the
// earlier runs. It returns the weight of the new run.
func (g *Regression) fade(ended messages.Time) float64 {
	if g.runs == 0 {
		g.latest = ended
	}
	if g.halfLife == 0 {
		return 1
	}
	// The difference of two times may overflow an integer.
	lives := (float64(ended) - float64(g.latest)) / float64(g.halfLife)
	if lives <= 0 {
		return math.Exp2(lives)
	}
	g.latest = ended
	factor, root := math.Exp2(-lives), math.Exp2(-lives/2)
	g.weight *= factor
	g.rss *= factor
	for i := range g.r {
		g.r[i] *= root
	}
	for i := range g.z {
		g.z[i] *= root
	}
	return 1
}

// rotate adds the run in g.row to R by Givens rotations.
func (g *Regression) rotate(weight, y float64) {
	g.weight += weight
	root := math.Sqrt(weight)
	for j := range g.row {
		g.row[j] *= root
	}
	left := turn(g.r, g.z, g.row, y*root)
	g.rss += left * left
}

// The system r·w = z contains the equations until now, in triangular form. turn adds the equation row·w = y to it. It
// returns the error that is left: the part of y that no weights w can fit together with the earlier equations. It
// overwrites `row`.
func turn(r, z, row []float64, y float64) float64 {
	m := len(z)
	for j, x := range row {
		if x == 0 {
			continue
		}
		above := r[j*m : (j+1)*m]
		length := math.Hypot(above[j], x)
		c, s := above[j]/length, x/length
		above[j] = length
		for k := j + 1; k < m; k++ {
			above[k], row[k] = c*above[k]+s*row[k], c*row[k]-s*above[k]
		}
		z[j], y = c*z[j]+s*y, c*y-s*z[j]
	}
	return y
}
