package density

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/candor-grid/candor/messages"
)

// Rule names a way to choose a bandwidth matrix.
type Rule string

// In the formulas below, n is the total weight, L the number of dimensions, σ the standard deviations, and C the
// covariance with divisor n−1.
const (
	ScottFull     Rule = "scott_full"     // n^(−2/(L+4))·C
	SilvermanFull Rule = "silverman_full" // (n(L+2)/4)^(−2/(L+4))·C
	ScottDiag     Rule = "scott_diag"     // diagonal, (σ_j·n^(−1/(L+4)))²
	SilvermanDiag Rule = "silverman_diag" // diagonal, (σ_j·(4/((L+2)n))^(1/(L+4)))²
)

// Check returns an error for an unknown rule.
func (r Rule) Check() error {
	switch r {
	case ScottFull, SilvermanFull, ScottDiag, SilvermanDiag:
		return nil
	}
	return messages.Errorf(messages.Invalid, "bandwidth: must be %q, %q, %q or %q, is %.64q",
		ScottFull, SilvermanFull, ScottDiag, SilvermanDiag, string(r))
}

// Bandwidth returns the bandwidth matrix H by a rule. H is the covariance matrix of each kernel. If the samples lie in
// a plane, H is singular; Regular makes it invertible. If the total weight of the samples is 1 or less, Bandwidth
// returns an error.
func Bandwidth(d *Data, r Rule) (*mat.SymDense, error) {
	if err := d.Check(); err != nil {
		return nil, err
	}
	if err := r.Check(); err != nil {
		return nil, err
	}
	n, _, c := d.moments()
	if c == nil {
		return nil, messages.Errorf(messages.Invalid, "samples: %g are too few to choose the bandwidth with rule %s: give at least two samples, or the field H", n, r)
	}
	return r.of(c, n), nil
}

// of returns the bandwidth matrix that the rule gives for n samples with covariance c.
func (r Rule) of(c *mat.SymDense, n float64) *mat.SymDense {
	l := float64(c.SymmetricDim())
	f := math.Pow(n, -2/(l+4))
	if r == SilvermanFull || r == SilvermanDiag {
		f = math.Pow(n*(l+2)/4, -2/(l+4))
	}
	h := mat.NewSymDense(c.SymmetricDim(), nil)
	for i := range c.SymmetricDim() {
		for j := i; j < c.SymmetricDim(); j++ {
			if i == j || r == ScottFull || r == SilvermanFull {
				h.SetSym(i, j, f*c.At(i, j))
			}
		}
	}
	return h
}

const (
	// leastPivot is the smallest allowed squared pivot of the Cholesky factor of a correlation matrix. A squared pivot
	// is the part of a coordinate's variance that the coordinates before it do not explain. If it is smaller, the
	// matrix counts as singular.
	leastPivot = 1e-10
	// leastWidth is the least bandwidth that counts, divided by the coordinate's scale. A smaller bandwidth counts as
	// 0.
	leastWidth = 1e-9
	// A bandwidth below leastWidth is replaced by floorWidth. Both are in units of the coordinate's scale.
	floorWidth = 1e-3
	// shrink is a fraction. All correlations of a singular matrix are reduced by this fraction.
	shrink = 0.01
)

// Regular repairs a singular bandwidth matrix, and reports whether it was singular. If a coordinate has no width, it
// gets the width of 1/1000 of its scale. If there is such a coordinate and `scale` is nil, Regular returns an error. If
// the matrix is still singular, all correlations are reduced by 1 %.
func Regular(h *mat.SymDense, scale []float64) (regular *mat.SymDense, mended bool, err error) {
	l := h.SymmetricDim()
	regular = mat.NewSymDense(l, nil)
	regular.CopySym(h)
	for j := range l {
		width, least := math.Sqrt(h.At(j, j)), 0.0
		if scale != nil {
			least = leastWidth * scale[j]
		}
		if width > least {
			continue
		}
		if scale == nil || !(scale[j] > 0) {
			return nil, false, messages.Errorf(messages.Invalid, "samples: coordinate %d is the same in all samples, so its scale is not known: give H", j)
		}
		regular.SetSym(j, j, floorWidth*floorWidth*scale[j]*scale[j])
		mended = true
	}
	if pivot(regular) > leastPivot {
		return regular, mended, nil
	}
	for i := range l {
		for j := i + 1; j < l; j++ {
			regular.SetSym(i, j, (1-shrink)*regular.At(i, j))
		}
	}
	return regular, true, nil
}

func correlations(h mat.Symmetric) *mat.SymDense {
	r := mat.NewSymDense(h.SymmetricDim(), nil)
	for i := range h.SymmetricDim() {
		for j := i; j < h.SymmetricDim(); j++ {
			r.SetSym(i, j, h.At(i, j)/math.Sqrt(h.At(i, i))/math.Sqrt(h.At(j, j)))
		}
	}
	return r
}

// pivot returns the smallest squared pivot of the Cholesky factor of h's correlation matrix, or 0 if h is not positive
// definite.
func pivot(h mat.Symmetric) float64 {
	_, least := factor(h)
	return least
}

// factor returns the lower Cholesky factor of h, row by row. The result `least` is the smallest squared pivot: the part
// of a coordinate's variance that does not follow from the coordinates before it. If h is not positive definite, factor
// returns nil and 0.
func factor(h mat.Symmetric) (lower []float64, least float64) {
	l := h.SymmetricDim()
	for i := range l {
		if !(h.At(i, i) > 0) {
			return nil, 0
		}
	}
	var c mat.Cholesky
	if !c.Factorize(correlations(h)) { // correlations do not depend on the units of the coordinates
		return nil, 0
	}
	var t mat.TriDense
	c.LTo(&t)
	lower, least = make([]float64, l*l), 1
	for i := range l {
		least = min(least, t.At(i, i)*t.At(i, i))
		for j := range i + 1 {
			lower[i*l+j] = t.At(i, j) * math.Sqrt(h.At(i, i))
		}
	}
	return lower, least
}
