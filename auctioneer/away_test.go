package auctioneer

import (
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
)

// Another site is not trusted with more than the job.
func TestHeard(t *testing.T) {
	r := &book.Roam{Spec: &messages.JobSpec{Budget: 5, Stages: []messages.Stage{{Tasks: 3}}}}
	for name, said := range map[string]messages.JobSummary{
		"too much":   {State: 200, Charged: 1 << 60, Tasks: 1 << 40, Running: 1 << 40, Done: 1 << 40, Market: "a b", Reason: strings.Repeat("é", 1000), Name: "x"},
		"too little": {Charged: -1, Running: -1, Done: -1, Started: -1, Ended: -1},
	} {
		got := heard(&said, r)
		if got.State > messages.Discarded || got.Charged < 0 || got.Charged > 5 || got.Tasks != 3 || got.Running < 0 || got.Running > 3 || got.Done < 0 || got.Done > 3 ||
			got.Market != "" || len(got.Reason) > maxHeard || got.Started < 0 || got.Ended < 0 {
			t.Errorf("%s: heard %+v", name, got)
		}
	}
}

func TestScreened(t *testing.T) {
	offers := []messages.Offer{{Site: "north", Market: "main", Value: 100, Contract: "q1-1", Basis: strings.Repeat("b", 10_000)},
		{Market: "a b"}, {Market: "main", Price: -1}, {Market: "main", Completion: -1}}
	for range 1000 {
		offers = append(offers, messages.Offer{Market: "main"})
	}
	got := screened("east", offers)
	if len(got) != maxOffers-3 {
		t.Fatalf("%d offers", len(got))
	}
	if o := got[0]; o.Site != "east" || o.Value != 0 || o.Contract != "east/q1-1" || len(o.Basis) > 4*maxHeard {
		t.Errorf("got %+v", o)
	}
}

func TestHomeOf(t *testing.T) {
	for caller, want := range map[messages.Name]messages.Name{"$west": "west", "west": "", "alice": "", "$": "", "$auctioneer": "", "$bank": "", "$depot": "", "$We": "", "$a@b": ""} {
		got, err := homeOf(caller)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v", caller, got, err)
		}
	}
}

func TestLastCall(t *testing.T) {
	const start = messages.Time(1_000_000_000)
	for had, want := range map[time.Duration]time.Duration{time.Minute: 54 * time.Second, time.Hour: 54 * time.Minute, 100 * time.Hour: 100*time.Hour - 10*time.Minute, -time.Hour: -time.Hour} {
		if got := lastCall(start, start.Add(messages.Duration(had))).Sub(start).Std(); got != want {
			t.Errorf("with %v: after %v, want %v", had, got, want)
		}
	}
}
