package demo

import (
	"context"
	"slices"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

type snapshot struct {
	elapsed time.Duration // time since the first submission
	planned int           // number of jobs in the workload
	tasks   int           // number of tasks of all jobs
	jobs    []job.JobSummary
	markets []market.MarketStatus
}

// look asks the site for the state of the submitted jobs. It sorts the jobs by number.
func (g *grid) look(ctx context.Context, mine map[messages.JobID]int) (*snapshot, error) {
	jobs, err := ask[job.JobsReply](ctx, g, messages.Auctioneer, messages.VerbJobs, job.JobsRequest{All: true, Limit: 1000})
	if err != nil {
		return nil, err
	}
	markets, err := ask[market.MarketsReply](ctx, g, messages.Auctioneer, messages.VerbMarkets, messages.Empty{})
	if err != nil {
		return nil, err
	}
	s := &snapshot{markets: markets.Markets}
	for _, j := range jobs.Jobs {
		if _, ok := mine[j.Job]; ok {
			s.jobs = append(s.jobs, j)
		}
	}
	slices.SortFunc(s.jobs, func(a, b job.JobSummary) int { return int(a.Job) - int(b.Job) })
	return s, nil
}

func (s *snapshot) count(is func(job.State) bool) (n int) {
	for _, j := range s.jobs {
		if is(j.State) {
			n++
		}
	}
	return n
}

// ended returns the number of jobs that have ended and are settled.
func (s *snapshot) ended() int { return s.count(job.State.Final) }

func (s *snapshot) running() int {
	return s.count(func(state job.State) bool { return state == job.Running })
}

// over reports whether every job of the workload was submitted and has ended.
func (s *snapshot) over() bool { return len(s.jobs) == s.planned && s.ended() == s.planned }

func (s *snapshot) done() (n int) {
	for _, j := range s.jobs {
		n += j.Done
	}
	return n
}

func (s *snapshot) prices() (all []market.ClassPrice) {
	for _, m := range s.markets {
		all = append(all, m.Prices...)
	}
	return all
}

// shares returns the present shares of a job, or nil if the job is not among the largest bidders.
func (s *snapshot) shares(job messages.JobID) []job.ClassShare {
	for _, m := range s.markets {
		for _, top := range m.Top {
			if top.Job == job {
				return top.Shares
			}
		}
	}
	return nil
}
