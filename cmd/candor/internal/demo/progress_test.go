package demo

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// someJobs returns n jobs, numbered from 1. The argument `ended` says how many of the first jobs have ended. The next
// job runs, and the others wait.
func someJobs(n, ended int) []job.JobSummary {
	jobs := make([]job.JobSummary, n)
	for i := range jobs {
		jobs[i] = job.JobSummary{Job: messages.JobID(i + 1), Name: "a job with a rather long name", Account: "alice", Tasks: 10, Budget: 12 * credit}
		switch {
		case i < ended:
			jobs[i].State, jobs[i].Done, jobs[i].Charged = job.Completed, 10, 12*credit
		case i == ended:
			jobs[i].State, jobs[i].Done = job.Running, 4
		}
	}
	return jobs
}

func someSnapshot(n, ended int) *snapshot {
	return &snapshot{elapsed: 3200 * time.Millisecond, planned: 26, tasks: 260, jobs: someJobs(n, ended),
		markets: []market.MarketStatus{{
			Prices: []market.ClassPrice{{Class: "map", Price: 31.5, Slots: 8, Idle: 1, Pending: 40, Bidders: 3}, {Class: "reduce", Price: 4, Slots: 4, Idle: 4}},
			Top:    []market.JobShare{{Job: messages.JobID(ended + 1), Shares: []job.ClassShare{{Class: "map", Now: 0.42}, {Class: "reduce"}}}},
		}}}
}

func TestPlain(t *testing.T) {
	want := "  3.2s  jobs: 5 of 26 submitted, 1 running, 2 ended; tasks: 24 of 260" +
		"; map: 7 of 8 slots busy, price 31.50; reduce: 0 of 4 slots busy, price 4.00"
	if got := plain(someSnapshot(5, 2)); got != want {
		t.Errorf("the line is\n%q, want\n%q", got, want)
	}
}

// On screens of many sizes, nothing may wrap or scroll, and the running job must be visible.
func TestScreenFits(t *testing.T) {
	for _, size := range []struct{ columns, rows int }{{80, 24}, {200, 50}, {40, 10}, {20, 8}} {
		lines := screen(someSnapshot(26, 20), terminal.Style{}, size.columns, size.rows)
		if len(lines) >= size.rows {
			t.Errorf("%v: %d lines", size, len(lines))
		}
		for _, line := range lines {
			if terminal.Width(line) > size.columns {
				t.Errorf("%v: line %q is too wide", size, line)
			}
		}
		if size.columns >= 80 && !strings.Contains(strings.Join(lines, "\n"), "map 42%") {
			t.Errorf("%v: the running job's share is missing:\n%s", size, strings.Join(lines, "\n"))
		}
	}
}

func TestChoose(t *testing.T) {
	for _, c := range []struct {
		rows   int
		want   string
		hidden int
	}{{6, "1 2 3 4 5 6", 0}, {4, "3 4 5 6", 2}, {3, "4 5 6", 3}, {2, "4 6", 4}, {1, "4", 5}, {0, "4", 5}} {
		shown, hidden := choose(someJobs(6, 3), c.rows) // jobs 1 to 3 have ended, 4 runs, 5 and 6 wait
		var got []string
		for _, j := range shown {
			got = append(got, j.Job.String())
		}
		if strings.Join(got, " ") != c.want || hidden != c.hidden {
			t.Errorf("in %d rows it shows %v and hides %d, want %s and %d", c.rows, got, hidden, c.want, c.hidden)
		}
	}
}

// The progress gets five snapshots each second, but must print only one line each second. It must always print a line
// for the last snapshot.
func TestLinesComeOnceASecond(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out, terminal.Style{})
	for i := range 15 {
		s := someSnapshot(5, 2)
		s.elapsed = time.Duration(i) * interval
		p.show(s)
	}
	last := someSnapshot(26, 26)
	last.elapsed = 15*interval - time.Millisecond
	p.show(last)
	p.end()
	if got := strings.Count(out.String(), "\n"); got != 4 {
		t.Errorf("%d lines, want 4:\n%s", got, out.String())
	}
}
