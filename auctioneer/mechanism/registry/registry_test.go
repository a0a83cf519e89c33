package registry

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// A parameter that a market's mechanism does not use must be refused. An error about a mode must list the modes.
func TestParametersOfOtherMechanisms(t *testing.T) {
	half, second := 0.5, messages.Duration(time.Second)
	for _, c := range []struct {
		mechanism messages.Name
		want      string
		change    func(*market.Market)
	}{
		{market.Proportional, "<nil>", func(m *market.Market) { m.Alpha, m.MaxJobs, m.TimeLimit = &half, 3, second }},
		{market.Backfill, "<nil>", func(m *market.Market) { m.Mode, m.Prior = "conservative", []job.Valuation{} }},
		{market.BatchQueue, "mode: \"easy\" is not one of [priority full]", func(m *market.Market) { m.Mode = "easy" }},
		{market.Backfill, "mode: \"full\" is not one of [easy conservative]", func(m *market.Market) { m.Mode = "full" }},
		{market.FIFO, "mode: markets of mechanism fifo do not use", func(m *market.Market) { m.Mode = "full" }},
		{market.FIFO, "weights: markets of mechanism fifo do not use", func(m *market.Market) { m.Weights = job.Weights{{Class: "alice", Weight: 2}} }},
		{market.HighestBid, "prior: markets of mechanism highest-bid do not use", func(m *market.Market) { m.Prior = []job.Valuation{{Class: job.Hard}} }},
		{market.ContractMenu, "prior_jobs: markets of mechanism contract", func(m *market.Market) { m.PriorJobs = []market.QueuedType{{}} }},
		{market.FIFO, "algorithm: markets of mechanism fifo do not use", func(m *market.Market) { m.Algorithm = "HB" }},
		{market.FIFO, "preemption: markets of mechanism fifo", func(m *market.Market) { m.Preemption = market.PreemptSuspend }},
		{market.Proportional, "reserve: markets of mechanism proportional", func(m *market.Market) { m.Reserve = new(messages.Price) }},
		{market.Proportional, "gang_timeout: ", func(m *market.Market) { m.GangTimeout = second }},
		{market.BatchQueue, "alpha: ", func(m *market.Market) { m.Alpha = &half }},
	} {
		m := market.Market{Name: "main", Mechanism: c.mechanism, Classes: []messages.Name{"cpu"}}
		c.change(&m)
		if got := fmt.Sprint(Check(&m)); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: want %s…; got %s", c.mechanism, c.want, got)
		}
	}
}

// Each mechanism must say in Traits.Gains which lies can gain more than the truth. The page about markets in the
// documentation must have the same words.
func TestEachMechanismSaysWhatGains(t *testing.T) {
	text, err := os.ReadFile("../../../deploy/docs/markets.md")
	if err != nil {
		t.Fatal(err)
	}
	page := strings.Join(strings.Fields(string(text)), " ")
	for _, name := range Names(nil) {
		for _, change := range []market.Market{{}, {Price: market.PricePivot}, {Pricing: "pivot"}, {HandOver: market.HandOverEnd}} {
			change.Mechanism = name
			if gains := Of(&change).Gains; gains == "" || !strings.Contains(page, gains) {
				t.Errorf("%s: the page of markets lacks %q", name, gains)
			}
		}
	}
}

// The table in the README must have the words with which each mechanism describes itself.
func TestTableOfMechanisms(t *testing.T) {
	page, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range Rows() {
		if !strings.Contains(string(page), "\n"+row+"\n") {
			t.Errorf("the README lacks the row\n%s", row)
		}
	}
}
