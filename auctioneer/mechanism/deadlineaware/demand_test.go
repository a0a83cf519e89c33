package deadlineaware

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/candor-grid/candor/messages"
)

// divergence returns the Kullback-Leibler divergence of p from the empirical distribution.
func divergence(p []float64) float64 {
	d := 0.0
	for _, x := range p {
		if x > 0 {
			d += x * math.Log(x*float64(len(p)))
		}
	}
	return d
}

// simplex calls f with every distribution over n ≤ 4 points whose probabilities are multiples of 1/parts.
func simplex(n, parts int, f func(p []float64)) {
	p := make([]float64, n)
	var from func(i, left int)
	from = func(i, left int) {
		if i == n-1 {
			p[i] = float64(left) / float64(parts)
			f(p)
			return
		}
		for k := 0; k <= left; k++ {
			p[i] = float64(k) / float64(parts)
			from(i+1, left-k)
		}
	}
	from(0, parts)
}

func expectation(p, x []float64) (m float64) {
	for i := range p {
		m += p[i] * x[i]
	}
	return m
}

func draw(r *rand.Rand, n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = math.Round(10*r.ExpFloat64()) + 0.5
	}
	return x
}

// RobustMean returns the largest mean of any distribution whose divergence from the samples is within a bound. The test
// tries all distributions of a fine grid. If the divergence of a distribution is within the bound, its mean must not be
// larger. One of these distributions must have nearly this mean.
func TestRobustMeanOverTheSimplex(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	parts := []int{0, 10, 4000, 300, 60}
	for range 60 {
		x, delta := draw(r, 2+r.IntN(3)), r.Float64()
		got, err := RobustMean(x, delta)
		if err != nil {
			t.Fatal(err)
		}
		best := 0.0
		simplex(len(x), parts[len(x)], func(p []float64) {
			if divergence(p) <= delta {
				best = max(best, expectation(p, x))
			}
		})
		spread := slices.Max(x) - slices.Min(x)
		if best > got+1e-9*spread || best < got-4*spread/float64(parts[len(x)]) {
			t.Fatalf("%v, delta %v: %v, on the grid %v", x, delta, got, best)
		}
	}
}

// TestRobustMeanIsAttained changes the weights of the samples until their divergence from equal weights is delta, in
// the direction of larger values. The mean with these weights must be the robust mean, to 1e-9 of the range of the
// samples.
func TestRobustMeanIsAttained(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 2))
	for range 300 {
		x := draw(r, 2+r.IntN(100))
		delta := math.Exp(-12 * r.Float64())
		got, err := RobustMean(x, delta)
		if err != nil {
			t.Fatal(err)
		}
		p, most := make([]float64, len(x)), slices.Max(x)
		low, high := 0.0, 1e4
		for range 200 {
			s, sum := (low+high)/2, 0.0
			for i := range x {
				p[i] = math.Exp(s * (x[i] - most))
				sum += p[i]
			}
			for i := range p {
				p[i] /= sum
			}
			if divergence(p) < delta {
				low = s
			} else {
				high = s
			}
		}
		if want := expectation(p, x); math.Abs(got-want) > 1e-9*(most-slices.Min(x)) {
			t.Fatalf("%v, delta %v: %v, attained %v", x, delta, got, want)
		}
	}
}

// With two samples, the robust mean is easy to compute: one sample gets the least probability that the bound allows,
// and the other sample gets the remaining probability. The function Lowest computes this least probability.
func TestRobustMeanOfTwo(t *testing.T) {
	for _, delta := range []float64{1e-18, 1e-12, 1e-6, 0.01, 0.1, 0.5, math.Ln2 * 0.999, math.Ln2, 3} {
		got, err := RobustMean([]float64{7, 3}, delta)
		// RobustMean is highest if the sample 7 is as probable as allowed, and the sample 3 as improbable as allowed.
		// Lowest computes the smallest allowed probability of the sample 3. The sample 7 has the remaining probability.
		if want := 3 + 4*(1-Lowest(0.5, delta)); err != nil || math.Abs(got-want) > 1e-11 {
			t.Errorf("delta %v: %v, want %v, %v", delta, got, want, err)
		}
	}
	// A small bound δ on the divergence moves the mean by σ·√(2δ).
	if got, _ := RobustMean([]float64{7, 3}, 5e-17); math.Abs(got-5-2e-8) > 1e-14 {
		t.Errorf("%v", got-5)
	}
}

func TestLowest(t *testing.T) {
	for _, q := range []float64{0.01, 0.3, 0.5, 0.9, 0.999} {
		for _, delta := range []float64{1e-10, 1e-4, 0.01, 0.3, 1, 5} {
			p := Lowest(q, delta)
			if p == 0 {
				if -math.Log(1-q) > delta {
					t.Errorf("q %v, delta %v: 0 is %v away", q, delta, -math.Log(1-q))
				}
				continue
			}
			if d := p*math.Log(p/q) + (1-p)*math.Log((1-p)/(1-q)); math.Abs(d-delta) > 1e-9*max(delta, 1e-6) {
				t.Errorf("q %v, delta %v: %v is %v away", q, delta, p, d)
			}
		}
	}
	if Lowest(1, 9) != 1 || Lowest(0, 0) != 0 || Lowest(0.25, 0) != 0.25 {
		t.Error("what is certain, impossible or undisputed changed")
	}
}

// The robust quantile x must be the smallest correct sample. Consider all distributions whose divergence from the
// samples is within the limit. Each of them must have at least the wanted probability for values of at most x. At least
// one of them must have a smaller probability for values of at most the next smaller sample.
func TestRobustQuantileOverTheSimplex(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for range 200 {
		x, delta, part := draw(r, 2+r.IntN(3)), r.Float64()/2, 0.2+0.75*r.Float64()
		got, err := RobustQuantile(x, delta, part)
		if err != nil {
			t.Fatal(err)
		}
		upTo := func(p []float64, most float64, strictly bool) (sum float64) {
			for i := range x {
				if x[i] < most || x[i] == most && !strictly {
					sum += p[i]
				}
			}
			return sum
		}
		least, below := 1.0, 1.0
		simplex(len(x), 60, func(p []float64) {
			if divergence(p) <= delta {
				least, below = min(least, upTo(p, got, false)), min(below, upTo(p, got, true))
			}
		})
		if least < part-1e-9 {
			t.Fatalf("%v, delta %v, part %v: at %v a distribution has only %v", x, delta, part, got, least)
		}
		if below > part+0.05 { // the tolerance is large because the grid of distributions is coarse
			t.Fatalf("%v, delta %v, part %v: below %v all have %v", x, delta, part, got, below)
		}
	}
}

func TestDemandWithoutDoubtIsEmpirical(t *testing.T) {
	x := []float64{4, 1, 3, 2, 5, 9, 8, 7, 6, 10}
	for part, want := range map[float64]float64{0.05: 1, 0.1: 1, 0.11: 2, 0.5: 5, 0.9: 9, 0.91: 10, 1: 10} {
		if got, err := RobustQuantile(x, 0, part); err != nil || got != want {
			t.Errorf("quantile %v: %v, %v", part, got, err)
		}
	}
	if got, err := RobustMean(x, 0); err != nil || got != 5.5 {
		t.Errorf("mean %v, %v", got, err)
	}
}

func TestDemandGrowsWithDoubt(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		x := draw(r, 1+r.IntN(200))
		lastMean, lastQuantile := 0.0, 0.0
		for _, delta := range []float64{0, 1e-9, 1e-4, 0.01, 0.1, 0.5, 1, 3, 6, 1e15} {
			m, err := RobustMean(x, delta)
			q, err2 := RobustQuantile(x, delta, 0.7)
			if err != nil || err2 != nil || m < lastMean*(1-1e-15) || q < lastQuantile {
				t.Fatalf("%v, delta %v: mean %v after %v, quantile %v after %v", x, delta, m, lastMean, q, lastQuantile)
			}
			lastMean, lastQuantile = m, q
		}
		if most := slices.Max(x); lastMean != most || lastQuantile != most {
			t.Fatalf("%v: in all doubt the mean is %v, the quantile %v", x, lastMean, lastQuantile)
		}
	}
}

func TestDemandsAreRefused(t *testing.T) {
	for _, c := range []struct {
		samples     []float64
		delta, part float64
	}{
		{nil, 0, 1}, {[]float64{-1}, 0, 1}, {[]float64{math.NaN()}, 0, 1}, {[]float64{1}, -1, 1}, {[]float64{1}, math.NaN(), 1},
		{[]float64{1}, 0, 0}, {[]float64{1}, 0, 1.5}, {[]float64{1, math.Inf(1)}, 0, 1},
	} {
		if _, err := RobustQuantile(c.samples, c.delta, c.part); messages.KindOf(err) != messages.Invalid {
			t.Errorf("%+v: %v", c, err)
		}
		if _, err := RobustMean(c.samples, c.delta); (messages.KindOf(err) != messages.Invalid) != (len(c.samples) == 1 && c.samples[0] == 1 && c.delta == 0) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
