package market

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// Bids of random widths come at random, and random tasks end. When the market has nothing more to decide, no node may
// have enough free slots for a waiting task, or for a task that is suspended on it. No node may collect slots. No node
// may run tasks of lower bids on slots that a waiting task of a higher bid needs.
func TestWideTasksHaveTheirNodes(t *testing.T) {
	for _, preemption := range []string{market.PreemptSuspend, market.PreemptRequeue, market.PreemptCancel} {
		t.Run(preemption, func(t *testing.T) {
			started, suspended := 0, 0
			rapid.Check(t, func(rt *rapid.T) {
				m := market.Market{Name: "spot", Mechanism: market.HighestBid, Classes: []messages.Name{"cpu"}, Preemption: preemption}
				slots := rapid.IntRange(2, 4).Draw(rt, "slots")
				f := newFloor(rt, m, rapid.IntRange(1, 4).Draw(rt, "nodes"), slots)
				f.rng = rand.New(rand.NewPCG(uint64(slots), 1))
				for range rapid.IntRange(3, 40).Draw(rt, "events") {
					f.now = f.now.Add(messages.Duration(1e9))
					running := f.claims(book.Goes)
					if len(running) > 0 && rapid.IntRange(0, 2).Draw(rt, "end") == 0 {
						f.finish(running[rapid.IntRange(0, len(running)-1).Draw(rt, "which")])
					} else {
						f.width = rapid.IntRange(1, slots).Draw(rt, "width")
						f.submit(messages.Credits(rapid.IntRange(1, 12).Draw(rt, "rate")), rapid.IntRange(1, 3).Draw(rt, "tasks"))
					}
					f.settle()
					suspended += f.checkHouses(rt)
				}
				for _, c := range f.claims(book.Goes) {
					if f.slots(c) > 1 {
						started++
					}
				}
			})
			if started == 0 || suspended == 0 && preemption == market.PreemptSuspend {
				t.Errorf("%d tasks of several slots run at the end, %d were seen suspended: this shows nothing", started, suspended)
			}
		})
	}
}

func (f *floor) slots(c claim) int {
	return f.book.Job(c.Task.Job).Spec.Stages[c.Task.Stage].Slots()
}

func (f *floor) checkHouses(rt *rapid.T) (suspended int) {
	going, halted := f.claims(book.Goes), f.claims(book.Suspended)
	for at, n := range f.book.Nodes() {
		room := func(rate messages.Credits) int {
			room := n.Idle("cpu")
			for _, g := range going {
				if int(g.node) == at && f.book.Job(g.Task.Job).Spec.Rate < rate {
					room += f.slots(g)
				}
			}
			return room
		}
		if len(n.Gatherings) > 0 || n.Used[0] > n.Slots[0].Slots {
			rt.Fatalf("node %s gathers for %v, and uses %v", n.Name, n.Gatherings, n.Used)
		}
		for j := range f.book.Jobs {
			if width := j.Spec.Stages[0].Slots(); j.Active() && j.Claimable(0) > 0 && room(j.Spec.Rate) >= width {
				rt.Fatalf("node %s has %d slots free or with worse bids, and a task of %d of job %d waits", n.Name, room(j.Spec.Rate), width, j.ID)
			}
		}
		for _, s := range halted {
			if int(s.node) != at {
				continue
			}
			if f.slots(s) > 1 {
				suspended++
			}
			if n.Idle("cpu") >= f.slots(s) { // the node has enough free slots for the suspended task
				rt.Fatalf("node %s has slots free, and a task of job %d is suspended there that takes %d", n.Name, s.Task.Job, f.slots(s))
			}
		}
	}
	return suspended
}

// Two nodes have the same number of slots. A task of two slots comes. It must first use free slots. If there are too
// few, it must take the slots of the tasks with the worst bids.
func TestTheWorstTasksMakeRoom(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := newFloor(rt, market.Market{Name: "spot", Mechanism: market.HighestBid, Classes: []messages.Name{"cpu"}}, 2, 2)
		rates := rapid.Permutation([]messages.Credits{2, 3, 4, 5}).Draw(rt, "rates")
		for _, r := range rates {
			f.submit(r, 1)
			f.settle()
		}
		f.width = 2
		f.submit(9, 1)
		f.settle()
		worst := func(node uint32) (best messages.Credits) {
			for _, c := range append(f.claims(book.Goes), f.claims(book.Suspended)...) {
				if c.node == node && c.Task.Job <= 4 {
					best = max(best, rates[c.Task.Job-1])
				}
			}
			return best
		}
		wide := slices.IndexFunc(f.claims(book.Goes), func(c claim) bool { return c.Task.Job == 5 })
		if wide < 0 {
			rt.Fatal("the task of two slots does not run")
		}
		node := f.claims(book.Goes)[wide].node
		if worst(node) > worst(1-node) {
			rt.Fatalf("bids %v: the task runs where the best bid was %v, and not %v", rates, worst(node), worst(1-node))
		}
	})
}

// In a market without preemption, the best bid waits until a node has enough free slots. If each node that is up has
// fewer slots in total than the best bid needs, the other jobs must not wait for it.
func TestAJobThatNoNodeHoldsKeepsNobodyWaiting(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		algorithm := rapid.SampledFrom([]string{"NPHB", "WSPT", "WSEPT"}).Draw(rt, "algorithm")
		f := newFloor(rt, market.Market{Name: "spot", Mechanism: market.HighestBid, Algorithm: algorithm, Classes: []messages.Name{"cpu"}}, 2, 2)
		f.register("large", 4)
		f.submit(1, 5)
		f.settle()
		f.width = 4
		f.submit(9, 1)
		f.width = 1
		f.submit(2, 1)
		f.settle()
		waits := func(id messages.JobID) bool { return f.book.Job(id).Claimable(0) > 0 }
		if !waits(2) || !waits(3) {
			rt.Fatal("a job of a worse bid took the slots that the best waits for")
		}
		f.apply(book.Command{Lost: &book.Lost{Node: "large", Session: 1}})
		f.nodes = f.nodes[:2]
		f.settle()
		f.finish(f.claims(book.Goes)[0])
		f.settle()
		if !waits(2) || waits(3) {
			rt.Fatal("while no node has four slots, a job of one slot waits")
		}
		f.register("large", 4)
		f.settle()
		if waits(2) {
			rt.Fatal("a node is free, and the job of four slots waits")
		}
	})
}

func (f *floor) register(node messages.Name, slots int) {
	f.nodes, f.seq[node] = append(f.nodes, node), 0
	f.apply(book.Command{Register: &book.Register{Node: node, Session: 1, Slots: []job.ClassSlots{{Class: "cpu", Slots: slots}}}})
}
