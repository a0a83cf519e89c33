package contract

import (
	"math/rand/v2"
	"testing"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	marketmsg "github.com/candor-grid/candor/messages/market"
)

// BenchmarkMarket measures two calls in a market of 1,000 jobs with contracts: the quote of a menu from 100 drawn
// types, and a decision (Allocate).
func BenchmarkMarket(b *testing.B) {
	m, view := market(b, marketmsg.Market{}), grid(64, 8)
	r := rand.New(rand.NewPCG(3, 4))
	draw := Valid(paperType)
	for id := range messages.JobID(1000) {
		surrogate, _ := draw(r)
		bid := bidOf(id+1, view.Now, 1+r.IntN(20))
		bid.Contract = &job.Contract{Surrogate: surrogate, Replica: surrogate}
		view.Jobs = append(view.Jobs, &mechanism.Job{Bid: bid, Pending: []int{bid.Tasks}, Running: []int{0}})
	}
	b.Run("quote", func(b *testing.B) {
		for b.Loop() {
			quote(b, m, view, bidOf(2000, view.Now, 9), 1)
		}
	})
	b.Run("allocate", func(b *testing.B) {
		for b.Loop() {
			m.Allocate(view)
		}
	})
}
