package grid

import (
	"cmp"
	"fmt"
	"math"
	"testing"

	"github.com/candor-grid/candor/deploy/simulated/bids"
	"github.com/candor-grid/candor/deploy/simulated/core"
	"github.com/candor-grid/candor/deploy/simulated/network"
	"github.com/candor-grid/candor/deploy/simulated/rules"
	"github.com/candor-grid/candor/deploy/simulated/workload"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// buyer is a user with one job. All tasks of the job have the same length. There is work for the slots until the end of
// the test.
type buyer struct {
	budget float64
	length float64 // run time of each task, in seconds
	width  int     // slots that each task takes on one node; 0: one
	submit float64 // time of the job's submission
	limit  float64 // time limit of each task, in seconds; 0: none
	tasks  int     // 0: enough until the end of the test
}

// received returns, for each job, the fraction that it got of all slot time up to a given time. All actors run, in
// virtual time.
func received(t *testing.T, alpha float64, slots, perNode int, until float64, buyers ...buyer) (parts []float64) {
	t.Helper()
	g := bought(t, alpha, slots, perNode, until, buyers...)
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

// bought simulates a site on which jobs buy slot time, until the given time. Each job has enough tasks to use all slots
// until then.
func bought(t *testing.T, alpha float64, slots, perNode int, until float64, buyers ...buyer) *Grid {
	t.Helper()
	m := byDefault(rules.Proportional)
	m.Alpha = &alpha
	p := &core.Problem{Market: m, Seed: 1, Work: &workload.Workload{Nodes: slots, Parallel: workload.Split, Groups: []int64{1}}}
	c := Config{Network: network.Config{Delay: ms / 10}, Slots: perNode}
	for i, b := range buyers {
		width := max(b.width, 1)
		p.Work.Users = append(p.Work.Users, int64(i+1))
		p.Work.Jobs = append(p.Work.Jobs, workload.Job{Number: int64(i + 1), Line: i + 1, Runtime: b.length, Submit: b.submit, User: i,
			Width: cmp.Or(b.tasks, min(int(1.5*until*float64(slots)/b.length/float64(width))+slots, job.MaxTasks))})
		p.Bids = append(p.Bids, bids.Bid{Length: b.length, Budget: b.budget, Deadline: math.Inf(1)})
		c.Limits = append(c.Limits, b.limit)
		if b.width > 0 {
			c.Shapes, c.Unit = append(c.Shapes, job.Resources{CPUs: b.width}), job.Resources{CPUs: 1}
		}
	}
	g, err := newGrid(p, c)
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
	return g
}

// TestSlotTimeFollowsSharesOfTasksOfAnyWidth runs jobs of equal budgets and different widths. They must receive equal
// slot time. If a node kept slots idle for a wide task, their time counts as received by the task's job.
func TestSlotTimeFollowsSharesOfTasksOfAnyWidth(t *testing.T) {
	for _, alpha := range []float64{0.5, 1} {
		for _, lengths := range [][4]float64{{1, 1, 1, 1}, {1.13, 0.71, 1.57, 0.93}} {
			t.Run(fmt.Sprintf("alpha %v, tasks of %v s", alpha, lengths), func(t *testing.T) {
				parts := received(t, alpha, 128, 64, 600, buyer{budget: 100, length: lengths[0], width: 1}, buyer{budget: 100, length: lengths[1], width: 2}, buyer{budget: 100, length: lengths[2], width: 4}, buyer{budget: 100, length: lengths[3], width: 8})
				for _, part := range parts {
					if math.Abs(part-0.25) > 0.03 {
						t.Fatalf("received %.3f", parts)
					}
				}
			})
		}
	}
}

// TestSlotTimeFollowsSharesOfTasksOfWholeNodes runs a job of single tasks, a job whose tasks take half of a node, and a
// job whose tasks take whole nodes. The three jobs must receive equal slot time.
func TestSlotTimeFollowsSharesOfTasksOfWholeNodes(t *testing.T) {
	for _, perNode := range []int{8, 64} {
		for _, lengths := range [][3]float64{{1, 1, 1}, {0.5, 3, 5}} {
			t.Run(fmt.Sprintf("nodes of %d, tasks of %v s", perNode, lengths), func(t *testing.T) {
				parts := received(t, 1, 128, perNode, 600, buyer{budget: 100, length: lengths[0], width: 1},
					buyer{budget: 100, length: lengths[1], width: perNode / 2}, buyer{budget: 100, length: lengths[2], width: perNode})
				for _, part := range parts {
					if math.Abs(part-1.0/3) > 0.03 {
						t.Fatalf("received %.3f", parts)
					}
				}
			})
		}
	}
}

// TestAWideTaskStartsInTime runs a job with wide tasks among many short tasks. Each wide task needs a quarter of a
// node. The job's share is a third of all slots. Let x be the number of seconds in which this share has the slot time
// of one wide task. The first wide task must start within 2·x seconds. After that, a wide task must start every 2·x
// seconds on average.
func TestAWideTaskStartsInTime(t *testing.T) {
	const slots, until, length = 128, 120.0, 1.0
	for _, perNode := range []int{16, 64} {
		for _, submit := range []float64{60, 77.7} {
			width := perNode / 4
			g := bought(t, 1, slots, perNode, until, buyer{budget: 100, length: length, width: 1}, buyer{budget: 100, length: 0.7, width: 1},
				buyer{budget: 100, length: length, width: width, submit: submit})
			j := g.leader.book.Job(3)
			took, share := j.Started.Sub(j.Submitted).Std().Seconds(), float64(width)*length/(slots/3.0)
			each := (until - submit) / float64(j.Stages[0].Done)
			t.Logf("%d of %d slots: the first task started after %.3f s, and one each %.3f s; its share has them in %.3f s", width, perNode, took, each, share)
			if j.Started == 0 || took > 2*share || each > 2*share {
				t.Errorf("%d of %d slots: started after %.3f s, and one each %.3f s", width, perNode, took, each)
			}
		}
	}
}

// TestShortTasksDoNotDelayAWideTask runs wide tasks, which take half a node, among tasks of ten minutes. Every 100 s, a
// job of 20 short tasks comes. In a first run, the short tasks have no time limit. In a second run, they have a time
// limit, so they may use slots that a node gathers for a wide task. The number of wide tasks that start must be the
// same in both runs, and the short jobs must end sooner in the second run.
func TestShortTasksDoNotDelayAWideTask(t *testing.T) {
	const slots, perNode, until = 64, 16, 40_000.0
	done, took := map[float64]int{}, map[float64]float64{} // by limit of the short tasks
	for _, limit := range []float64{0, 30} {
		buyers := []buyer{{budget: 100, length: 600, width: 1}, {budget: 100, length: 600, width: perNode / 2}}
		for at := 100.0; at < until-6000; at += 100 {
			buyers = append(buyers, buyer{budget: 50, length: 20, width: 1, tasks: 20, submit: at, limit: limit})
		}
		g := bought(t, 1, slots, perNode, until, buyers...)
		done[limit] = g.leader.book.Job(2).Stages[0].Done
		for i := 2; i < len(buyers); i++ {
			j := &g.out.Jobs[i]
			if !(j.Finish > 0) {
				t.Fatalf("limit %v: job %d has not ended", limit, i)
			}
			took[limit] += (j.Finish - buyers[i].submit) / float64(len(buyers)-2)
		}
	}
	t.Logf("wide tasks ended: %v, short jobs took %.1f s", done, took)
	if float64(done[30]) < 0.98*float64(done[0]) {
		t.Errorf("%d wide tasks ended while short tasks could use gathered slots, and %d otherwise", done[30], done[0])
	}
	if took[30] > 0.97*took[0] {
		t.Errorf("with a limit, short jobs took %.1f s, and %.1f s otherwise", took[30], took[0])
	}
}

// Jobs of equal budgets must receive equal slot time, whatever the lengths of their tasks. In an earlier version, tasks
// of 0.1 s received 1 % of the slot time, and tasks of 10 s received 99 %.
func TestSlotTimeFollowsSharesOfTasksOfAnyLength(t *testing.T) {
	for _, alpha := range []float64{0.5, 1} {
		for _, perNode := range []int{1, 64} {
			t.Run(fmt.Sprintf("alpha %v, nodes of %d", alpha, perNode), func(t *testing.T) {
				parts := received(t, alpha, 64, perNode, 150, buyer{budget: 100, length: 0.1}, buyer{budget: 100, length: 10})
				if math.Abs(parts[0]-0.5) > 0.03 {
					t.Errorf("received %.3f", parts)
				}
			})
		}
	}
}

// A job packs the work of many tasks into each of its tasks. It must still receive its share, 0.25. In an earlier
// version of the market, such a job received up to 0.85.
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
				until := 400.0
				if packed > 10 { // so that a single long task is only a small part of this time
					until = 1500
				}
				parts := received(t, at.alpha, 64, at.perNode, until, buyer{budget: 100, length: packed}, buyer{budget: 100, length: 1}, buyer{budget: 100, length: 1}, buyer{budget: 100, length: 1})
				if math.Abs(parts[0]-0.25) > 0.02 {
					t.Errorf("received %.3f", parts)
				}
			})
		}
	}
}

// Slot time must follow shares on a site where each node starts few tasks.
func TestSlotTimeOnManyNodes(t *testing.T) {
	parts := received(t, 0.5, 3_000, 1, 30, buyer{budget: 100, length: 0.5}, buyer{budget: 100, length: 3})
	if math.Abs(parts[0]-0.5) > 0.03 {
		t.Errorf("received %.3f", parts)
	}
}

// Jobs must receive slot time in proportion to their budgets to the power α.
func TestUnequalBudgetsBuySlotTime(t *testing.T) {
	for _, alpha := range []float64{0, 0.5, 1} {
		rich := math.Pow(900, alpha)
		want := rich / (rich + math.Pow(100, alpha))
		parts := received(t, alpha, 16, 4, 1000, buyer{budget: 900, length: 0.5}, buyer{budget: 100, length: 8})
		if math.Abs(parts[0]-want) > 0.03 {
			t.Errorf("alpha %v: received %.3f, want %.3f", alpha, parts, want)
		}
	}
}
