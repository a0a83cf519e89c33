package auctioneer

import (
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
)

// TestHistory checks that the leader keeps the history of a market and a node, and that an invalid request gets a
// clear error.
func TestHistory(t *testing.T) {
	g := newGrid(t, 2, messages.Market{Name: "m", Mechanism: messages.Proportional, Classes: []messages.Name{"cpu"}})
	g.submit("alice", "a", bids(3, func(s *messages.JobSpec) { s.Budget = 5 * messages.Credit }))
	await.Until(t, "the history has the bid", func() bool {
		past := must[messages.HistoryReply](g.fixture, "operator", messages.VerbHistory, messages.HistoryRequest{Market: "m"})
		n := len(past.At) - 1
		return n >= 0 && past.Since > 0 && past.Classes[0].Class == "cpu" && past.Classes[0].Pending[n] == 3
	})
	if past := must[messages.HistoryReply](g.fixture, "eve", messages.VerbHistory, messages.HistoryRequest{Market: "m"}); len(past.At) == 0 || past.Classes[0].Price[len(past.At)-1] != -1 || past.Own != nil {
		t.Errorf("a stranger is told the bid of one account: %+v", past)
	}
	for want, r := range map[messages.Kind]messages.HistoryRequest{
		messages.Invalid:  {Market: "m", Node: "n1"},
		messages.NotFound: {Market: "none"},
	} {
		if _, err := call[messages.HistoryReply](g.fixture, "alice", messages.VerbHistory, r); messages.KindOf(err) != want {
			t.Errorf("%+v: %v, want %v", r, err, want)
		}
	}
	if _, err := call[messages.HistoryReply](g.fixture, "alice", messages.VerbHistory, messages.HistoryRequest{Market: "m", Over: messages.MaxHistory + 1}); messages.KindOf(err) != messages.Invalid {
		t.Errorf("more than the most: %v", err)
	}
}
