package jobfile

import (
	"testing"
	"time"
)

// A time limit without units has the forms that the option --time of sbatch(1) has. A time limit with units has the
// forms that Go has.
func TestTimeLimits(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"10":                        10 * time.Minute,
		"10:30":                     10*time.Minute + 30*time.Second,
		"2:00:00":                   2 * time.Hour,
		"1-12":                      day + 12*time.Hour,
		"1-12:30":                   day + 12*time.Hour + 30*time.Minute,
		"7-00:00:01":                7*day + time.Second,
		"90:00":                     90 * time.Minute,
		"9999-999999:999999:999999": 9999*day + 999999*(time.Hour+time.Minute+time.Second),
		"1h30m":                     90 * time.Minute,
		"90s":                       90 * time.Second,
		"0":                         0,
		"UNLIMITED":                 0,
	} {
		if got, err := ParseTime(text); err != nil || time.Duration(got) != want {
			t.Errorf("%s: got %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "x", "-5", "1:2:3:4", "1-", "-1-2", "1-2:3:4:5", "1000000", "10000-0", "-1h", "1.5"} {
		if got, err := ParseTime(text); err == nil {
			t.Errorf("%q: got %v, want an error", text, got)
		}
	}
}
