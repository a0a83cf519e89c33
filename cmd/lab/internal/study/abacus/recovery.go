package abacus

import (
	"math"
	"math/rand/v2"

	"github.com/candor-grid/candor/estimator/utility"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// repeatedJob is an experiment like figure 11 of Ding et al. A user repeats a job with fixed weights for two resources.
// Each run has different shares of these resources. The weights are estimated from the utilities of the runs.
type repeatedJob struct {
	Weights [2]float64
	// The shares of each run are drawn uniformly between Low and High.
	Low, High float64
	// Timed says how the utility depends on the shares. If Timed is true, the utility is the inverse of a run time. The
	// job then uses one resource after another, and its work on each resource is in proportion to the weight of this
	// resource. Such a utility is not linear in the shares, but almost. If Timed is false, the utility is exactly
	// linear.
	Timed bool
	// Noise is how much utilities vary at random: the standard deviation of their logarithm.
	Noise float64
	Runs  int // number of runs for each estimate
	Seed  uint64
}

// figure11 returns the paper's user 3, whose weights have the ratio 6 to 1.
func figure11(runs int, seed uint64) repeatedJob {
	return repeatedJob{Weights: [2]float64{6, 1}, Low: 0, High: 1, Noise: 0.05, Runs: runs, Seed: seed}
}

// recoveredWeights has the estimates of the two weights. Each weight is estimated in two ways.
type recoveredWeights struct {
	Plain    []float64 // by least squares, as in the paper; nil if they are undetermined
	Estimate []float64 // by utility.Regression.Estimate, with equal weights as the default
}

// repeat repeats the experiment. It refuses impossible parameters.
func (e *repeatedJob) repeat(repetitions int) ([]recoveredWeights, error) {
	if err := e.check(repetitions); err != nil {
		return nil, err
	}
	r, all := rand.New(rand.NewPCG(e.Seed, 11)), make([]recoveredWeights, repetitions)
	for k := range all {
		g, err := e.once(r)
		if err != nil {
			return nil, err
		}
		estimate, err := g.Estimate([]float64{1, 1})
		if err != nil {
			return nil, err
		}
		all[k] = recoveredWeights{estimate.Fit.Weights, estimate.Weights}
	}
	return all, nil
}

func (e *repeatedJob) check(repetitions int) error {
	if !(e.Weights[0] > 0 && e.Weights[1] > 0 && e.Weights[0]+e.Weights[1] <= utility.Largest) || e.Runs < 1 || repetitions < 1 {
		return messages.Errorf(messages.Invalid, "recovery: needs weights, runs and repetitions above 0")
	}
	if !(e.Low >= 0 && e.Low <= e.High && e.High <= 1) || !(e.Noise >= 0 && e.Noise <= 1) || e.Timed && e.Low == 0 {
		return messages.Errorf(messages.Invalid, "recovery: needs shares and noise from 0 to 1; timed, shares above 0")
	}
	return nil
}

// once runs the job e.Runs times, and learns from these runs.
func (e *repeatedJob) once(r *rand.Rand) (*utility.Regression, error) {
	g, err := utility.New(job.Linear, len(e.Weights), 0)
	if err != nil {
		return nil, err
	}
	for run := range e.Runs {
		shares := make([]float64, len(e.Weights))
		for j := range shares {
			shares[j] = e.Low + (e.High-e.Low)*r.Float64()
		}
		worth := e.utility(shares) * math.Exp(e.Noise*r.NormFloat64())
		if err := g.Observe(messages.Time(run), shares, worth); err != nil {
			return nil, err
		}
	}
	return g, nil
}

func (e *repeatedJob) utility(shares []float64) float64 {
	sum, seconds := 0.0, 0.0
	for j, w := range e.Weights {
		sum += w * shares[j]
		seconds += w / shares[j]
	}
	if e.Timed {
		return 1 / seconds
	}
	return sum
}
