package cli

import (
	"context"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// Element finds the array element with a job number. It returns the array job and the element's position, and false if
// there is no such element.
func Element(ctx context.Context, s *Session, number messages.JobID) (array job.JobSummary, at int64, is bool, err error) {
	reply, err := Call[job.JobsReply](ctx, s, messages.Auctioneer, messages.VerbJobs, job.JobsRequest{Before: number + 1, Limit: 1})
	if err != nil || len(reply.Jobs) == 0 {
		return array, 0, false, err
	}
	array = reply.Jobs[0]
	at = int64(number - array.Job)
	return array, at, at > 0 && array.Numbered && at < array.Array.Count(), nil
}
