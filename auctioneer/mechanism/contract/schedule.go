package contract

import (
	"cmp"
	"slices"

	"github.com/candor-grid/candor/auctioneer/mechanism/casefile"
	"github.com/candor-grid/candor/auctioneer/mechanism/valuation"
	"github.com/candor-grid/candor/messages/job"
)

// Other is another job that waits for the same slots as the job to be priced.
type Other struct {
	Deadline float64 `json:"deadline"` // seconds
	Demand   float64 `json:"demand"`   // slot-seconds
}

// EarliestDeadline is a simple black box for what-if questions and tests: all slots work on the job with the earliest
// deadline. The deadline of a declared type is the last time at which it has half of its largest value. The job
// completes when its own work and all work with the same or an earlier deadline is done.
func EarliestDeadline(slots, demand float64, others []Other) (Scheduler, error) {
	if !(slots > 0 && slots <= job.MaxValuationTime) {
		return nil, casefile.Invalid("schedule.slots", "must be positive, is %v", slots)
	}
	if !(demand >= 0 && demand <= job.MaxValuationTime) {
		return nil, casefile.Invalid("schedule.demand", "must not be negative, is %v", demand)
	}
	line := slices.Clone(others)
	slices.SortStableFunc(line, func(a, b Other) int { return cmp.Compare(a.Deadline, b.Deadline) })
	done := make([]float64, len(line)+1) // done[i]: when the job completes if i of the other jobs are before it
	done[0] = demand / slots
	for i, o := range line {
		if !(o.Demand >= 0 && o.Demand <= job.MaxValuationTime) || o.Deadline != o.Deadline {
			return nil, casefile.Invalid("schedule.jobs", "a deadline must be a number and a demand not negative; there are %v and %v", o.Deadline, o.Demand)
		}
		done[i+1] = done[i] + o.Demand/slots
	}
	return func(types []job.Valuation) ([]float64, error) {
		out := make([]float64, len(types))
		for k, t := range types {
			c, err := valuation.New(t)
			if err != nil {
				return nil, err
			}
			deadline, _ := c.Latest(c.Max() / 2)
			before, _ := slices.BinarySearchFunc(line, deadline, func(o Other, d float64) int {
				if o.Deadline <= d {
					return -1
				}
				return 1
			})
			out[k] = done[before]
		}
		return out, nil
	}, nil
}

// Fixed returns a Scheduler that always returns the given times, one for each surrogate.
func Fixed(completion []float64) Scheduler {
	return func([]job.Valuation) ([]float64, error) { return slices.Clone(completion), nil }
}
