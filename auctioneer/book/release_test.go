package book

import (
	"bytes"
	"slices"
	"testing"

	"github.com/candor-grid/candor/messages"
)

// refusedSubmit returns a submission of alice with the given key. alice already has a job, and may have only one. So
// the submission is refused.
func refusedSubmit(key string, seen uint64) *Command {
	return &Command{Submit: &Submit{Account: "alice", Key: key, Hold: "job/" + key, Held: 5, Spec: roamSpec(), Most: 1, Seen: seen}}
}

func (b *Book) releases() (holds []string) {
	for e := range b.EachEffect {
		if e.Kind == Release {
			holds = append(holds, e.Hold)
		}
	}
	return holds
}

// A submission that is refused must free its hold exactly once. It must not free the hold if a job of the book uses the
// same hold.
func TestARefusedSubmissionFreesItsHold(t *testing.T) {
	b := New()
	b.must(t, refusedSubmit("a", 1))
	for range 2 {
		if err, _ := b.Apply(refusedSubmit("b", 1)).(error); messages.KindOf(err) != messages.Exhausted {
			t.Fatal(err)
		}
	}
	if _, refused := b.Apply(refusedSubmit("old", 0)).(error); !refused {
		t.Fatal("a job too many is taken")
	}
	other := refusedSubmit("a", 1)
	other.Submit.Digest = []byte("other")
	if err, _ := b.Apply(other).(error); messages.KindOf(err) != messages.Conflict {
		t.Fatal(err)
	}
	stale := refusedSubmit("c", 2)
	stale.Submit.Most, stale.Submit.MarketsVersion = 0, 7
	if err, _ := b.Apply(stale).(error); !messages.Passing(err) {
		t.Fatal(err)
	}
	if holds := b.releases(); !slices.Equal(holds, []string{"job/b"}) {
		t.Fatalf("freed are %q", holds)
	}
	var image bytes.Buffer
	if _, err := b.Capture().WriteTo(&image); err != nil {
		t.Fatal(err)
	}
	if err := b.Restore(&image); err != nil || !slices.Equal(b.releases(), []string{"job/b"}) {
		t.Fatal(err, b.releases())
	}
	// An earlier try of the same submission had made the hold at the bank. The submission was then refused, so the hold
	// must be freed.
	for i, seen := range []uint64{2, 1} {
		try := refusedSubmit("b", seen)
		try.Submit.Most = 0
		if err, _ := b.Apply(try).(error); !messages.Passing(err) {
			t.Errorf("a job without a hold was entered: %v", err)
		}
		if i == 0 {
			b.must(t, &Command{Confirm: &Confirm{Effects: []Confirmation{{Effect: 1}}}})
		}
	}
	try := refusedSubmit("b", b.LastEffect()+1)
	try.Submit.Most = 0
	b.must(t, try)
}
