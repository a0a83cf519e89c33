package density

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"

	"github.com/candor-grid/candor/messages"
)

// slow computes the logarithm of the density by its formula, without shortcuts.
func slow(d *Data, h mat.Symmetric, x []float64) float64 {
	l := d.Dimensions
	var inverse mat.Dense
	if err := inverse.Inverse(h); err != nil {
		return math.NaN()
	}
	sum, total := 0.0, 0.0
	for k := range d.Len() {
		q := 0.0
		for i := range l {
			for j := range l {
				q += (x[i] - d.At(k)[i]) * inverse.At(i, j) * (x[j] - d.At(k)[j])
			}
		}
		sum += d.Weight(k) * math.Exp(-q/2)
		total += d.Weight(k)
	}
	return sum / total / math.Sqrt(math.Pow(2*math.Pi, float64(l))*mat.Det(h))
}

func instance(r *rand.Rand) (d *Data, h *mat.SymDense, points *Data) {
	l, n := 1+r.IntN(4), 1+r.IntN(300)
	d = normal(n, l, r.Uint64())
	if r.IntN(2) == 0 {
		d.Weights = make([]float64, n)
		for k := range d.Weights {
			d.Weights[k] = float64(r.IntN(4))
		}
		d.Weights[0] = 1
	}
	root := normal(l, l, r.Uint64())
	h = mat.NewSymDense(l, nil)
	h.SymOuterK(1, mat.NewDense(l, l, root.Values))
	for j := range l {
		h.SetSym(j, j, h.At(j, j)+0.1)
	}
	return d, h, normal(5, l, r.Uint64())
}

func alike(got, want, tolerance float64) bool {
	return math.Abs(got-want) <= tolerance*max(1, math.Abs(want))
}

func TestFastIsSlow(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 1000 {
		d, h, points := instance(r)
		f := must[*Density](t)(New(d, h))
		for k := range points.Len() {
			if got, want := math.Exp(f.Log(points.At(k))), slow(d, h, points.At(k)); !(math.Abs(got-want) <= 1e-11*want) {
				t.Fatalf("n=%d L=%d: %v, want %v", d.Len(), d.Dimensions, got, want)
			}
		}
	}
}

// The sum of the density over a grid must be 1. For a smooth function that is 0 at the ends of the grid, such a sum is
// equal to the integral to many digits (trapezoidal rule).
func TestIntegratesToOne(t *testing.T) {
	for l, cells := range map[int]int{1: 4000, 2: 200, 3: 50} {
		f := estimate(t, normal(30, l, 4), SilvermanFull)
		const end = 7.0
		step, sum := 2*end/float64(cells), 0.0
		x := make([]float64, l)
		for k := range int(math.Pow(float64(cells), float64(l))) {
			for j := range x {
				x[j] = -end + step*float64(k%cells)
				k /= cells
			}
			sum += math.Exp(f.Log(x))
		}
		if sum *= math.Pow(step, float64(l)); math.Abs(sum-1) > 1e-6 {
			t.Errorf("L=%d: integrates to %v", l, sum)
		}
	}
}

// ScottFull and SilvermanFull use a full bandwidth matrix. If samples and points are moved by x ↦ A·x + b, the density
// must be divided by |det A|. The order of the samples must not matter.
func TestEquivariance(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	for _, rule := range []Rule{ScottFull, SilvermanFull} {
		for range 100 {
			d, _, points := instance(r)
			d.Weights = nil
			l := d.Dimensions
			if d.Len() <= 2*l {
				continue
			}
			a := mat.NewDense(l, l, normal(l, l, r.Uint64()).Values)
			if math.Abs(mat.Det(a)) < 0.1 {
				continue
			}
			f, g := estimate(t, d, rule), estimate(t, moved(d, a, 1000), rule)
			there := moved(points, a, 1000)
			shuffled := &Data{Dimensions: l}
			for _, k := range r.Perm(d.Len()) {
				shuffled.Values = append(shuffled.Values, d.At(k)...)
			}
			p := estimate(t, shuffled, rule)
			for k := range points.Len() {
				want := f.Log(points.At(k))
				if got := g.Log(there.At(k)) + math.Log(math.Abs(mat.Det(a))); !alike(got, want, 1e-8) {
					t.Fatalf("%s, L=%d: log-density %v after a linear map, %v before", rule, l, got, want)
				}
				if got := p.Log(points.At(k)); !alike(got, want, 1e-11) {
					t.Fatalf("%s, L=%d: log-density %v in another order, was %v", rule, l, got, want)
				}
			}
		}
	}
}

func moved(d *Data, a *mat.Dense, shift float64) *Data {
	out := &Data{Dimensions: d.Dimensions, Values: make([]float64, len(d.Values))}
	for k := range d.Len() {
		y := mat.NewVecDense(d.Dimensions, out.At(k))
		y.MulVec(a, mat.NewVecDense(d.Dimensions, d.At(k)))
		for j := range d.Dimensions {
			out.At(k)[j] += shift
		}
	}
	return out
}

// With every rule, three equal samples must give the same density as one sample of weight 3. A sample of weight 0 must
// change nothing.
func TestDuplicatesAreWeights(t *testing.T) {
	d := normal(40, 2, 6)
	weighted, repeated := &Data{Dimensions: 2}, &Data{Dimensions: 2}
	for k := range d.Len() {
		weighted.Values, weighted.Weights = append(weighted.Values, d.At(k)...), append(weighted.Weights, float64(k%4))
		for range k % 4 {
			repeated.Values = append(repeated.Values, d.At(k)...)
		}
	}
	for _, rule := range []Rule{ScottFull, SilvermanFull, ScottDiag, SilvermanDiag} {
		f, g := estimate(t, weighted, rule), estimate(t, repeated, rule)
		for k := range d.Len() {
			if x := d.At(k); !alike(f.Log(x), g.Log(x), 1e-9) {
				t.Fatalf("%s: log-density %v with weights, %v with duplicates", rule, f.Log(x), g.Log(x))
			}
		}
	}
}

// The logarithm of the density must be finite at any point. It must fall with the distance from the samples. At a point
// with a NaN or an infinite coordinate, it must be the lowest float64 number.
func TestLogIsFinite(t *testing.T) {
	f := estimate(t, normal(100, 2, 7), ScottFull)
	before := math.Inf(1)
	for e := 1.0; e < 309; e += 4 {
		x := []float64{math.Pow(10, e), -math.Pow(10, e)}
		got := f.Log(x)
		if math.IsNaN(got) || math.IsInf(got, 0) || got > before || got == before && before != -math.MaxFloat64 {
			t.Fatalf("log-density at %v is %v, before it %v", x, got, before)
		}
		before = got
	}
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64} {
		if got := f.Log([]float64{x, -x}); got != -math.MaxFloat64 || math.Exp(f.Log([]float64{x, x})) != 0 {
			t.Errorf("log-density at %v is %v", x, got)
		}
	}
}

func TestAddExp(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	for range 200_000 {
		x := negligible * r.Float64()
		if got, want := addExp(0, []float64{x}, 0), math.Exp(x); math.Abs(got-want) > 4e-16*want {
			t.Fatalf("e^%v = %v, want %v", x, got, want)
		}
	}
	nan, inf := math.NaN(), math.Inf(-1)
	if got := addExp(1, []float64{0, 7, nan, inf, -1000, negligible}, 7); !alike(got, 1+math.Exp(-7)+1, 1e-15) {
		t.Errorf("%v", got)
	}
}

// At a distance of 100 bandwidths, the density is far below the smallest float64. Its logarithm must still equal the
// logarithm of the nearest kernel.
func TestLogFarAway(t *testing.T) {
	f := must[*Density](t)(New(&Data{Dimensions: 1, Values: []float64{0, 1}}, mat.NewSymDense(1, []float64{1})))
	want := math.Log(0.5) - 0.5*math.Log(2*math.Pi) - 0.5*100*100 + math.Log1p(math.Exp(-0.5*(101*101-100*100)))
	if got := f.Log([]float64{101}); !alike(got, want, 1e-15) || math.Exp(f.Log([]float64{101})) != 0 {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestRefuses(t *testing.T) {
	one := mat.NewSymDense(1, []float64{1})
	for says, c := range map[string]struct {
		d Data
		h *mat.SymDense
	}{
		"1 to 32 coordinates, have 0":   {Data{}, one},
		"1 to 32 coordinates, have 33":  {Data{Dimensions: 33, Values: make([]float64, 33)}, one},
		"0 numbers do not":              {Data{Dimensions: 1}, one},
		"3 numbers do not":              {Data{Dimensions: 2, Values: []float64{1, 2, 3}}, one},
		"samples[1][0]: must be a fin":  {Data{Dimensions: 2, Values: []float64{1, 2, math.NaN(), 3}}, one},
		"samples[1][1]: must be a fin":  {Data{Dimensions: 2, Values: []float64{1, 2, 3, math.Inf(-1)}}, one},
		"samples[0][1]: 1e+101 is bey":  {Data{Dimensions: 2, Values: []float64{1, 1e101}}, one},
		"weights[1]: must be 0 or":      {Data{Dimensions: 1, Values: []float64{1, 2}, Weights: []float64{1, math.NaN()}}, one},
		"weights: are all zero":         {Data{Dimensions: 1, Values: []float64{1}, Weights: []float64{0}}, one},
		"H: must be 2 by 2":             {Data{Dimensions: 2, Values: []float64{1, 2}}, one},
		"H[0][0]: must be finite":       {Data{Dimensions: 1, Values: []float64{1}}, mat.NewSymDense(1, []float64{math.NaN()})},
		"H: is not positive definite: ": {Data{Dimensions: 1, Values: []float64{1}}, mat.NewSymDense(1, []float64{0})},
	} {
		f, err := New(&c.d, c.h)
		if f != nil || !errors.Is(err, &messages.Error{Kind: messages.Invalid}) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}

// Four kinds of data give a singular bandwidth matrix: constant coordinates, samples in a plane, duplicates and few
// samples. The repaired matrix must be positive definite, and must keep the spread of the samples where there is any.
func TestDegenerateSamplesAreMended(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, n := rapid.IntRange(1, 4).Draw(t, "L"), rapid.IntRange(2, 8).Draw(t, "n")
		d := &Data{Dimensions: l}
		scale := make([]float64, l)
		for j := range scale {
			scale[j] = math.Pow(10, float64(rapid.IntRange(-6, 6).Draw(t, "scale")))
		}
		for range n {
			for j := range l {
				d.Values = append(d.Values, scale[j]*float64(rapid.IntRange(0, 2).Draw(t, "x")))
			}
		}
		for _, rule := range []Rule{ScottFull, SilvermanDiag} {
			h, err := Bandwidth(d, rule)
			if err != nil {
				t.Fatal(err)
			}
			regular, mended, err := Regular(h, scale)
			if err != nil {
				t.Fatal(err)
			}
			f, err := New(d, regular)
			if err != nil {
				t.Fatalf("%s: %v, mended %v, of %v", rule, err, mended, mat.Formatted(h))
			}
			if v := f.Log(d.At(0)); math.IsNaN(v) || math.IsInf(v, 0) {
				t.Fatalf("log-density %v", v)
			}
			for j := range l {
				if math.Sqrt(h.At(j, j)) > leastWidth*scale[j] && regular.At(j, j) != h.At(j, j) {
					t.Fatalf("variance %v became %v", h.At(j, j), regular.At(j, j))
				}
			}
		}
	})
}

func TestConstantSamplesNeedAScale(t *testing.T) {
	d := &Data{Dimensions: 2, Values: []float64{1, 5, 2, 5}}
	h := must[*mat.SymDense](t)(Bandwidth(d, ScottFull))
	if _, _, err := Regular(h, nil); messages.KindOf(err) != messages.Invalid || !strings.Contains(err.Error(), "coordinate 1 is the same in all") {
		t.Errorf("%v", err)
	}
	regular, mended, err := Regular(h, []float64{10, 10})
	if err != nil || !mended || !alike(regular.At(1, 1), 1e-4, 1e-12) {
		t.Errorf("%v, %v, %v", regular, mended, err)
	}
	if _, err := Bandwidth(&Data{Dimensions: 1, Values: []float64{3}}, ScottFull); messages.KindOf(err) != messages.Invalid {
		t.Errorf("one sample: %v", err)
	}
}
