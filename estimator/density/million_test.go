package density

import (
	"math"
	"testing"
)

// The number of kernels must be bounded, no weight may be lost, and the estimate must be near the samples'
// distribution.
func TestAMillionSamples(t *testing.T) {
	c, _ := fill(t, 1_000_000)
	s := must[*Summary](t)(c.Summary())
	if s.Samples != 1e6 || s.Kernels > DefaultKernels || s.Accounts != 100 || s.Screened > 0.01 || s.Prior != 0 {
		t.Errorf("%+v", s)
	}
	// The samples are from a density with independent normal coordinates. Each sample becomes a kernel, so the estimate
	// is a little wider than the density. So at the mean, the logarithm of the estimate may differ from the logarithm
	// of the density by up to 0.3.
	f := must[*Density](t)(c.Estimate())
	if got, want := f.Log([]float64{0, 0, 0}), -1.5*math.Log(2*math.Pi); !(math.Abs(got-want) < 0.3) {
		t.Errorf("log-density at the mean is %.3f, of the truth %.3f", got, want)
	}
}
