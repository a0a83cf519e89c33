package bench

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/auctioneer/mechanism/highestbid"
	"github.com/candor-grid/candor/auctioneer/mechanism/proportional"
	"github.com/candor-grid/candor/deploy/simulated/swf"
)

type auctionResult struct {
	Results []row `json:"results"`
}

// row is the result of one mechanism on one instance. FloorSeconds is the time of a loop that does only the necessary
// arithmetic; 0 means that there is no such loop.
type row struct {
	Name         string  `json:"name"`
	Seconds      float64 `json:"seconds"`
	FloorSeconds float64 `json:"floor_seconds,omitempty"`
}

// String returns the row as text.
func (r row) String() string {
	if r.FloorSeconds > 0 {
		return fmt.Sprintf("\n  %-36s %.3g s, %.2f times its floor", r.Name, r.Seconds, r.Seconds/r.FloorSeconds)
	}
	return fmt.Sprintf("\n  %-36s %.3g s", r.Name, r.Seconds)
}

func auctionFlags(c *cobra.Command) {
	c.Flags().String("traces", os.Getenv("CANDOR_TRACES"), "directory with logs of the Parallel Workloads Archive, for the instances that need one")
}

// auction measures the mechanisms alone: on instances drawn with fixed seeds, and on real logs if their directory is
// given.
func auction(_ context.Context, c *cobra.Command) (any, error) {
	traces, err := c.Flags().GetString("traces")
	if err != nil {
		return nil, err
	}
	var r auctionResult
	for _, measure := range []func(*auctionResult, string) error{shares, arrival, spot, deadlines, queues, reservations, matchings} {
		if err := measure(&r, traces); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// timed runs f several times, and returns the shortest time in seconds.
func timed(runs int, f func() error) (float64, error) {
	least := math.Inf(1)
	for range runs {
		began := time.Now()
		if err := f(); err != nil {
			return 0, err
		}
		least = min(least, time.Since(began).Seconds())
	}
	return least, nil
}

func (r *auctionResult) add(name string, runs int, f func() error) error {
	seconds, err := timed(runs, f)
	r.Results = append(r.Results, row{Name: name, Seconds: seconds})
	return err
}

// problem draws budgets from U[50, 200] and weights from U[0.5, 2].
func problem(n, classes int) *proportional.Problem {
	rng := rand.New(rand.NewPCG(1, 2))
	p := &proportional.Problem{Alpha: 0.5, Classes: classes}
	for range n {
		p.Budgets = append(p.Budgets, 50+150*rng.Float64())
		for range classes {
			p.Weights = append(p.Weights, 0.5+1.5*rng.Float64())
		}
	}
	return p
}

// shares measures the proportional mechanism in three ways: the whole computation until the fixed point, one round of
// it, and the bare arithmetic of one round.
func shares(r *auctionResult, _ string) error {
	var s proportional.Solver
	for _, size := range []struct{ jobs, runs int }{{128, 200}, {10_000, 10}, {1_000_000, 2}} {
		p := problem(size.jobs, 4)
		name := fmt.Sprintf("proportional/%dx4", size.jobs)
		if err := r.add(name, size.runs, func() error { _, err := s.Solve(p); return err }); err != nil {
			return err
		}
	}
	p := problem(1_000_000, 4)
	const few, many = 1, 17
	ran := 0
	rounds := func(k int) (float64, error) {
		return timed(3, func() error {
			answer, err := s.Rounds(p, k)
			if err == nil {
				ran = answer.Rounds
			}
			return err
		})
	}
	short, err := rounds(few)
	if err != nil {
		return err
	}
	long, err := rounds(many)
	if err != nil {
		return err
	}
	floor, err := timed(3, bareRounds(p, ran-few))
	each := float64(ran - few)
	r.Results = append(r.Results, row{"proportional/1000000x4/round", (long - short) / each, floor / each})
	return err
}

// bareRounds returns a function that only does the arithmetic of a number of rounds, at α = 1/2 over four classes. The
// solver does more than this in each round, for example it checks whether the bids still change.
func bareRounds(p *proportional.Problem, rounds int) func() error {
	n := len(p.Budgets)
	roots, spends := make([]float64, 4*n), make([]float64, 4*n)
	var totals [4]float64
	for k := range roots {
		roots[k] = math.Sqrt(p.Budgets[k/4] / 4)
		totals[k%4] += roots[k]
	}
	return func() error {
		for range rounds {
			t := totals
			for i, budget := range p.Budgets {
				w, q, b := p.Weights[i*4:i*4+4], roots[i*4:i*4+4], spends[i*4:i*4+4]
				var rest, v [4]float64
				sum := 0.0
				for j := range 4 {
					rest[j] = t[j] - q[j]
					inverse := 1 / t[j]
					v[j] = w[j] * rest[j] * inverse * q[j] * inverse
					sum += v[j]
				}
				scale := budget / sum
				for j := range 4 {
					b[j] = v[j] * scale
					q[j] = math.Sqrt(b[j])
					t[j] = rest[j] + q[j]
				}
			}
			totals = t
		}
		return nil
	}
}

// arrival measures the time in which one job joins 100,000 other jobs and leaves again.
func arrival(r *auctionResult, _ string) error {
	const jobs = 100_000
	m, err := proportional.NewMarket(0.5, 4, 1e-4)
	if err != nil {
		return err
	}
	p := problem(jobs+1, 4)
	for i := range jobs {
		if err := m.Arrive(p.Budgets[i], false, p.Weights[i*4:i*4+4]); err != nil {
			return err
		}
	}
	m.Refresh()
	return r.add("proportional/arrival/100000x4", 200, func() error {
		if m.Len() > jobs {
			m.Depart(jobs)
			m.Refresh()
		}
		err := m.Arrive(p.Budgets[jobs], false, p.Weights[jobs*4:])
		m.Refresh()
		return err
	})
}

// spot measures the time of auctions in which the highest bids run, may preempt other jobs, and pay the k-th price. It
// does so with a drawn trace and with the LPC log.
func spot(r *auctionResult, traces string) error {
	rng := rand.New(rand.NewPCG(3, 4))
	drawn := make([]highestbid.Job, 220_695)
	at := 0.0
	for i := range drawn {
		at += rng.ExpFloat64() * 10
		drawn[i] = bidding(rng, math.Floor(at), math.Ceil(rng.ExpFloat64()*1000))
	}
	if err := runSpot(r, "highest-bid/HB/kth/220695 drawn", drawn); err != nil || traces == "" {
		return err
	}
	records, err := readLog(traces, "LPC-EGEE-2004-1.2-cln.swf.gz")
	if err != nil {
		return err
	}
	var jobs []highestbid.Job
	for _, j := range records {
		if j.Run >= 0 && j.Width() > 0 {
			jobs = append(jobs, bidding(rng, float64(j.Submit), float64(j.Run)))
		}
	}
	return runSpot(r, fmt.Sprintf("highest-bid/HB/kth/%d LPC", len(jobs)), jobs)
}

func readLog(traces, name string) ([]swf.Job, error) {
	f, err := os.Open(filepath.Join(traces, name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	log, err := swf.Read(f)
	if err != nil {
		return nil, err
	}
	return log.Jobs, nil
}

// bidding draws a job's value: about 30 in 80 % of the draws, and about 150 in 20 %. The job bids its value.
func bidding(rng *rand.Rand, submit, runtime float64) highestbid.Job {
	mean := 30.0
	if rng.Float64() < 0.2 {
		mean = 150
	}
	v := max(1, mean+15*rng.NormFloat64())
	return highestbid.Job{Submit: submit, Runtime: runtime, Value: v, Bid: v, Estimate: runtime}
}

func runSpot(r *auctionResult, name string, jobs []highestbid.Job) error {
	p := &highestbid.Problem{Nodes: 105, Reserve: highestbid.Reserve, Jobs: jobs,
		Rule: highestbid.Rule{Algorithm: highestbid.HB, Price: highestbid.Kth}}
	return r.add(name, 3, func() error { _, err := highestbid.Run(p); return err })
}
