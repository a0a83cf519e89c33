package auctioneer

import (
	"strings"
	"testing"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/market"
	"github.com/candor-grid/candor/messages"
)

// TestMarketsThatCannotMoveAreRefusedByName: an operator reads which mechanism it is that keeps
// a market with jobs at its auctioneer, and what to do.
func TestMarketsThatCannotMoveAreRefusedByName(t *testing.T) {
	kinds := []messages.Market{{Name: "night", Mechanism: messages.HighestBid, Price: messages.PricePivot, Classes: []messages.Name{"cpu"}}}
	for _, name := range market.Mechanisms() {
		kinds = append(kinds, messages.Market{Name: "night", Mechanism: name, Classes: []messages.Name{"cpu"}})
	}
	for _, m := range kinds {
		err := (&operations{}).movable(book.New(), &book.Moving{To: "dark", Markets: []messages.Market{m}})
		switch {
		case market.Movable(&m):
			if err != nil {
				t.Errorf("%s: %v", m.Mechanism, err)
			}
		case messages.KindOf(err) != messages.Conflict || !strings.Contains(err.Error(), "market night") || !strings.Contains(err.Error(), "its mechanism, "+m.Mechanism) || !strings.Contains(err.Error(), "close the market"):
			t.Errorf("%s: %v", m.Mechanism, err)
		}
	}
}
