package jobfile

import (
	"strings"
	"testing"
	"time"
)

func TestParseBegin(t *testing.T) {
	now := time.Date(2026, 3, 1, 13, 0, 0, 0, time.FixedZone("CET", 3600))
	for text, want := range map[string]string{
		"now": "2026-03-01T13:00:00+01:00", "now+1hour": "2026-03-01T14:00:00+01:00", "now+60": "2026-03-01T13:01:00+01:00",
		"now+2days": "2026-03-03T13:00:00+01:00", "now + 1 week": "", "now+3minutes": "2026-03-01T13:03:00+01:00", "+1h30m": "2026-03-01T14:30:00+01:00",
		"+1week": "2026-03-08T13:00:00+01:00", "16:00": "2026-03-01T16:00:00+01:00", "12:59:30": "2026-03-02T12:59:30+01:00", "13:00": "2026-03-02T13:00:00+01:00",
		"noon": "2026-03-02T12:00:00+01:00", "midnight": "2026-03-02T00:00:00+01:00", "teatime": "2026-03-01T16:00:00+01:00", "tomorrow": "2026-03-02T00:00:00+01:00",
		"today": "2026-03-01T00:00:00+01:00", "2026-04-01": "2026-04-01T00:00:00+01:00", "2026-04-01T08:30": "2026-04-01T08:30:00+01:00",
		"2026-04-01T08:30:15Z": "2026-04-01T08:30:15Z", "": "", "soon": "", "now+": "", "now+1fortnight": "", "25:00": "", "now+999999999weeks": "", "now-1hour": "",
	} {
		at, err := ParseBegin(text, now)
		if got := at.Format(time.RFC3339); err != nil && want != "" || err == nil && got != want {
			t.Errorf("%q: %s, %v; want %s", text, got, err, want)
		}
	}
}

func TestBeginOfJobs(t *testing.T) {
	if job := parse(t, "#!/bin/sh\n#SBATCH -b now+1hour\ntrue\n"); job.Begin != "now+1hour" {
		t.Errorf("%q", job.Begin)
	}
	if job, err := ParseDocument([]byte("begin: 16:00\ncommand: [true]\n")); err != nil || job.Begin != "16:00" {
		t.Errorf("%v, %+v", err, job)
	}
	if _, err := ParseDocument([]byte("begin: soon\ncommand: [true]\n")); err == nil || !strings.Contains(err.Error(), `begin: "soon" is no time`) {
		t.Error(err)
	}
}
