package grid

import (
	"testing"

	"github.com/candor-grid/candor/deploy/simulated/core"
	"github.com/candor-grid/candor/deploy/simulated/network"
	"github.com/candor-grid/candor/deploy/simulated/rules"
	"github.com/candor-grid/candor/deploy/simulated/workload"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/market"
)

// TestAPeriodThatIsSoldOutDoesNotCostTheNext runs a job that has the machine for a whole period, but begins and ends
// some milliseconds late. The next period must still be sold for the whole machine.
func TestAPeriodThatIsSoldOutDoesNotCostTheNext(t *testing.T) {
	m := byDefault(rules.Reservation)
	m.Granule, m.T, m.Bids.Deadline.Slack = messages.Duration(60e9), 10, "none"
	w := &workload.Workload{Nodes: 1, Parallel: workload.Gang, Users: []int64{1}, Groups: []int64{1}}
	for i := range 3 {
		w.Jobs = append(w.Jobs, workload.Job{Number: int64(i + 1), Line: i + 1, Submit: float64(600*i + 5), Runtime: 600, Width: 1})
	}
	p := &core.Problem{Market: m, Work: w, Bids: m.Bids.Draw(w, 1), Seed: 1}
	o, _, err := Run(p, Config{Network: network.Config{Delay: ms}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range o.Jobs {
		if r := &o.Jobs[i]; r.Fate != core.Completed || r.Start < float64(600*(i+1)) || r.Start > float64(600*(i+1))+1 {
			t.Errorf("job %d: %+v", i, *r)
		}
	}
}

// Freeing a hold must move no credits.
func TestNothingIsChargedWhereNothingIsOwed(t *testing.T) {
	m := byDefault(rules.FIFO)
	m.Price = 0.0
	w := &workload.Workload{Nodes: 1, Parallel: workload.Split, Users: []int64{1}, Groups: []int64{1}, Jobs: []workload.Job{{Number: 1, Runtime: 5, Width: 1}}}
	o, traffic, err := Run(&core.Problem{Market: m, Work: w, Bids: m.Bids.Draw(w, 1)}, Config{})
	if err != nil || o.Jobs[0].Fate != core.Completed || o.Jobs[0].Paid != 0 || traffic.Transfers != 2 {
		t.Errorf("%v: %+v, %d requests to the bank", err, o, traffic.Transfers)
	}
}

// If a market ends the tasks that lose their slots, the work of these tasks must be lost. The outcome must say that
// they were requeued.
func TestRequeuedTasksRunAgain(t *testing.T) {
	for how, want := range map[string]struct {
		fate   core.Fate
		finish float64
		what   core.What
	}{
		market.PreemptSuspend: {core.Completed, 110, core.Suspended},
		market.PreemptRequeue: {core.Completed, 150, core.Requeued},
		market.PreemptCancel:  {core.Discarded, 40, 0},
	} {
		m := byDefault(rules.HighestBid)
		m.Preemption = how
		w := &workload.Workload{Nodes: 1, Parallel: workload.Split, Users: []int64{1}, Groups: []int64{1},
			Jobs: []workload.Job{{Number: 1, Runtime: 100, Width: 1}, {Number: 2, Submit: 40, Runtime: 10, Width: 1}}}
		p := &core.Problem{Market: m, Work: w, Bids: m.Bids.Draw(w, 1), Record: true}
		p.Bids[0].Rate, p.Bids[1].Rate = 5, 9
		o, _, err := Run(p, Config{Network: network.Config{Delay: ms}})
		if err != nil {
			t.Fatal(err)
		}
		r := &o.Jobs[0]
		if r.Fate != want.fate || r.Finish < want.finish || r.Finish > want.finish+1 {
			t.Errorf("%s: %+v", how, *r)
		}
		if how != market.PreemptCancel && (len(o.Changes) == 0 || o.Changes[0].What != want.what || o.Changes[0].Job != 0 || o.Preemptions != 1) {
			t.Errorf("%s: %+v, %d preemptions", how, o.Changes, o.Preemptions)
		}
	}
}
