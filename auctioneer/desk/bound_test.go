package desk

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// bounded is a site on which alice may use 8 slots at a time, and has jobs for more slots.
type bounded struct {
	*site
	seq     uint64
	running []messages.Attempt
}

func newBounded(t *testing.T, jobs int, width func(i int) int) *bounded {
	t.Helper()
	bound := market.AtOnce{Account: market.Bound{Slots: 8}}
	s := newSite(t, func(c *Config) { c.Markets[0].AtOnce = bound })
	s.must(&book.Command{SetBounds: &book.SetBounds{Markets: []book.MarketBounds{{Market: "main", AtOnce: bound}}}})
	s.must(&book.Command{Register: &book.Register{Node: "n1", Session: 1, Slots: []job.ClassSlots{{Class: "cpu", Slots: 64}}}})
	for i := range jobs {
		spec := job.JobSpec{Market: "main", Budget: 10, Utility: &job.Utility{Weights: job.Weights{{Class: "cpu", Weight: 1}}}, Stages: []job.Stage{{Name: "a", Class: "cpu", Tasks: 1, Width: width(i)}}}
		s.must(&book.Command{Submit: &book.Submit{Account: "alice", Key: fmt.Sprint(i), Payer: "alice", Spec: &spec, Hold: fmt.Sprint(i), Held: 10}})
	}
	s.step()
	return &bounded{site: s}
}

// exchange reports the end of the first n running tasks. If the argument `claim` is true, it also claims tasks.
func (s *bounded) exchange(n int, claim bool) {
	s.Helper()
	s.seq++
	x := &agent.Exchange{Session: 1, Seq: s.seq}
	for _, a := range s.running[:n] {
		x.Finished = append(x.Finished, agent.Finished{Attempt: a})
	}
	s.running = s.running[n:]
	if claim {
		x.Claims = []agent.Claim{{Market: "main", Class: "cpu", Slots: 16}}
	}
	for _, g := range s.must(s.desk.Exchange("n1", x)).([]agent.Grant) {
		s.running = append(s.running, g.Attempt)
	}
}

// An account uses all slots of its bound, and has many waiting jobs. The time that the leader needs for the end of a
// task must not grow with the number of waiting jobs.
func TestAnEndAtABoundCostsNoMoreAmongMoreJobs(t *testing.T) {
	cost := func(jobs int) time.Duration {
		s := newBounded(t, jobs, func(int) int { return 1 })
		for len(s.running) < 8 {
			s.exchange(0, true)
			s.step()
		}
		took := make([]time.Duration, 15)
		for i := range took {
			s.exchange(1, false)
			began := time.Now()
			s.step()
			took[i] = time.Since(began)
			for tries := 0; len(s.running) < 8 && tries < 10; tries++ {
				s.exchange(0, true)
				s.step()
			}
			if len(s.running) != 8 {
				t.Fatalf("%d tasks run", len(s.running))
			}
		}
		return slices.Min(took) // other programs of the machine make a step longer, never shorter
	}
	best := 0.0
	for range 5 { // a busy machine can slow one measurement
		few, many := cost(500), cost(5000)
		if best = float64(many) / float64(few); best < 3 {
			return
		}
	}
	t.Errorf("among ten times as many jobs an end costs %.1f times as much", best)
}

// The account is at its bound. The first jobs have wide tasks, and the later jobs have tasks of one slot. When one task
// ends, the freed slots are too few for a wide task, but enough for a task of a later job. The market looks at only
// some of the jobs at a time, but in the end all jobs must have run.
func TestAllJobsAtABoundHaveTheirTurn(t *testing.T) {
	const wide, jobs = 2 * shutAtOnce, 3 * shutAtOnce
	s := newBounded(t, jobs, func(i int) int {
		if i < wide {
			return 7
		}
		return 1
	})
	ran := map[messages.JobID]bool{}
	for steps := 0; len(ran) < jobs; steps++ {
		if steps > 20*jobs {
			t.Fatalf("only %d of %d jobs have run", len(ran), jobs)
		}
		s.exchange(min(1, len(s.running)), true)
		s.step()
		for _, a := range s.running {
			ran[a.Task.Job] = true
		}
	}
	for len(s.running) > 0 {
		s.exchange(1, false)
		s.step()
	}
	for o, of := range s.desk.owned {
		if len(of.open) > 0 || len(of.shut) > shutAtOnce {
			t.Errorf("%v: %d and %d jobs are remembered, and all have ended", o, len(of.open), len(of.shut))
		}
	}
}
