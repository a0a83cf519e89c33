package bench

import (
	"fmt"
	"math/rand/v2"

	"github.com/candor-grid/candor/auctioneer/mechanism/batchqueue"
	"github.com/candor-grid/candor/auctioneer/mechanism/deadline"
	"github.com/candor-grid/candor/auctioneer/mechanism/reservation"
	"github.com/candor-grid/candor/deploy/simulated/swf"
)

// deadlines measures the time for an allocation with the critical values of all tasks. The tasks are from 10,000
// records of the RICC log, each split into tasks of one slot. A unit of time is ten minutes. There are 4,018 slots.
func deadlines(r *auctionResult, traces string) error {
	if traces == "" {
		return nil
	}
	records, err := readLog(traces, "RICC-2010-2.swf.gz")
	if err != nil {
		return err
	}
	tasks := splitTasks(records[min(100, len(records)):min(10_100, len(records))])
	for _, rule := range []struct {
		name   string
		lambda float64
		rule   deadline.Rule
	}{{"lambda 0", 0, deadline.Paper}, {"monotone 0.6", 0.6, deadline.Monotone}} {
		p := &deadline.Problem{Capacity: 4018, Lambda: rule.lambda, Rule: rule.rule, Tasks: tasks}
		var o *deadline.Outcome
		name := fmt.Sprintf("deadline/RICC/%d tasks/%s", len(tasks), rule.name)
		if err := r.add(name, 1, func() (err error) { o, err = deadline.Run(p); return err }); err != nil {
			return err
		}
		if err := r.add(name+"/critical values", 1, func() error { o.Payments(); return nil }); err != nil {
			return err
		}
	}
	return nil
}

// splitTasks makes a task for each processor of each record. A task arrives in the unit of time after the submission.
// Its deadline is the sum of its arrival, its length and a slack. The slack is drawn from an exponential distribution,
// whose mean is twice the length. The value is also drawn from an exponential distribution, whose mean is 50 for each
// unit of the length.
func splitTasks(records []swf.Job) (tasks []deadline.Task) {
	const unit = 600 // seconds
	rng := rand.New(rand.NewPCG(5, 6))
	for _, j := range records {
		length := int(max(1, (j.Run+unit-1)/unit))
		for range j.Width() {
			arrival := int(j.Submit)/unit + 2
			tasks = append(tasks, deadline.Task{Arrival: arrival, Length: length, Value: float64(length) * rng.ExpFloat64() * 50,
				Deadline: arrival + length + int(float64(length)*rng.ExpFloat64()*2)})
		}
	}
	return tasks
}

// queues measures the payments of a batch queue from a thousand draws. As in the thesis, only a job's value or cost of
// delay is drawn; the last case also draws lengths and widths.
func queues(r *auctionResult, _ string) error {
	for _, size := range []struct {
		jobs, nodes int
		mode        batchqueue.Mode
	}{{244, 0, batchqueue.Priority}, {10_000, 0, batchqueue.Priority}, {64, 64, batchqueue.Priority}, {64, 64, batchqueue.Full}} {
		rng := rand.New(rand.NewPCG(7, 8))
		draw := func(u float64) batchqueue.Job {
			return batchqueue.Job{Value: 2e4 * u, Delay: 10 * u, Length: 1 + 99*u, Width: 1 + int(64*u)}
		}
		q := &batchqueue.Queue{Nodes: size.nodes}
		e := &batchqueue.Expectation{Mode: size.mode, Draws: 1000, Seed: 9}
		for i := range size.jobs {
			job := batchqueue.Job{Length: float64(1 + rng.IntN(100))}
			if size.nodes > 0 {
				job.Width = 1 + rng.IntN(size.nodes)
			}
			if i == 0 {
				job.Value = 2e4 * rng.Float64()
			} else {
				job.Delay = 10 * rng.Float64()
			}
			q.Jobs = append(q.Jobs, job)
			e.Priors = append(e.Priors, batchqueue.Prior{Sample: draw})
		}
		name := fmt.Sprintf("batch-queue/%d jobs/1000 draws", size.jobs)
		if size.nodes > 0 {
			name += "/any width"
		}
		if size.mode == batchqueue.Full {
			name += "/all drawn"
		}
		if err := r.add(name, 3, func() error { _, err := batchqueue.Pay(q, e); return err }); err != nil {
			return err
		}
	}
	return nil
}

func reservations(r *auctionResult, _ string) error {
	for _, size := range []struct{ bids, horizon int }{{2000, 1440}, {10_000, 10_080}} {
		p := bids(size.bids, size.horizon, 0)
		name := fmt.Sprintf("reservation/%dx%d", size.bids, size.horizon)
		if err := r.add(name, 2, func() error { _, err := reservation.Solve(p); return err }); err != nil {
			return err
		}
	}
	p := bids(2000, 1440, 128)
	return r.add("reservation/any width/2000 bids/10000 candidates", 1, func() error {
		_, err := reservation.Find(p, reservation.Search{Candidates: 10_000, Seed: 1})
		return err
	})
}

func bids(n, horizon, nodes int) *reservation.Problem {
	rng := rand.New(rand.NewPCG(11, 12))
	p := &reservation.Problem{Nodes: nodes, Horizon: horizon}
	for range n {
		b := reservation.Bid{Length: 1 + rng.IntN(100), Deadline: 1 + rng.IntN(horizon), Value: float64(1 + rng.IntN(1000))}
		if nodes > 0 {
			b.Width = 1 + rng.IntN(nodes)
		}
		p.Bids = append(p.Bids, b)
	}
	return p
}
