package market

import (
	"slices"
	"testing"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

const second = messages.Duration(1e9)

// A gang has reserved slots for some of its tasks, but waits too long for the others. The command that gives up these
// slots must come. It must come again later, in case it was lost. No such command may come for a gang that has all its
// slots.
func TestGangsAreLateInTurn(t *testing.T) {
	m := New(mechanism.Manner{}, market.Market{Name: "main", Classes: []messages.Name{"cpu"}, GangTimeout: 5 * second}, new(byBudget))
	spec := &job.JobSpec{Stages: []job.Stage{{Gang: true}, {}, {Gang: true}}}
	var g Gangs
	if g.Next() != 0 || g.Late(1e12) != nil {
		t.Fatal("gangs that nobody put")
	}
	put := func(id messages.JobID, since ...messages.Time) {
		j := &book.Job{ID: id, Spec: spec, Stages: make([]book.Stage, 3)}
		for i, at := range since {
			j.Stages[i].Gathered = at
		}
		g.Put(m, j)
	}
	put(2, 1e6, 0, 2e6)
	put(1, 1e6)
	put(3, 4e6)
	if at := g.Next(); at != 6e6 {
		t.Errorf("the first is late at %v", at)
	}
	if late := g.Late(6e6 - 1); len(late) != 0 {
		t.Errorf("late too soon: %+v", late)
	}
	late := g.Late(7e6)
	want := []book.Disband{{Job: 1, Since: 1e6}, {Job: 2, Since: 1e6}, {Job: 2, Stage: 2, Since: 2e6}}
	if !slices.EqualFunc(late, want, func(a *book.Disband, b book.Disband) bool { return *a == b }) {
		t.Errorf("%+v, want %+v", late, want)
	}
	if late := g.Late(8e6); len(late) != 0 {
		t.Errorf("asked for twice: %+v", late)
	}
	put(2) // the gang is complete
	put(3)
	if late := g.Late(messages.Time(7e6).Add(defaultGangTimeout)); len(late) != 1 || late[0].Job != 1 {
		t.Errorf("again: %+v", late)
	}
}

// For a node that drains, only the slots with tasks must count. For a node that is down, no slots must count.
func TestSlotsFollowNodes(t *testing.T) {
	s := NewSlots([]market.Market{{Classes: []messages.Name{"cpu", "gpu"}}, {Classes: []messages.Name{"cpu"}, Nodes: []messages.Name{"b"}}})
	node := func(name messages.Name, used int) *book.Node {
		return &book.Node{Name: name, Up: true, Slots: []job.ClassSlots{{Class: "cpu", Slots: 4}, {Class: "gpu", Slots: 1}}, Used: []int{used, 0}}
	}
	check := func(market int, slots, idle []int) {
		t.Helper()
		if n, free := s.Of(market); !slices.Equal(n, slots) || !slices.Equal(free, idle) {
			t.Errorf("market %d: %v, %v idle, want %v, %v", market, n, free, slots, idle)
		}
	}
	s.Set(0, node("a", 1))
	s.Set(1, node("b", 4))
	check(0, []int{8, 2}, []int{3, 2})
	check(1, []int{4}, []int{0})
	drains := node("b", 3)
	drains.Drain = 1e6
	s.Set(1, drains)
	check(0, []int{7, 1}, []int{3, 1})
	check(1, []int{3}, []int{0})
	s.Set(0, &book.Node{Name: "a"})
	check(0, []int{3, 0}, []int{0, 0})
	if s.Nodes() != 2 {
		t.Errorf("%d nodes", s.Nodes())
	}
}

func TestDuesWait(t *testing.T) {
	settlement := func(id messages.JobID, at messages.Time) *Settlement {
		return &Settlement{At: at, said: true, settle: &book.Settle{Job: id}}
	}
	var d Dues
	if s := d.Settle(5, settlement(1, 5)); s == nil || s.Job != 1 || d.Next() != 0 {
		t.Errorf("%+v", s)
	}
	for id, at := range []messages.Time{9, 7, 8} {
		if s := d.Settle(5, settlement(messages.JobID(id), at)); s != nil {
			t.Errorf("settled before its time: %+v", s)
		}
	}
	if d.Next() != 7 || len(d.Due(6)) != 0 {
		t.Errorf("next at %v", d.Next())
	}
	if due := d.Due(8); len(due) != 2 || due[0].Job != 1 || due[1].Job != 2 || d.Next() != 9 {
		t.Errorf("%+v, next at %v", due, d.Next())
	}
}
