package jobfile

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// spanFromNow matches the text after "now+" in sbatch's --begin: a number and a unit.
var spanFromNow = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(\d{1,9}) *(seconds?|minutes?|hours?|days?|weeks?|s|m|h|d|w)?$`)
})

// dayTimes are the names of times of the day, as offsets from midnight.
var dayTimes = map[string]time.Duration{"midnight": 0, "noon": 12 * time.Hour, "teatime": 16 * time.Hour}

// ParseBegin reads a begin time as sbatch does: now+1hour, 16:00 (today, or tomorrow if it has passed), tomorrow,
// 2026-01-31, 2026-01-31T12:00, 2026-01-31T12:00:00Z. It also reads +1h30m, a span from now. A time without a zone is
// in the time zone of the argument `now`.
func ParseBegin(text string, now time.Time) (time.Time, error) {
	lower := strings.ToLower(strings.TrimSpace(text))
	if rest, relative := strings.CutPrefix(strings.TrimPrefix(lower, "now"), "+"); relative {
		if d, ok := parseSpan(rest); ok {
			return now.Add(d), nil
		}
	}
	midnight := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	switch lower {
	case "now":
		return now, nil
	case "today":
		return midnight, nil
	case "tomorrow":
		return midnight.AddDate(0, 0, 1), nil
	}
	if at, ok := timeOfDay(lower, midnight); ok {
		if !at.After(now) {
			at = at.AddDate(0, 0, 1)
		}
		return at, nil
	}
	for _, layout := range []string{"2006-01-02", "2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02 15:04:05", time.RFC3339} {
		if at, err := time.ParseInLocation(layout, strings.TrimSpace(text), now.Location()); err == nil {
			return at, nil
		}
	}
	return now, fmt.Errorf("%q is no time: write it like now+1hour, 16:00, tomorrow, 2026-01-31T12:00 or 2026-01-31T12:00:00Z", text)
}

// parseSpan reads a span of time such as 90 (seconds), 1hour, 2 days or 1h30m.
func parseSpan(text string) (time.Duration, bool) {
	if m := spanFromNow().FindStringSubmatch(text); m != nil {
		n, _ := strconv.ParseInt(m[1], 10, 64)
		unit := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour}[(m[2] + "s")[0]]
		return time.Duration(n) * unit, n <= int64(100*365*24*time.Hour/unit)
	}
	d, err := time.ParseDuration(text)
	return d, err == nil && d >= 0
}

// timeOfDay reads 16:00, 16:00:30 and the names in dayTimes.
func timeOfDay(text string, midnight time.Time) (time.Time, bool) {
	if d, named := dayTimes[text]; named {
		return midnight.Add(d), true
	}
	for _, layout := range []string{"15:04", "15:04:05"} {
		if t, err := time.Parse(layout, text); err == nil {
			return time.Date(midnight.Year(), midnight.Month(), midnight.Day(), t.Hour(), t.Minute(), t.Second(), 0, midnight.Location()), true
		}
	}
	return midnight, false
}

// setBegin sets the begin time as text, and checks it. The time is computed at submission.
func setBegin(job *Job, text string) error {
	job.Begin = text
	_, err := ParseBegin(text, time.Unix(0, 0))
	return err
}
