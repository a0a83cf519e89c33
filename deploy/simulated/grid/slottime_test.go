package grid

import (
	"fmt"
	"math"
	"testing"

	"github.com/candor-grid/candor/deploy/simulated/bids"
	"github.com/candor-grid/candor/deploy/simulated/core"
	"github.com/candor-grid/candor/deploy/simulated/network"
	"github.com/candor-grid/candor/deploy/simulated/rules"
	"github.com/candor-grid/candor/deploy/simulated/workload"
	"github.com/candor-grid/candor/messages"
)

// buyer is a user with one job that has tasks of one length for as long as is looked at.
type buyer struct {
	budget float64
	length float64 // of its tasks, in seconds
}

// received are the parts of the slot time that jobs received on so many slots until a moment, with
// all actors in virtual time.
func received(t *testing.T, alpha float64, slots, perNode int, until float64, buyers ...buyer) (parts []float64) {
	t.Helper()
	m := byDefault(rules.Proportional)
	m.Alpha = &alpha
	p := &core.Problem{Market: m, Seed: 1, Work: &workload.Workload{Nodes: slots, Parallel: workload.Split, Groups: []int64{1}}}
	for i, b := range buyers {
		p.Work.Users = append(p.Work.Users, int64(i+1))
		p.Work.Jobs = append(p.Work.Jobs, workload.Job{Number: int64(i + 1), Line: i + 1, Runtime: b.length, User: i,
			Width: min(int(1.5*until*float64(slots)/b.length)+slots, messages.MaxTasks)})
		p.Bids = append(p.Bids, bids.Bid{Length: b.length, Budget: b.budget, Deadline: math.Inf(1)})
	}
	g, err := newGrid(p, Config{Network: network.Config{Delay: ms / 10}, Slots: perNode})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range g.agents {
		a.act()
	}
	for g.failed == nil && g.now < g.at(until) {
		next := &g.queue
		if g.log.Len() > 0 && g.log.Next() <= g.queue.Next() {
			next = &g.log
		}
		g.now = next.Next()
		next.Pop()()
	}
	if g.failed != nil {
		t.Fatal(g.failed)
	}
	sum, times := 0.0, make([]float64, len(buyers))
	for id := range g.leader.of {
		if j := g.leader.book.Job(messages.JobID(id)); j != nil {
			if !j.Active() {
				t.Fatalf("job %d has ended: it has too few tasks for this test", id)
			}
			_, time := g.leader.book.Used(j, g.now)
			times[g.leader.of[id]] += time.Seconds()
			sum += time.Seconds()
		}
	}
	if sum < 0.9*until*float64(slots) {
		t.Errorf("slots had tasks for %.0f of %.0f seconds", sum, until*float64(slots))
	}
	t.Cleanup(func() { t.Logf("received %.3f", parts) })
	for _, time := range times {
		parts = append(parts, time/sum)
	}
	return parts
}

// TestSlotTimeFollowsSharesOfTasksOfAnyLength: of equal budgets, tasks of 0.1 s once received 1 % of
// the slot time, and tasks of 10 s 99 %.
func TestSlotTimeFollowsSharesOfTasksOfAnyLength(t *testing.T) {
	for _, alpha := range []float64{0.5, 1} {
		for _, perNode := range []int{1, 64} {
			t.Run(fmt.Sprintf("alpha %v, nodes of %d", alpha, perNode), func(t *testing.T) {
				parts := received(t, alpha, 64, perNode, 300, buyer{100, 0.1}, buyer{100, 10})
				if math.Abs(parts[0]-0.5) > 0.03 {
					t.Errorf("received %.3f", parts)
				}
			})
		}
	}
}

// TestPackingTasksGainsNothing: a job whose tasks are many in one once received up to 0.85 in place of 0.25.
func TestPackingTasksGainsNothing(t *testing.T) {
	for _, at := range []struct {
		alpha   float64
		perNode int
		packed  []float64
	}{
		{0.5, 1, []float64{0.25, 1, 4, 50}},
		{0.5, 64, []float64{0.25, 50}},
		{1, 1, []float64{0.25, 50}},
		{1, 64, []float64{4}},
	} {
		for _, packed := range at.packed {
			t.Run(fmt.Sprintf("%v in one, alpha %v, nodes of %d", packed, at.alpha, at.perNode), func(t *testing.T) {
				parts := received(t, at.alpha, 64, at.perNode, 1500, buyer{100, packed}, buyer{100, 1}, buyer{100, 1}, buyer{100, 1})
				if math.Abs(parts[0]-0.25) > 0.02 {
					t.Errorf("received %.3f", parts)
				}
			})
		}
	}
}

// TestSlotTimeOnTenThousandNodes: of a site on which each node starts few tasks.
func TestSlotTimeOnTenThousandNodes(t *testing.T) {
	if testing.Short() {
		t.Skip("ten seconds of a processor")
	}
	parts := received(t, 0.5, 10_000, 1, 30, buyer{100, 0.5}, buyer{100, 3})
	if math.Abs(parts[0]-0.5) > 0.03 {
		t.Errorf("received %.3f", parts)
	}
}

// TestUnequalBudgetsBuySlotTime: so do budgets to the power α.
func TestUnequalBudgetsBuySlotTime(t *testing.T) {
	for _, alpha := range []float64{0, 0.5, 1} {
		rich := math.Pow(900, alpha)
		want := rich / (rich + math.Pow(100, alpha))
		parts := received(t, alpha, 16, 4, 1000, buyer{900, 0.5}, buyer{100, 8})
		if math.Abs(parts[0]-want) > 0.03 {
			t.Errorf("alpha %v: received %.3f, want %.3f", alpha, parts, want)
		}
	}
}
