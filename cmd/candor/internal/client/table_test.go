package client

import (
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// TestTablesAreWhatUsersAskFor checks that a narrow terminal gets a table without its least important columns.
// Columns that the user names are always shown.
func TestTablesAreWhatUsersAskFor(t *testing.T) {
	s := newSite(t)
	s.further = prepareSite
	gives[job.JobsRequest](messages.Auctioneer, messages.VerbJobs, someJobs())(s)
	gives[messages.Empty](messages.Auctioneer, messages.VerbMarkets, someMarkets())(s)
	for _, c := range []struct {
		line    string
		width   int
		code    int
		out     string
		further string
	}{
		{"jobs -n 4 -o name", 80, 0, "104\n103\n102\n7\n", ""},
		{"markets -o name", 80, 0, "main\nnight\n", ""},
		{"jobs -n 4 --columns job,state", 0, 0, "JOB  STATE\n104  Waiting\n103  Running\n102  Failed\n  7  Completed\n", ""},
		{"jobs -n 4 --columns STATE,Job", 80, 0, "STATE      JOB\nWaiting    104\nRunning    103\nFailed     102\nCompleted    7\n", ""},
		{"jobs -n 4 --columns job,speed", 80, 2, "", "there is no column \"speed\": there are JOB, NAME,"},
		{"jobs -o yaml", 80, 2, "", "use wide, name or json"},
	} {
		s.width = c.width
		got := s.run(strings.Fields(c.line)...)
		if got.code != c.code || got.out != c.out || !strings.Contains(got.err, c.further) {
			t.Errorf("%s: exit code %d, %s\n%s", c.line, got.code, difference(got.out, c.out), got.err)
		}
	}
	s.width = 80
	narrow := s.run("jobs", "-n", "4")
	golden(t, "jobs_80.txt", narrow.out)
	if got := s.run("jobs", "-n", "4", "-o", "json"); !strings.HasPrefix(got.out, `{"jobs"`) {
		t.Errorf("-o json: %s", got.out)
	}
}

// TestAnEmptyListOfNamesIsEmpty lists names when there are none. Standard output must be empty for scripts; the note
// to the user is on standard error.
func TestAnEmptyListOfNamesIsEmpty(t *testing.T) {
	s := newSite(t)
	gives[job.JobsRequest](messages.Auctioneer, messages.VerbJobs, job.JobsReply{})(s)
	s.run("jobs", "-o", "name").expect(t, 0, "", "No jobs.")
	if got := s.run("jobs", "-o", "name"); got.out != "" {
		t.Errorf("standard output: %q", got.out)
	}
}
