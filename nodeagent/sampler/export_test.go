package sampler

import (
	"slices"

	"github.com/candor-grid/candor/messages"
)

// Weight returns the weight of a job, or 0 if the sampler does not have the job.
func (s *Sampler) Weight(job messages.JobID) float32 {
	at, found := slices.BinarySearch(s.jobs, job)
	if !found {
		return 0
	}
	return s.weights[at]
}

// Known returns the number of jobs that the Stride remembers.
func (s *Stride) Known() int { return len(s.known) }
