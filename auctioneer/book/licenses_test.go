package book

import (
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/expect"
	"github.com/candor-grid/candor/messages/job"
)

// A task waits if other tasks have the licences that it needs. A suspended task keeps its licences. When a node is
// lost, its tasks' licences must become free.
func TestATaskHasItsLicencesUntilItsClaimEnds(t *testing.T) {
	s := newSite(t)
	s.apply(Command{SetLicenses: &SetLicenses{Totals: job.Licenses{{Name: "matlab", Count: 5}}}})
	s.register("n1", 7, 9)
	s.register("n2", 8, 9)
	stage := mapStage(4)
	stage.Licenses = job.Licenses{{Name: "matlab", Count: 2}}
	id := s.submit("a", stage)
	free := func(when string, free, claimable int) {
		t.Helper()
		if n, may := s.FreeLicenses("matlab"), s.Claimable(s.Job(id), 0); n != free || may != claimable {
			t.Fatalf("%s: %d licences are free and %d tasks can be claimed, want %d and %d", when, n, may, free, claimable)
		}
	}
	free("at first", 5, 2)
	one := s.claim("n1", 7, 1, 1, id)
	two := s.claim("n2", 8, 1, 9, id)
	if len(one) != 1 || len(two) != 1 {
		t.Fatalf("granted %v and %v, want a task each", one, two)
	}
	free("with two tasks", 1, 0)
	s.apply(Command{Decide: &Decide{Market: "main", Suspend: []messages.Attempt{one[0].Attempt}}})
	free("with one suspended", 1, 0)
	s.Book = func() *Book { again := New(); copyInto(t, s.Book, again); return again }()
	free("after an image", 1, 0)
	s.finish("n2", 8, 2, agent.Exited, 0, two[0].Attempt)
	free("after the end of one", 3, 1)
	s.apply(Command{Lost: &Lost{Node: "n1", Session: 7}})
	free("after the loss of the other", 5, 2)
	s.apply(Command{SetLicenses: &SetLicenses{Totals: job.Licenses{{Name: "matlab", Count: 1}}}})
	free("with fewer", 1, 0)
	s.apply(Command{SetLicenses: &SetLicenses{}})
	if free("with none", 0, 0); len(s.Licenses()) != 0 {
		t.Errorf("there are %v", s.Licenses())
	}
}

func TestAnAllocationHasItsLicencesOnce(t *testing.T) {
	s := newSite(t)
	s.apply(Command{SetLicenses: &SetLicenses{Totals: job.Licenses{{Name: "matlab", Count: 2}}}})
	s.register("n1", 7, 1)
	s.register("n2", 8, 1)
	stage := mapStage(2)
	stage.Gang, stage.Allocation, stage.Licenses = true, true, job.Licenses{{Name: "matlab", Count: 2}}
	id := s.submit("a", stage)
	a, b := s.claim("n1", 7, 1, 1, id), s.claim("n2", 8, 1, 1, id)
	expect.Same(t, "len(a)", len(a), 1, "len(b)", len(b), 1)
	expect.Same(t, "OnSlots", s.Job(id).Stages[0].OnSlots(), 2, "s.FreeLicenses('matlab')", s.FreeLicenses("matlab"), 0)
	s.finish("n2", 8, 2, agent.Stopped, 0, b[0].Attempt)
	if s.FreeLicenses("matlab") != 0 {
		t.Error("the licences are free, though the first task runs")
	}
	s.finish("n1", 7, 2, agent.Stopped, 0, a[0].Attempt)
	if s.FreeLicenses("matlab") != 2 || s.Claimable(s.Job(id), 0) != 2 {
		t.Errorf("%d licences are free, and %d tasks can be claimed again, want 2 and 2", s.FreeLicenses("matlab"), s.Claimable(s.Job(id), 0))
	}
}

// A task with licences must not be claimed in advance: it would hold the licences before it has a slot.
func TestNoTaskWithLicencesIsClaimedAhead(t *testing.T) {
	s := newSite(t)
	s.apply(Command{SetLicenses: &SetLicenses{Totals: job.Licenses{{Name: "matlab", Count: 9}}}})
	s.register("n1", 7, 1)
	stage := mapStage(3)
	stage.Licenses = job.Licenses{{Name: "matlab", Count: 1}}
	id := s.submit("a", stage)
	g := s.apply(Command{Exchange: &Exchange{Node: "n1", Session: 7, Seq: 1, Claims: []Claim{{Class: "map", Slots: 3, Jobs: []messages.JobID{id}, Ahead: 2}}}}).([]agent.Grant)
	if len(g) != 1 || s.FreeLicenses("matlab") != 8 {
		t.Errorf("granted %v; %d licences are free, want 8", g, s.FreeLicenses("matlab"))
	}
}
