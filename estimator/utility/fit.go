package utility

import (
	"cmp"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/candor-grid/candor/messages"
)

// Fit is a least-squares fit.
type Fit struct {
	Runs   int
	Weight float64 // Σ of the runs' faded weights; equals Runs if none has faded
	Rank   int
	// Weights has the m estimated weights. It is nil if the rank is below m, because then the runs do not determine the
	// weights.
	Weights []float64
	RSS     float64 // residual sum of squares
	// StandardErrors are the standard errors of the weights. They are nil if the number of runs is at most the number
	// of weights. With a half-life, an old run counts as less than one run here.
	StandardErrors []float64
	// Condition is the condition number of the features, after each was scaled to length 1. The relative errors of the
	// weights can be larger than the relative errors of the utilities. They are at most about Condition times as large.
	// Condition is +Inf if the rank is below m.
	Condition float64
}

// A singular value counts as 0 if it is smaller than rankTolerance times the largest singular value. Before the
// singular values are computed, each column of the matrix of shares is scaled to length 1. Example: in all runs the
// share of one resource is three times the share of another. Then one singular value is 0, and the weights of the two
// resources cannot be told apart.
const rankTolerance = 1e-12

// Fit solves the plain least squares, without intercept and without constraints, in O(m³).
func (g *Regression) Fit() *Fit {
	f := &Fit{Runs: g.runs, Weight: g.weight, RSS: g.rss, Condition: math.Inf(1)}
	scaled, scale := g.scaled()
	var svd mat.SVD
	if !svd.Factorize(scaled, mat.SVDThin) {
		return f // cannot happen, because all numbers are bounded and finite
	}
	values := svd.Values(nil)
	for _, v := range values {
		if v > rankTolerance*values[0] && v > 0 {
			f.Rank++
		}
	}
	if f.Rank < g.m {
		f.RSS += g.unexplained(&svd, f.Rank)
		return f
	}
	f.Condition = values[0] / values[g.m-1]
	f.Weights = backward(g.r, g.z)
	f.StandardErrors = g.errors(&svd, scale)
	return f
}

// g.r is the triangular matrix of the least-squares problem. scaled returns a copy in which each column has the length
// 1. It also returns the lengths that the columns had. For a column of zeros, it returns the length 1.
func (g *Regression) scaled() (*mat.Dense, []float64) {
	r, scale := mat.NewDense(g.m, g.m, nil), make([]float64, g.m)
	for j := range g.m {
		for i := range j + 1 {
			scale[j] = math.Hypot(scale[j], g.r[i*g.m+j])
		}
		scale[j] = cmp.Or(scale[j], 1)
		for i := range j + 1 {
			r.Set(i, j, g.r[i*g.m+j]/scale[j])
		}
	}
	return r, scale
}

// unexplained returns the squared length of the part of z that no weights can explain: the part orthogonal to the
// columns of R.
func (g *Regression) unexplained(svd *mat.SVD, rank int) float64 {
	var u mat.Dense
	svd.UTo(&u)
	sum := 0.0
	for k := rank; k < g.m; k++ {
		part := 0.0
		for i, z := range g.z {
			part += u.At(i, k) * z
		}
		sum += part * part
	}
	return sum
}

// backward solves r·w = z for an upper triangular r of full rank.
func backward(r, z []float64) []float64 {
	m := len(z)
	w := make([]float64, m)
	for i := m - 1; i >= 0; i-- {
		s := z[i]
		for j := i + 1; j < m; j++ {
			s -= r[i*m+j] * w[j]
		}
		w[i] = s / r[i*m+i]
	}
	return w
}

// errors returns the square roots of the diagonal of s²·(RᵀR)⁻¹, where s² is rss divided by the degrees of freedom.
func (g *Regression) errors(svd *mat.SVD, scale []float64) []float64 {
	freedom := g.weight - float64(g.m)
	if !(freedom > slack) {
		return nil
	}
	var v mat.Dense
	svd.VTo(&v)
	values := svd.Values(nil)
	out := make([]float64, g.m)
	for j := range out {
		for k, value := range values {
			out[j] = math.Hypot(out[j], v.At(j, k)/value)
		}
		out[j] *= math.Sqrt(g.rss/freedom) / scale[j]
	}
	return out
}

// Nonnegative solves the least squares with w ≥ 0. If the rank is below m, it returns one of several solutions.
func (g *Regression) Nonnegative() (weights []float64, rss float64, err error) {
	w, ok := nonnegative(g.r, g.z)
	if !ok {
		return nil, 0, messages.Errorf(messages.Internal, "the search for nonnegative weights did not end")
	}
	return w, g.rss + residual(g.r, g.z, w), nil
}

// residual returns the squared error ‖r·w−z‖² of the weights w.
func residual(r, z, w []float64) float64 {
	m, sum := len(z), 0.0
	for i, v := range z {
		for j := i; j < m; j++ {
			v -= r[i*m+j] * w[j]
		}
		sum += v * v
	}
	return sum
}
