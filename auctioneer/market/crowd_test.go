package market

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// Thousands of jobs come and go. Their budgets are 1, 2, 3 or 4 credits. The market draws jobs. Each of these four
// groups must get its share of the draws, and no drawn job may have left the market. The market discards its draws
// after some time. After that, new jobs must also be drawn.
func TestACrowdIsDrawnByItsShares(t *testing.T) {
	m, err := Open(market.Market{Name: "main", Mechanism: market.Proportional, Classes: []messages.Name{"cpu"}})
	if err != nil {
		t.Fatal(err)
	}
	m.SetSlots(0, []int{10}, []int{10})
	rng, next, there := rand.New(rand.NewPCG(23, 2)), messages.JobID(1), []messages.JobID{}
	arrive := func(now messages.Time) {
		id := next
		m.Put(now, func() *mechanism.Bid {
			return &mechanism.Bid{Job: id, Budget: messages.Credits(1+id%4) * messages.Credit, Form: job.Linear, Weights: []float64{1}}
		}, id, Progress{Pending: []int{1}, Running: []int{0}})
		there, next = append(there, id), next+1
	}
	for range fewJobs + 1000 {
		arrive(0)
	}
	m.Allocate(0)
	const draws = 60_000
	count, newcomers := [4]float64{}, 0
	for i := range draws {
		now := messages.Time(i) * 100
		if i%20 == 0 {
			arrive(now)
			k := rng.IntN(len(there))
			m.Remove(now, there[k])
			there[k] = there[len(there)-1]
			there = there[:len(there)-1]
			m.Allocate(now)
		}
		id := m.Substitute(0, rng)
		if m.Job(id) == nil {
			t.Fatalf("draw %d is job %v, which is gone", i, id)
		}
		if count[(id-1)%4]++; id > fewJobs+1000 {
			newcomers++
		}
	}
	total := [4]float64{}
	for _, id := range there {
		total[(id-1)%4] += math.Sqrt(float64(1 + id%4)) // with the default alpha of one half, shares are in proportion to square roots of budgets
	}
	for g := range count {
		want := total[g] / (total[0] + total[1] + total[2] + total[3])
		if got := count[g] / draws; math.Abs(got-want) > 0.01 {
			t.Errorf("group %d: %v of the draws, want %v", g, got, want)
		}
	}
	if newcomers < draws/10 {
		t.Errorf("%d of %d draws are of jobs that came later", newcomers, draws)
	}
	if m.Jobs() != len(there) {
		t.Errorf("%d jobs, want %d", m.Jobs(), len(there))
	}
	members := m.members()
	if len(members) != len(there) || len(m.view.Jobs) != len(there) {
		t.Fatalf("%d members, %d in the view, want %d", len(members), len(m.view.Jobs), len(there))
	}
	for i, e := range members {
		if e.gone || &e.job != m.view.Jobs[i] || i > 0 && members[i-1].job.Job >= e.job.Job {
			t.Fatalf("member %d is job %v, in the view %v", i, e.job.Job, m.view.Jobs[i].Job)
		}
	}
}

// The bid of a job changes. The market then removes the job and adds it again with the new bid. The job must be counted
// once.
func TestAJobTakenInAnewIsCountedOnce(t *testing.T) {
	m, err := Open(market.Market{Name: "main", Mechanism: market.Proportional, Classes: []messages.Name{"cpu"}})
	if err != nil {
		t.Fatal(err)
	}
	bid := func() *mechanism.Bid {
		return &mechanism.Bid{Job: 1, Account: "alice", Budget: messages.Credit, Weights: []float64{1}, Form: job.Linear}
	}
	for changes := range 3 {
		m.Put(1, bid, 1, Progress{Pending: []int{2}, Running: []int{0}, Changes: changes})
		if m.open[0] != 2 || m.bidding[0] != 1 {
			t.Fatalf("after %d changes %d tasks of %d jobs wait", changes, m.open[0], m.bidding[0])
		}
	}
	if m.Remove(2, 1); m.open[0] != 0 || m.bidding[0] != 0 || m.Jobs() != 0 {
		t.Errorf("after the last job %d tasks of %d jobs wait, of %d", m.open[0], m.bidding[0], m.Jobs())
	}
}
