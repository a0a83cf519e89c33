package bench

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/candor-grid/candor/auctioneer/mechanism/contract"
	"github.com/candor-grid/candor/auctioneer/mechanism/deadlineaware"
	"github.com/candor-grid/candor/auctioneer/mechanism/valuation"
	"github.com/candor-grid/candor/messages/job"
)

// matchings measures how long it takes to compute optimal matchings and all their prices. For comparison, it measures
// scipy with the same weights; scipy computes no prices. Then it measures the scheduler that computes completion times.
func matchings(r *auctionResult, _ string) error {
	var s contract.Solver
	for _, size := range []struct{ m, runs int }{{100, 50}, {1000, 3}, {4000, 1}} {
		for _, kind := range weightings {
			weights := kind.draw(rand.New(rand.NewPCG(13, 14)), size.m)
			seconds, err := timed(size.runs, func() error { _, err := s.Solve(size.m, weights); return err })
			if err != nil {
				return err
			}
			r.Results = append(r.Results, row{fmt.Sprintf("contract/%d%s", size.m, kind.name), seconds, scipySeconds(size.m, size.runs, weights)})
		}
	}
	return completions(r)
}

// weightings are ways to draw an m × m matrix of weights, for m replicas. Each row has the weights of one replica.
var weightings = []struct {
	name string
	draw func(r *rand.Rand, m int) []float64
}{
	{"", random},
	{"/sigmoid", func(r *rand.Rand, m int) []float64 {
		return sigmoids(r, m, func(t job.Valuation) float64 { return t.Mu + t.Delta*r.Float64() })
	}},
	{"/sigmoid, late", func(r *rand.Rand, m int) []float64 {
		return sigmoids(r, m, func(job.Valuation) float64 { return 1500 + 5000*r.Float64() })
	}},
}

func random(r *rand.Rand, m int) []float64 {
	weights := make([]float64, m*m)
	for i := range weights {
		weights[i] = r.Float64()
	}
	return weights
}

// In the paper on contracts, each submitted job (replica) is matched with a drawn job (surrogate), and completes at the
// surrogate's time. sigmoids draws m replicas, and m surrogates with completion times. It returns the weight of each
// pair: the value that the replica gives to the surrogate's time.
func sigmoids(r *rand.Rand, m int, completion func(job.Valuation) float64) []float64 {
	replicas, surrogates := types(r, m), types(r, m)
	times := make([]float64, m)
	for k := range times {
		times[k] = completion(surrogates[k])
	}
	return contract.Weights(curves(replicas), times)
}

// types draws sigmoidal valuations as the paper on contracts does. (μ, δ) is from N((2000, 1000), diag(1000², 500²)).
// The largest value of each valuation is 100 credits.
func types(r *rand.Rand, n int) []job.Valuation {
	out := make([]job.Valuation, 0, n)
	for len(out) < n {
		t := job.Valuation{Class: job.Sigmoidal, Max: 100, Mu: 2000 + 1000*r.NormFloat64(), Delta: 1000 + 500*r.NormFloat64()}
		if t.Validate() == nil {
			out = append(out, t)
		}
	}
	return out
}

func curves(types []job.Valuation) []valuation.Curve {
	out := make([]valuation.Curve, len(types))
	for i, t := range types {
		out[i], _ = valuation.New(t) // cannot fail: the types are valid
	}
	return out
}

// completions measures how long it takes to compute when one job would complete, among 1,000 active jobs. It is
// computed 100 times, with another surrogate valuation of the job each time. There are three loads: all slots together
// need about 1,000, 2,000 or 6,000 seconds for the work of all jobs. The jobs' values fall after about 2,000 seconds.
func completions(r *auctionResult) error {
	for _, load := range []struct {
		name    string
		seconds float64
	}{{"light", 1000}, {"full", 2000}, {"over", 6000}} {
		rng := rand.New(rand.NewPCG(15, 16))
		p := &deadlineaware.Problem{Slots: 64}
		demand := 0.0
		for _, c := range curves(types(rng, 1000)) {
			tasks := 1 + rng.IntN(20)
			p.Jobs = append(p.Jobs, deadlineaware.Job{Tasks: tasks, Demand: float64(tasks) * rng.ExpFloat64(), Elapsed: 500 * rng.Float64(), Valuation: c})
			demand += p.Jobs[len(p.Jobs)-1].Demand
		}
		for i := range p.Jobs {
			p.Jobs[i].Demand *= load.seconds * float64(p.Slots) / demand
		}
		surrogates := curves(types(rng, 100))
		name := "deadline-aware/1000 jobs/100 surrogates/" + load.name
		if err := r.add(name, 5, func() error { _, err := deadlineaware.CompletionTimes(p, 500, surrogates); return err }); err != nil {
			return err
		}
	}
	return nil
}

// scipyScript reads a matrix of doubles from standard input. Its arguments are the width of the matrix and a number of
// runs. In each run, it computes the matching with the largest weight. It prints the time of the shortest run.
const scipyScript = `
import sys, time
import numpy
from scipy.optimize import linear_sum_assignment
m, runs = int(sys.argv[1]), int(sys.argv[2])
weights = numpy.frombuffer(sys.stdin.buffer.read(), dtype="<f8").reshape(m, m)
least = float("inf")
for _ in range(runs):
    began = time.perf_counter()
    linear_sum_assignment(weights, maximize=True)
    least = min(least, time.perf_counter() - began)
print(repr(least))
`

// scipyLimit bounds the time of all runs of scipy for one matrix.
const scipyLimit = 90 * time.Second

// scipySeconds returns scipy's time for the same matching, without prices, or 0 if python3 or scipy is missing or too
// slow.
func scipySeconds(m, runs int, weights []float64) float64 {
	var matrix bytes.Buffer
	if err := binary.Write(&matrix, binary.LittleEndian, weights); err != nil {
		return 0
	}
	ctx, cancel := context.WithTimeout(context.Background(), scipyLimit)
	defer cancel()
	// Python packages of the system belong to the system's python3. This may not be the first python3 in PATH, so both
	// are tried.
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		c := exec.CommandContext(ctx, python, "-c", scipyScript, strconv.Itoa(m), strconv.Itoa(runs))
		c.Stdin = bytes.NewReader(matrix.Bytes())
		out, err := c.Output()
		if err != nil {
			continue
		}
		if seconds, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64); err == nil {
			return seconds
		}
	}
	return 0
}
