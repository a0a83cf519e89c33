package utility

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

type run struct {
	ended   messages.Time
	average []float64
	utility float64
}

// history draws k runs of a job whose utility is weights·shares (or weights·logarithms of the shares). The noise has a
// standard deviation relative to the utility.
func history(r *rand.Rand, form Form, weights []float64, k int, noise float64) []run {
	runs := make([]run, k)
	for i := range runs {
		runs[i] = run{ended: messages.Time(r.Int64N(1e9)), average: make([]float64, len(weights))}
		for j, w := range weights {
			s := 0.03 + 0.57*r.Float64()
			runs[i].average[j] = s
			if form == job.Log {
				s = math.Log(s)
			}
			runs[i].utility += w * s
		}
		runs[i].utility *= 1 + noise*r.NormFloat64()
	}
	return runs
}

func learn(tb testing.TB, form Form, m int, halfLife messages.Duration, runs []run) *Regression {
	tb.Helper()
	g, err := New(form, m, halfLife)
	for _, o := range runs {
		if err == nil {
			err = g.Observe(o.ended, o.average, o.utility)
		}
	}
	if err != nil {
		tb.Fatal(err)
	}
	return g
}

// batch solves the regression for the whole history in one step, by the singular value decomposition. The weight of a
// run halves with each half-life of its age.
func batch(form Form, m int, halfLife messages.Duration, runs []run) (w []float64, rss float64, rank int, errors []float64, condition float64) {
	latest := runs[0].ended
	for _, o := range runs {
		latest = max(latest, o.ended)
	}
	x, y := mat.NewDense(len(runs), m, nil), mat.NewVecDense(len(runs), nil)
	total := 0.0
	for i, o := range runs {
		weight := 1.0
		if halfLife > 0 {
			weight = math.Exp2(-float64(latest-o.ended) / float64(halfLife))
		}
		total += weight
		for j, s := range o.average {
			if form == job.Log {
				s = math.Log(s)
			}
			x.Set(i, j, math.Sqrt(weight)*s)
		}
		y.SetVec(i, math.Sqrt(weight)*o.utility)
	}
	var svd mat.SVD
	svd.Factorize(x, mat.SVDThin)
	rank = svd.Rank(1e-12)
	var solution mat.VecDense
	svd.SolveVecTo(&solution, y, rank)
	var left mat.VecDense
	left.MulVec(x, &solution)
	left.SubVec(y, &left)
	rss = mat.Dot(&left, &left)
	var inverse mat.Dense
	inverse.Mul(x.T(), x)
	if inverse.Inverse(&inverse) == nil {
		for j := range m {
			errors = append(errors, math.Sqrt(rss/(total-float64(m))*inverse.At(j, j)))
		}
	}
	for j := range m {
		column := x.ColView(j).(*mat.VecDense)
		column.ScaleVec(1/mat.Norm(column, 2), column)
	}
	return solution.RawVector().Data, rss, rank, errors, mat.Cond(x, 2)
}

func near(got, want, tolerance float64) bool {
	return math.Abs(got-want) <= tolerance*math.Max(1, math.Abs(want))
}

// The regression is updated run by run, in any order. It must equal a regression on the whole history, whether older
// runs count less (fading) or not.
func TestRecursiveIsBatch(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		m := 1 + r.IntN(5)
		k := m + 1 + r.IntN(30)
		form := []Form{job.Linear, job.Log}[r.IntN(2)]
		halfLife := messages.Duration(r.Int64N(2) * 300e6)
		weights := make([]float64, m)
		for j := range weights {
			weights[j] = 6*r.Float64() - 1
		}
		runs := history(r, form, weights, k, 0.2)
		f := learn(t, form, m, halfLife, runs).Fit()
		w, rss, rank, errors, condition := batch(form, m, halfLife, runs)
		if f.Rank != rank || rank != m || f.Runs != k || !near(f.RSS, rss, 1e-9) || !near(f.Condition, condition, 1e-6) {
			t.Fatalf("%+v; want %d runs, rank %d of %d, rss %v, condition %v", f, k, rank, m, rss, condition)
		}
		for j := range w {
			if !near(f.Weights[j], w[j], 1e-8*condition) {
				t.Fatalf("weights %v, want %v", f.Weights, w)
			}
			if f.StandardErrors != nil && !near(f.StandardErrors[j], errors[j], 1e-6*condition) {
				t.Fatalf("standard errors %v, want %v", f.StandardErrors, errors)
			}
		}
		if (f.StandardErrors == nil) != (f.Weight <= float64(m)+slack) {
			t.Fatalf("standard errors %v of weight %v", f.StandardErrors, f.Weight)
		}
	}
}

// Over many histories, the errors of the weights must on average be as large as the reported standard errors.
func TestStandardErrorsAreHonest(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	sum, n := 0.0, 0.0
	for range 2000 {
		runs := history(r, job.Linear, []float64{3, 1}, 20, 0)
		for i := range runs {
			runs[i].utility += 0.3 * r.NormFloat64()
		}
		f := learn(t, job.Linear, 2, 0, runs).Fit()
		for j, want := range []float64{3, 1} {
			sum += math.Pow((f.Weights[j]-want)/f.StandardErrors[j], 2)
			n++
		}
	}
	// An error divided by its standard error has Student's t distribution with 18 degrees of freedom. The mean of its
	// square is 18/16.
	if got := sum / n; math.Abs(got-18.0/16) > 0.1 {
		t.Errorf("mean square of error over standard error: %.3f", got)
	}
}

// The regression learns m weights. Its rank must be below m in each of four cases: there are fewer runs than weights,
// all shares are equal, all shares are in a fixed ratio, or the runs had no share of some resource.
func TestRankIsShort(t *testing.T) {
	for name, c := range map[string]struct {
		rank int
		runs [][]float64
	}{
		"none":         {0, nil},
		"fewer":        {1, [][]float64{{0.5, 0.2}}},
		"equal":        {1, [][]float64{{0.5, 0.2}, {0.5, 0.2}, {0.5, 0.2}}},
		"proportional": {1, [][]float64{{0.5, 0.2}, {0.25, 0.1}, {0.3, 0.12}}},
		"never":        {1, [][]float64{{0.5, 0}, {0.25, 0}, {0.3, 0}}},
		"nothing":      {0, [][]float64{{0, 0}, {0, 0}}},
	} {
		g := learn(t, job.Linear, 2, 0, nil)
		for i, average := range c.runs {
			if err := g.Observe(0, average, float64(1+i%2)); err != nil {
				t.Fatal(err)
			}
		}
		if f := g.Fit(); f.Rank != c.rank || f.Weights != nil || f.StandardErrors != nil || !math.IsInf(f.Condition, 1) {
			t.Errorf("%s: %+v", name, f)
		}
		e, err := g.Estimate([]float64{1, 1})
		if err != nil || len(e.Weights) != 2 || !(e.Weights[0] > 0 && e.Weights[1] > 0) || !(e.Default > 0.4 && e.Default <= 1) {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
}

// If the runs do not determine all weights, the sum of squared residuals must still be the least possible.
func TestUnexplainedWithoutRank(t *testing.T) {
	runs := []run{{0, []float64{0.5, 0.25}, 1}, {0, []float64{0.5, 0.25}, 3}}
	if f := learn(t, job.Linear, 2, 0, runs).Fit(); f.Rank != 1 || !near(f.RSS, 2, 1e-14) { // (1−2)²+(3−2)²
		t.Errorf("%+v", f)
	}
}

// The weights of a job change, so older runs must count less. A run one half-life ago must count half. A run 10,000
// half-lives ago must count nothing, and cause no error.
func TestHalfLife(t *testing.T) {
	const hour = messages.Duration(3600e6)
	runs := []run{{messages.Time(hour), []float64{1}, 0}, {messages.Time(2 * hour), []float64{1}, 3}}
	f := learn(t, job.Linear, 1, hour, runs).Fit()
	if !near(f.Weights[0], 2, 1e-14) || !near(f.Weight, 1.5, 1e-14) || f.Runs != 2 {
		t.Errorf("%+v", f)
	}
	runs = append(runs, run{messages.Time(10_000 * hour), []float64{0.5}, 2}, run{0, []float64{1}, 9})
	if f := learn(t, job.Linear, 1, hour, runs).Fit(); !near(f.Weights[0], 4, 1e-12) || !near(f.Weight, 1, 1e-12) {
		t.Errorf("%+v", f)
	}
}

// TestFigure11 repeats figure 11 of Ding et al.: for user 3, map slots are worth 6 times as much as reduce slots. Most
// of 20 estimates of this ratio from 5 runs must be between 5 and 9. With more runs, their variance must fall.
func TestFigure11(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 1))
	ratios := func(k, repetitions int) (values []float64, variance float64) {
		mean := 0.0
		for range repetitions {
			w := learn(t, job.Linear, 2, 0, history(r, job.Linear, []float64{6, 1}, k, 0.05)).Fit().Weights
			values = append(values, w[0]/w[1])
			angle := math.Atan2(w[1], w[0])
			mean += angle / float64(repetitions)
			variance += angle * angle / float64(repetitions)
		}
		return values, variance - mean*mean
	}
	values, _ := ratios(5, 20)
	within := 0
	for _, v := range values {
		if v >= 5 && v <= 9 {
			within++
		}
	}
	t.Logf("ratios %.2f", values)
	if within < 11 {
		t.Errorf("only %d of 20 estimates are between 5 and 9: %.2f", within, values)
	}
	before := math.Inf(1)
	for _, k := range []int{3, 5, 10, 20, 40} {
		_, variance := ratios(k, 500)
		if variance >= 0.7*before {
			t.Errorf("variance of the direction is %.5f with %d runs, %.5f with fewer", variance, k, before)
		}
		before = variance
	}
}

func TestAverage(t *testing.T) {
	got, err := Average([]Segment{{3, []float64{0.125, 0.25}}, {0, []float64{1, 1}}, {1, []float64{0.5, 0.75}}})
	if err != nil || got[0] != 0.21875 || got[1] != 0.375 {
		t.Errorf("%v, %v", got, err)
	}
}

func TestRefuses(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for says, c := range map[string]struct {
		form    Form
		average []float64
		utility float64
	}{
		"average[1]: a share must be from 0 to 1, is NaN": {job.Linear, []float64{1, nan}, 1},
		"average[0]: a share must be from 0 to 1, is -1":  {job.Linear, []float64{-1, 1}, 1},
		"average[1]: is 0, which has no":                  {job.Log, []float64{1, 0}, 1},
		"average: must be one share for each of 2":        {job.Linear, []float64{1}, 1},
		"utility: must be finite":                         {job.Linear, []float64{1, 1}, inf},
		"utility: must be finite and of":                  {job.Linear, []float64{1, 1}, nan},
	} {
		g := learn(t, c.form, 2, 0, []run{{5, []float64{0.5, 0.25}, 1}})
		before := g.Snapshot()
		err := g.Observe(9, c.average, c.utility)
		if messages.KindOf(err) != messages.Invalid || !strings.Contains(err.Error(), says) || !reflect.DeepEqual(g.Snapshot(), before) {
			t.Errorf("%v, want %q", err, says)
		}
	}
	for says, fallback := range map[string][]float64{
		"default: must be a weight for each": {1},
		"default[1]: must be 0 or above":     {1, nan},
		"default[0]: must be 0 or above":     {-1, 1},
		"default: all weights are 0":         {0, 0},
	} {
		if _, err := learn(t, job.Linear, 2, 0, nil).Estimate(fallback); messages.KindOf(err) != messages.Invalid || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
	for _, err := range []error{second(New("cubic", 1, 0)), second(New(job.Log, 0, 0)), second(New(job.Log, 65, 0)), second(New(job.Log, 1, -1))} {
		if messages.KindOf(err) != messages.Invalid {
			t.Errorf("%v", err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestSnapshot(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 1))
	runs := history(r, job.Log, []float64{1, 2, 3}, 20, 0.1)
	whole := learn(t, job.Log, 3, 1e8, runs)
	restored, err := Restore(learn(t, job.Log, 3, 1e8, runs[:10]).Snapshot())
	for _, o := range runs[10:] {
		if err == nil {
			err = restored.Observe(o.ended, o.average, o.utility)
		}
	}
	if err != nil || !reflect.DeepEqual(whole.Snapshot(), restored.Snapshot()) {
		t.Errorf("%+v, want %+v (%v)", restored.Snapshot(), whole.Snapshot(), err)
	}
	for name, harm := range map[string]func(s *Snapshot){
		"form":   func(s *Snapshot) { s.Form = "" },
		"R":      func(s *Snapshot) { s.R = s.R[1:] },
		"NaN":    func(s *Snapshot) { s.Z[1] = math.NaN() },
		"weight": func(s *Snapshot) { s.Weight = -1 },
		"rss":    func(s *Snapshot) { s.RSS = math.Inf(1) },
	} {
		s := whole.Snapshot()
		harm(s)
		if _, err := Restore(s); messages.KindOf(err) != messages.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func BenchmarkObserve(b *testing.B) {
	for _, m := range []int{2, 4, 16} {
		b.Run(fmt.Sprintf("m=%d", m), func(b *testing.B) {
			runs := history(rand.New(rand.NewPCG(1, 1)), job.Linear, make([]float64, m), 64, 0)
			g := learn(b, job.Linear, m, 1e9, nil)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if err := g.Observe(messages.Time(i), runs[i%64].average, 1); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkEstimate(b *testing.B) {
	for _, m := range []int{2, 4, 16} {
		b.Run(fmt.Sprintf("m=%d", m), func(b *testing.B) {
			weights, fallback := make([]float64, m), make([]float64, m)
			for j := range weights {
				weights[j], fallback[j] = float64(j), 1
			}
			g := learn(b, job.Linear, m, 0, history(rand.New(rand.NewPCG(1, 1)), job.Linear, weights, 5*m, 0.1))
			for b.Loop() {
				if _, err := g.Estimate(fallback); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
