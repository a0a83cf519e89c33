package book

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/candor-grid/candor/messages"
)

func wideStage(width, tasks int) messages.Stage {
	s := mapStage(tasks)
	s.Width = width
	return s
}

// TestANodeGathersSlotsForAWideTask: what becomes free goes to the task, and to nobody else,
// until the task has all of its slots; it pays for the slots that were idle for it.
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
	began := s.at - 1 // the gathering
	s.at += 1_000_000
	ends := func(seq uint64, ended ...messages.Grant) []messages.Grant {
		x := &Exchange{Node: "n1", Session: 7, Seq: seq}
		for _, e := range ended {
			x.Finished = append(x.Finished, messages.Finished{Attempt: e.Attempt})
		}
		return s.apply(Command{Exchange: x}).([]messages.Grant)
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
	// One slot was idle until the middle, then two.
	idle := middle.Sub(began) + 2*s.at.Sub(middle)
	start := s.at
	s.at += 500_000
	cost, had := s.Used(s.Job(wide), s.at)
	if want := idle + 3*s.at.Sub(start); had != want || cost != messages.Credits(want/1000) {
		t.Errorf("it had %v for %v, want %v for a credit a second", had, cost, want)
	}
	ends(6, got[0])
	if j := s.Job(wide); j.Outcome != messages.Completed || j.Stages[0].SlotTime != 3*(s.at.Sub(start)) || s.Node("n1").Used[0] != 1 {
		t.Errorf("%v after %v, %v used", j.Outcome, j.Stages[0].SlotTime, s.Node("n1").Used)
	}
}

// TestAGatheringEnds: with the job, with the node, and after its time.
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

// TestConstraintsBindClaims: no node is granted a task that it does not suit.
func TestConstraintsBindClaims(t *testing.T) {
	s := newSite(t)
	s.apply(Command{Register: &Register{Node: "n1", Session: 7, Slots: []messages.ClassSlots{{Class: "map", Slots: 9}}, Labels: []messages.Name{"a100", "ib"}}})
	for want, change := range map[bool][]func(*messages.Stage){
		true: {func(s *messages.Stage) { s.Constraint = "v100|a100&ib" }, func(s *messages.Stage) { s.Nodes = []messages.Name{"n1"} },
			func(s *messages.Stage) { s.Exclude = []messages.Name{"n2"} }},
		false: {func(s *messages.Stage) { s.Constraint = "v100&ib" }, func(s *messages.Stage) { s.Nodes = []messages.Name{"n2"} },
			func(s *messages.Stage) { s.Exclude = []messages.Name{"n1"} }},
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

// TestNoNodeIsOversold: whatever nodes claim, lose, drain and come back with, no node has more
// slots in use than it has.
func TestNoNodeIsOversold(t *testing.T) {
	first, end := seeds(t, 40)
	started, both, resumed := 0, 0, 0
	for seed := first; seed < end; seed++ {
		rng := rand.New(rand.NewPCG(seed, 49))
		s := newSite(t)
		type node struct {
			session, seq uint64
			held         []messages.Attempt
		}
		names, nodes := []string{"n1", "n2", "n3"}, map[string]*node{}
		// Two classes share the processors of each node.
		classes, units := []messages.Name{"map", "reduce"}, []messages.Resources{{CPUs: 1, Memory: 2}, {CPUs: 3, GPUs: 1}}
		has := messages.Resources{CPUs: 10, Memory: 12, GPUs: 2}
		register := func(name string, session uint64, running ...messages.Attempt) {
			slots := []messages.ClassSlots{{Class: classes[0], Slots: 8}, {Class: classes[1], Slots: 3}}
			s.apply(Command{Register: &Register{Node: name, Session: session, Slots: slots, Running: running, Resources: &has, Units: units}})
		}
		var jobs []messages.JobID
		for step := range 400 {
			name := names[rng.IntN(len(names))]
			n := nodes[name]
			switch at := rng.IntN(20); {
			case n == nil:
				nodes[name] = &node{session: uint64(step + 1)}
				register(name, uint64(step+1))
			case at < 2:
				stage := wideStage(1+rng.IntN(5), 1+rng.IntN(6))
				if rng.IntN(3) == 0 {
					stage.Class, stage.Width = "reduce", 1+rng.IntN(2)
				} else if stage.Tasks > 1 && stage.Tasks <= len(names) {
					stage.Gang, stage.Allocation = true, true
				}
				jobs = append(jobs, s.submit(string(rune('a'+len(jobs))), stage))
			case at == 2 && len(jobs) > 0:
				s.apply(Command{Cancel: &Cancel{Job: jobs[rng.IntN(len(jobs))], By: "alice"}})
			case at == 3:
				s.apply(Command{Lost: &Lost{Node: name, Session: n.session}})
				delete(nodes, name)
			case at == 4: // the agent comes back with what it still runs
				n.session, n.seq = uint64(step+1), 0
				register(name, n.session, n.held...)
			case at == 6 && len(n.held) > 0: // tasks of several slots give them up, and have them again where they are free
				d := &Decide{Market: "main"}
				for _, a := range n.held {
					if s.Node(name).Claims[a.Task].Halt == Suspended {
						d.Resume = append(d.Resume, a)
					} else if rng.IntN(2) == 0 {
						d.Suspend = append(d.Suspend, a)
					}
				}
				s.apply(Command{Decide: d})
				for _, a := range d.Resume {
					if h := s.Node(name).Claims[a.Task]; h.Attempt == a.Number && h.Halt == Goes && h.Width > 1 {
						resumed++
					}
				}
			case at == 5:
				s.apply(Command{Drain: &Drain{Node: name, Until: messages.Time(rng.IntN(2)) * (s.at + 100)}})
			default:
				n.seq++
				x := &Exchange{Node: name, Session: n.session, Seq: n.seq}
				n.held = slices.DeleteFunc(n.held, func(a messages.Attempt) bool {
					ends := rng.IntN(3) == 0
					if ends {
						x.Finished = append(x.Finished, messages.Finished{Attempt: a, Outcome: messages.Outcome(rng.IntN(3))})
					}
					return ends
				})
				if len(jobs) > 0 {
					id := jobs[rng.IntN(len(jobs))]
					for _, class := range classes {
						x.Claims = append(x.Claims, Claim{Class: class, Slots: 1 + rng.IntN(8), Jobs: []messages.JobID{id, jobs[rng.IntN(len(jobs))]}, Ahead: rng.IntN(3)})
					}
				}
				for _, g := range s.apply(Command{Exchange: x}).([]messages.Grant) {
					n.held = append(n.held, g.Attempt)
					if j := s.Job(g.Attempt.Task.Job); j.Spec.Stages[0].Width > 1 {
						started++
					}
				}
			}
			for _, n := range s.Nodes() {
				left := has
				for k := range n.Used {
					if n.Up && n.Used[k] > n.Slots[k].Slots {
						t.Fatalf("seed %d, step %d: node %s uses %d of %d slots of %s", seed, step, n.Name, n.Used[k], n.Slots[k].Slots, classes[k])
					}
					left = left.Less(units[k].Times(n.Used[k]))
				}
				if left.CPUs < 0 || left.Memory < 0 || left.GPUs < 0 {
					t.Fatalf("seed %d, step %d: of node %s, slots %v in use are more than %v", seed, step, n.Name, n.Used, has)
				}
				if len(n.Used) == 2 && n.Used[0] > 0 && n.Used[1] > 0 {
					both++
				}
			}
		}
	}
	if started < 100 {
		t.Errorf("only %d wide tasks started", started)
	}
	if resumed == 0 {
		t.Error("no wide task went on after it was suspended")
	}
	if both < 100 {
		t.Errorf("only %d times a node had tasks of both classes", both)
	}
}

// TestClassesShareANode: what one class has of the processors, and what is gathered there, another one cannot have.
func TestClassesShareANode(t *testing.T) {
	s := newSite(t)
	s.apply(Command{Register: &Register{Node: "n1", Session: 7, Resources: &messages.Resources{CPUs: 8, GPUs: 2},
		Slots: []messages.ClassSlots{{Class: "map", Slots: 8}, {Class: "reduce", Slots: 2}}, Units: []messages.Resources{{CPUs: 1, Memory: 4}, {CPUs: 3, GPUs: 1}}}})
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
