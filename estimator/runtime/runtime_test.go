package runtime

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/estimator/internal/recent"
	"github.com/candor-grid/candor/messages"
)

// tenSeconds is the accuracy of the predictors in these tests, in seconds: smaller differences do not matter.
const tenSeconds = 10

func (p *Predictor) see(tb testing.TB, j Job, ended int64, runtimes ...float64) {
	tb.Helper()
	if err := p.Observe(&j, ended, runtimes); err != nil {
		tb.Fatal(err)
	}
}

func (p *Predictor) expect(tb testing.TB, j Job) *Distribution {
	tb.Helper()
	d, err := p.Estimate(&j)
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

// If no run was observed, the estimate must be the job's time limit. If the job has no limit either, there must be no
// estimate.
func TestNothingObserved(t *testing.T) {
	p := New(tenSeconds)
	if d := p.expect(t, Job{User: "ada"}); d != nil {
		t.Errorf("%+v", d)
	}
	d := p.expect(t, Job{User: "ada", Limit: 60})
	if d.Quantile(0.1) != 60 || d.Mean() != 60 || d.Runs != 0 {
		t.Errorf("%+v", d)
	}
}

// A user has two commands. The estimate of each must come from its own runs.
func TestSimilarJobsCountMost(t *testing.T) {
	p := New(tenSeconds)
	short, long := Job{User: "ada", Command: "short", Limit: 1000}, Job{User: "ada", Command: "long", Limit: 1000}
	for k := range int64(40) {
		p.see(t, short, 2*k, 10)
		p.see(t, long, 2*k+1, 500)
	}
	if s, l := p.expect(t, short), p.expect(t, long); s.Quantile(0.5) != 10 || l.Quantile(0.5) != 500 {
		t.Errorf("medians %g and %g", s.Quantile(0.5), l.Quantile(0.5))
	}
}

// The robust demand is a run time that covers even unlikely distributions. After only one run, the robust demand must
// be the job's time limit. After many runs with the same run time, it must be the same as this run time.
func TestOneRunIsDoubted(t *testing.T) {
	p, j := New(tenSeconds), Job{User: "ada", Limit: 3600}
	p.see(t, j, 0, 10)
	robust := func() float64 {
		d := p.expect(t, j)
		x, err := d.Robust(0.9, d.Divergence())
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	if x := robust(); x != 3600 || p.expect(t, j).Quantile(0.5) != 10 {
		t.Errorf("after one run: %g", x)
	}
	for k := range int64(20) {
		p.see(t, j, k, 10)
	}
	if x := robust(); x != 10 {
		t.Errorf("after 21 runs: %g", x)
	}
}

// The estimator keeps the latest runs of similar jobs, in the order of their ends. It must keep the same runs in
// whatever order they were added.
func TestOrderDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(t, "runs")
		order := rapid.Permutation(slices.Collect(func(yield func(int) bool) {
			for k := range n {
				if !yield(k) {
					return
				}
			}
		})).Draw(t, "order")
		sorted, shuffled := context{fade: own}, context{fade: own}
		for k := range n {
			sorted.add(Run{Ended: int64(k), Values: []float64{float64(k)}})
			shuffled.add(Run{Ended: int64(order[k]), Values: []float64{float64(order[k])}})
		}
		if !reflect.DeepEqual(sorted.runs, shuffled.runs) {
			t.Fatalf("%v, in order %v", shuffled.runs, sorted.runs)
		}
	})
}

// Forty accounts run the same command. Two of them lie: they run it five times as often as the honest accounts, and the
// last hundred runs are all lies. An account without runs must be told what the honest accounts need. An account with
// runs of its own must get the same answer as before the lies.
func TestNobodyDecidesForOthers(t *testing.T) {
	for name, tc := range map[string]struct {
		fade float64 // fade of the contexts that users share
		told bool    // whether a newcomer is told the truth
	}{"capped": {1, true}, "not": {own, false}} {
		p := New(tenSeconds)
		ended := int64(0)
		run := func(user int, seconds float64) {
			ended++
			j := Job{User: fmt.Sprint("user", user), Command: "x", Limit: 1e6}
			p.see(t, j, ended, seconds)
			p.contexts.OldestFirst(func(k key, c *context) {
				if k.User == "" {
					c.fade = tc.fade
				}
			})
		}
		for range 20 {
			for user := range 40 {
				for range 1 + 4*(user/38) {
					run(user, []float64{100, 1e6}[user/38])
				}
			}
		}
		for range 100 {
			run(39, 1e6)
		}
		stranger, known := p.expect(t, Job{User: "new", Command: "x", Limit: 1e6}), p.expect(t, Job{User: "user1", Command: "x", Limit: 1e6})
		t.Logf("%s: a stranger is told %g at 0.5, %g at 0.9; one known %g and %g", name,
			stranger.Quantile(0.5), stranger.Quantile(0.9), known.Quantile(0.5), known.Quantile(0.9))
		if (stranger.Quantile(0.9) == 100) != tc.told || tc.told && known.Quantile(0.9) != 100 {
			t.Errorf("%s: a stranger is told %g, one known %g", name, stranger.Quantile(0.9), known.Quantile(0.9))
		}
	}
}

// slowNeeded must return the same as the function needed, but it searches. It tries 200,000 values of q between `part`
// and 1. It returns the smallest q for which divergence(part, q) is at least delta.
func slowNeeded(part, delta float64) float64 {
	for k := range 200_000 {
		q := part + (1-part)*float64(k)/200_000
		if q > part && divergence(part, q) >= delta {
			return q
		}
	}
	return 1
}

func TestRobustIsTheWorstInTheBall(t *testing.T) {
	for _, part := range []float64{0.5, 0.9, 0.99} {
		for _, delta := range []float64{0.001, 0.05, 0.2, 1.92} {
			if got, want := needed(part, delta), slowNeeded(part, delta); math.Abs(got-want) > 1e-5 {
				t.Errorf("part %g, delta %g: %g, by search %g", part, delta, got, want)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(0, 1e6), 1, 30).Draw(t, "values")
		weights := rapid.SliceOfN(rapid.Float64Range(0.01, 1), len(values), len(values)).Draw(t, "weights")
		var atoms []atom
		for k, v := range values {
			atoms = append(atoms, atom{v, weights[k]})
		}
		d, part := newDistribution(atoms), rapid.Float64Range(0.01, 0.99).Draw(t, "part")
		before := d.Quantile(part)
		for _, delta := range []float64{0, 0.01, 0.1, 1, 10, 1e6} {
			x, err := d.Robust(part, delta)
			if err != nil || x < before || x > slices.Max(values) || delta == 0 && x != before {
				t.Fatalf("delta %g: %g after %g, %v", delta, x, before, err)
			}
			before = x
		}
		samples := d.Samples(64)
		if len(samples) != 64 || !slices.IsSorted(samples) || samples[0] < slices.Min(values) || samples[63] > slices.Max(values) {
			t.Fatalf("samples %v", samples)
		}
	})
}

// An error must name the bad input, and nothing may change.
func TestRefuses(t *testing.T) {
	p := New(tenSeconds)
	nan, inf := math.NaN(), math.Inf(1)
	for name, err := range map[string]error{
		"no run times":     p.Observe(&Job{}, 0, nil),
		"NaN":              p.Observe(&Job{}, 0, []float64{1, nan}),
		"infinity":         p.Observe(&Job{}, 0, []float64{inf}),
		"negative":         p.Observe(&Job{}, 0, []float64{-1}),
		"limit NaN":        p.Observe(&Job{Limit: nan}, 0, []float64{1}),
		"limit negative":   p.Observe(&Job{Limit: -1}, 0, []float64{1}),
		"limit infinite":   p.Observe(&Job{Limit: inf}, 0, []float64{1}),
		"damaged levels":   p.Restore(&Record{Level: 99, Runs: []Run{{Values: []float64{1}}}}),
		"damaged values":   p.Restore(&Record{Runs: []Run{{Values: []float64{nan}}}}),
		"damaged order":    p.Restore(&Record{Runs: []Run{{Ended: 2, Values: []float64{1}}, {Ended: 1, Values: []float64{1}}}}),
		"damaged trust":    p.Restore(&Record{Loss: []float64{nan}}),
		"damaged trust, 2": p.Restore(&Record{Loss: slices.Repeat([]float64{-1}, len(levels)), Weight: make([]float64, len(levels))}),
	} {
		if messages.KindOf(err) != messages.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if p.contexts.Len() != 0 {
		t.Errorf("%d contexts were made", p.contexts.Len())
	}
	d := &Distribution{atoms: []atom{{1, 1}}}
	for _, bad := range [][2]float64{{0, 1}, {1, 1}, {nan, 1}, {0.5, -1}, {0.5, nan}, {0.5, inf}} {
		if _, err := d.Robust(bad[0], bad[1]); messages.KindOf(err) != messages.Invalid {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

// random draws a job and its run times, as a site would have them.
func random(r *rand.Rand) (Job, []float64) {
	j := Job{User: fmt.Sprint("u", r.IntN(30)), Group: fmt.Sprint("g", r.IntN(3)), Command: fmt.Sprint("c", r.IntN(5)), Size: 1 << r.IntN(4)}
	if r.IntN(4) > 0 {
		j.Limit = float64(600 * (1 + r.IntN(10)))
	}
	runtimes := make([]float64, 1+r.IntN(8))
	for k := range runtimes {
		runtimes[k] = math.Exp(6 * r.Float64())
	}
	return j, runtimes
}

// A restored predictor must answer and learn like the saved one.
func TestSnapshot(t *testing.T) {
	p, r := New(tenSeconds), rand.New(rand.NewPCG(1, 1))
	for k := range int64(2000) {
		j, x := random(r)
		p.see(t, j, k, x...)
	}
	q := New(tenSeconds)
	p.Snapshot(func(r *Record) {
		if err := q.Restore(r); err != nil {
			t.Fatal(err)
		}
	})
	for k := range int64(200) {
		j, x := random(r)
		if got, want := q.expect(t, j), p.expect(t, j); !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v: %+v, want %+v", j, got, want)
		}
		p.see(t, j, 2000+k, x...)
		q.see(t, j, 2000+k, x...)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	p := New(tenSeconds)
	p.contexts = recent.New[key, *context](100)
	for k := range int64(1000) {
		p.see(t, Job{User: fmt.Sprint(k), Size: k}, k, 1)
	}
	if p.contexts.Len() != 100 {
		t.Errorf("%d contexts", p.contexts.Len())
	}
}

func full(b *testing.B) (*Predictor, []Job, [][]float64) {
	p, r := New(tenSeconds), rand.New(rand.NewPCG(2, 2))
	jobs, times := make([]Job, 4096), make([][]float64, 4096)
	for k := range jobs {
		jobs[k], times[k] = random(r)
		p.see(b, jobs[k], int64(k), times[k]...)
	}
	return p, jobs, times
}

func BenchmarkObserve(b *testing.B) {
	p, jobs, times := full(b)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		p.see(b, jobs[i%4096], int64(4096+i), times[i%4096]...)
	}
}

func BenchmarkEstimate(b *testing.B) {
	p, jobs, _ := full(b)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		p.expect(b, jobs[i%4096])
	}
}
