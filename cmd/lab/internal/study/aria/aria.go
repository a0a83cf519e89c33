package aria

import (
	"fmt"
	"math"

	"github.com/candor-grid/candor/auctioneer/mechanism/casefile"
)

// Rule says what happens to free slots that no job needs in order to meet its deadline.
type Rule uint8

const (
	Least Rule = iota // free slots stay idle
	Spare             // free slots are given out in the order of deadlines
	Most              // every job takes as many slots as it can use, from the start
)

// MostPhases is the largest number of phases of a job.
const MostPhases = 62

// Largest is the largest time or value of a job that is accepted.
const Largest = 1e15

// Job is a job with a deadline.
type Job struct {
	Submit   float64
	Deadline float64 // a time, not a duration
	Value    float64 // earned if the job ends by its deadline
	Phases   []Phase
	// Durations are the durations of the tasks by phase. If it is nil, every task takes its phase's mean.
	Durations [][]float64
}

// Instance is a cluster and all jobs that will be submitted to it.
type Instance struct {
	Slots []int // by class: the number of slots
	Jobs  []Job
	Rule  Rule
}

// Result is the outcome for the jobs.
type Result struct {
	Start, Finish []float64 // start of the first task and end of the last task; for a job without tasks, its submission
	InTime        []bool
	Profit        float64
	Offered       float64 // sum of the values of all jobs
}

// Check returns an error if an instance cannot be run.
func (in *Instance) Check() error {
	if in.Rule > Most {
		return casefile.Invalid("rule", "%d is none: use Least, Spare or Most", in.Rule)
	}
	for j, n := range in.Slots {
		if n < 1 || n > math.MaxInt32 {
			return casefile.Invalid(fmt.Sprintf("slots[%d]", j), "must be from 1 to %d, is %d", math.MaxInt32, n)
		}
	}
	for i := range in.Jobs {
		if err := in.check(&in.Jobs[i], fmt.Sprintf("jobs[%d]", i)); err != nil {
			return err
		}
	}
	return nil
}

func (in *Instance) check(job *Job, place string) error {
	for _, c := range []struct {
		name   string
		value  float64
		lowest float64
	}{{"submit", job.Submit, -Largest}, {"deadline", job.Deadline, -Largest}, {"value", job.Value, 0}} {
		if !(c.value >= c.lowest && c.value <= Largest) {
			return casefile.Invalid(place+"."+c.name, "must be from %g to %g, is %g", c.lowest, Largest, c.value)
		}
	}
	if len(job.Phases) > MostPhases {
		return casefile.Invalid(place+".phases", "are %d: the limit is %d", len(job.Phases), MostPhases)
	}
	if job.Durations != nil && len(job.Durations) != len(job.Phases) {
		return casefile.Invalid(place+".durations", "must be given for each of the %d phases, are for %d", len(job.Phases), len(job.Durations))
	}
	for k := range job.Phases {
		if err := in.checkPhase(job, k, fmt.Sprintf("%s.phases[%d].", place, k)); err != nil {
			return err
		}
	}
	return nil
}

func (in *Instance) checkPhase(job *Job, k int, place string) error {
	p := &job.Phases[k]
	switch {
	case p.Class < 0 || p.Class >= len(in.Slots):
		return casefile.Invalid(place+"class", "%d is not one of the %d classes", p.Class, len(in.Slots))
	case p.Tasks < 0 || p.Tasks > math.MaxInt32:
		return casefile.Invalid(place+"tasks", "must be from 0 to %d, are %d", math.MaxInt32, p.Tasks)
	case !(p.Mean >= 0 && p.Mean <= Largest):
		return casefile.Invalid(place+"mean", "must be from 0 to %g, is %g", Largest, p.Mean)
	case !(p.Longest >= p.Mean && p.Longest <= Largest):
		return casefile.Invalid(place+"longest", "must be from the mean, %g, to %g, is %g", p.Mean, Largest, p.Longest)
	case job.Durations == nil:
		return nil
	case len(job.Durations[k]) != p.Tasks:
		return casefile.Invalid(place+"durations", "must be one for each of the %d tasks, are %d", p.Tasks, len(job.Durations[k]))
	}
	for t, d := range job.Durations[k] {
		if !(d >= 0 && d <= Largest) {
			return casefile.Invalid(fmt.Sprintf("%sdurations[%d]", place, t), "must be from 0 to %g, is %g", Largest, d)
		}
	}
	return nil
}
