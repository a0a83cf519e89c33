package cli

import (
	"context"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// ListJobs returns a page of a list of jobs. Only operators may ask for the jobs of all accounts. If the request asks for
// them and the caller is no operator, ListJobs changes the request: it then asks for the caller's own jobs.
func ListJobs(ctx context.Context, s *Session, r *job.JobsRequest) (reply job.JobsReply, err error) {
	r.All = r.All && !s.Lent
	reply, err = Call[job.JobsReply](ctx, s, messages.Auctioneer, messages.VerbJobs, *r)
	if r.All && messages.KindOf(err) == messages.PermissionDenied {
		r.All = false
		reply, err = Call[job.JobsReply](ctx, s, messages.Auctioneer, messages.VerbJobs, *r)
	}
	return reply, err
}

// Element finds the array element with a job number. It returns the array job and the element's position, and false if
// there is no such element. Operators also get the elements of other accounts.
func Element(ctx context.Context, s *Session, number messages.JobID) (array job.JobSummary, at int64, is bool, err error) {
	reply, err := ListJobs(ctx, s, &job.JobsRequest{All: true, Before: number + 1, Limit: 1})
	if err != nil || len(reply.Jobs) == 0 {
		return array, 0, false, err
	}
	array = reply.Jobs[0]
	at = int64(number - array.Job)
	return array, at, at > 0 && array.Numbered && at < array.Array.Count(), nil
}
