package contract

import (
	"strconv"

	"github.com/candor-grid/candor/auctioneer/mechanism/deadlineaware"
	"github.com/candor-grid/candor/auctioneer/mechanism/valuation"
	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
)

// DeadlineAware returns a Scheduler, which uses package deadlineaware. The Scheduler computes when the job with index
// `job` would complete if it declared a given type and the other jobs stayed the same. The job's own valuation is not
// used. Times in the problem count from now, but the result counts from the job's submission.
func DeadlineAware(p *deadlineaware.Problem, job int) Scheduler {
	return func(types []jobmsg.Valuation) ([]float64, error) {
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

// within puts a position in the document, such as "surrogates[2]", before the message of an error.
func within(place string, err error) error {
	return messages.Errorf(messages.KindOf(err), "%s.%s", place, messages.Detail(err))
}
