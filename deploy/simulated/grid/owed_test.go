package grid

import (
	"cmp"
	"math"
	"testing"

	"github.com/candor-grid/candor/deploy/simulated/bids"
	"github.com/candor-grid/candor/deploy/simulated/core"
	"github.com/candor-grid/candor/deploy/simulated/network"
	"github.com/candor-grid/candor/deploy/simulated/rules"
	"github.com/candor-grid/candor/deploy/simulated/workload"
)

// charged runs a grid with one job for each element of `all`. Each job has a budget of 100, and starts its tasks one by
// one. The jobs are cancelled at the time `until`. charged returns the outcomes of the jobs: what each job owes, and
// how many slot-seconds it used. If the width of a job is 0, the job gets more tasks than can run before `until`.
func charged(t *testing.T, slots, perNode int, until float64, all ...workload.Job) []core.Job {
	t.Helper()
	p := &core.Problem{Market: byDefault(rules.Proportional), Seed: 1, Work: &workload.Workload{Nodes: slots, Parallel: workload.Split, Users: make([]int64, len(all)), Groups: []int64{1}}}
	c := Config{Network: network.Config{Delay: ms / 10}, Slots: perNode, Owners: map[int]*Owner{}}
	for i, j := range all {
		j.Number, j.Line, j.User = int64(i+1), i+1, i
		c.Owners[i] = &Owner{Acts: []Act{{Do: Cancel, After: until - j.Submit}}}
		j.Width = cmp.Or(j.Width, int(1.5*until*float64(slots)/j.Runtime)+slots)
		p.Work.Jobs = append(p.Work.Jobs, j)
		p.Bids = append(p.Bids, bids.Bid{Length: j.Runtime, Budget: 100, Deadline: math.Inf(1)})
	}
	o, _, err := Run(p, c)
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range o.Jobs {
		t.Logf("owes %v for %.1f slot seconds", j.Paid, j.Used)
	}
	return o.Jobs
}

// A slot-second must cost the same for two jobs of equal budgets with tasks of 0.1 s and of 10 s.
func TestASlotSecondCostsTheSameInTasksOfAnyLength(t *testing.T) {
	for _, perNode := range []int{1, 64} {
		jobs := charged(t, 64, perNode, 150, workload.Job{Runtime: 0.1}, workload.Job{Runtime: 10})
		short, long := jobs[0].Paid.Float()/jobs[0].Used, jobs[1].Paid.Float()/jobs[1].Used
		if math.Abs(short/long-1) > 0.03 || !(short > 0) {
			t.Errorf("nodes of %d: a slot second costs %.5f in short tasks, %.5f in long ones", perNode, short, long)
		}
	}
}

// TestAJobOwesForNoSlotTimeThatItLacked runs a job of short tasks. Long tasks of another job have seven of the eight
// slots, and a job of a third user waits. So the job of short tasks has at most one slot, although it bought a share of
// all eight. It must owe only for the slot time that it had.
func TestAJobOwesForNoSlotTimeThatItLacked(t *testing.T) {
	jobs := charged(t, 8, 8, 500, workload.Job{Runtime: 1000, Width: 7}, workload.Job{Submit: 1, Runtime: 1}, workload.Job{Submit: 2, Runtime: 1000})
	if owed, most := jobs[1].Paid.Float(), 100*0.7*jobs[1].Used/1900; owed > most || !(owed > 0) {
		t.Errorf("the job of short tasks owes %.2f, want %.2f at most", owed, most)
	}
}

// TestARetryInAQuietHourTakesNothingOff runs a job that prints its result while another account waits for the slot. The
// job then exits with 1, and runs again when nobody waits and slots are cheap. The job must owe as much as it would owe
// without the second run.
func TestARetryInAQuietHourTakesNothingOff(t *testing.T) {
	owes := func(exits, attempts int) float64 {
		p := &core.Problem{Market: byDefault(rules.Proportional), Seed: 1, Work: &workload.Workload{Nodes: 1, Users: []int64{1, 2}, Groups: []int64{1}, Jobs: []workload.Job{
			{Number: 1, Line: 1, Runtime: 100, Width: 1}, {Number: 2, Line: 2, Submit: 1, Runtime: 50, Width: 1, User: 1}}}}
		for range p.Work.Jobs {
			p.Bids = append(p.Bids, bids.Bid{Length: 100, Budget: 100, Deadline: math.Inf(1)})
		}
		o, _, err := Run(p, Config{Network: network.Config{Delay: ms / 10}, Owners: map[int]*Owner{0: {Exits: exits, Attempts: attempts}}})
		if err != nil {
			t.Fatal(err)
		}
		return o.Jobs[0].Paid.Float()
	}
	well := owes(0, 0)
	if well < 10 {
		t.Fatalf("the job that ends well owes %v, so that this test has no power", well)
	}
	for _, c := range [][2]int{{1, 1}, {1, 3}, {2, 3}, {3, 3}} {
		if paid := owes(c[0], c[1]); math.Abs(paid-well) > 0.001*well {
			t.Errorf("exits with 1 in %d of %d attempts: owes %v, and %v if it ends well", c[0], c[1], paid, well)
		}
	}
}
