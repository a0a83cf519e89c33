package density

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/candor-grid/candor/messages"
)

// Density is a weighted sum of Gaussian kernels with one covariance. It is immutable, and safe for concurrent use.
type Density struct {
	dims    int
	h       *mat.SymDense
	lower   []float64 // Cholesky factor of h, row by row
	centre  []float64 // subtracted from each point before whitening, so that fewer digits are lost
	kernels []float64 // L·n whitened centres of the kernels, coordinate by coordinate
	logs    []float64 // by kernel: logarithm of its part of the weight
	peak    float64   // logarithm of the density of a kernel with weight 1 at its centre
	pick    alias
}

// smallest is the smallest relative squared pivot of a positive definite matrix. Below it, the result depends on
// rounding.
const smallest = 1e-14

// New returns the density of data with bandwidth matrix h, the covariance of each kernel. The matrix must be positive
// definite. Samples of weight 0 are left out. New takes O(n·L²).
func New(d *Data, h mat.Symmetric) (*Density, error) {
	if err := d.Check(); err != nil {
		return nil, err
	}
	if err := checkBandwidth(h, d.Dimensions); err != nil {
		return nil, err
	}
	lower, least := factor(h)
	if least < smallest {
		return nil, messages.Errorf(messages.Invalid, "H: is not positive definite: give a positive definite covariance matrix")
	}
	f := &Density{dims: d.Dimensions, h: mat.NewSymDense(d.Dimensions, nil), lower: lower}
	f.h.CopySym(h)
	total, mean, _ := d.moments()
	f.centre = mean
	f.peak = -0.5 * float64(f.dims) * math.Log(2*math.Pi)
	for j := range f.dims {
		f.peak -= math.Log(f.lower[j*f.dims+j])
	}
	f.place(d, total)
	return f, nil
}

func checkBandwidth(h mat.Symmetric, dims int) error {
	if h.SymmetricDim() != dims {
		return messages.Errorf(messages.Invalid, "H: must be %d by %d, because samples have %d coordinates; H is %d by %d", dims, dims, dims, h.SymmetricDim(), h.SymmetricDim())
	}
	for i := range dims {
		for j := i; j < dims; j++ {
			if x := h.At(i, j); !(math.Abs(x) <= Largest*Largest) {
				return messages.Errorf(messages.Invalid, "H[%d][%d]: must be finite and below %g, is %g", i, j, Largest*Largest, x)
			}
		}
	}
	return nil
}

// place computes the whitened kernels of all samples with a positive weight.
func (f *Density) place(d *Data, total float64) {
	n := 0
	for k := range d.Len() {
		if d.Weight(k) > 0 {
			n++
		}
	}
	f.kernels, f.logs = make([]float64, n*f.dims), make([]float64, n)
	z := make([]float64, f.dims)
	parts := make([]float64, n)
	at := 0
	for k := range d.Len() {
		w := d.Weight(k)
		if w == 0 {
			continue
		}
		f.whiten(d.At(k), z)
		for j, x := range z {
			f.kernels[j*n+at] = x
		}
		parts[at] = w / total
		f.logs[at] = math.Log(w / total)
		at++
	}
	f.pick = newAlias(parts)
}

// Dimensions returns L.
func (f *Density) Dimensions() int { return f.dims }

// Kernels returns the number of kernels.
func (f *Density) Kernels() int { return len(f.logs) }

// H returns a copy of the bandwidth matrix.
func (f *Density) H() *mat.SymDense {
	h := mat.NewSymDense(f.dims, nil)
	h.CopySym(f.h)
	return h
}

// whiten solves lower·z = x − centre for z.
func (f *Density) whiten(x, z []float64) {
	for i := range z {
		row := f.lower[i*f.dims : i*f.dims+i+1]
		s := x[i] - f.centre[i]
		for j, l := range row[:i] {
			s -= l * z[j]
		}
		z[i] = s / row[i]
	}
}

// CheckPoint returns an error if x does not have L finite coordinates, where L is the number of dimensions. In the
// error, the point has the given index, which is its position in a list.
func (f *Density) CheckPoint(index int, x []float64) error {
	if len(x) != f.dims {
		return messages.Errorf(messages.Invalid, "points[%d]: must have %d coordinates as the samples have, has %d", index, f.dims, len(x))
	}
	for j, v := range x {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return messages.Errorf(messages.Invalid, "points[%d][%d]: must be a finite number, is %g", index, j, v)
		}
	}
	return nil
}

const (
	// block is the number of kernels that are evaluated together. Their exponents stay in the first-level cache.
	block = 128
	// negligible is the logarithm of the smallest term that counts in a sum over kernels, relative to the largest term.
	// Leaving out the smaller terms changes the sum by less than 1e-19 of its largest term.
	negligible = -44
)

// Log returns the logarithm of the density at x, which has L coordinates. It is finite for every x: it does not
// underflow. If the squared distance between x and the samples overflows, Log returns −math.MaxFloat64. Log takes
// O(n·L) and allocates nothing.
func (f *Density) Log(x []float64) float64 {
	var point [MaxDimensions]float64
	z := point[:f.dims]
	f.whiten(x, z)
	var exponents [block]float64
	top, sum := math.Inf(-1), 0.0
	for from := 0; from < len(f.logs); from += block {
		e := exponents[:min(block, len(f.logs)-from)]
		f.exponents(from, z, e)
		high := top
		for _, v := range e {
			if v > high {
				high = v
			}
		}
		if high > top {
			sum *= math.Exp(top - high)
			top = high
		}
		sum = addExp(sum, e, top)
	}
	if math.IsInf(top, -1) {
		return -math.MaxFloat64
	}
	return max(-math.MaxFloat64, f.peak+top+math.Log(sum))
}

// exponents computes ln w_k − |z−y_k|²/2 for consecutive kernels k, and stores the results in e. The first kernel is
// `from`, and there are len(e) kernels.
func (f *Density) exponents(from int, z, e []float64) {
	n := len(f.logs)
	clear(e)
	for j, x := range z {
		kernels := f.kernels[j*n+from : j*n+from+len(e)]
		for k, y := range kernels {
			e[k] += (x - y) * (x - y)
		}
	}
	for k, l := range f.logs[from : from+len(e)] {
		e[k] = l - 0.5*e[k]
	}
}
