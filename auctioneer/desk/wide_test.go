package desk

import (
	"fmt"
	"testing"
	"time"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
)

// narrowAndWide is a site with a node of four slots, a job with tasks of one slot each, and a job with tasks of several
// slots.
type narrowAndWide struct {
	*site
	narrow, wide messages.JobID
	seq          uint64
}

func newNarrowAndWide(t *testing.T, width int, limit time.Duration) *narrowAndWide {
	t.Helper()
	s := &narrowAndWide{site: newSite(t, func(*Config) {})}
	s.must(&book.Command{Register: &book.Register{Node: "n1", Session: 1, Slots: []job.ClassSlots{{Class: "cpu", Slots: 4}}}})
	for i, id := range []*messages.JobID{&s.narrow, &s.wide} {
		stage := job.Stage{Name: "a", Class: "cpu", Tasks: 20}
		if i == 0 {
			stage.TimeLimit = messages.Duration(limit)
		} else {
			stage.Width = width
		}
		spec := job.JobSpec{Market: "main", Budget: 10, Utility: &job.Utility{Weights: job.Weights{{Class: "cpu", Weight: 1}}}, Stages: []job.Stage{stage}}
		*id = s.must(&book.Command{Submit: &book.Submit{Account: "alice", Key: fmt.Sprint(i), Payer: "alice", Spec: &spec, Hold: fmt.Sprint(i), Held: 10}}).(book.Receipt).Job
	}
	s.step()
	return s
}

// exchange reports ends of tasks, and claims slots for jobs, in this order.
func (s *narrowAndWide) exchange(ended []agent.Grant, claims ...agent.Claim) []agent.Grant {
	s.Helper()
	s.seq++
	x := &agent.Exchange{Session: 1, Seq: s.seq}
	for _, g := range ended {
		x.Finished = append(x.Finished, agent.Finished{Attempt: g.Attempt})
	}
	for _, c := range claims {
		c.Market, c.Class = "main", "cpu"
		x.Claims = append(x.Claims, c)
	}
	return s.must(s.desk.Exchange("n1", x)).([]agent.Grant)
}

// TestAWideTaskGetsRoomBeforeNarrowTasks: an agent with four free slots draws a narrow job three times and then a job
// whose task needs all four slots. The wide task must get them. In an earlier version the narrow tasks came first, and the
// wide task waited until they had ended.
func TestAWideTaskGetsRoomBeforeNarrowTasks(t *testing.T) {
	s := newNarrowAndWide(t, 4, 0)
	got := s.exchange(nil, agent.Claim{Job: s.narrow, Slots: 3}, agent.Claim{Job: s.wide, Slots: 1})
	if len(got) != 1 || got[0].Attempt.Task.Job != s.wide || len(s.Node("n1").Gatherings) != 0 {
		t.Errorf("granted %v, want one task of job %d; gatherings %v", got, s.wide, s.Node("n1").Gatherings)
	}
}

// TestANodeGathersOnlyIfItHasRoomSoon lets three narrow tasks run for a while. Then the node claims a wide task with one
// free slot. It may gather slots only if enough of the narrow tasks are expected to end within an hour. In an earlier
// version it gathered for an hour in any case.
func TestANodeGathersOnlyIfItHasRoomSoon(t *testing.T) {
	for _, c := range []struct {
		name    string
		width   int
		ran     time.Duration // run time of the narrow tasks
		limit   time.Duration // time limit of the narrow tasks
		ends    int           // narrow tasks that end in the same exchange
		gathers bool
	}{
		{"short tasks", 4, time.Minute, 0, 0, true},
		{"long tasks", 4, 2 * time.Hour, 0, 0, false},
		{"long tasks with a later limit", 4, 2 * time.Hour, 9 * time.Hour, 0, false},
		{"long tasks near their limit", 4, 2 * time.Hour, 150 * time.Minute, 0, true},
		{"short tasks with a long limit", 4, time.Minute, 9 * time.Hour, 0, true},
		{"long tasks, and one of them ends", 4, 2 * time.Hour, 0, 1, false},
	} {
		s := newNarrowAndWide(t, c.width, c.limit)
		held := s.exchange(nil, agent.Claim{Job: s.narrow, Slots: 3})
		if len(held) != 3 {
			t.Fatalf("%s: granted %v", c.name, held)
		}
		s.now.Wall = s.now.Wall.Add(messages.Duration(c.ran))
		s.step()
		got := s.exchange(held[:c.ends], agent.Claim{Job: s.wide, Slots: 1})
		if n := len(s.Node("n1").Gatherings); n == 1 != c.gathers || len(got) != 0 {
			t.Errorf("%s: granted %v, %d gatherings, want one: %v", c.name, got, n, c.gathers)
		}
	}
}
