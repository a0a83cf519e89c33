package cli

import (
	"strconv"
	"strings"
	"time"

	"github.com/candor-grid/candor/messages"
)

// layouts are the accepted formats of a time. Formats without a zone use the user's zone.
var layouts = []string{time.RFC3339Nano, "2006-01-02", "2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02 15:04:05"}

// Instant reads a point in time: a local date or time, RFC 3339, a span before now (24h, "7 days ago"), now, today or
// yesterday.
func (a *App) Instant(flag, text string) (messages.Time, error) {
	if text == "" {
		return 0, nil
	}
	if t, ok := a.named(text); ok {
		return messages.TimeOf(t), nil
	}
	if d, ok := Span(strings.TrimSuffix(text, " ago")); ok {
		return messages.TimeOf(a.Now().Add(-d)), nil
	}
	return a.absolute(flag, text, "how long ago, like 24h or 7d")
}

// Future reads a time in the future. A span, such as 2h, counts from now.
func (a *App) Future(flag, text string) (messages.Time, error) {
	if text == "" {
		return 0, nil
	}
	if d, ok := Span(strings.TrimPrefix(text, "in ")); ok {
		return messages.TimeOf(a.Now().Add(d)), nil
	}
	t, err := a.absolute(flag, text, "a span from now, like 90d")
	if err == nil && t <= messages.TimeOf(a.Now()) {
		return 0, Usagef("%s %q is in the past: name a later time", flag, text)
	}
	return t, err
}

func (a *App) absolute(flag, text, or string) (messages.Time, error) {
	for _, layout := range layouts {
		if t, err := time.ParseInLocation(layout, text, a.Zone); err == nil {
			return messages.TimeOf(t), nil
		}
	}
	return 0, Usagef("%s %q: write it like 2026-01-31, 2026-01-31T12:00:00Z, or %s", flag, text, or)
}

func (a *App) named(text string) (time.Time, bool) {
	now := a.Now().In(a.Zone)
	midnight := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, a.Zone)
	switch text {
	case "now":
		return now, true
	case "today":
		return midnight, true
	case "yesterday":
		return midnight.AddDate(0, 0, -1), true
	}
	return time.Time{}, false
}

// units are the units that time.ParseDuration does not read.
var units = map[string]time.Duration{
	"d": day, "day": day, "days": day, "w": 7 * day, "week": 7 * day, "weeks": 7 * day,
	"hour": time.Hour, "hours": time.Hour, "minute": time.Minute, "minutes": time.Minute,
}

const day = 24 * time.Hour

// Span reads a span: 24h, 1h30m, 7d, 2 weeks.
func Span(text string) (time.Duration, bool) {
	if d, err := time.ParseDuration(text); err == nil {
		return d, d >= 0
	}
	digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
	n, err := strconv.ParseInt(text[:digits], 10, 32)
	unit, known := units[strings.TrimSpace(text[digits:])]
	if err != nil || !known || time.Duration(n) > time.Duration(1<<62)/unit {
		return 0, false
	}
	return time.Duration(n) * unit, true
}
