package book

import (
	"bytes"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

func allocationStage(nodes, width int) job.Stage {
	s := wideStage(width, nodes)
	s.Gang, s.Allocation = true, true
	return s
}

func (s *site) end(node messages.Name, f agent.Finished) []agent.Grant {
	n := s.Node(node)
	return s.apply(Command{Exchange: &Exchange{Node: node, Session: n.Session, Seq: n.Seq + 1, Finished: []agent.Finished{f}}}).([]agent.Grant)
}

func (s *site) next(node messages.Name, slots int, job messages.JobID) []agent.Grant {
	return s.claim(node, s.Node(node).Session, s.Node(node).Seq+1, slots, job)
}

// TestAnAllocationStartsAsAWhole claims an allocation on several nodes. One of these nodes must collect free slots
// until it has enough. No task may run before all tasks have their slots. The job pays for the slots that waited.
func TestAnAllocationStartsAsAWhole(t *testing.T) {
	s := newSite(t)
	for _, n := range []messages.Name{"n1", "n2"} {
		s.register(n, 7, 4)
	}
	s.apply(Command{Decide: &Decide{Market: "main", Tariffs: []Tariff{{Class: "map", Price: messages.Credit}}}})
	narrow, id := s.submit("a", mapStage(20)), s.submit("b", allocationStage(2, 3))
	busy := s.next("n2", 2, narrow)
	first := s.next("n1", 4, id)
	if len(first) != 1 || s.Node("n1").Used[0] != 3 || s.Job(id).Stages[0].Gathering != 1 {
		t.Fatalf("granted %v, %v slots used, %d gather", first, s.Node("n1").Used, s.Job(id).Stages[0].Gathering)
	}
	if more := s.next("n1", 1, id); len(more) != 0 {
		t.Fatalf("a second node of the allocation is on n1 too: %v", more)
	}
	held := s.at
	if got := s.next("n2", 2, id); len(got) != 0 || len(s.Node("n2").Gatherings) != 1 {
		t.Fatalf("granted %v with two slots free", got)
	}
	s.at += 1_000_000
	second := s.end("n2", agent.Finished{Attempt: busy[0].Attempt})
	if len(second) != 1 || second[0].Attempt.Task.Index != 1 {
		t.Fatalf("granted %v", second)
	}
	if n, suspended := s.Job(id).Stages[0].Gathering, s.Node("n1").Suspended(); n != 0 || suspended != 0 {
		t.Fatalf("%d gather, %d are suspended on n1", n, suspended)
	}
	least := messages.Credits(3 * s.at.Sub(held) / 1000)
	if cost, _ := s.Used(s.Job(id), s.at); cost < least || cost > 2*least {
		t.Errorf("it has paid %v for three slots that it held for %v, and for two that were kept free on the other node meanwhile", cost, s.at.Sub(held))
	}
	s.end("n1", agent.Finished{Attempt: first[0].Attempt})
	if n := s.Node("n2"); len(n.Stop) != 1 || n.Stop[0] != second[0].Attempt || !s.Job(id).Active() {
		t.Fatalf("n2 is to stop %v", n.Stop)
	}
	s.end("n2", agent.Finished{Attempt: second[0].Attempt, Outcome: agent.Stopped, ExitCode: 143})
	if j := s.Job(id); j.Outcome != job.Completed || j.Stages[0].Done != 2 || s.Node("n1").Used[0] != 0 {
		t.Errorf("%v, %d done", j.Outcome, j.Stages[0].Done)
	}
}

// An allocation starts again if one of its nodes is lost. It also starts again if another of its tasks ends while its
// first task still runs.
func TestAnAllocationIsLostAsAWhole(t *testing.T) {
	for name, lose := range map[string]func(*site, agent.Grant){
		"node": func(s *site, _ agent.Grant) { s.apply(Command{Lost: &Lost{Node: "n2", Session: 7}}) },
		"task": func(s *site, g agent.Grant) {
			s.end("n2", agent.Finished{Attempt: g.Attempt, ExitCode: 143})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.register("n1", 7, 4)
			s.register("n2", 7, 4)
			id := s.submit("b", allocationStage(2, 3))
			first, second := s.next("n1", 4, id), s.next("n2", 4, id)
			lose(s, second[0])
			if stop := s.Node("n1").Stop; len(stop) != 1 || stop[0] != first[0].Attempt {
				t.Fatalf("n1 is to stop %v", stop)
			}
			s.end("n1", agent.Finished{Attempt: first[0].Attempt, Outcome: agent.Stopped})
			if j := s.Job(id); !j.Active() || j.Claimable(0) != 2 {
				t.Errorf("%v, %d tasks can be claimed, want 2", j.Outcome, j.Claimable(0))
			}
		})
	}
}

// An allocation needs several nodes at the same time. While one allocation collects nodes of a class, a second
// allocation must get none, until the first one has all its nodes or has given up.
func TestOneAllocationGathersAtATime(t *testing.T) {
	s := newSite(t)
	s.register("n1", 7, 4)
	s.register("n2", 7, 4)
	one, other := s.submit("a", allocationStage(2, 4)), s.submit("b", allocationStage(2, 4))
	if got := s.next("n1", 4, one); len(got) != 1 {
		t.Fatalf("granted %v", got)
	}
	var image bytes.Buffer
	if _, err := s.Capture().WriteTo(&image); err != nil {
		t.Fatal(err)
	}
	if err := s.Restore(&image); err != nil {
		t.Fatal(err)
	}
	if got := s.next("n2", 4, other); len(got) != 0 {
		t.Fatalf("the other job was granted %v meanwhile", got)
	}
	s.apply(Command{Disband: &Disband{Job: one, Since: s.Job(one).Stages[0].Gathered}})
	if got := s.next("n2", 4, other); len(got) != 1 {
		t.Fatalf("granted %v after the first gave up", got)
	}
	if got := s.next("n1", 4, one); len(got) != 0 {
		t.Fatalf("the first was granted %v meanwhile", got)
	}
}

// hetjob submits a heterogeneous job: one task with four slots of the class "map", and two tasks with one slot each of
// the class "reduce".
func (s *site) hetjob(key string) messages.JobID {
	wide, other := allocationStage(1, 4), allocationStage(2, 1)
	other.Name, other.Class = "other", "reduce"
	return s.submit(key, wide, other)
}

func (s *site) claimBoth(node messages.Name, id messages.JobID) []agent.Grant {
	s.t.Helper()
	n := s.Node(node)
	return s.apply(Command{Exchange: &Exchange{Node: node, Session: n.Session, Seq: n.Seq + 1, Claims: []Claim{
		{Class: "map", Slots: 8, Jobs: []messages.JobID{id}}, {Class: "reduce", Slots: 8, Jobs: []messages.JobID{id}}}}}).([]agent.Grant)
}

func (s *site) registerBoth(names ...messages.Name) {
	for _, n := range names {
		s.apply(Command{Register: &Register{Node: n, Session: 7, Slots: []job.ClassSlots{{Class: "map", Slots: 4}, {Class: "reduce", Slots: 2}}}})
	}
}

// No task may run before the tasks of all stages have their slots. The end of the first task ends all others.
func TestAHeterogeneousJobStartsAsAWhole(t *testing.T) {
	s := newSite(t)
	s.registerBoth("n1", "n2")
	s.apply(Command{Decide: &Decide{Market: "main", Tariffs: []Tariff{{Class: "map", Price: messages.Credit}, {Class: "reduce", Price: messages.Credit / 2}}}})
	id := s.hetjob("a")
	if j := s.Job(id); j.Claimable(0) != 1 || j.Claimable(1) != 0 {
		t.Fatalf("%d and %d tasks can be claimed, and the wide one comes first", j.Claimable(0), j.Claimable(1))
	}
	held := s.at
	one := s.claimBoth("n1", id)
	if len(one) != 2 || s.Job(id).Stages[0].Gathering != 1 || s.Job(id).Stages[1].Gathering != 1 {
		t.Fatalf("granted %v on n1", one)
	}
	s.at += 1_000_000
	two := s.claimBoth("n2", id)
	if j := s.Job(id); len(two) != 1 || two[0].Attempt.Task != (messages.TaskRef{Job: id, Stage: 1, Index: 1}) || j.Stages[0].Gathering+j.Stages[1].Gathering != 0 {
		t.Fatalf("granted %v on n2", two)
	}
	if sum := s.Job(id).Summary(); sum.Nodes != 3 || sum.Tasks != 3 {
		t.Errorf("%d nodes, %d tasks", sum.Nodes, sum.Tasks)
	}
	s.at += 1_000_000
	start := s.at
	s.end("n1", agent.Finished{Attempt: one[0].Attempt})
	if n1, n2 := s.Node("n1").Stop, s.Node("n2").Stop; len(n1) != 1 || n1[0] != one[1].Attempt || len(n2) != 1 || n2[0] != two[0].Attempt || !s.Job(id).Active() {
		t.Fatalf("n1 is to stop %v, n2 %v", n1, n2)
	}
	s.end("n1", agent.Finished{Attempt: one[1].Attempt, Outcome: agent.Stopped, ExitCode: 143})
	s.end("n2", agent.Finished{Attempt: two[0].Attempt, Outcome: agent.Stopped, ExitCode: 143})
	j := s.Job(id)
	if j.Outcome != job.Completed || j.Stages[0].Done+j.Stages[1].Done != 3 {
		t.Errorf("%v, %d and %d done", j.Outcome, j.Stages[0].Done, j.Stages[1].Done)
	}
	cost, _ := s.Used(j, s.at)
	least := float64(4*start.Sub(held)+start.Sub(held)/2) / 1e9 // four slots of map and one slot of reduce, all the time
	if most := least + float64(s.at.Sub(held))/1e9*4; cost.Float() < least || cost.Float() > most {
		t.Errorf("it owes %v, want between %v and %v", cost, least, most)
	}
}

func TestAHeterogeneousJobIsLostAsAWhole(t *testing.T) {
	s := newSite(t)
	s.registerBoth("n1", "n2")
	id := s.hetjob("a")
	one := s.claimBoth("n1", id)
	s.claimBoth("n2", id)
	s.apply(Command{Lost: &Lost{Node: "n2", Session: 7}})
	if stop := s.Node("n1").Stop; len(stop) != 2 {
		t.Fatalf("n1 is to stop %v", stop)
	}
	s.end("n1", agent.Finished{Attempt: one[0].Attempt, Outcome: agent.Stopped})
	if got := s.claimBoth("n1", id); len(got) != 0 {
		t.Fatalf("granted %v while a task of the earlier start still ends", got)
	}
	s.end("n1", agent.Finished{Attempt: one[1].Attempt, Outcome: agent.Stopped})
	if got := s.claimBoth("n1", id); len(got) != 2 {
		t.Fatalf("granted %v when all had ended", got)
	}
}

// Only one of two heterogeneous jobs may collect slots at a time, even after the book was restored.
func TestHeterogeneousJobsDoNotHoldWhatTheOtherNeeds(t *testing.T) {
	s := newSite(t)
	s.registerBoth("n1", "n2")
	id := s.hetjob("a")
	reduce := allocationStage(2, 1)
	reduce.Class = "reduce"
	others := []messages.JobID{s.hetjob("b"), s.submit("c", reduce), s.submit("d", allocationStage(2, 1))}
	if got := s.next("n1", 4, id); len(got) != 1 {
		t.Fatalf("granted %v", got)
	}
	for range 2 {
		for _, other := range others {
			if got := s.claimBoth("n2", other); len(got) != 0 {
				t.Errorf("job %v was granted %v meanwhile", other, got)
			}
		}
		again := New()
		copyInto(t, s.Book, again)
		s.Book = again
	}
	s.apply(Command{Disband: &Disband{Job: id, Since: s.Job(id).Stages[0].Gathered}})
	if got := s.claimBoth("n2", others[1]); len(got) != 1 {
		t.Errorf("granted %v when the first job had given up", got)
	}
}

func TestAHeterogeneousJobCountsAsAWholeForBounds(t *testing.T) {
	s := newSite(t)
	s.registerBoth("n1", "n2")
	one, other := s.hetjob("a"), s.hetjob("b")
	s.apply(Command{SetBounds: &SetBounds{Markets: []MarketBounds{{"main", market.AtOnce{Account: market.Bound{Slots: 6}}}}}})
	s.next("n1", 4, one)
	if used := s.Book.bounds.used[Owner{Market: "main", Name: "alice"}]; used != (market.Bound{Slots: 6, Tasks: 3}) {
		t.Errorf("the first claim counts as %+v", used)
	}
	if j := s.Job(other); s.Claimable(j, 0) != 0 {
		t.Errorf("%d tasks of the other job may start", s.Claimable(j, 0))
	}
	if j := s.Job(one); s.Claimable(j, 1) != 2 {
		t.Errorf("%d tasks of the job that began may start", s.Claimable(j, 1))
	}
}

// An allocation resumes only as a whole. While one of its nodes has no free slots for it, none of its tasks may resume.
func TestAnAllocationIsSuspendedAsAWhole(t *testing.T) {
	s := newSite(t)
	s.register("n1", 7, 4)
	s.register("n2", 7, 4)
	id, narrow := s.submit("a", allocationStage(2, 3)), s.submit("b", mapStage(20))
	members := []messages.Attempt{s.next("n1", 4, id)[0].Attempt, s.next("n2", 4, id)[0].Attempt}
	suspended := func(want int) {
		t.Helper()
		if got := s.Job(id).Stages[0].Suspended; got != want || s.Node("n1").Suspended() != want/2 || s.Node("n2").Suspended() != want/2 {
			t.Fatalf("%d tasks are suspended, want %d", got, want)
		}
	}
	s.apply(Command{Decide: &Decide{Market: "main", Suspend: members[1:]}})
	suspended(2)
	other := s.next("n2", 2, narrow)
	s.apply(Command{Decide: &Decide{Market: "main", Resume: members}})
	suspended(2)
	s.end("n2", agent.Finished{Attempt: other[0].Attempt})
	s.end("n2", agent.Finished{Attempt: other[1].Attempt})
	s.apply(Command{Decide: &Decide{Market: "main", Resume: members}})
	suspended(0)
	if s.Node("n1").Used[0] != 3 || s.Node("n2").Used[0] != 3 {
		t.Errorf("%v and %v slots are used", s.Node("n1").Used, s.Node("n2").Used)
	}
}

// A job has one task of three slots and two tasks of two slots. Each of three nodes has four slots. All three tasks
// must start together. The node of the first task must not gather slots for another task of the job: it would wait for
// the end of the first task, which itself waits for the other tasks.
func TestANodeDoesNotGatherWhatItsOwnJobHolds(t *testing.T) {
	s := newSite(t)
	for _, n := range []messages.Name{"n1", "n2", "n3"} {
		s.register(n, 7, 4)
	}
	other := allocationStage(2, 2)
	other.Name = "other"
	id := s.submit("a", allocationStage(1, 3), other)
	for _, n := range []messages.Name{"n2", "n1", "n3"} {
		if got := s.next(n, 4, id); len(got) != 1 || len(s.Node(n).Gatherings) != 0 {
			t.Errorf("%s was granted %v, and gathers for %v", n, got, s.Node(n).Gatherings)
		}
	}
	if j := s.Job(id); j.Stages[0].Gathering+j.Stages[1].Gathering != 0 || j.Stages[1].Running != 2 {
		t.Errorf("%d and %d tasks wait for the others", j.Stages[0].Gathering, j.Stages[1].Gathering)
	}
}
