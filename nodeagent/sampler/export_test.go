package sampler

import (
	"slices"

	"github.com/candor-grid/candor/messages"
)

// Total returns the sum of all weights.
func (s *Sampler) Total() float64 {
	if s.live == 0 {
		return 0
	}
	return s.sums[1]
}

// Weight returns the weight of a job, 0 if it is not there.
func (s *Sampler) Weight(job messages.JobID) float32 {
	at, found := slices.BinarySearch(s.jobs, job)
	if !found {
		return 0
	}
	return s.weights[at]
}
