package desk

import (
	"fmt"
	"testing"
	"time"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
	marketmsg "github.com/candor-grid/candor/messages/market"
)

// narrowAndWide is a site with a node of four slots, a job with tasks of one slot, and a job with tasks of several
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

// submit submits a job of single tasks. The tasks have a time limit, unless the limit is 0.
func (s *narrowAndWide) submit(limit time.Duration) messages.JobID {
	s.Helper()
	spec := job.JobSpec{Market: "main", Budget: 10, Utility: &job.Utility{Weights: job.Weights{{Class: "cpu", Weight: 1}}},
		Stages: []job.Stage{{Name: "a", Class: "cpu", Tasks: 20, TimeLimit: messages.Duration(limit)}}}
	key := "limit " + limit.String()
	id := s.must(&book.Command{Submit: &book.Submit{Account: "alice", Key: key, Payer: "alice", Spec: &spec, Hold: key, Held: 10}}).(book.Receipt).Job
	s.step()
	return id
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

// An agent with four free slots draws a narrow job three times, and then a job whose task needs all four slots. The
// wide task must get them, although it was drawn last.
func TestAWideTaskGetsRoomBeforeNarrowTasks(t *testing.T) {
	s := newNarrowAndWide(t, 4, 0)
	got := s.exchange(nil, agent.Claim{Job: s.narrow, Slots: 3}, agent.Claim{Job: s.wide, Slots: 1})
	if len(got) != 1 || got[0].Attempt.Task.Job != s.wide || len(s.Node("n1").Gatherings) != 0 {
		t.Errorf("granted %v, want one task of job %d; gatherings %v", got, s.wide, s.Node("n1").Gatherings)
	}
}

// Three narrow tasks run, and the node claims a wide task for its free slot. The node may keep this slot free for the
// wide task only if enough narrow tasks are expected to end within an hour.
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

// Tasks use three of a node's four slots, and have run for 20 minutes. The node keeps its fourth slot for a wide task:
// it gathers slots. It expects the other three slots to be free in 20 minutes. Until then, short tasks may use the
// fourth slot, and the wide job does not pay for it.
func TestShortTasksUseGatheredSlots(t *testing.T) {
	const minute = time.Minute
	for _, c := range []struct {
		name         string
		level        int
		limit, later time.Duration // the short job's time limit, and when it claims, counted from the start of the gathering
		uses         bool
	}{
		{"ends before", 2, 5 * minute, 0, true},
		{"ends just before", 2, 19 * minute, 0, true},
		{"ends after", 2, 20 * minute, 0, false},
		{"ends before, and claims later", 2, 5 * minute, 14 * minute, true},
		{"claims too late", 2, 5 * minute, 16 * minute, false},
		{"has no limit", 2, 0, 0, false},
		{"replicas of the release before", 1, 5 * minute, 0, false},
	} {
		s := newNarrowAndWide(t, 4, 0)
		s.desk.Level = c.level
		s.exchange(nil, agent.Claim{Job: s.narrow, Slots: 3})
		pass := func(d time.Duration) {
			s.now.Wall = s.now.Wall.Add(messages.Duration(d))
			s.step()
		}
		pass(20 * minute)
		s.exchange(nil, agent.Claim{Job: s.wide, Slots: 1})
		if len(s.Node("n1").Gatherings) != 1 {
			t.Fatalf("%s: the node does not gather", c.name)
		}
		id := s.submit(c.limit)
		pass(c.later)
		got := s.exchange(nil, agent.Claim{Job: id, Slots: 1})
		if uses := len(got) == 1 && got[0].Attempt.Task.Job == id && !got[0].Ahead; uses != c.uses {
			t.Errorf("%s: granted %v, want a task: %v", c.name, got, c.uses)
		}
		pass(3 * minute)
		s.exchange(got)
		pass(minute)
		s.exchange(nil, agent.Claim{Job: s.wide, Slots: 1})
		idle := c.later + 4*minute
		if c.uses {
			idle -= 3 * minute
		}
		if g := s.Node("n1").Gatherings; len(g) != 1 || g[0].Micros != uint64(idle/time.Microsecond) {
			t.Errorf("%s: gatherings %v, want one that kept a slot idle for %v", c.name, g, idle)
		}
	}
}

// In a backfill market, the tasks of the first job need all slots. The tasks of the second job are an allocation on
// several nodes. Such tasks may be claimed only after the market has ordered the start of the whole allocation. A node
// that draws the second job before this must not claim one of its tasks.
func TestAnAllocationWaitsForItsOrder(t *testing.T) {
	s := &narrowAndWide{site: newSite(t, func(c *Config) { c.Markets[0].Mechanism = marketmsg.Backfill })}
	s.must(&book.Command{Register: &book.Register{Node: "n1", Session: 1, Slots: []job.ClassSlots{{Class: "cpu", Slots: 4}}}})
	s.must(&book.Command{Register: &book.Register{Node: "n2", Session: 1, Slots: []job.ClassSlots{{Class: "cpu", Slots: 4}}}})
	s.narrow = s.submit(0)
	spec := job.JobSpec{Market: "main", Budget: 10, Utility: &job.Utility{Weights: job.Weights{{Class: "cpu", Weight: 1}}},
		Stages: []job.Stage{{Name: "a", Class: "cpu", Tasks: 2, Width: 3, Gang: true, Allocation: true}}}
	s.wide = s.must(&book.Command{Submit: &book.Submit{Account: "alice", Key: "wide", Payer: "alice", Spec: &spec, Hold: "wide", Held: 10}}).(book.Receipt).Job
	s.step()
	for _, job := range []messages.JobID{s.wide, s.narrow} {
		for _, g := range s.exchange(nil, agent.Claim{Job: job, Slots: 4}) {
			if g.Attempt.Task.Job != s.narrow {
				t.Errorf("granted %v while the first job waits", g)
			}
		}
	}
	if gathers := s.Node("n1").Gatherings; len(gathers) > 0 {
		t.Errorf("node n1 gathers: %v", gathers)
	}
}

// Two nodes have one free slot each, and tasks that have run for hours. A market with backfilling counts the two slots
// together, orders the start of a task of two slots, and gives the slots to no other job. A node must keep free slots
// for the task until it has enough of them: otherwise the two slots would be idle until a node has two of them by
// chance.
func TestANodeGathersSlotsThatTheMarketKeeps(t *testing.T) {
	s := newSite(t, func(c *Config) { c.Markets[0].Mechanism = marketmsg.Backfill })
	for _, n := range []messages.Name{"n1", "n2"} {
		s.must(&book.Command{Register: &book.Register{Node: n, Session: 1, Slots: []job.ClassSlots{{Class: "cpu", Slots: 4}}}})
	}
	enter := func(key string, tasks, width int) messages.JobID {
		spec := job.JobSpec{Market: "main", Budget: 1e12, Stages: []job.Stage{{Name: "a", Class: "cpu", Tasks: tasks, Width: width}}}
		id := s.must(&book.Command{Submit: &book.Submit{Account: "alice", Key: key, Payer: "alice", Spec: &spec, Hold: key, Held: 1e12}}).(book.Receipt).Job
		s.step()
		return id
	}
	claim := func(node messages.Name, seq uint64, id messages.JobID, slots int) []agent.Grant {
		x := &agent.Exchange{Session: 1, Seq: seq, Claims: []agent.Claim{{Market: "main", Class: "cpu", Job: id, Slots: slots}}}
		got := s.must(s.desk.Exchange(node, x)).([]agent.Grant)
		s.step()
		return got
	}
	narrow := enter("narrow", 6, 1)
	if a, b := claim("n1", 1, narrow, 3), claim("n2", 1, narrow, 3); len(a) != 3 || len(b) != 3 {
		t.Fatalf("granted %v and %v", a, b)
	}
	wide := enter("wide", 1, 2)
	s.now.Wall = s.now.Wall.Add(messages.Duration(3 * time.Hour))
	s.step()
	if got := claim("n1", 2, wide, 1); len(got) != 0 || len(s.Node("n1").Gatherings) != 1 {
		t.Errorf("granted %v; node n1 has the gatherings %v, not one", got, s.Node("n1").Gatherings)
	}
}
