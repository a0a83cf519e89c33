package grid

import (
	"testing"

	"github.com/candor-grid/candor/deploy/simulated/core"
	"github.com/candor-grid/candor/deploy/simulated/rules"
	"github.com/candor-grid/candor/deploy/simulated/workload"
)

// The exchange that reports the end of a task must also claim the next one, if tasks wait.
func TestASlotPassesOnInOneExchange(t *testing.T) {
	w := &workload.Workload{Nodes: 40, Parallel: workload.Split, Users: []int64{1, 2}, Groups: []int64{1}}
	for i := range 1000 {
		w.Jobs = append(w.Jobs, workload.Job{Number: int64(i + 1), Line: i + 1, Runtime: 5 + float64(i%97)/10, Width: 1, User: i % 2})
	}
	m := byDefault(rules.HighestBid)
	p := &core.Problem{Market: m, Work: w, Bids: m.Bids.Draw(w, 1), Seed: 1}
	for i := range p.Bids {
		p.Bids[i].Budget += 1e6
	}
	_, traffic, err := Run(p, Config{Slots: 4})
	if err != nil {
		t.Fatal(err)
	}
	made := traffic.Exchanges - traffic.Heartbeats
	if traffic.Grants < 900 || made > traffic.Grants+traffic.Grants/5 {
		t.Errorf("%d exchanges for %d tasks", made, traffic.Grants)
	}
}

// TestClaimsWaitForADecision lets agents send claims just before the mechanism highest-bid decides. The claims must
// wait for the decision. So a task takes two exchanges with the leader: one for its claim and one for its end.
func TestClaimsWaitForADecision(t *testing.T) {
	w := &workload.Workload{Nodes: 100, Parallel: workload.Split, Users: []int64{1, 2}, Groups: []int64{1}}
	for i := range 1000 {
		w.Jobs = append(w.Jobs, workload.Job{Number: int64(i + 1), Line: i + 1, Submit: float64(i % 2), Runtime: 5 + float64(i%50)/1000, Width: 1, User: i % 2})
	}
	m := byDefault(rules.HighestBid)
	p := &core.Problem{Market: m, Work: w, Bids: m.Bids.Draw(w, 1), Seed: 1}
	for i := range p.Bids {
		p.Bids[i].Budget += 1e6
	}
	_, traffic, err := Run(p, Config{})
	if err != nil {
		t.Fatal(err)
	}
	if made := traffic.Exchanges - traffic.Heartbeats; traffic.Grants < 900 || made > 2*traffic.Grants+traffic.Grants/50 {
		t.Errorf("%d exchanges for %d tasks", made, traffic.Grants)
	}
}
