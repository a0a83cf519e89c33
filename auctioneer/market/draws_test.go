package market

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	agentmsg "github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// places gives the same result as the market's method systematic, but by a simple walk over all jobs.
func places(bidders []*entry, k, n int, u float64) (out []messages.JobID) {
	pull, total := func(e *entry) float64 { return e.pull(k) }, 0.0
	for _, e := range bidders {
		total += pull(e)
	}
	if !(total > 0) {
		pull, total = func(*entry) float64 { return 1 }, float64(len(bidders))
	}
	space := total / float64(n)
	next, cumulated := u*space, 0.0
	for _, e := range bidders {
		for cumulated += pull(e); next < cumulated; next += space {
			out = append(out, e.job.Job)
		}
	}
	return out
}

// The method systematic draws jobs, and skips parts of the list of jobs. The function places goes through the whole
// list. Both must return equally many draws, in the order of the jobs. Because of rounding, a job may be drawn once
// more, or once less.
func TestPlacesPassOverParts(t *testing.T) {
	for _, name := range []messages.Name{market.Proportional, market.HighestBid} {
		m, err := Open(market.Market{Name: "main", Mechanism: name, Classes: []messages.Name{"cpu", "gpu"}})
		if err != nil {
			t.Fatal(err)
		}
		rng, at := rand.New(rand.NewPCG(5, 3)), messages.Time(0)
		m.SetSlots(0, []int{30, 3}, []int{30, 3})
		for step := range 400 {
			at += messages.Time(rng.IntN(1000))
			for range rng.IntN(20) {
				id := messages.JobID(1 + rng.IntN(2000))
				if rng.IntN(4) == 0 {
					m.Remove(at, id)
					continue
				}
				running := []int{rng.IntN(2), 0}
				p := Progress{Pending: []int{rng.IntN(3), rng.IntN(2)}, Running: running, Changes: rng.IntN(20) / 19}
				if running[0] > 0 {
					p.Started = 1
				}
				bid := mechanism.Bid{Job: id, Account: "a", Budget: messages.Credits(1+rng.IntN(9)) * messages.Credit, Rate: messages.Credits(2+rng.IntN(9)) * messages.Credit, Form: job.Linear, Weights: []float64{1, 1}}
				m.Put(at, func() *mechanism.Bid { return &bid }, id, p)
			}
			if step%3 == 0 {
				m.Allocate(at)
			}
			for k := range m.classes {
				m.tidy(false)
				n, u := 1+rng.IntN(300), rng.Float64()
				want, got := places(m.bidders(k), k, n, u), []messages.JobID{}
				m.systematic(k, n, u, func(e *entry) { got = append(got, e.job.Job) })
				if d := len(got) - len(want); d > 1 || d < -1 || !slices.IsSorted(got) {
					t.Fatalf("%s, step %d: %d places, want %d", name, step, len(got), len(want))
				}
				times := map[messages.JobID]int{}
				for _, id := range want {
					times[id]++
				}
				for _, id := range got {
					times[id]--
				}
				for id, off := range times {
					if off > 1 || off < -1 {
						t.Fatalf("%s, step %d: job %d has %d places less", name, step, id, off)
					}
				}
			}
		}
	}
}

// Many nodes with the same vector claim tasks of the same job, before any claim is committed. Each claim must reserve
// its own tasks. The reservations end when the job changes, or when a claim did not get tasks.
func TestReservedTasks(t *testing.T) {
	const jobs = 100
	m, b, rng := newMarket(), book.New(), rand.New(rand.NewPCG(1, 1))
	for id := messages.JobID(1); id <= jobs; id++ {
		b.Apply(&book.Command{Submit: &book.Submit{Account: "alice", Key: string(rune(id)), Spec: &job.JobSpec{Market: "main", Budget: 1,
			Stages: []job.Stage{{Name: "s", Class: "cpu", Script: "true"}}}}})
		put(m, 0, id, 1, 1, 0)
	}
	m.Allocate(0)
	claim := func() []messages.JobID {
		return m.ReserveClaim(b, "n1", &agentmsg.Claim{Market: "main", Class: "cpu", Job: 1, Slots: 1}, 0, rng).Jobs
	}
	counted := map[messages.JobID]bool{}
	for range jobs {
		drawn := claim()
		if last := drawn[len(drawn)-1]; drawn[0] != 1 || counted[last] {
			t.Fatalf("claims %v, when others count on %d jobs", drawn, len(counted))
		} else {
			counted[last] = true
		}
	}
	if drawn := claim(); len(drawn) != 1 {
		t.Errorf("claims %v, where all tasks are on the way", drawn)
	}
	put(m, 0, 7, 1, 1, 0)
	if drawn := claim(); !slices.Equal(drawn, []messages.JobID{1, 7}) {
		t.Errorf("claims %v, where job 7 has changed", drawn)
	}
	m.Unreserve(9)
	if drawn := claim(); !slices.Equal(drawn, []messages.JobID{1, 9}) {
		t.Errorf("claims %v, where a claim did not get job 9", drawn)
	}
}
