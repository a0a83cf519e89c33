package jobs

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// WaitAll follows jobs until all of them have ended, and shows their results. It returns the ended jobs.
func WaitAll(ctx context.Context, a *cli.App, s *cli.Session, ids []messages.JobID) (map[messages.JobID]job.JobSummary, error) {
	ended, err := followAll(ctx, a, s, ids)
	if err != nil {
		if ctx.Err() != nil {
			fmt.Fprintf(a.Err, "Stopped waiting. %s of %s had ended; the other jobs go on. \"candor jobs --active\" lists these jobs.\n",
				terminal.Count(len(ended)), terminal.Plural(len(ids), "job"))
		}
		return nil, err
	}
	var all job.JobsReply
	for _, id := range ids {
		all.Jobs = append(all.Jobs, ended[id])
	}
	return ended, a.Show(all, func(p *cli.Page) { writeAllEnded(p, all.Jobs) })
}

func writeAllEnded(p *cli.Page, all []job.JobSummary) {
	others, charged := 0, messages.Credits(0)
	for _, j := range all {
		charged += j.Charged
		if j.State == job.Completed {
			continue
		}
		if others++; others <= mostChosen {
			writeEnded(p, job.JobDetail{JobSummary: j})
		}
	}
	if more := others - mostChosen; more > 0 {
		p.Printf("and %s did not complete; \"candor jobs\" lists all jobs\n", terminal.Plural(more, "more job"))
	}
	p.Printf("%s of %s completed, %s charged\n", terminal.Count(len(all)-others), terminal.Plural(len(all), "job"), cli.Credits(charged))
}

// firstLook is the first pause between two requests for the ended jobs. Each pause is an eighth longer than the pause
// before. So the delay at the end is at most one ninth of the whole wait.
const firstLook = 5 * time.Millisecond

func nextLook(d time.Duration) time.Duration { return min(d+d/8, lastPause) }

// followAll asks for the states of many jobs at once until all have ended. It returns the jobs that have ended, even if
// it also returns an error.
func followAll(ctx context.Context, a *cli.App, s *cli.Session, ids []messages.JobID) (map[messages.JobID]job.JobSummary, error) {
	show := newProgress(a)
	defer show.done()
	ended, left := map[messages.JobID]job.JobSummary{}, slices.Clone(ids)
	var waited, shown time.Duration // shown is the value of waited at which the progress is shown again
	for d := firstLook; ; d = nextLook(d) {
		reply, err := lookAtEnded(ctx, s, left, d == lastPause)
		switch {
		case err == nil:
			for _, j := range reply {
				ended[j.Job] = j
			}
			left = slices.DeleteFunc(left, func(id messages.JobID) bool { _, has := ended[id]; return has })
			if waited >= shown || len(left) == 0 {
				show.count(len(ended), len(ids))
				shown = waited + min(max(waited/2, firstPause), lastPause)
			}
		case !messages.KindOf(err).Retriable() || ctx.Err() != nil:
			return ended, err
		default:
			show.trouble(err)
		}
		if len(left) == 0 {
			return ended, nil
		}
		if err := a.Pause(ctx, d); err != nil {
			return ended, err
		}
		if waited += d; len(reply) > 0 { // ask again after half of the expected remaining time
			half := waited.Seconds() / 2 * float64(len(left)) / float64(len(ended))
			d = max(firstLook, min(d, time.Duration(half*float64(time.Second))))
		}
	}
}

// lookAtEnded asks for as many of the jobs in the list `ids` as one request allows, and returns the jobs that have
// ended. If the site no longer knows one of these jobs and `sure` is true, it returns an error.
func lookAtEnded(ctx context.Context, s *cli.Session, ids []messages.JobID, sure bool) ([]job.JobSummary, error) {
	r := job.JobsRequest{Jobs: ids[:min(len(ids), job.MaxListed)], Limit: job.MaxListed}
	if !sure {
		r.States = endStates
	}
	reply, err := cli.Call[job.JobsReply](ctx, s, messages.Auctioneer, messages.VerbJobs, r)
	if err != nil || !sure {
		return reply.Jobs, err
	}
	for _, id := range r.Jobs {
		if !reply.More && !slices.ContainsFunc(reply.Jobs, func(j job.JobSummary) bool { return j.Job == id }) {
			return nil, messages.Errorf(messages.NotFound, "the site no longer lists job %v", id)
		}
	}
	return slices.DeleteFunc(reply.Jobs, func(j job.JobSummary) bool { return !j.State.Final() }), nil
}

var endStates = states[job.Completed:]
