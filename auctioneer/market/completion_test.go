package market

import (
	"testing"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/market"
)

// The market charges by completion times. Each task of the job has completed once, and runs again later, while other
// jobs have the slots. The job's shares must count only until the first completion. If they counted longer, the time
// without slots could lower the job's utility below its minimum.
func TestSharesEndWithCompletion(t *testing.T) {
	const second = 1_000_000
	for _, complete := range []bool{false, true} {
		m, err := Open(market.Market{Name: "main", Mechanism: market.Proportional, Classes: []messages.Name{"cpu"}, Settle: market.SettleOnCompletion})
		if err != nil {
			t.Fatal(err)
		}
		bid := func() *mechanism.Bid {
			return &mechanism.Bid{Job: 1, Account: "alice", Budget: messages.Credit, Weights: []float64{1}}
		}
		m.SetSlots(0, []int{2}, []int{1})
		m.Put(0, bid, 1, Progress{Pending: []int{1}, Running: []int{1}})
		m.Allocate(0)
		m.Put(10*second, bid, 1, Progress{Pending: []int{2}, Running: []int{0}, Complete: complete})
		_, shares := m.Remove(100*second, 1)
		want := 0.05
		if complete {
			want = 0.5
		}
		if got := shares[0].Received; got != want {
			t.Errorf("complete %v: received %v, want %v", complete, got, want)
		}
	}
}
