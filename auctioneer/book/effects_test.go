package book

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/expect"
	"github.com/candor-grid/candor/messages/job"
)

// retaining makes books remember at most n ended jobs, for one test.
func retaining(t *testing.T, n int) {
	retainEnded = n
	t.Cleanup(func() { retainEnded = RetainEnded })
}

// A job must stay in the book while an effect refers to it. Effects must keep their order.
func TestEffectsKeepTheirJobs(t *testing.T) {
	retaining(t, 1)
	s := newSite(t)
	for _, key := range []string{"a", "b", "c"} {
		id := s.submit(key, mapStage(1))
		s.apply(Command{Cancel: &Cancel{Job: id, By: "alice"}})
		s.apply(Command{Settle: &Settle{Job: id}})
	}
	s.apply(Command{Confirm: &Confirm{Effects: []Confirmation{{Effect: 1}}}}) // effect 4, the observation, stays
	s.apply(Command{Confirm: &Confirm{Effects: []Confirmation{{Effect: 2}, {Effect: 3}}}})
	var ids []uint64
	for _, e := range slices.Collect(s.EachEffect) {
		ids = append(ids, e.ID)
	}
	if !slices.Equal(ids, []uint64{4, 5, 6}) || s.Job(1) == nil {
		t.Fatalf("effects %v, the first job is %v", ids, s.Job(1))
	}
	s.apply(Command{Confirm: &Confirm{Effects: []Confirmation{{Effect: 4}, {Effect: 5}}}})
	if s.Job(1) != nil || s.Job(2) != nil || s.Job(3) == nil {
		t.Fatal("the oldest jobs are still remembered, or the last is not")
	}
}

// An image may have effects of forgotten jobs. When the image is read, these effects must be dropped.
func TestEffectsOfJobsThatAreGone(t *testing.T) {
	b := New()
	b.must(t, &Command{Submit: &Submit{Account: "alice", Key: "k", Held: 5, Spec: roamSpec()}})
	j := b.jobs.own(1)
	j.Paid, j.Gained = 3, 3
	im := b.Capture()
	im.Head.LastEffect = 4
	im.Effects = []Effect{{ID: 4, Kind: Observe, Job: 9}, {ID: 1, Kind: Charge, Job: 9}, {ID: 2, Kind: Observe, Job: 9},
		{ID: 3, Kind: Round, Job: 9, Legs: []Leg{{From: 9, To: 1, Amount: 3}, {From: 1, To: 9, Amount: 3}}}}
	var buf bytes.Buffer
	if _, err := im.WriteTo(&buf); err != nil {
		t.Fatal(err)
	}
	if err := b.Restore(&buf); err != nil {
		t.Fatal(err)
	}
	c := &Confirm{}
	for e := range b.EachEffect {
		if b.Names(&e) {
			t.Errorf("effect %d names jobs that are there", e.ID)
		}
		c.Effects = append(c.Effects, Confirmation{Effect: e.ID, Refused: "its job is gone"})
	}
	b.must(t, &Command{Confirm: c})
	j = b.Job(1)
	expect.Same(t, "len(slices.Collect(b.EachEffect))", len(slices.Collect(b.EachEffect)), 0)
	expect.Same(t, "Paid", j.Paid, 0, "Gained", j.Gained, 0, "State", j.State, job.Waiting)
}

func TestNumbersAreASet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, want, next := newNumbers(), []messages.JobID{}, messages.JobID(0)
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			for range rapid.IntRange(0, 300).Draw(t, "added") {
				id := next - min(next, messages.JobID(rapid.IntRange(-3, 40).Draw(t, "back"))) // mostly a number above all others
				if at, found := slices.BinarySearch(want, id); !found {
					want = slices.Insert(want, at, id)
				}
				n.add(id)
				next = max(next, id)
			}
			for range rapid.IntRange(0, 200).Draw(t, "removed") {
				id := messages.JobID(rapid.Uint64Range(0, uint64(next)+1).Draw(t, "id"))
				if at, found := slices.BinarySearch(want, id); found {
					want = slices.Delete(want, at, at+1)
				}
				if n.remove(id); n.count != len(want) {
					t.Fatalf("%d are left, and it says %d", len(want), n.count)
				}
			}
			id := messages.JobID(rapid.Uint64Range(0, uint64(next)+1).Draw(t, "bound"))
			at, found := slices.BinarySearch(want, id)
			below, above := slices.Clone(want[:at]), want[at:]
			if slices.Reverse(below); found {
				above = above[1:]
			}
			if !slices.Equal(slices.Collect(n.Below(id)), below) || !slices.Equal(slices.Collect(n.Above(id)), above) {
				t.Fatalf("below and above %d are other numbers than %v and %v", id, below, above)
			}
		}
	})
}

// A visiting job's market may decide several payments. At its end, the job pays all of them in one charge, even if it
// is cancelled. No job may pay a visiting job.
func TestVisitorsPayAtTheirEnd(t *testing.T) {
	b := New()
	visit := &Visit{job.Visit{Home: "west", Job: 17}, "a", 1000}
	b.must(t, &Command{Submit: &Submit{Account: "ada@west", Key: "17", Payer: "ada@west", Spec: roamSpec(), Held: 9, Visit: visit}})
	for _, key := range []string{"own", "other"} {
		b.must(t, &Command{Submit: &Submit{Account: "bob", Key: key, Payer: "bob", Spec: roamSpec(), Hold: key, Held: 9}})
	}
	v, own := b.Job(1), b.Job(2)
	for name, legs := range map[string][]Leg{
		"to the visitor":                {{From: 2, To: 1, Amount: 1}},
		"later to the visitor":          {{From: 2, To: 1, Amount: 1, Later: true}},
		"of the site to the visitor":    {{To: 1, Amount: 1}},
		"of the visitor to a job":       {{From: 1, To: 2, Amount: 1}},
		"of the visitor, beyond itself": {{From: 1, Amount: 10}},
	} {
		if b.effects.round(own, legs); v.Paid+v.Gained+own.Paid+own.Gained != 0 || len(v.Promised) > 0 || len(slices.Collect(b.EachEffect)) > 0 {
			t.Fatalf("%s: %+v, %+v", name, v, own)
		}
	}
	b.effects.round(own, []Leg{{From: 1, Amount: 3}, {From: 2, To: 3, Amount: 2}})
	b.effects.round(own, []Leg{{From: 1, Amount: 4}})
	e := slices.Collect(b.EachEffect)
	expect.Same(t, "len(e)", len(e), 1)
	expect.Same(t, "len(e[0].Legs)", len(e[0].Legs), 1)
	expect.Same(t, "From", e[0].Legs[0].From, 2, "Left", v.Left(), 2)
	b.must(t, &Command{Cancel: &Cancel{Job: 1, By: "ada@west"}})
	if err, _ := b.Apply(&Command{Settle: &Settle{Job: 1, Charge: 3}}).(error); messages.KindOf(err) != messages.Invalid {
		t.Errorf("charged beyond what is left: %v", err)
	}
	b.must(t, &Command{Settle: &Settle{Job: 1, Charge: 1, Reason: "a place"}})
	if v.Owed != 8 || v.Paid != 0 || v.Cost() != 0 {
		t.Errorf("owes %v (%s), and paid %v", v.Owed, v.Why, v.Paid)
	}
	if b.effects.round(own, []Leg{{From: 1, Amount: 1}}); v.Paid != 0 {
		t.Error("a settled visitor pays again")
	}
}
