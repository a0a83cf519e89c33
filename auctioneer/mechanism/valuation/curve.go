package valuation

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"github.com/candor-grid/candor/messages/job"
)

// DefaultEpsilon is the default ε of a sigmoid.
const DefaultEpsilon = 0.01

// Curve is a valuation that is prepared for evaluation. The zero Curve is 0 at any time.
type Curve struct {
	shape    shape
	max      float64
	a, b     float64 // sigmoid: the slope, and the time at which half of the value is left
	from, to float64 // step: full value up to from; decay: it falls between from and to
	points   []job.ValuationPoint
}

type shape uint8

const (
	step shape = iota
	sigmoid
	decay
	lines
)

// New makes the curve of a valuation. It returns an error if the valuation is invalid.
func New(v job.Valuation) (Curve, error) {
	if err := v.Validate(); err != nil {
		return Curve{}, err
	}
	c := Curve{max: v.Max}
	switch v.Class {
	case job.Sigmoidal:
		c.shape = sigmoid
		c.a, c.b = slope(v.Mu, v.Delta, v.Epsilon)
	case job.Hard:
		c.from = v.Deadline
	case job.Recurrent:
		c.from = v.Workload * v.SecondsPerUnit
	case job.LinearDecay:
		c.shape, c.from, c.to = decay, v.Mu, v.Mu+v.Delta
	case job.Custom:
		c.shape, c.points = lines, slices.Clone(v.Points)
	}
	return c, nil
}

// slope returns the parameters `a` and `b` of the sigmoid max/(1+e^{a(x−b)}). At mu the sigmoid has the value
// (1−epsilon)·max, and at mu+delta the value epsilon·max. An epsilon of 0 means DefaultEpsilon. A slope that is too
// steep becomes the largest float64.
func slope(mu, delta, epsilon float64) (a, b float64) {
	epsilon = cmp.Or(epsilon, DefaultEpsilon)
	return min(2*math.Log((1-epsilon)/epsilon)/delta, math.MaxFloat64), mu + delta/2
}

// Max returns the highest value of the curve.
func (c *Curve) Max() float64 { return c.max }

// At returns the value if the job completes x seconds after its submission.
func (c *Curve) At(x float64) float64 {
	switch c.shape {
	case sigmoid:
		return c.max / (1 + math.Exp(c.a*(x-c.b)))
	case decay:
		return c.max * part(x, c.from, c.to)
	case lines:
		return c.max * c.partAt(x)
	default:
		if x > c.from {
			return 0
		}
		return c.max + 0*x // NaN if x is NaN
	}
}

// A line has the value 1 until the time `from`, and then falls to 0 at the time `to`. part returns its value at x. If
// both times are equal, the value is 1 up to and including this time, and 0 after it.
func part(x, from, to float64) float64 {
	if x <= from {
		return 1
	}
	return min(1, max(0, (to-x)/(to-from)))
}

func (c *Curve) partAt(x float64) float64 {
	p := c.points
	i := sort.Search(len(p), func(i int) bool { return p[i].At > x }) // the first corner after x
	switch {
	case math.IsNaN(x):
		return x
	case i == 0:
		return p[0].Part
	case i == len(p):
		return p[i-1].Part
	}
	left := part(x, p[i-1].At, p[i].At)
	return p[i].Part + left*(p[i-1].Part-p[i].Part)
}

// Latest returns the last x ≥ 0 at which completion is worth at least `level`. If the value never falls below the
// level, x is +Inf. If the value is always below it, the result `ever` is false.
func (c *Curve) Latest(level float64) (x float64, ever bool) {
	switch {
	case math.IsNaN(level):
		return level, false
	case level <= 0:
		return math.Inf(1), true
	case level > c.At(0):
		return 0, false
	}
	switch c.shape {
	case sigmoid:
		// If max/level is larger than the largest float64, the exponential of the sigmoid overflows and the curve is 0.
		// So the quotient max/level is limited.
		x = c.b + math.Log(min(c.max/level, math.MaxFloat64)-1)/c.a
	case decay:
		x = c.to - level/c.max*(c.to-c.from)
	case lines:
		x = c.latestPart(level / c.max)
	default:
		x = c.from
	}
	return max(0, x), true
}

// latestPart returns the last time at which the curve is at least at the given level. The level is a fraction of the
// curve's maximum. The curve must reach this level at one of its corners.
func (c *Curve) latestPart(level float64) float64 {
	p := c.points
	i := sort.Search(len(p), func(i int) bool { return p[i].Part < level }) // the first corner below level
	switch {
	case i == len(p):
		return math.Inf(1)
	case i == 0: // rounding only
		return p[0].At
	}
	down := (p[i-1].Part - level) / (p[i-1].Part - p[i].Part)
	return p[i-1].At + down*(p[i].At-p[i-1].At)
}
