package batchqueue

import "github.com/candor-grid/candor/auctioneer/mechanism/profile"

// Decision says whether the front job runs, and why. Each slice has one value for each job, by position in the queue.
// If the queue has no Nodes, only Delays is filled.
type Decision struct {
	With      []float64 // when each job starts, if the front job runs
	Without   []float64 // when each job starts, if the front job is discarded; for the front job 0
	Delays    []float64 // With − Without, negative if a job gains; for the front job 0
	Threshold float64   // the cost of the delay for all other jobs
	Runs      bool
}

// Decide decides whether the front job runs: its value must be at least the cost of the delay that it causes for the
// other jobs. For an empty queue the decision is empty.
func Decide(q *Queue) (*Decision, error) {
	if err := q.Check(); err != nil {
		return nil, err
	}
	return decide(q), nil
}

func decide(q *Queue) *Decision {
	d := &Decision{Delays: make([]float64, len(q.Jobs))}
	if len(q.Jobs) == 0 {
		return d
	}
	if q.wide() {
		s := newSchedules(q)
		d.With, d.Without = make([]float64, len(q.Jobs)), make([]float64, len(q.Jobs))
		for i, job := range q.Jobs {
			d.With[i], d.Without[i] = s.insert(job, i == 0)
		}
	}
	for i, job := range q.Jobs[1:] {
		delay := q.Jobs[0].Length
		if q.wide() {
			delay = d.With[i+1] - d.Without[i+1]
		}
		d.Delays[i+1] = delay
		d.Threshold += job.Delay * delay
	}
	d.Runs = worth(q.Jobs[0].Value, d.Threshold)
	return d
}

// slack is the relative difference up to which a value and a threshold count as equal. It is larger than the rounding
// errors of sums of decimals.
const slack = 1e-12

// worth reports whether a value is at least a threshold. A difference within the rounding error counts as equal.
func worth(value, threshold float64) bool {
	return value >= threshold || value >= threshold*(1-slack)
}

// schedules keeps two schedules of a queue: with the front job and without it. Each job, in queue order, gets the
// earliest window in which it fits.
type schedules struct{ with, without *profile.Profile }

func newSchedules(q *Queue) schedules {
	s := schedules{profile.New(q.Nodes), profile.New(q.Nodes)}
	s.reset(q)
	return s
}

func (s schedules) reset(q *Queue) {
	s.with.Reset(q.Nodes)
	for _, r := range q.Running {
		s.with.Insert(0, r.Remaining, r.Width)
	}
	for _, c := range q.Closings {
		s.with.Take(c.From, c.To, c.Nodes)
	}
	s.without.Copy(s.with)
}

func (s schedules) copy(from schedules) {
	s.with.Copy(from.with)
	s.without.Copy(from.without)
}

// There are two schedules: one in which the front job of the queue runs, and one in which it does not. insert puts a
// job into both, and returns the start of the job in each. The front job itself is put only into the first schedule.
func (s schedules) insert(job Job, front bool) (with, without float64) {
	with = s.with.Soonest(0, job.Length, job.Width)
	s.with.Insert(with, job.Length, job.Width)
	if front {
		return with, 0
	}
	without = s.without.Soonest(0, job.Length, job.Width)
	s.without.Insert(without, job.Length, job.Width)
	return with, without
}
