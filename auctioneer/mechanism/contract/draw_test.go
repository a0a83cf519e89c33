package contract

import (
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

var steady = job.Valuation{Class: job.Sigmoidal, Max: 100, Mu: 2000, Delta: 1000}

func TestDrawIsSeeded(t *testing.T) {
	a, err := NewDraw(steady, paperType, 50, 7)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := NewDraw(steady, paperType, 50, 7)
	c, _ := NewDraw(steady, paperType, 50, 8)
	if !reflect.DeepEqual(a, b) || reflect.DeepEqual(a, c) {
		t.Error("a seed does not decide the draw")
	}
	if len(a.Replicas) != 50 || len(a.Surrogates) != 50 || !reflect.DeepEqual(a.Replicas[a.Declared], steady) {
		t.Errorf("%d replicas, %d surrogates, declared at %d: %+v", len(a.Replicas), len(a.Surrogates), a.Declared, a.Replicas[a.Declared])
	}
}

// With the same seed, two declared types give draws that differ only in the declared replica. So a bidder cannot choose
// its competition.
func TestDrawDoesNotDependOnTheDeclaration(t *testing.T) {
	other := steady
	other.Mu = 1
	a, _ := NewDraw(steady, paperType, 50, 7)
	b, _ := NewDraw(other, paperType, 50, 7)
	b.Replicas[b.Declared] = steady
	if !reflect.DeepEqual(a, b) {
		t.Error("another declaration, another draw")
	}
}

// A draw puts the declared type at one of 10 places. Each place must be equally likely. The test is Pearson's
// chi-squared test. With 9 degrees of freedom, its statistic is above 33.7 in one of 10,000 runs.
func TestDeclaredPlaceIsUniform(t *testing.T) {
	const places, draws = 10, 5000
	var seen [places]float64
	for seed := range uint64(draws) {
		d, err := NewDraw(steady, paperType, places, seed)
		if err != nil {
			t.Fatal(err)
		}
		seen[d.Declared]++
	}
	chi := 0.0
	for _, n := range seen {
		chi += (n - draws/places) * (n - draws/places) / (draws / places)
	}
	if chi > 33.7 {
		t.Errorf("χ² = %v: %v", chi, seen)
	}
}

func TestTypesOutOfRangeAreDrawnAgain(t *testing.T) {
	wild := func(r *rand.Rand) job.Valuation {
		v := paperType(r)
		v.Mu, v.Delta = v.Mu-2000, v.Delta-1000 // three of four drawn types are invalid
		return v
	}
	d, err := NewDraw(steady, wild, 200, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range append(d.Replicas, d.Surrogates...) {
		if err := v.Validate(); err != nil {
			t.Errorf("%+v: %v", v, err)
		}
	}
}

func TestEarliestDeadline(t *testing.T) {
	schedule, err := EarliestDeadline(2, 10, []Other{{Deadline: 300, Demand: 40}, {Deadline: 100, Demand: 20}, {Deadline: 200, Demand: 30}})
	if err != nil {
		t.Fatal(err)
	}
	var types []job.Valuation
	for _, d := range []float64{99, 100, 250, 1000} {
		types = append(types, job.Valuation{Class: job.Hard, Max: 1, Deadline: d})
	}
	got, err := schedule(types)
	near(t, "completion", got, []float64{5, 15, 30, 50}, 0)
	if err != nil {
		t.Error(err)
	}
}

func TestSampleOfALongMenu(t *testing.T) {
	o := offer(t, steady, 100, 1, crowd(t, 1))
	seen := make(map[int]int)
	for seed := range uint64(400) {
		shown := Sample(o.Menu, 10, seed)
		declared, free := 0, 0
		for i, c := range shown {
			seen[c.Surrogate]++
			if i > 0 && c.Completion < shown[i-1].Completion {
				t.Fatal("not in the menu's order")
			}
			if c.Declared {
				declared++
			}
			if c.Free {
				free++
			}
		}
		if len(shown) != 10 || declared != 1 || free == 0 {
			t.Fatalf("%d contracts, %d declared, %d free", len(shown), declared, free)
		}
	}
	for k, n := range seen { // two contracts are always shown; each other one 33 times of 400 on average, standard deviation 5.5
		if n < 9 || n > 60 && n < 400 {
			t.Errorf("surrogate %d was shown %d times of 400", k, n)
		}
	}
	if len(seen) != 100 || len(Sample(o.Menu, 0, 1)) != 100 || len(Sample(o.Menu, 200, 1)) != 100 {
		t.Errorf("%d contracts were ever shown", len(seen))
	}
}

func TestBadInput(t *testing.T) {
	var s Solver
	solve := func(m int, w ...float64) error { _, err := s.Solve(m, w); return err }
	draw := func(v job.Valuation, c Sampler, m int) error { _, err := NewDraw(v, c, m, 1); return err }
	noSamples := func() error { _, err := FromSamples(nil); return err }
	never := func(*rand.Rand) job.Valuation { return job.Valuation{Class: job.Hard, Max: -1} }
	wrong := func(x ...float64) error {
		d, _ := NewDraw(steady, paperType, 2, 1)
		_, err := NewOffer(&s, d, Fixed(x))
		return err
	}
	box := func(slots, demand float64, others ...Other) error {
		_, err := EarliestDeadline(slots, demand, others)
		return err
	}
	for says, err := range map[string]error{
		"M: is 0":                                  solve(0),
		"M: is -1":                                 solve(-1),
		"M: 10001 is above":                        solve(MaxM+1, 1),
		"2 replicas need 4 weights":                solve(2, 1, 2, 3),
		"weights[1][0]: must be from 0":            solve(2, 1, 2, -3, 4),
		"weights[0][1]: must be from 0 to 1e+100,": solve(2, 1, math.NaN(), 3, 4),
		"weights[1][1]: must be":                   solve(2, 1, 2, 3, math.Inf(1)),
		"M: is 0: give":                            draw(steady, paperType, 0),
		"type.class":                               draw(job.Valuation{}, paperType, 3),
		"samples: none of 10000 draws":             draw(steady, never, 3),
		"samples: there are none":                  noSamples(),
		"gives 3 completion times for 2":           wrong(1, 2, 3),
		"completion time of surrogate 1 is NaN":    wrong(1, math.NaN()),
		"completion time of surrogate 0 is -1":     wrong(-1, 1),
		"schedule.slots":                           box(0, 1),
		"schedule.demand":                          box(1, -1),
		"schedule.jobs":                            box(1, 1, Other{1, -1}),
		"schedule.jobs: a deadline":                box(1, 1, Other{math.NaN(), 1}),
	} {
		var e *messages.Error
		if !errors.As(err, &e) || e.Kind != messages.Invalid && e.Kind != messages.TooLarge || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}
