package fairshare

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

const second = 1_000_000 // a second in the unit of messages.Time, which is a microsecond

func newMechanism(change func(*market.Market)) *Mechanism {
	m := market.Market{Name: "main", Classes: []messages.Name{"cpu", "gpu"}}
	change(&m)
	return New(m)
}

func job(id messages.JobID, account messages.Name, pending, running int) *mechanism.Job {
	return &mechanism.Job{Bid: &mechanism.Bid{Job: id, Account: account, Arrived: messages.Time(id), Budget: 1000 * messages.Credits(id) * messages.Credit},
		Pending: []int{pending, 0}, Running: []int{running, 0}}
}

func view(now messages.Time, slots int, jobs ...*mechanism.Job) *mechanism.View {
	return &mechanism.View{Now: now, Classes: []mechanism.Class{{Name: "cpu", Slots: slots}, {Name: "gpu"}}, Jobs: jobs}
}

func check(t *testing.T, what string, a *mechanism.Allocation, want ...float64) {
	t.Helper()
	for i, w := range want {
		if math.Abs(a.Weights[i][0]-w) > 1e-9 || a.Weights[i][1] != 0 {
			t.Errorf("%s: job %d has %v, want %v", what, i, a.Weights[i], w)
		}
	}
}

func TestLiveMarket(t *testing.T) {
	plain := func(*market.Market) {}
	m := newMechanism(plain)
	many := []*mechanism.Job{job(1, "ada", 9, 0), job(2, "ada", 9, 0), job(3, "bob", 9, 0), job(4, "cyd", 0, 0)}
	check(t, "by user, then equally", m.Allocate(view(second, 8, many...)), 0.25, 0.25, 0.5, 0)
	check(t, "up to what they ask for", newMechanism(plain).Allocate(view(second, 8, job(1, "ada", 2, 0), job(2, "bob", 99, 0))), 0.25, 0.75)
	check(t, "by weight", newMechanism(func(c *market.Market) { c.Weights = jobmsg.Weights{{Class: "ada", Weight: 3}} }).Allocate(view(second, 8, many...)), 0.375, 0.375, 0.25, 0)
	check(t, "no slots", newMechanism(plain).Allocate(view(second, 0, many...)), 0.25, 0.25, 0.5, 0)
}

// A site chooses the names of its users, so it could invent many. All users of another site together must therefore get
// one share.
func TestAPeerIsOneParticipant(t *testing.T) {
	m := newMechanism(func(c *market.Market) { c.Weights = jobmsg.Weights{{Class: "@west", Weight: 2}} })
	a := m.Allocate(view(second, 8, job(1, "ada", 99, 0), job(2, "a@east", 99, 0), job(3, "b@east", 99, 0), job(4, "c@east", 99, 0), job(5, "d@east", 99, 0)))
	check(t, "four names of a peer", a, 0.5, 0.125, 0.125, 0.125, 0.125)
	a = m.Allocate(view(second, 8, job(1, "ada", 99, 0), job(2, "a@east", 99, 0), job(3, "a@east", 99, 0), job(4, "b@east", 99, 0), job(5, "a@west", 99, 0)))
	check(t, "by name within it, and by weight", a, 0.25, 0.0625, 0.0625, 0.125, 0.5)
	if e := m.Explain(view(second, 8, job(4, "b@east", 99, 0)), job(4, "b@east", 99, 0)); !strings.Contains(e.Message, "12.5%") {
		t.Errorf("%+v", e)
	}
}

// ada has held all 8 slots for one half-life. Her recent use is an average in which older time counts less, so it is
// half of 8. Then ada and bob both ask for all slots. Bob must get more than ada. After a long time, both must get the
// same.
func TestThePastFadesOnALiveMarket(t *testing.T) {
	m := newMechanism(func(c *market.Market) { c.HalfLife = 100e9 })
	a := m.Allocate(view(second, 8, job(1, "ada", 9, 8)))
	if a.Wake != second+100*second/64 {
		t.Errorf("wakes at %v", a.Wake)
	}
	both := []*mechanism.Job{job(1, "ada", 9, 0), job(2, "bob", 9, 0)}
	check(t, "after a half-life", m.Allocate(view(101*second, 8, both...)), 0.25, 0.75)
	check(t, "after another", m.Allocate(view(201*second, 8, both...)), 0.375, 0.625)
	check(t, "nobody runs long after", m.Allocate(view(100_000*second, 8, both...)), 0.5, 0.5)
	m.Allocate(view(100_001*second, 8))
	m.Allocate(view(100_002*second, 8))
	if len(m.accounts) != 0 {
		t.Errorf("%d accounts remembered", len(m.accounts))
	}
}

// bob holds all slots and has no pending tasks. ada is the only user with pending tasks, but her level is much higher
// than bob's. (A user's level is the user's use of slots, also in the past.) Freed slots must still go to ada.
func TestOverdrawn(t *testing.T) {
	m := newMechanism(func(c *market.Market) { c.HalfLife = 100e9 })
	m.Allocate(view(second, 8, job(1, "ada", 0, 8)))
	check(t, "alone", m.Allocate(view(500*second, 2, job(1, "ada", 5, 0), job(2, "bob", 0, 2))), 1, 0)
}

func TestWeightsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMechanism(func(c *market.Market) { c.HalfLife = 30e9 })
		now := messages.Time(second)
		for range rapid.IntRange(1, 6).Draw(t, "rounds") {
			v, pending := view(now, rapid.IntRange(0, 9).Draw(t, "slots")), 0
			for id := range rapid.IntRange(0, 6).Draw(t, "jobs") {
				j := job(messages.JobID(id+1), rapid.SampledFrom([]messages.Name{"ada", "bob", "cyd"}).Draw(t, "account"),
					rapid.IntRange(0, 5).Draw(t, "pending"), rapid.IntRange(0, 3).Draw(t, "running"))
				pending += j.Pending[0]
				v.Jobs = append(v.Jobs, j)
			}
			a, sum := m.Allocate(v), 0.0
			for i, row := range a.Weights {
				if !(row[0] >= 0) || v.Jobs[i].Pending[0] == 0 && row[0] != 0 || row[1] != 0 {
					t.Fatalf("weights %v of %+v", row, v.Jobs[i])
				}
				sum += row[0]
				m.Explain(v, v.Jobs[i])
			}
			if pending > 0 && math.Abs(sum-1) > 1e-9 || pending == 0 && sum != 0 {
				t.Fatalf("weights add up to %v: %v", sum, a.Weights)
			}
			now += messages.Time(rapid.IntRange(0, 100).Draw(t, "seconds")) * second
		}
	})
}

func TestExplain(t *testing.T) {
	m, v := newMechanism(func(c *market.Market) { c.HalfLife = 100e9 }), view(second, 8, job(1, "ada", 9, 8))
	if e := m.Explain(v, v.Jobs[0]); e.Message == "" {
		t.Errorf("%+v", e)
	}
	m.Allocate(v)
	v = view(1000*second, 2, job(1, "ada", 9, 0), job(2, "bob", 9, 0))
	m.Allocate(v)
	if e := m.Explain(v, v.Jobs[0]); e.Reason != mechanism.WaitingForTurn {
		t.Errorf("%+v", e)
	}
	if e := m.Explain(v, v.Jobs[1]); e.Reason != mechanism.NextInTurn {
		t.Errorf("%+v", e)
	}
}

func TestPastUseCountsHalfAfterADay(t *testing.T) {
	if m := newMechanism(func(*market.Market) {}); m.halfLife.Seconds() != 86400 {
		t.Errorf("%+v", m)
	}
}
