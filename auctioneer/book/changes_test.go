package book

import (
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/expect"
)

// TestRaise raises a budget from 100 to 150. The job must keep its old budget until the bank has set the additional 50
// aside. Then it must get a new hold of the whole budget.
func TestRaise(t *testing.T) {
	s := newSite(t)
	id := s.submit("k", mapStage(1))
	refusal(t, s.apply(Command{Change: &Change{Job: id, Key: "a", Budget: 99}}), messages.Invalid)
	r, is := s.apply(Command{Change: &Change{Job: id, Key: "b", Budget: 150}}).(Changed)
	if j := s.Job(id); !is || r.Effect == 0 || j.Left() != 100 || j.Spec.Budget != 100 || j.HoldID() != "k" {
		t.Fatalf("%+v; the job has %v under %s", r, j.Left(), j.HoldID())
	}
	if again := s.apply(Command{Change: &Change{Job: id, Key: "b", Budget: 150}}); again != r {
		t.Errorf("the same change again: %v", again)
	}
	refusal(t, s.apply(Command{Change: &Change{Job: id, Key: "c", Budget: 160}}), messages.Conflict)
	hold, amount := s.Job(id).RaisedTo()
	s.apply(Command{Confirm: &Confirm{Effects: []Confirmation{{Effect: r.Effect}}}})
	j := s.Job(id)
	expect.Same(t, "amount", amount, 150, "HoldID", j.HoldID(), hold, "Left", j.Left(), 150, "Budget", j.Spec.Budget, 150, "Held", j.Held, 150)
	s.apply(Command{Cancel: &Cancel{Job: id, By: "alice"}})
	if err := s.apply(Command{Settle: &Settle{Job: id, Charge: 140}}); err != nil {
		t.Errorf("a charge above the first budget: %v", err)
	}
	refusal(t, s.apply(Command{Change: &Change{Job: id, Key: "d", Budget: 200}}), messages.Ended)
}

// If the bank refuses a raise, the budget and the hold stay as they are. The job may end while the bank has not
// answered a raise yet. Then the bank must answer the raise before the job is charged.
func TestRaiseIsRefused(t *testing.T) {
	s := newSite(t)
	id := s.submit("k", mapStage(1))
	r := s.apply(Command{Change: &Change{Job: id, Key: "b", Budget: 150}}).(Changed)
	s.apply(Command{Confirm: &Confirm{Effects: []Confirmation{{Effect: r.Effect, Refused: "no credits"}}}})
	j := s.Job(id)
	expect.Same(t, "Held", j.Held, 100, "HoldID", j.HoldID(), "k", "Refused", j.Raise.Refused, "no credits", "Pending", j.Raise.Pending(), false)
	s.apply(Command{Change: &Change{Job: id, Key: "c", Budget: 120}})
	s.apply(Command{Cancel: &Cancel{Job: id, By: "alice"}})
	s.apply(Command{Settle: &Settle{Job: id, Charge: 10}})
	var kinds []EffectKind
	for e := range s.EachEffect {
		kinds = append(kinds, e.Kind)
	}
	if len(kinds) != 2 || kinds[0] != RaiseBudget || kinds[1] != Charge {
		t.Errorf("effects wait in the order %v", kinds)
	}
}

// A change must be refused if the job has started, or if the change is based on an older description. A reader of the
// old description must see no change.
func TestDescribe(t *testing.T) {
	s := newSite(t)
	id := s.submit("k", mapStage(1))
	old := s.Job(id).Spec
	to := *old
	to.Name, to.Rate, to.Budget, to.Market = "new", 7, 9999, "elsewhere"
	s.apply(Command{Change: &Change{Job: id, Key: "a", To: &to, Unstarted: true}})
	if got := s.Job(id).Spec; got.Name != "new" || got.Rate != 7 || got.Budget != 100 || got.Market != "main" || old.Name == "new" {
		t.Errorf("the job is now %+v", got)
	}
	refusal(t, s.apply(Command{Change: &Change{Job: id, Key: "b", To: &to}}), messages.Conflict)
	s.register("n", 1, 1)
	s.claim("n", 1, 1, 1, id)
	refusal(t, s.apply(Command{Change: &Change{Job: id, Key: "c", To: &to, Version: 1, Unstarted: true}}), messages.Conflict)
}
