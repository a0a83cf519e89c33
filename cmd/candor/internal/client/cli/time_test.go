package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
)

// The present time of the test is 13:00.
func TestInstants(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(seconds int) messages.Time {
		return messages.TimeOf(noon.Add(time.Duration(seconds) * time.Second))
	}
	a := &App{Now: func() time.Time { return noon.Add(time.Hour) }, Zone: time.FixedZone("east", 3600)}
	for text, want := range map[string]messages.Time{
		"":                     0,
		"now":                  at(3600),
		"today":                at(-13 * 3600),
		"yesterday":            at(-37 * 3600),
		"24h":                  at(3600 - 86400),
		"24h ago":              at(3600 - 86400),
		"90 minutes ago":       at(3600 - 5400),
		"7d":                   at(3600 - 7*86400),
		"2 weeks ago":          at(3600 - 14*86400),
		"2026-03-01":           at(-13 * 3600),
		"2026-03-01 12:00":     at(-3600),
		"2026-03-01T12:00:00Z": at(0),
	} {
		if got, err := a.Instant("--from", text); err != nil || got != want {
			t.Errorf("%q is %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"then", "-3h", "7", "7 fortnights", "99999999999999d", "2026-13-01"} {
		if got, err := a.Instant("--from", text); ExitCode(err) != CodeUsage || !strings.Contains(err.Error(), "--from") {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]messages.Time{"": 0, "90d": at(3600 + 90*86400), "in 2h": at(3 * 3600), "2026-03-02": at(11 * 3600)} {
		if got, err := a.Future("--expires", text); err != nil || got != want {
			t.Errorf("%q is %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"2026-03-01", "never", "24h ago"} {
		if _, err := a.Future("--expires", text); ExitCode(err) != CodeUsage {
			t.Errorf("%q: %v", text, err)
		}
	}
}
