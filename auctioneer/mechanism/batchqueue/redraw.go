package batchqueue

import (
	"runtime"
	"sync"
)

// drafts is a pair of schedules of a queue: one with the front job, one without it. An implementation stores them as
// lists or as profiles.
type drafts[S any] interface {
	// insert puts a job into both schedules, and returns when it starts in each. The front job is put only into the
	// schedule that includes the front job.
	insert(job Job, front bool) (with, without float64)
	copy(from S)
}

// redrawn is used if the lengths and widths of jobs are drawn, and not only their values. It returns a function that
// computes the externalities of each draw of a batch. This function stores for each job the sum over the batch in
// `sums`. All processors compute draws. Results are added in a fixed order, so the sums do not depend on the number of
// processors.
func redrawn(q *Queue, draws *sampler) func(b int, sums []float64) {
	if len(q.Jobs)+len(q.Running) <= mostListed && len(q.Closings) == 0 {
		return redrawnWith(q, draws, newTimelines)
	}
	return redrawnWith(q, draws, newSchedules)
}

func redrawnWith[S drafts[S]](q *Queue, draws *sampler, idle func(*Queue) S) func(b int, sums []float64) {
	n := len(q.Jobs)
	types := make([][]Job, n) // by job, then by draw of the batch
	var each []float64        // by draw, then by job
	workers := make([]*redrawer[S], runtime.GOMAXPROCS(0))
	for w := range workers {
		workers[w] = &redrawer[S]{q, idle(q), idle(q), idle(q), make([]Job, n)}
	}
	return func(b int, sums []float64) {
		for i := range types {
			types[i] = types[i][:0]
			for _, u := range draws.column(i, b) {
				types[i] = append(types[i], *draws.types[i].at(u))
			}
		}
		size := draws.size(b)
		each = append(each[:0], make([]float64, size*n)...)
		var group sync.WaitGroup
		for w, worker := range workers {
			group.Go(func() {
				for k := w; k < size; k += len(workers) {
					worker.draw(types, k, each[k*n:(k+1)*n])
				}
			})
		}
		group.Wait()
		clear(sums)
		for k, x := range each {
			sums[k%n] += x
		}
	}
}

// redrawer computes random draws of the queue, one at a time. It reuses the memory of its schedules for the next draw.
type redrawer[S drafts[S]] struct {
	q                 *Queue
	empty, upto, rest S
	profile           []Job
}

// draw computes the externality of each job for draw k. For each job j, it needs two schedules, in which job j has the
// type that it announced, and all other jobs have the drawn types. The schedules of jobs j and j+1 begin with the same
// jobs. So draw keeps a schedule of the jobs before j, copies it for job j, and then adds job j to it.
func (w *redrawer[S]) draw(types [][]Job, k int, externalities []float64) {
	for i := range w.profile {
		w.profile[i] = types[i][k]
	}
	w.upto.copy(w.empty)
	cost := 0.0 // cost of the delay of the jobs before j
	for j := range externalities {
		w.rest.copy(w.upto)
		externalities[j] = externality(w.q, w.rest, w.profile, j, cost)
		cost += inserted(w.upto, w.profile[j], j == 0)
	}
}

// inserted puts a job into both schedules of s, and returns the cost of the job's delay by the front job. The front job
// runs in only one of the schedules. For the front job itself, inserted returns 0.
func inserted[S drafts[S]](s S, job Job, front bool) float64 {
	with, without := s.insert(job, front)
	if front {
		return 0
	}
	return job.Delay * (with - without)
}

// externality returns the total value, for all jobs except j, of the decision whether the queue's first job runs now.
// If the first job runs, it delays the others. The other jobs have the types in `profile`, and job j has its announced
// type. The schedules in s already have the jobs that come before j. The argument `before` is the cost of the delay of
// those jobs.
func externality[S drafts[S]](q *Queue, s S, profile []Job, j int, before float64) float64 {
	own, others := inserted(s, q.Jobs[j], j == 0), before
	for i := j + 1; i < len(profile); i++ {
		others += inserted(s, profile[i], false)
	}
	if j == 0 {
		if worth(q.Jobs[0].Value, others) {
			return -others
		}
		return 0
	}
	if worth(profile[0].Value, others+own) {
		return profile[0].Value - others
	}
	return 0
}
