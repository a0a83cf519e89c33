package abacus

import (
	"math"
	"slices"
	"testing"

	"github.com/candor-grid/candor/messages"
)

// recovered returns three numbers about the ratio of the two estimated weights, over the repetitions of an experiment.
// `part` is the part of the repetitions in which the ratio is between 5 and 9. `median` is the median of the ratios.
// `deviation` is the standard deviation of their logarithms.
func recovered(t *testing.T, e repeatedJob, of func(recoveredWeights) []float64) (part, median, deviation float64) {
	t.Helper()
	all, err := e.repeat(1000)
	if err != nil {
		t.Fatal(err)
	}
	var logs []float64
	for _, w := range all {
		x := of(w)
		ratio := x[0] / x[1]
		if x[1] <= 0 || x[0] <= 0 {
			ratio = math.Inf(1)
		}
		if ratio >= 5 && ratio <= 9 {
			part += 1.0 / 1000
		}
		logs = append(logs, math.Log(min(100, ratio)))
	}
	slices.Sort(logs)
	mean := 0.0
	for _, x := range logs {
		mean += x / 1000
	}
	for _, x := range logs {
		deviation = math.Hypot(deviation, (x-mean)/math.Sqrt(1000))
	}
	return part, math.Exp(logs[500]), deviation
}

// TestRecovery repeats figure 11 of Ding et al. a thousand times. The ratio of the two estimated weights must usually
// be between 5 and 9 with 5 runs. It must vary less with more runs.
func TestRecovery(t *testing.T) {
	for name, of := range map[string]func(recoveredWeights) []float64{
		"plain": func(w recoveredWeights) []float64 { return w.Plain }, "estimate": func(w recoveredWeights) []float64 { return w.Estimate },
	} {
		last := math.Inf(1)
		for _, runs := range []int{5, 10, 20, 50} {
			part, median, deviation := recovered(t, figure11(runs, 1), of)
			t.Logf("%s, %2d runs: ratio %.2f, %.0f %% between 5 and 9, log deviation %.3f", name, runs, median, 100*part, deviation)
			if deviation >= last || !(part > 0.5) || !(median > 5 && median < 7) {
				t.Errorf("%s: %d runs vary by %.3f, fewer by %.3f; %.2f are between 5 and 9", name, runs, deviation, last, part)
			}
			last = deviation
		}
	}
}

// In this test, weights are learned from run times. The inverse of a job's run time is only nearly a linear function of
// the job's shares. A linear fit must still find nearly the right weights if all shares vary in the same range.
func TestTimedRecovery(t *testing.T) {
	e := figure11(20, 1)
	e.Timed, e.Low, e.High = true, 0.25, 0.5
	part, median, _ := recovered(t, e, func(w recoveredWeights) []float64 { return w.Estimate })
	t.Logf("ratio %.2f, %.0f %% between 5 and 9", median, 100*part)
	if !(median > 4.5 && median < 7) {
		t.Errorf("median ratio %.2f", median)
	}
}

func TestRecoveryRefuses(t *testing.T) {
	for _, change := range []func(*repeatedJob){
		func(e *repeatedJob) { e.Runs = 0 }, func(e *repeatedJob) { e.Weights[1] = 0 }, func(e *repeatedJob) { e.Weights[0] = math.NaN() },
		func(e *repeatedJob) { e.Low = 2 }, func(e *repeatedJob) { e.Noise = math.Inf(1) }, func(e *repeatedJob) { e.Timed = true },
	} {
		e := figure11(5, 1)
		change(&e)
		if _, err := e.repeat(1); messages.KindOf(err) != messages.Invalid {
			t.Errorf("%+v: %v", e, err)
		}
	}
}
