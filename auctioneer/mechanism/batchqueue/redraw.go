package batchqueue

// redrawn returns a function that sets sums to the externalities summed over a
// batch, where lengths and widths are drawn too, so that the schedules must be
// drawn up anew: for each draw, n pairs of them, in the j-th of which job j is as
// announced. These have the first j jobs in common with the schedules of the
// draw, and are drawn up from there on.
func redrawn(q *Queue, draws *sampler) func(b int, sums []float64) {
	n := len(q.Jobs)
	empty, upto, rest := newSchedules(q), newSchedules(q), newSchedules(q)
	types := make([][]Job, n) // by job, then draw of the batch
	profile := make([]Job, n)
	return func(b int, sums []float64) {
		for i := range types {
			types[i] = types[i][:0]
			for _, u := range draws.column(i, b) {
				types[i] = append(types[i], *draws.types[i].at(u))
			}
		}
		clear(sums)
		for k := range draws.size(b) {
			for i := range profile {
				profile[i] = types[i][k]
			}
			upto.copy(empty)
			cost := 0.0 // of the delay of the jobs before j
			for j := range n {
				rest.copy(upto)
				sums[j] += externality(q, rest, profile, j, cost)
				cost += inserted(upto, profile[j], j == 0)
			}
		}
	}
}

// inserted puts a job into the schedules and returns what its delay costs.
func inserted(s schedules, job Job, front bool) float64 {
	with, without := s.insert(job, front)
	if front {
		return 0
	}
	return job.Delay * (with - without)
}

// externality is what a profile is worth to all but job j, which is as
// announced; before is the cost of the delay of the jobs before j, which are in
// the schedules already.
func externality(q *Queue, s schedules, profile []Job, j int, before float64) float64 {
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
