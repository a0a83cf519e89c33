package density

import (
	"math"
	"strconv"

	"gonum.org/v1/gonum/mat"

	"github.com/candor-grid/candor/messages"
)

// Values above these limits are not accepted.
const (
	MaxDimensions = 32    // largest number of parameters of a type
	Largest       = 1e100 // largest absolute coordinate; its square does not overflow
)

// Data has weighted samples. Functions that take Data only read it.
type Data struct {
	Dimensions int       // number of coordinates of a sample, L
	Values     []float64 // n·L numbers, sample by sample
	Weights    []float64 // n numbers: how many samples each sample counts as, at least 0; nil means 1 for each
}

// Len returns the number of samples, n.
func (d *Data) Len() int { return len(d.Values) / d.Dimensions }

// At returns sample k. The returned slice shares the memory of d.
func (d *Data) At(k int) []float64 {
	return d.Values[k*d.Dimensions : (k+1)*d.Dimensions : (k+1)*d.Dimensions]
}

// Weight returns the weight of sample k.
func (d *Data) Weight(k int) float64 {
	if d.Weights == nil {
		return 1
	}
	return d.Weights[k]
}

// Check returns an error if there are no samples, or if a number is not finite. The error names the sample and the
// coordinate.
func (d *Data) Check() error {
	if d.Dimensions < 1 || d.Dimensions > MaxDimensions {
		return messages.Errorf(messages.Invalid, "samples: must have 1 to %d coordinates, have %d", MaxDimensions, d.Dimensions)
	}
	if len(d.Values) == 0 || len(d.Values)%d.Dimensions != 0 {
		return messages.Errorf(messages.Invalid, "samples: %d numbers do not make samples of %d coordinates each", len(d.Values), d.Dimensions)
	}
	for i, x := range d.Values {
		if err := checkCoordinate("samples["+strconv.Itoa(i/d.Dimensions)+"]", i%d.Dimensions, x); err != nil {
			return err
		}
	}
	return d.checkWeights()
}

func (d *Data) checkWeights() error {
	if d.Weights == nil {
		return nil
	}
	if len(d.Weights) != d.Len() {
		return messages.Errorf(messages.Invalid, "weights: give one for each of the %d samples; there are %d", d.Len(), len(d.Weights))
	}
	total := 0.0
	for k, w := range d.Weights {
		if !(w >= 0 && w <= Largest) {
			return messages.Errorf(messages.Invalid, "weights[%d]: must be 0 or above and finite, is %g", k, w)
		}
		total += w
	}
	if total == 0 {
		return messages.Errorf(messages.Invalid, "weights: are all zero: give at least one sample a positive weight")
	}
	return nil
}

func checkCoordinate(place string, j int, x float64) error {
	if math.Abs(x) <= Largest {
		return nil
	}
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return messages.Errorf(messages.Invalid, "%s[%d]: must be a finite number, is %g", place, j, x)
	}
	return messages.Errorf(messages.Invalid, "%s[%d]: %g is beyond %g: choose another unit", place, j, x, Largest)
}

// moments returns the total weight, the mean, and the covariance with divisor total−1. If the total is not above 1, the
// covariance is nil.
func (d *Data) moments() (total float64, mean []float64, c *mat.SymDense) {
	mean = make([]float64, d.Dimensions)
	for k := range d.Len() {
		w := d.Weight(k)
		total += w
		for j, x := range d.At(k) {
			mean[j] += w * x
		}
	}
	for j := range mean {
		mean[j] /= total
	}
	if !(total > 1) {
		return total, mean, nil
	}
	c = d.scatter(mean)
	c.ScaleSym(1/(total-1), c)
	return total, mean, c
}

// scatter returns Σ w·(x−mean)(x−mean)ᵀ.
func (d *Data) scatter(mean []float64) *mat.SymDense {
	l := d.Dimensions
	sum, delta := make([]float64, l*l), make([]float64, l)
	for k := range d.Len() {
		w := d.Weight(k)
		for j, x := range d.At(k) {
			delta[j] = x - mean[j]
			for i := range j + 1 {
				sum[i*l+j] += w * delta[i] * delta[j]
			}
		}
	}
	return mat.NewSymDense(l, sum)
}
