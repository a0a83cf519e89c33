package density

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/candor-grid/candor/messages"
)

// The draws must have the mean of the samples. Their covariance must be the samples' covariance plus the bandwidth
// matrix H. The tolerance is five standard errors.
func TestDrawsFollowTheDensity(t *testing.T) {
	d := normal(50, 2, 1)
	d.Weights = make([]float64, 50)
	for k := range d.Weights {
		d.Weights[k] = float64(k % 5)
	}
	f := estimate(t, d, ScottFull)
	total, mean, _ := d.moments()
	want := d.scatter(mean)
	want.ScaleSym(1/total, want)
	want.AddSym(want, f.H())
	const n = 200_000
	values, reflected := f.Draws(generator(1), n, nil)
	_, got, covariance := (&Data{Dimensions: 2, Values: values}).moments()
	for i := range 2 {
		if e := math.Sqrt(want.At(i, i) / n); math.Abs(got[i]-mean[i]) > 5*e {
			t.Errorf("mean %v, want %v", got, mean)
		}
		for j := range 2 {
			if e := math.Sqrt(2 * want.At(i, i) * want.At(j, j) / n); math.Abs(covariance.At(i, j)-want.At(i, j)) > 5*e {
				t.Errorf("covariance %v, want %v", mat.Formatted(covariance), mat.Formatted(want))
			}
		}
	}
	if reflected != 0 {
		t.Errorf("%d reflected without bounds", reflected)
	}
}

// A standard normal distribution truncated to [0, ∞) must have the mean √(2/π), and be in [0, 1] with probability
// 0.6826895.
func TestDrawsWithinAreTruncated(t *testing.T) {
	f := must[*Density](t)(New(&Data{Dimensions: 1, Values: []float64{0}}, mat.NewSymDense(1, []float64{1})))
	const n = 100_000
	values, reflected := f.Draws(generator(2), n, &Bounds{Low: []float64{0}, High: []float64{math.Inf(1)}})
	mean, below := 0.0, 0
	for _, x := range values {
		if x < 0 {
			t.Fatalf("drew %v", x)
		}
		mean += x / n
		if x <= 1 {
			below++
		}
	}
	if math.Abs(mean-math.Sqrt(2/math.Pi)) > 0.01 || math.Abs(float64(below)/n-0.6826895) > 0.008 || reflected != 0 {
		t.Errorf("mean %v, %d below 1, %d reflected", mean, below, reflected)
	}
}

// All samples lie outside the bounds, so the density is 0 within them. Each draw then lies outside too, and must be
// mirrored at a bound so that it lies within. The same seed must give the same draws.
func TestDrawsOutsideAreReflected(t *testing.T) {
	f := must[*Density](t)(New(&Data{Dimensions: 2, Values: []float64{100, -100}}, mat.NewSymDense(2, []float64{1, 0, 0, 1})))
	b := &Bounds{Low: []float64{0, 0}, High: []float64{3, math.Inf(1)}}
	values, reflected := f.Draws(generator(3), 1000, b)
	again, _ := f.Draws(generator(3), 1000, b)
	if reflected != 1000 {
		t.Errorf("%d reflected", reflected)
	}
	for k := 0; k < len(values); k += 2 {
		x := values[k : k+2]
		if !b.Contains(x) || math.Abs(x[1]-100) > 6 || x[0] != again[k] || x[1] != again[k+1] {
			t.Fatalf("drew %v, then %v", x, again[k:k+2])
		}
	}
}

func TestReflect(t *testing.T) {
	b := &Bounds{Low: []float64{1}, High: []float64{3}}
	for x, want := range map[float64]float64{2: 2, 0.5: 1.5, 3.5: 2.5, 5.5: 1.5, -1.5: 2.5, 7: 3, 1e300: math.NaN()} {
		got := []float64{x}
		b.reflect(got)
		if !b.Contains(got) || !math.IsNaN(want) && got[0] != want {
			t.Errorf("%v is reflected to %v, want %v", x, got[0], want)
		}
	}
}

// The Kullback-Leibler divergence of N(0, 1) from N(m, v) is (m²+v−1−ln v)/2. The estimate of Divergence must agree
// with it.
func TestDivergence(t *testing.T) {
	at := func(m, v float64) *Density {
		return must[*Density](t)(New(&Data{Dimensions: 1, Values: []float64{m}}, mat.NewSymDense(1, []float64{v})))
	}
	for _, c := range []struct{ m, v float64 }{{0, 1}, {1, 1}, {0.5, 2}, {3, 0.5}} {
		got, e, err := Divergence(at(c.m, c.v), at(0, 1), 20_000, 1)
		want := (c.m*c.m + c.v - 1 - math.Log(c.v)) / 2
		if err != nil || math.Abs(got-want) > 4*e || e > 0.05 {
			t.Errorf("from N(%v, %v): %v ± %v, want %v (%v)", c.m, c.v, got, e, want, err)
		}
	}
	if _, _, err := Divergence(at(0, 1), at(0, 1), 1, 1); messages.KindOf(err) != messages.Invalid {
		t.Errorf("one draw: %v", err)
	}
}
