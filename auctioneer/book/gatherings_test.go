package book

import (
	"fmt"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
)

func wideStage(width, tasks int) job.Stage {
	s := mapStage(tasks)
	s.Width = width
	return s
}

// A task needs several slots. Slots that become free are kept idle for it until it has all of them. Its job pays for
// the time in which these slots are idle.
func TestANodeGathersSlotsForAWideTask(t *testing.T) {
	s := newSite(t)
	s.register("n1", 7, 4)
	s.apply(Command{Decide: &Decide{Market: "main", Tariffs: []Tariff{{Class: "map", Price: messages.Credit}}}})
	narrow, wide := s.submit("a", mapStage(20)), s.submit("b", wideStage(3, 1))
	g := s.claim("n1", 7, 1, 3, narrow)
	if got := s.claim("n1", 7, 2, 1, wide); len(got) != 0 || s.Job(wide).StageStatuses()[0].Pending != 1 || s.Job(wide).Claimable(0) != 0 {
		t.Fatalf("granted %v with one slot free; %+v", got, s.Job(wide).StageStatuses()[0])
	}
	if got := s.claim("n1", 7, 3, 1, narrow); len(got) != 0 || s.Node("n1").Idle("map") != 0 {
		t.Fatalf("granted %v, though the node gathers", got)
	}
	if n := s.Node("n1").Free("map"); n != 1 {
		t.Fatalf("%d slots are free, want 1", n)
	}
	began := s.at - 1 // when the gathering began
	s.at += 1_000_000
	ends := func(seq uint64, ended ...agent.Grant) []agent.Grant {
		x := &Exchange{Node: "n1", Session: 7, Seq: seq}
		for _, e := range ended {
			x.Finished = append(x.Finished, agent.Finished{Attempt: e.Attempt})
		}
		return s.apply(Command{Exchange: x}).([]agent.Grant)
	}
	if got := ends(4, g[0]); len(got) != 0 {
		t.Fatalf("granted %v with two slots free", got)
	}
	middle := s.at
	s.at += 1_000_000
	got := ends(5, g[1])
	if len(got) != 1 || got[0].Attempt.Task.Job != wide || s.Node("n1").Used[0] != 4 {
		t.Fatalf("granted %v with three slots free, %v used", got, s.Node("n1").Used)
	}
	if left := s.Node("n1").Gatherings; len(left) != 0 {
		t.Fatalf("the node still gathers %v", left)
	}
	// One slot was idle from `began` to `middle`. After `middle`, two slots were idle. So the idle slot time is this
	// sum.
	idle := middle.Sub(began) + 2*s.at.Sub(middle)
	if got[0].Waited != idle || s.Node("n1").Grants[0].Waited != 0 {
		t.Errorf("the agent is told of %v, want %v; the book keeps %v", got[0].Waited, idle, s.Node("n1").Grants[0].Waited)
	}
	start := s.at
	s.at += 500_000
	cost, had := s.Used(s.Job(wide), s.at)
	if want := idle + 3*s.at.Sub(start); had != want || cost != messages.Credits(want/1000) {
		t.Errorf("it had %v for %v, want %v for a credit a second", had, cost, want)
	}
	ends(6, got[0])
	if j := s.Job(wide); j.Outcome != job.Completed || j.Stages[0].SlotTime != 3*(s.at.Sub(start)) || s.Node("n1").Used[0] != 1 {
		t.Errorf("%v after %v, %v used", j.Outcome, j.Stages[0].SlotTime, s.Node("n1").Used)
	}
}

// A gathering must end in three cases: its job ends, its node is lost, or its time limit has passed.
func TestAGatheringEnds(t *testing.T) {
	for name, end := range map[string]func(*site, messages.JobID){
		"cancelled": func(s *site, wide messages.JobID) { s.apply(Command{Cancel: &Cancel{Job: wide, By: "alice"}}) },
		"lost":      func(s *site, _ messages.JobID) { s.apply(Command{Lost: &Lost{Node: "n1", Session: 7}}) },
		"session":   func(s *site, _ messages.JobID) { s.register("n1", 8, 4) },
		"time":      func(s *site, _ messages.JobID) { s.at = s.at.Add(GatherFor) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.register("n1", 7, 4)
			narrow, wide := s.submit("a", mapStage(20)), s.submit("b", wideStage(4, 2))
			s.claim("n1", 7, 1, 1, narrow)
			s.claim("n1", 7, 2, 1, wide)
			end(s, wide)
			seq, session := uint64(3), uint64(7)
			if name != "cancelled" && name != "time" {
				s.register("n1", 8, 4)
				seq, session = 1, 8
			}
			if got := s.claim("n1", session, seq, 1, narrow); len(got) != 1 {
				t.Fatalf("granted %v, want a task of the other job", got)
			}
			if s.Job(wide) != nil && s.Job(wide).Active() && s.Job(wide).Claimable(0) != 2 {
				t.Errorf("%d tasks can be claimed, want 2", s.Job(wide).Claimable(0))
			}
		})
	}
}

// A node gathers slots for a task, while a task of another job never ends. After each failed gathering, the node must
// rest longer than before, until a gathering succeeds. In an earlier version, a node gathered for 60 minutes of each
// 70.
func TestANodeRestsLongerAfterEachGatheringInVain(t *testing.T) {
	s := newSite(t)
	s.register("n1", 7, 4)
	narrow, wide := s.submit("a", mapStage(1)), s.submit("b", wideStage(4, 9))
	held := s.claim("n1", 7, 1, 1, narrow)
	seq := uint64(1)
	gathers := func() bool {
		seq++
		s.claim("n1", 7, seq, 1, wide)
		return len(s.Node("n1").Gatherings) > 0
	}
	for _, minutes := range []time.Duration{10, 20, 40, 80, 160, 320, 320} {
		if !gathers() {
			t.Fatalf("before a rest of %d minutes: the node does not gather", minutes)
		}
		if s.at = s.at.Add(GatherFor); gathers() {
			t.Fatal("the node still gathers after its time")
		}
		rest := messages.Duration(minutes * time.Minute)
		if s.at = s.at.Add(rest - 2e9); gathers() {
			t.Fatalf("the node gathers before a rest of %d minutes is over", minutes)
		}
		s.at = s.at.Add(3e9)
	}
	gathers()
	seq++
	got := s.apply(Command{Exchange: &Exchange{Node: "n1", Session: 7, Seq: seq, Finished: []agent.Finished{{Attempt: held[0].Attempt}}}}).([]agent.Grant)
	if len(got) != 1 || got[0].Attempt.Task.Job != wide || s.Node("n1").InVain != 0 {
		t.Errorf("granted %v, %d gatherings in vain", got, s.Node("n1").InVain)
	}
}

func TestConstraintsBindClaims(t *testing.T) {
	s := newSite(t)
	s.apply(Command{Register: &Register{Node: "n1", Session: 7, Slots: []job.ClassSlots{{Class: "map", Slots: 9}}, Labels: []messages.Name{"a100", "ib"}}})
	for want, change := range map[bool][]func(*job.Stage){
		true: {func(s *job.Stage) { s.Constraint = "v100|a100&ib" }, func(s *job.Stage) { s.Nodes = []messages.Name{"n1"} },
			func(s *job.Stage) { s.Exclude = []messages.Name{"n2"} }},
		false: {func(s *job.Stage) { s.Constraint = "v100&ib" }, func(s *job.Stage) { s.Nodes = []messages.Name{"n2"} },
			func(s *job.Stage) { s.Exclude = []messages.Name{"n1"} }},
	} {
		for _, c := range change {
			stage := mapStage(1)
			c(&stage)
			id := s.submit(fmt.Sprint(stage.Constraint, stage.Nodes, stage.Exclude), stage)
			if got := s.claim("n1", 7, s.Node("n1").Seq+1, 1, id); len(got) == 1 != want {
				t.Errorf("constraint %q, nodes %v without %v: granted %v", stage.Constraint, stage.Nodes, stage.Exclude, got)
			}
		}
	}
}

// Classes of one node share its processors. A class must not get processors that another class uses, or that another
// class keeps free for a task.
func TestClassesShareANode(t *testing.T) {
	s := newSite(t)
	s.apply(Command{Register: &Register{Node: "n1", Session: 7, Resources: &job.Resources{CPUs: 8, GPUs: 2},
		Slots: []job.ClassSlots{{Class: "map", Slots: 8}, {Class: "reduce", Slots: 2}}, Units: []job.Resources{{CPUs: 1, Memory: 4}, {CPUs: 3, GPUs: 1}}}})
	n := s.Node("n1")
	check := func(when string, idle, other, offers int) {
		t.Helper()
		if n.Idle("map") != idle || n.Idle("reduce") != other || n.Offers(1) != offers {
			t.Fatalf("%s: %d slots of map and %d of reduce are idle, and %d of reduce can be had; want %d, %d and %d", when, n.Idle("map"), n.Idle("reduce"), n.Offers(1), idle, other, offers)
		}
	}
	check("at first", 8, 2, 2)
	narrow, wide := s.submit("a", mapStage(20)), s.submit("b", wideStage(4, 1))
	s.claim("n1", 7, 1, 4, narrow)
	check("with four tasks", 4, 1, 1)
	s.claim("n1", 7, 2, 1, narrow)
	check("with five tasks", 3, 1, 1)
	s.claim("n1", 7, 3, 1, wide)
	check("while a task gathers four of eight processors", 0, 0, 1)
}
