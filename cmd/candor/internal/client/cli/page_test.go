package cli

import (
	"testing"
	"time"
)

// The site writes times in its sentences in UTC. The user must see them in the user's time zone.
func TestInstantsOfSentencesAreLocal(t *testing.T) {
	zone := time.FixedZone("CET", 3600)
	got := LocalTimes("slots are kept from 2026-03-01T12:00:00.500000Z on; 2026-99-99T99:99:99Z is none", zone)
	if want := "slots are kept from 2026-03-01 13:00:00 on; 2026-99-99T99:99:99Z is none"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
