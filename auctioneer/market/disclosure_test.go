package market

import (
	"math/rand/v2"
	"testing"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/market"
)

// The history of a class's price may be shown to everybody only on two conditions: the market would show the price to
// an account without a job, and to each account with a bid.
func TestToldToEverybody(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	accounts := []messages.Name{"alice", "bob", "carol", "dave", "erin@west", "frank@west", "grace@west"}
	told := map[bool]int{}
	for range 3000 {
		m := newMarket()
		m.Config.Mechanism = []string{market.Proportional, market.HighestBid, market.FIFO, market.BatchQueue}[random.IntN(4)]
		for id := range random.IntN(6) {
			m.Put(0, func() *mechanism.Bid {
				return &mechanism.Bid{Job: messages.JobID(id + 1), Account: accounts[random.IntN(len(accounts))], Budget: messages.Credit, Weights: []float64{1}}
			}, messages.JobID(id+1), Progress{Pending: []int{random.IntN(2)}, Running: []int{random.IntN(2)}})
		}
		if random.IntN(2) == 0 {
			m.orders.Tariffs = []mechanism.Tariff{{Basis: mechanism.OwnBid}}
		}
		sealed := false
		for _, who := range append(accounts, "eve") {
			sealed = sealed || m.SeenBy(who, false).Prices()[0].Sealed
		}
		if m.Told(0) == sealed {
			t.Fatalf("market %s: told to everybody %t, sealed for somebody %t", m.Config.Mechanism, m.Told(0), sealed)
		}
		told[m.Told(0)]++
	}
	if told[true] < 300 || told[false] < 300 {
		t.Errorf("the cases are too much alike: %v", told)
	}
}
