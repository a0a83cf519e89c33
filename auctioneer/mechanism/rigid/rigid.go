package rigid

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/candor-grid/candor/auctioneer/mechanism/casefile"
)

// Largest is the largest time, length and weight. If no number is larger, sums of millions of times are exact to a
// thousandth of a second over a century.
const Largest = 1e15

// Job is a job of fixed width.
type Job struct {
	Submit   float64
	Runtime  float64
	Estimate float64 // the owner's estimate of Runtime
	Width    int
	User     int // position in Instance.Weights
}

// Instance is a machine and all jobs that will be submitted to it.
type Instance struct {
	Nodes   int
	Jobs    []Job
	Weights []float64 // by user: the weight of the user
}

// Schedule has the start and the end of each job, by index.
type Schedule struct{ Start, Finish []float64 }

// Check refuses an instance for which there is no schedule.
func (in *Instance) Check() error {
	if in.Nodes < 1 || in.Nodes > math.MaxInt32 {
		return casefile.Invalid("nodes", "must be from 1 to %d, is %d", math.MaxInt32, in.Nodes)
	}
	for u, w := range in.Weights {
		if !(w > 0 && w <= Largest) {
			return casefile.Invalid("weights["+strconv.Itoa(u)+"]", "must be above 0 and at most %g, is %g", Largest, w)
		}
	}
	for i := range in.Jobs {
		if err := in.check(i); err != nil {
			return err
		}
	}
	return nil
}

func (in *Instance) check(i int) error {
	job, place := &in.Jobs[i], "jobs["+strconv.Itoa(i)+"]."
	switch {
	case !(math.Abs(job.Submit) <= Largest):
		return casefile.Invalid(place+"submit", "must be from %g to %g, is %g", -Largest, Largest, job.Submit)
	case !(job.Runtime >= 0 && job.Runtime <= Largest):
		return casefile.Invalid(place+"runtime", "must be from 0 to %g, is %g", Largest, job.Runtime)
	case !(job.Estimate >= 0 && job.Estimate <= Largest):
		return casefile.Invalid(place+"estimate", "must be from 0 to %g, is %g", Largest, job.Estimate)
	case job.Estimate == 0 && job.Runtime > 0:
		return casefile.Invalid(place+"estimate", "must be above 0, because the job has a runtime; if it is left out, the estimate is the runtime, %g", job.Runtime)
	case job.Width < 1 || job.Width > in.Nodes:
		return casefile.Invalid(place+"width", "must be from 1 to the %d nodes of the machine, is %d", in.Nodes, job.Width)
	case job.User < 0 || job.User >= max(1, len(in.Weights)):
		return casefile.Invalid(place+"user", "user %d has no weight: there are %d weights", job.User, len(in.Weights))
	}
	return nil
}

// Arrivals returns the jobs in the order of submission. Jobs that are submitted at the same time are ordered by index.
func (in *Instance) Arrivals() []int {
	order := make([]int, len(in.Jobs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(in.Jobs[a].Submit, in.Jobs[b].Submit) })
	return order
}
