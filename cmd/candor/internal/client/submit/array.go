package submit

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/jobfile"
	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
)

// SendAll submits a job. If the job is an array whose elements run on several nodes, it submits one job for each
// element. If the site refuses an element, SendAll cancels the elements that it has submitted before. If there is no
// error, the caller must close the session that SendAll returns.
func SendAll(ctx context.Context, a *cli.App, job *jobfile.Job, dryRun bool) (s *cli.Session, replies []jobmsg.SubmitReply, err error) {
	if job.Splits() == nil && !job.MaySplit() {
		s, reply, err := Send(ctx, a, job, "", dryRun)
		return s, []jobmsg.SubmitReply{reply}, err
	}
	if s, err = dialFor(ctx, a, job); err != nil {
		return nil, nil, err
	}
	indices := job.Splits()
	if indices == nil { // a node has room for the ranks of an element
		s, reply, err := sendBy(ctx, a, s, job, rand.Text(), dryRun)
		return s, []jobmsg.SubmitReply{reply}, err
	}
	key, kept := rand.Text(), map[string]bool{}
	var earlier []messages.JobID
	for index := range indices.Indices {
		reply, err := sendElement(ctx, a, s, job, earlier, fmt.Sprintf("%s-%d", key, index), kept, dryRun)
		if err != nil {
			err = withdraw(ctx, s, earlier, err)
			s.Bus.Close()
			return nil, nil, err
		}
		earlier, replies = append(earlier, reply.Job), append(replies, reply)
		if dryRun { // a dry run of the first element is enough: the others ask for the same
			break
		}
	}
	return s, replies, nil
}

func sendElement(ctx context.Context, a *cli.App, s *cli.Session, job *jobfile.Job, earlier []messages.JobID, key string, kept map[string]bool, dryRun bool) (reply jobmsg.SubmitReply, err error) {
	e, err := job.Element(earlier)
	if err != nil {
		return reply, err
	}
	request, err := prepare(a, e, key, dryRun)
	if err != nil {
		return reply, err
	}
	if err = sendInputs(ctx, s, e, request, kept); err == nil {
		reply, err = sendSomewhere(ctx, a, s, e, request)
	}
	if err != nil {
		return reply, refused(err, e, key)
	}
	return reply, nil
}

// withdraw cancels the submitted jobs of an array after another element was refused, or after the user pressed Ctrl-C.
// It returns the error `reason`. If it could not cancel some jobs, the error also names them.
func withdraw(ctx context.Context, s *cli.Session, submitted []messages.JobID, reason error) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), withdrawWithin)
	defer stop()
	for i, id := range submitted {
		_, err := cli.Call[jobmsg.CancelReply](ctx, s, messages.Auctioneer, messages.VerbCancel, jobmsg.CancelRequest{Job: id})
		if err != nil && messages.KindOf(err) != messages.NotFound {
			return fmt.Errorf("%w; jobs %v to %v were submitted before and may still run: cancel each of them with candor cancel", reason, submitted[i], submitted[len(submitted)-1])
		}
	}
	return reason
}

// withdrawWithin is how long withdraw tries to cancel the jobs.
const withdrawWithin = 20 * time.Second

// Elements returns the jobs of an array on several nodes, or nil. The argument `id` is the number of the array's first
// job. Operators also get the arrays of other accounts. Users can give their jobs the labels of an array, so Elements
// leaves out the jobs of accounts that do not own the first job.
func Elements(ctx context.Context, s *cli.Session, id messages.JobID) (all []jobmsg.JobSummary, err error) {
	everybody := true
	for _, r := range []jobmsg.JobsRequest{{Jobs: []messages.JobID{id}}, {Labels: []string{jobfile.ElementsAfter(id)}, Sort: "job"}} {
		for r.All, r.Limit = everybody, cli.MaxPage; ; {
			reply, err := cli.ListJobs(ctx, s, &r)
			if err != nil {
				return nil, err
			}
			all, everybody = append(all, reply.Jobs...), r.All
			all = slices.DeleteFunc(all, func(j jobmsg.JobSummary) bool { return j.Account != all[0].Account })
			if r.After = reply.Next; !reply.More || r.After == "" {
				break
			}
		}
		if len(all) == 0 {
			return nil, nil
		}
		if array, _, is := jobfile.ElementOf(&all[0]); !is || array != id {
			return nil, nil
		}
	}
	return all, nil
}
