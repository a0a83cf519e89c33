package solve

import (
	"math"
	"strconv"

	"gonum.org/v1/gonum/mat"

	"github.com/candor-grid/candor/auctioneer/mechanism/casefile"
	"github.com/candor-grid/candor/estimator/density"
	"github.com/candor-grid/candor/messages"
)

// densityInput is the document of `candor solve density`. It has samples, the points at which to evaluate the density,
// and the bandwidth. The bandwidth is a matrix, or a rule that chooses the matrix.
type densityInput struct {
	L         *int         `json:"L,omitempty"` // number of dimensions, to check the samples; optional
	Samples   [][]float64  `json:"samples"`
	Weights   []float64    `json:"weights,omitempty"` // number of samples that each given sample stands for
	H         [][]float64  `json:"H,omitempty"`       // covariance matrix of a kernel
	Bandwidth density.Rule `json:"bandwidth,omitempty"`
	Points    [][]float64  `json:"points"`
}

type densityOutput struct {
	Density    []float64   `json:"density"` // 0 if the value is too small for a float64
	LogDensity []float64   `json:"log_density"`
	H          [][]float64 `json:"H"` // the bandwidth that was given, or that the rule chose
	// If the matrix H is singular, Regularised is the matrix that was used in its place.
	Regularised [][]float64 `json:"regularised,omitempty"`
}

// mostTerms is the largest allowed number of kernels multiplied by the number of points. A computation of this size
// takes about ten seconds.
const mostTerms = 1_000_000_000

func solveDensity(data []byte) (any, error) {
	in, err := casefile.Read[densityInput](data)
	if err != nil {
		return nil, err
	}
	d, err := in.data()
	if err != nil {
		return nil, err
	}
	h, regular, mended, err := in.matrix(d)
	if err != nil {
		return nil, err
	}
	f, err := density.New(d, regular)
	if err != nil {
		return nil, err
	}
	out := &densityOutput{Density: []float64{}, LogDensity: []float64{}, H: matrixRows(h)}
	if mended {
		out.Regularised = matrixRows(regular)
	}
	return out, out.evaluate(f, in.Points)
}

func (in *densityInput) data() (*density.Data, error) {
	if len(in.Samples) == 0 {
		return nil, casefile.Invalid("samples", "is empty: give at least one")
	}
	d := &density.Data{Dimensions: len(in.Samples[0]), Weights: in.Weights}
	if in.L != nil && *in.L != d.Dimensions {
		return nil, casefile.Invalid("L", "is %d, but samples[0] has %d coordinates: make them agree", *in.L, d.Dimensions)
	}
	for k, x := range in.Samples {
		if len(x) != d.Dimensions {
			return nil, casefile.Invalid("samples["+strconv.Itoa(k)+"]", "must have %d coordinates, like samples[0], has %d", d.Dimensions, len(x))
		}
		d.Values = append(d.Values, x...)
	}
	return d, d.Check()
}

// matrix returns the bandwidth matrix h that the document gives, or that the document's rule gives. If the matrix of
// the rule is singular, the result `regular` is a repaired matrix and the result `mended` is true. Otherwise `regular`
// is equal to h.
func (in *densityInput) matrix(d *density.Data) (h, regular *mat.SymDense, mended bool, err error) {
	switch {
	case (in.H != nil) == (in.Bandwidth != ""):
		return nil, nil, false, casefile.Invalid("H", "give either H or bandwidth")
	case in.H != nil:
		h, err = symmetric(in.H, d.Dimensions)
		return h, h, false, err
	}
	if h, err = density.Bandwidth(d, in.Bandwidth); err != nil {
		return nil, nil, false, err
	}
	regular, mended, err = density.Regular(h, nil)
	return h, regular, mended, err
}

// asymmetry is the largest accepted difference of two entries of a symmetric matrix that must be equal, relative to the
// diagonal. They may differ because they were given with different numbers of digits.
const asymmetry = 1e-12

func symmetric(h [][]float64, dims int) (*mat.SymDense, error) {
	if len(h) != dims {
		return nil, casefile.Invalid("H", "must have %d rows, because samples have %d coordinates, has %d", dims, dims, len(h))
	}
	for i, row := range h {
		if len(row) != dims {
			return nil, casefile.Invalid("H["+strconv.Itoa(i)+"]", "must have %d numbers, has %d", dims, len(row))
		}
	}
	out := mat.NewSymDense(dims, nil)
	for i := range h {
		for j := i; j < dims; j++ {
			scale := math.Sqrt(math.Abs(h[i][i])) * math.Sqrt(math.Abs(h[j][j]))
			if math.Abs(h[i][j]-h[j][i]) > asymmetry*scale {
				return nil, casefile.Invalid("H["+strconv.Itoa(i)+"]["+strconv.Itoa(j)+"]", "is %g, but H[%d][%d] is %g: give a symmetric matrix", h[i][j], j, i, h[j][i])
			}
			out.SetSym(i, j, h[i][j])
		}
	}
	return out, nil
}

func (out *densityOutput) evaluate(f *density.Density, points [][]float64) error {
	if len(points) > mostTerms/f.Kernels() {
		return messages.Errorf(messages.TooLarge, "points: %d points and %d samples are above the limit of %d evaluations: split the points", len(points), f.Kernels(), mostTerms)
	}
	for k, x := range points {
		if err := f.CheckPoint(k, x); err != nil {
			return err
		}
		log := f.Log(x)
		value := math.Exp(log)
		if math.IsInf(value, 1) {
			return casefile.Invalid("points["+strconv.Itoa(k)+"]", "the density at this point is e^%g, too large for a float64: choose another unit", log)
		}
		out.LogDensity = append(out.LogDensity, log)
		out.Density = append(out.Density, value)
	}
	return nil
}

func matrixRows(m mat.Matrix) [][]float64 {
	n, l := m.Dims()
	rows := make([][]float64, n)
	for i := range rows {
		for j := range l {
			rows[i] = append(rows[i], m.At(i, j))
		}
	}
	return rows
}
