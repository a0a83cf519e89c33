package market

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// The mechanism must see what is left of a budget after the payments to other jobs. If nothing is left, the mechanism
// must see 0.
func TestAUsedUpBudgetIsNothing(t *testing.T) {
	m := New(mechanism.Manner{}, market.Market{Name: "main", Classes: []messages.Name{"cpu"}}, nil)
	j := &book.Job{ID: 1, Held: 100, Spec: &job.JobSpec{Market: "main", Budget: 100, Stages: []job.Stage{{Name: "s", Class: "cpu"}}}, Stages: make([]book.Stage, 1)}
	for _, c := range []struct{ paid, left messages.Credits }{{0, 100}, {30, 70}, {100, 0}} {
		j.Paid = c.paid
		m.Put(1, func() *mechanism.Bid { return m.BidOf(j) }, j.ID, m.ProgressOf(book.New(), j, 1))
		if got := m.Job(j.ID).Budget; got != c.left {
			t.Errorf("paid %v: the mechanism sees %v, want %v", c.paid, got, c.left)
		}
	}
}

// Before the first allocation, more jobs bid than a vector can have. Each job must be in the vector with the same
// probability.
func TestCrowdsWithoutSharesAreSampled(t *testing.T) {
	m := New(mechanism.Manner{}, market.Market{Name: "main", Classes: []messages.Name{"cpu"}}, nil)
	const jobs = MostJobs + 476
	for i := range jobs {
		id := messages.JobID(i + 1)
		m.Put(1, func() *mechanism.Bid { return &mechanism.Bid{Job: id, Account: fmt.Sprint(i), Budget: 1} }, id,
			Progress{Pending: []int{1}, Running: []int{0}})
	}
	rng := rand.New(rand.NewPCG(1, 1))
	v, ok := NewPublisher(1, m).Next(m, 1, rng, true)
	if !ok || len(v.Classes[0].Jobs) != MostJobs {
		t.Fatalf("the vector has %d jobs of %d", len(v.Classes[0].Jobs), jobs)
	}
	if m.Substitute(0, rng) == 0 {
		t.Error("no substitute is found")
	}
}
