package book

import (
	"bytes"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
)

func allocationStage(nodes, width int) job.Stage {
	s := wideStage(width, nodes)
	s.Gang, s.Allocation = true, true
	return s
}

// end sends a node's report of the end of an attempt, and returns the grants.
func (s *site) end(node messages.Name, f agent.Finished) []agent.Grant {
	n := s.Node(node)
	return s.apply(Command{Exchange: &Exchange{Node: node, Session: n.Session, Seq: n.Seq + 1, Finished: []agent.Finished{f}}}).([]agent.Grant)
}

func (s *site) next(node messages.Name, slots int, job messages.JobID) []agent.Grant {
	return s.claim(node, s.Node(node).Session, s.Node(node).Seq+1, slots, job)
}

// TestAnAllocationStartsAsAWhole claims an allocation on several nodes; one node must gather slots first. Each task
// must be on a different node, and no task may run before all tasks have their slots. The job must pay for the slots
// that waited. The end of the first task must end all tasks.
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

// TestAnAllocationIsLostAsAWhole checks that all tasks of an allocation start again if one of its nodes is lost, or
// if another task ends before the first one.
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

// TestOneAllocationGathersAtATime checks that a second allocation gets no nodes of a class until the first one has all
// its nodes or has given up. A replica restored from an image must know which allocation gathers.
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
