package registry

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
)

// TestParametersOfOtherMechanisms: a parameter that a market's mechanism does not use must be refused, and an error
// about a mode must list the mechanism's modes.
func TestParametersOfOtherMechanisms(t *testing.T) {
	half, second := 0.5, messages.Duration(time.Second)
	for _, c := range []struct {
		mechanism messages.Name
		want      string
		change    func(*messages.Market)
	}{
		{messages.Proportional, "<nil>", func(m *messages.Market) { m.Alpha, m.MaxJobs, m.TimeLimit = &half, 3, second }},
		{messages.Backfill, "<nil>", func(m *messages.Market) { m.Mode, m.Prior = "conservative", []messages.Valuation{} }},
		{messages.BatchQueue, "mode: \"easy\" is not one of [priority full]", func(m *messages.Market) { m.Mode = "easy" }},
		{messages.Backfill, "mode: \"full\" is not one of [easy conservative]", func(m *messages.Market) { m.Mode = "full" }},
		{messages.FIFO, "mode: markets of mechanism fifo do not use", func(m *messages.Market) { m.Mode = "full" }},
		{messages.FIFO, "weights: markets of mechanism fifo do not use", func(m *messages.Market) { m.Weights = messages.Weights{{Class: "alice", Weight: 2}} }},
		{messages.HighestBid, "prior: markets of mechanism highest-bid do not use", func(m *messages.Market) { m.Prior = []messages.Valuation{{Class: messages.Hard}} }},
		{messages.ContractMenu, "prior_jobs: markets of mechanism contract", func(m *messages.Market) { m.PriorJobs = []messages.QueuedType{{}} }},
		{messages.FIFO, "algorithm: markets of mechanism fifo do not use", func(m *messages.Market) { m.Algorithm = "HB" }},
		{messages.FIFO, "preemption: markets of mechanism fifo", func(m *messages.Market) { m.Preemption = messages.PreemptSuspend }},
		{messages.Proportional, "reserve: markets of mechanism proportional", func(m *messages.Market) { m.Reserve = new(messages.Price) }},
		{messages.Proportional, "gang_timeout: ", func(m *messages.Market) { m.GangTimeout = second }},
		{messages.BatchQueue, "alpha: ", func(m *messages.Market) { m.Alpha = &half }},
	} {
		m := messages.Market{Name: "main", Mechanism: c.mechanism, Classes: []messages.Name{"cpu"}}
		c.change(&m)
		if got := fmt.Sprint(Check(&m)); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: want %s…; got %s", c.mechanism, c.want, got)
		}
	}
}

// TestEachMechanismSaysWhatGains: each mechanism must say which lies can gain more than the truth, and the page of
// markets must have the same words.
func TestEachMechanismSaysWhatGains(t *testing.T) {
	text, err := os.ReadFile("../../../deploy/docs/markets.md")
	if err != nil {
		t.Fatal(err)
	}
	page := strings.Join(strings.Fields(string(text)), " ")
	for _, name := range Names(nil) {
		for _, change := range []messages.Market{{}, {Price: messages.PricePivot}, {Pricing: "pivot"}, {HandOver: messages.HandOverEnd}} {
			change.Mechanism = name
			if gains := Of(&change).Gains; gains == "" || !strings.Contains(page, gains) {
				t.Errorf("%s: the page of markets lacks %q", name, gains)
			}
		}
	}
}

// TestTableOfMechanisms: the table in the README must have the words with which each mechanism describes itself.
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
