package auctioneer

import (
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

func TestHistory(t *testing.T) {
	g := newGrid(t, 2, market.Market{Name: "m", Mechanism: market.Proportional, Classes: []messages.Name{"cpu"}})
	g.submit("alice", "a", bids(3, func(s *job.JobSpec) { s.Budget = 5 * messages.Credit }))
	await.Until(t, "the history has the bid", func() bool {
		past := must[market.HistoryReply](g.fixture, "operator", market.VerbHistory, market.HistoryRequest{Market: "m"})
		n := len(past.At) - 1
		return n >= 0 && past.Since > 0 && past.Classes[0].Class == "cpu" && past.Classes[0].Pending[n] == 3
	})
	if past := must[market.HistoryReply](g.fixture, "eve", market.VerbHistory, market.HistoryRequest{Market: "m"}); len(past.At) == 0 || past.Classes[0].Price[len(past.At)-1] != -1 || past.Own != nil {
		t.Errorf("a stranger is told the bid of one account: %+v", past)
	}
	for want, r := range map[messages.Kind]market.HistoryRequest{
		messages.Invalid:  {Market: "m", Node: "n1"},
		messages.NotFound: {Market: "none"},
	} {
		if _, err := call[market.HistoryReply](g.fixture, "alice", market.VerbHistory, r); messages.KindOf(err) != want {
			t.Errorf("%+v: %v, want %v", r, err, want)
		}
	}
	if _, err := call[market.HistoryReply](g.fixture, "alice", market.VerbHistory, market.HistoryRequest{Market: "m", Over: market.MaxHistory + 1}); messages.KindOf(err) != messages.Invalid {
		t.Errorf("more than the most: %v", err)
	}
}
