package deadlineaware

import (
	"math/rand/v2"
	"testing"

	"github.com/candor-grid/candor/auctioneer/mechanism/valuation"
)

// The planner is asked: at what time would a job complete if it had another type (a surrogate)? Each answer must be
// exactly the result of a schedule of the whole problem with this type.
func TestHypothesesAreFullRuns(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	for round := range 400 {
		p := randomProblem(t, r, 1+r.IntN(60), anyValuation)
		if round%4 == 0 {
			p.Jobs[r.IntN(len(p.Jobs))].Demand = 0
			p.Slots *= 7
		}
		job := r.IntN(len(p.Jobs))
		surrogates := make([]valuation.Curve, 20)
		for k := range surrogates {
			surrogates[k] = curveOf(t, anyValuation(r, 1+schedule(t, p).Target[job]*3*r.Float64()))
		}
		all, err := Hypotheses(p, job, surrogates)
		if err != nil {
			t.Fatal(err)
		}
		times, err := CompletionTimes(p, job, surrogates)
		if err != nil {
			t.Fatal(err)
		}
		changed := *p
		changed.Jobs = append([]Job(nil), p.Jobs...)
		for k, h := range all {
			changed.Jobs[job].Valuation = surrogates[k]
			s := schedule(t, &changed)
			if want := (Hypothesis{s.Target[job], s.Completion[job], s.GivenUp[job]}); h != want || times[k] != want.Completion {
				t.Fatalf("round %d, surrogate %d: %+v, a full run says %+v", round, k, h, want)
			}
		}
	}
}

// The types of the jobs are drawn as in the benchmark. A surrogate is a valuation that a job might have declared. For
// each surrogate, the computed completion time must be the same as if the whole scheduler ran with this surrogate.
func TestManyHypothesesAreFullRuns(t *testing.T) {
	for _, load := range loads {
		p, surrogates := busy(300, load.seconds)
		times, err := CompletionTimes(p, 150, surrogates)
		if err != nil {
			t.Fatal(err)
		}
		different := map[float64]bool{}
		for k, x := range times {
			p.Jobs[150].Valuation = surrogates[k]
			if want := schedule(t, p).Completion[150]; x != want {
				t.Fatalf("%s, surrogate %d: %v, a full run says %v", load.name, k, x, want)
			}
			different[x] = true
		}
		if len(different) < 10 {
			t.Errorf("%s: only %d different times", load.name, len(different))
		}
	}
}
