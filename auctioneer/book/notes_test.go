package book

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

func TestNotesAreKeptForTheNextLeader(t *testing.T) {
	b := New()
	keep := func(market messages.Name, forget bool, notes ...Note) {
		b.Apply(&Command{Decide: &Decide{Market: market, Notes: notes, Forget: forget}})
	}
	expect := func(market messages.Name, want ...Note) {
		t.Helper()
		if got := b.Notes(market); len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", market, got, want)
		}
	}
	keep("due", false, Note{7, []int64{1, -2}}, Note{0, []int64{3}})
	keep("due", false, Note{7, []int64{4}}, Note{9, make([]int64, MaxNoteNumbers+1)})
	keep("other", false, Note{7, []int64{5}})
	expect("due", Note{0, []int64{3}}, Note{7, []int64{4}})

	var image bytes.Buffer
	if _, err := b.Capture().WriteTo(&image); err != nil {
		t.Fatal(err)
	}
	hash := b.Hash()
	b = New()
	if err := b.Restore(&image); err != nil {
		t.Fatal(err)
	}
	if b.Hash() != hash {
		t.Error("an image of the restored book is another")
	}
	expect("due", Note{0, []int64{3}}, Note{7, []int64{4}})

	keep("due", true, Note{8, []int64{6}})
	expect("due", Note{8, []int64{6}})
	b.Apply(&Command{ApplyMarkets: &ApplyMarkets{Markets: []market.Market{{Name: "due"}}}})
	expect("due", Note{8, []int64{6}})
	expect("other")
}

func TestMarketsKeepAllTheirFieldsInAnImage(t *testing.T) {
	b, want := New(), []market.Market{{Name: "fair", Mechanism: market.FairShare, Classes: []messages.Name{"cpu"}, Weights: job.Weights{{Class: "alice", Weight: 2}}}}
	b.Apply(&Command{ApplyMarkets: &ApplyMarkets{Markets: want}})
	var image bytes.Buffer
	if _, err := b.Capture().WriteTo(&image); err != nil {
		t.Fatal(err)
	}
	b = New()
	if err := b.Restore(&image); err != nil {
		t.Fatal(err)
	}
	if got := b.Markets(); !reflect.DeepEqual(got, want) || b.MarketsVersion() != 1 {
		t.Errorf("%+v, applied %d times, want %+v", got, b.MarketsVersion(), want)
	}
}
