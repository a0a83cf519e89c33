package jobfile

import (
	"iter"
	"slices"

	"github.com/candor-grid/candor/messages/job"
)

// asked has what the job asked for before the client divided the job's ranks over nodes.
type asked struct {
	job.Resources
	tasks      int
	onFailure  job.OnFailure
	allocation allocation
}

// Spreads reports whether the site may choose the number of nodes for a job's ranks. The job has several ranks, and
// does not say how they are divided among nodes.
func (job *Job) Spreads() bool {
	a, s := &job.asked.allocation, &job.Spec.Stages[0]
	return a.ranks > 1 && !s.Gang && a.perGPU == 0 && a.perNode == 0 && (a.nodes == 0 || a.most > a.nodes) && a.listed < 2 && job.Spec.AfterEach == 0
}

// MaySplit reports whether the elements of the job's array may become separate jobs, so that each element can run on
// several nodes.
func (job *Job) MaySplit() bool { return job.Spec.Stages[0].Array != nil && job.Spreads() }

// NodeCounts returns the numbers of nodes that a job's ranks can use, the smallest first. The argument `all` is the
// number of nodes of the site.
func (job *Job) NodeCounts(all int) iter.Seq[int] {
	a := &job.asked.allocation
	if a.most > 0 {
		all = min(all, a.most)
	}
	return func(yield func(int) bool) {
		for n := max(a.nodes, 1); n <= min(all, a.ranks) && yield(n); n++ {
		}
	}
}

// SpreadOver divides a job's ranks over a number of nodes. It does not change earlier copies of the job and its stages.
func (job *Job) SpreadOver(nodes int) error {
	job.Spec.Stages = slices.Clone(job.Spec.Stages)
	s, a := &job.Spec.Stages[0], job.asked
	s.CPUs, s.Memory, s.GPUs, s.GPUType, s.Tasks, s.OnFailure, s.Gang, s.Allocation = a.CPUs, a.Memory, a.GPUs, a.GPUType, a.tasks, a.onFailure, false, false
	job.allocation = a.allocation
	job.allocation.nodes, job.allocation.most = nodes, 0
	err := job.finishShape()
	job.asked = a
	return err
}
