package market

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/market"
)

// Jobs with single tasks, with tasks of several slots, and with allocations come with random bids. Jobs end, and nodes
// are lost. The test checks the state when the market changes nothing more. An allocation must be in one of three
// states: all its tasks run, on different nodes; all its tasks are suspended; or it has no slots. No allocation may
// wait if enough nodes have slots for it that are free or that belong to worse bids. No allocation may be suspended
// while its slots are free.
func TestGangsHaveTheirNodes(t *testing.T) {
	for _, preemption := range []string{market.PreemptSuspend, market.PreemptRequeue, market.PreemptCancel} {
		t.Run(preemption, func(t *testing.T) {
			seen := map[string]int{}
			rapid.Check(t, func(rt *rapid.T) {
				m := market.Market{Name: "spot", Mechanism: market.HighestBid, Classes: []messages.Name{"cpu"}, Preemption: preemption}
				slots, nodes := rapid.IntRange(1, 4).Draw(rt, "slots"), rapid.IntRange(2, 4).Draw(rt, "nodes")
				f := newFloor(rt, m, nodes, slots)
				f.rng = rand.New(rand.NewPCG(uint64(slots), 1))
				for range rapid.IntRange(3, 40).Draw(rt, "events") {
					f.now = f.now.Add(messages.Duration(1e9))
					running := f.claims(book.Goes)
					switch what := rapid.IntRange(0, 9).Draw(rt, "event"); {
					case what == 0:
						f.lose(f.nodes[rapid.IntRange(0, nodes-1).Draw(rt, "lost")])
					case what <= 3 && len(running) > 0:
						c := running[rapid.IntRange(0, len(running)-1).Draw(rt, "which")]
						for _, first := range running { // an allocation ends when its first task ends
							if first.Task.Job == c.Task.Job && f.book.Job(c.Task.Job).Spec.Stages[0].Allocation && first.Task.Index == 0 {
								c = first
							}
						}
						f.finish(c)
					default:
						f.width, f.gang = rapid.IntRange(1, slots).Draw(rt, "width"), rapid.Bool().Draw(rt, "gang")
						f.submit(messages.Credits(rapid.IntRange(1, 12).Draw(rt, "rate")), rapid.IntRange(2, nodes).Draw(rt, "tasks"))
					}
					f.settle()
					f.checkGangs(rt, seen)
				}
			})
			t.Log(seen)
			for _, state := range []string{"runs", "suspended", "waits"} {
				if seen[state] == 0 && (state != "suspended" || preemption == market.PreemptSuspend) {
					t.Errorf("no allocation %s at rest: this shows nothing", state)
				}
			}
		})
	}
}

// lose ends a node's session, and registers the node again.
func (f *floor) lose(node messages.Name) {
	n := f.book.Node(node)
	f.apply(book.Command{Lost: &book.Lost{Node: node, Session: n.Session}})
	f.settle()
	f.apply(book.Command{Register: &book.Register{Node: node, Session: n.Session + 1, Slots: n.Slots}})
	f.seq[node] = 0
}

// checkGangs checks the slots that gangs have. It is called when the market has nothing left to decide. The map `seen`
// counts in which states it has found gangs.
func (f *floor) checkGangs(rt *rapid.T, seen map[string]int) {
	for _, n := range f.book.Nodes() {
		if len(n.Gatherings) > 0 || n.Up && n.Used[0] > n.Slots[0].Slots {
			rt.Fatalf("node %s gathers for %v, and uses %v", n.Name, n.Gatherings, n.Used)
		}
	}
	for j := range f.book.Jobs {
		s, of := &j.Stages[0], &j.Spec.Stages[0]
		if !j.Active() || !of.Allocation {
			continue
		}
		on, idle := map[uint32]bool{}, 0
		for k := range s.Tasks {
			if t := &s.Tasks[k]; t.Phase == book.Claimed {
				on[t.Node] = true
				if f.book.Nodes()[t.Node].Idle("cpu") >= of.Slots() {
					idle++
				}
			}
		}
		switch {
		case s.Running != len(on) || s.Gathering+s.Leaving > 0 || s.Running != 0 && s.Running != s.Total || s.Suspended != 0 && s.Suspended != s.Total:
			rt.Fatalf("job %d: %d of %d tasks run on %d nodes, %d gather, %d leave, %d are suspended", j.ID, s.Running, s.Total, len(on), s.Gathering, s.Leaving, s.Suspended)
		case s.Running == 0:
			seen["waits"]++
			if can := f.nodesWithRoom(j.Spec.Rate, of.Slots()); can >= s.Total {
				rt.Fatalf("%d nodes have %d slots free or with worse bids, and job %d waits, which needs %d nodes", can, of.Slots(), j.ID, s.Total)
			}
		case s.Suspended > 0:
			seen["suspended"]++
			if idle == s.Total {
				rt.Fatalf("job %d is suspended, and its slots are free on all its nodes", j.ID)
			}
		default:
			seen["runs"]++
		}
	}
}

// nodesWithRoom returns how many nodes could run a task of `width` slots for a job with the rate `rate`. It counts free
// slots, and slots of jobs with lower rates.
func (f *floor) nodesWithRoom(rate messages.Credits, width int) (can int) {
	going := f.claims(book.Goes)
	for at, n := range f.book.Nodes() {
		room := n.Idle("cpu")
		for _, g := range going {
			if int(g.node) == at && f.book.Job(g.Task.Job).Spec.Rate < rate {
				room += f.slots(g)
			}
		}
		if room >= width {
			can++
		}
	}
	return can
}

// asked is one job of a test with random jobs, so that the same jobs can be submitted again. It has the bid for a
// slot-second, and the number and width of the tasks.
type asked struct {
	rate, tasks, width int
	gang               bool
}

// runs lets jobs arrive one after another, and lets the market decide after each arrival. It returns whether the last
// job then runs. A job bids a rate, but the market uses reads(rate) as the bid. So a test can make the market use wrong
// bids.
func runs(rt *rapid.T, nodes, slots int, jobs []asked, reads func(rate int) int) bool {
	f := newFloor(rt, market.Market{Name: "spot", Mechanism: market.HighestBid, Classes: []messages.Name{"cpu"}}, nodes, slots)
	f.rng = rand.New(rand.NewPCG(1, 1))
	for _, a := range jobs {
		f.width, f.gang = a.width, a.gang
		f.now = f.now.Add(messages.Duration(1e9))
		f.submit(messages.Credits(reads(a.rate)), a.tasks)
		f.settle()
	}
	s := &f.book.Job(messages.JobID(len(jobs))).Stages[0]
	return s.Running > s.Suspended
}

// An allocation that runs at once must also run at once with a higher bid, on fewer nodes, or with fewer slots on each
// node. So there is a smallest bid with which it runs. The test also inserts a fault: a market that sometimes reads a
// high bid as a lower one. The test must find this fault.
func TestABetterBidOfAGangIsNoWorse(t *testing.T) {
	honest := func(rate int) int { return rate }
	misread := func(rate int) int { return 1 + (rate*5)%13 }
	found, ran := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		slots, nodes := rapid.IntRange(1, 4).Draw(rt, "slots"), rapid.IntRange(2, 4).Draw(rt, "nodes")
		draw := func() asked {
			return asked{rapid.IntRange(1, 12).Draw(rt, "rate"), rapid.IntRange(2, nodes).Draw(rt, "tasks"), rapid.IntRange(1, slots).Draw(rt, "width"), rapid.Bool().Draw(rt, "gang")}
		}
		var jobs []asked
		for range rapid.IntRange(0, 8).Draw(rt, "jobs") {
			jobs = append(jobs, draw())
		}
		last := draw()
		last.gang = true
		better := last
		switch rapid.IntRange(0, 2).Draw(rt, "what") {
		case 0:
			better.rate += rapid.IntRange(1, 6).Draw(rt, "more")
		case 1:
			better.tasks = rapid.IntRange(2, last.tasks).Draw(rt, "fewer nodes")
		case 2:
			better.width = rapid.IntRange(1, last.width).Draw(rt, "fewer slots")
		}
		if runs(rt, nodes, slots, append(jobs, last), honest) {
			if ran++; !runs(rt, nodes, slots, append(jobs, better), honest) {
				rt.Fatalf("%d nodes of %d slots, after %v: %v runs, and %v does not", nodes, slots, jobs, last, better)
			}
		}
		if runs(rt, nodes, slots, append(jobs, last), misread) && !runs(rt, nodes, slots, append(jobs, better), misread) {
			found++
		}
	})
	if found == 0 || ran == 0 {
		t.Errorf("%d allocations ran, and in the market that misreads bids %d did worse with a better bid: this shows nothing", ran, found)
	}
}
