package auctioneer

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

func serviceOf(t *testing.T, a *Auctioneer) map[string]float64 {
	t.Helper()
	r := prometheus.NewRegistry()
	r.MustRegister(service{a.site})
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()[len("candor_auctioneer_"):]
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			out[name] = m.GetGauge().GetValue()
		}
	}
	return out
}

func TestMetricsSayWhatIsSoldAndWhatWaits(t *testing.T) {
	half := messages.Price(messages.Credit / 2)
	g := newGrid(t, 2, market.Market{Name: "main", Mechanism: market.FIFO, Classes: []messages.Name{"cpu"}, Reserve: &half},
		market.Market{Name: "gpus", Mechanism: market.FIFO, Classes: []messages.Name{"gpu"}, Units: []job.ClassUnit{{Class: "gpu", Unit: job.Resources{CPUs: 2, Memory: 8 << 30, GPUs: 1}}}})
	first := g.enter("alice", "a", 2, func(*job.JobSpec) {})
	g.until(first, first)
	g.enter("bob", "b", 1, func(*job.JobSpec) {})
	has := func(want map[string]float64) {
		t.Helper()
		await.Until(t, "the metrics are those of the site", func() bool {
			got := serviceOf(t, g.Auctioneer)
			for name, value := range want {
				if v, is := got[name]; !is || v != value {
					return false
				}
			}
			return true
		})
	}
	has(map[string]float64{"market_slots cpu main": 2, "market_slots_used cpu main": 2, "market_slots_wanted cpu main": 1, "market_price cpu main": 0.5,
		"market_jobs main started": 1, "market_jobs main waiting": 1, "market_tasks main running": 2, "market_tasks main waiting": 1, "market_tasks main suspended": 0, "nodes Up": 1, "nodes Lost": 0,
		"node_state " + g.node.name + " Up": 1, "node_slots cpu " + g.node.name: 2, "node_slots_used cpu " + g.node.name: 2})
	before := serviceOf(t, g.Auctioneer)["market_oldest_waiting_seconds main"]
	g.pass(10 * second)
	has(map[string]float64{"market_oldest_waiting_seconds main": before + 10})
	must[market.DrainReply](g.fixture, "operator", market.VerbDrain, market.DrainRequest{Node: g.node.name})
	has(map[string]float64{"nodes Up": 0, "nodes Draining": 1, "node_state " + g.node.name + " Draining": 1, "node_slots cpu " + g.node.name: 0})
	all := job.Resources{CPUs: 8, Memory: 64 << 30, GPUs: 2}
	must[agent.RegisterReply](g.fixture, "n2", messages.VerbRegister, agent.RegisterRequest{Session: 7, Slots: []job.ClassSlots{{Class: "gpu", Slots: 2}}, Resources: &all})
	id := g.enter("alice", "c", 1, func(s *job.JobSpec) { s.Market, s.Stages[0].Class = "gpus", "gpu" })
	seq := uint64(0)
	await.Until(t, "a task has a GPU", func() bool {
		seq++
		return len(must[agent.ExchangeReply](g.fixture, "n2", messages.VerbExchange, agent.Exchange{Session: 7, Seq: seq, Claims: []agent.Claim{{Market: "gpus", Class: "gpu", Slots: 1, Job: id}}}).Grants) > 0
	})
	has(map[string]float64{"node_resources n2 gpus": 2, "node_resources n2 cpus": 8, "node_resources n2 memory": 64 << 30,
		"node_resources_sold gpu n2 gpus": 1, "node_resources_sold gpu n2 cpus": 2, "node_resources_sold gpu n2 memory": 8 << 30})
	if got, is := serviceOf(t, g.Auctioneer)["node_resources n2 disk"]; is {
		t.Errorf("a node without a disk has %v", got)
	}
	if err := g.Auctioneer.Close(); err != nil {
		t.Fatal(err)
	}
	if left := serviceOf(t, g.Auctioneer); len(left) != 0 {
		t.Errorf("a replica that does not lead tells %v", left)
	}
}
