package contract

import (
	"strconv"

	"github.com/candor-grid/candor/auctioneer/mechanism/deadlineaware"
	"github.com/candor-grid/candor/auctioneer/mechanism/valuation"
	"github.com/candor-grid/candor/messages"
)

// DeadlineAware is the black box of package deadlineaware: when one job of a
// problem would complete as each type, all other jobs being as they are. The
// valuation that the problem has for the job is not looked at. Its times count
// from now; what has elapsed since the job's submission is added.
func DeadlineAware(p *deadlineaware.Problem, job int) Scheduler {
	return func(types []messages.Valuation) ([]float64, error) {
		curves := make([]valuation.Curve, len(types))
		for k, t := range types {
			c, err := valuation.New(t)
			if err != nil {
				return nil, within("surrogates["+strconv.Itoa(k)+"]", err)
			}
			curves[k] = c
		}
		times, err := deadlineaware.CompletionTimes(p, job, curves)
		if err != nil {
			return nil, err
		}
		for k := range times {
			times[k] += p.Jobs[job].Elapsed
		}
		return times, nil
	}
}

// within puts a place before an error's message.
func within(place string, err error) error {
	return messages.Errorf(messages.KindOf(err), "%s.%s", place, messages.Detail(err))
}
