package desk

import (
	"testing"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// While the licences are in use, a market must not count the tasks of the job that waits for them. So other jobs get
// the slots.
func TestAJobThatWaitsForLicencesBidsForNoSlot(t *testing.T) {
	s := newSite(t, func(*Config) {})
	s.must(&book.Command{SetLicenses: &book.SetLicenses{Totals: job.Licenses{{Name: "matlab", Count: 1}}}})
	s.must(&book.Command{Register: &book.Register{Node: "n1", Session: 1, Slots: []job.ClassSlots{{Class: "cpu", Slots: 4}}}})
	submit := func(key string) messages.JobID {
		spec := job.JobSpec{Market: "main", Budget: 10, Utility: &job.Utility{Weights: job.Weights{{Class: "cpu", Weight: 1}}},
			Stages: []job.Stage{{Name: "a", Class: "cpu", Tasks: 3, Licenses: job.Licenses{{Name: "matlab", Count: 1}}}}}
		return s.must(&book.Command{Submit: &book.Submit{Account: "alice", Key: key, Payer: "alice", Spec: &spec, Hold: key, Held: 10}}).(book.Receipt).Job
	}
	one, two := submit("one"), submit("two")
	pending := func(when string, of ...int) {
		t.Helper()
		s.step()
		m := s.desk.trading.market("main")
		if a, b := m.Pending(one, 0), m.Pending(two, 0); a != of[0] || b != of[1] {
			t.Errorf("%s: %d and %d tasks bid, want %v", when, a, b, of)
		}
	}
	pending("at first", 1, 1)
	g := s.must(&book.Command{Exchange: &book.Exchange{Node: "n1", Session: 1, Seq: 1, Claims: []book.Claim{{Class: "cpu", Slots: 4, Jobs: []messages.JobID{one, two}}}}}).([]agent.Grant)
	if len(g) != 1 {
		t.Fatalf("granted %v, want a task", g)
	}
	pending("while a task has the licence", 0, 0)
	s.must(&book.Command{Exchange: &book.Exchange{Node: "n1", Session: 1, Seq: 2, Finished: []agent.Finished{{Attempt: g[0].Attempt}}}})
	pending("after its end", 1, 1)
	s.must(&book.Command{SetLicenses: &book.SetLicenses{Totals: job.Licenses{{Name: "matlab", Count: 5}}}})
	pending("with more licences", 2, 3)
	s.must(&book.Command{Cancel: &book.Cancel{Job: one, By: "alice"}})
	s.must(&book.Command{Cancel: &book.Cancel{Job: two, By: "alice"}})
	if s.step(); len(s.desk.limited) != 0 {
		t.Errorf("ended jobs are watched: %v", s.desk.limited)
	}
}

// If an owner's bound allows no more tasks, the further tasks of the owner's jobs must not count in the market. After a
// change of the bound, the new bound must apply.
func TestAJobWhoseOwnerHasAllOfItsBoundBidsForNoSlot(t *testing.T) {
	s := newSite(t, func(*Config) {})
	bound := func(slots int) {
		s.must(&book.Command{SetBounds: &book.SetBounds{Markets: []book.MarketBounds{{Market: "main", AtOnce: market.AtOnce{Account: market.Bound{Slots: slots}}}}}})
	}
	s.must(&book.Command{Register: &book.Register{Node: "n1", Session: 1, Slots: []job.ClassSlots{{Class: "cpu", Slots: 4}}}})
	submit := func(account messages.Name, key string) messages.JobID {
		spec := job.JobSpec{Market: "main", Budget: 10, Utility: &job.Utility{Weights: job.Weights{{Class: "cpu", Weight: 1}}},
			Stages: []job.Stage{{Name: "a", Class: "cpu", Tasks: 3}}}
		return s.must(&book.Command{Submit: &book.Submit{Account: account, Key: key, Payer: account, Spec: &spec, Hold: key, Held: 10}}).(book.Receipt).Job
	}
	one, two, other := submit("alice", "one"), submit("alice", "two"), submit("bob", "three")
	pending := func(when string, of ...int) {
		t.Helper()
		s.step()
		m := s.desk.trading.market("main")
		if a, b, c := m.Pending(one, 0), m.Pending(two, 0), m.Pending(other, 0); a != of[0] || b != of[1] || c != of[2] {
			t.Errorf("%s: %d, %d and %d tasks bid, want %v", when, a, b, c, of)
		}
	}
	pending("without a bound", 3, 3, 3)
	bound(2)
	pending("with a bound", 2, 2, 2)
	g := s.must(&book.Command{Exchange: &book.Exchange{Node: "n1", Session: 1, Seq: 1, Claims: []book.Claim{{Class: "cpu", Slots: 4, Jobs: []messages.JobID{one, two}}}}}).([]agent.Grant)
	if len(g) != 2 {
		t.Fatalf("granted %v, want two tasks", g)
	}
	pending("while alice has two slots", 0, 0, 2)
	s.must(&book.Command{Exchange: &book.Exchange{Node: "n1", Session: 1, Seq: 2, Finished: []agent.Finished{{Attempt: g[0].Attempt}}}})
	pending("after the end of one", 1, 1, 2)
	bound(9)
	pending("with a higher bound", 1, 3, 3)
	for _, id := range []messages.JobID{one, two, other} {
		s.must(&book.Command{Cancel: &book.Cancel{Job: id, By: "alice"}})
	}
	if s.step(); len(s.desk.limited) != 0 {
		t.Errorf("ended jobs are watched: %v", s.desk.limited)
	}
}
