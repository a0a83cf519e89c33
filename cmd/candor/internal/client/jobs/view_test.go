package jobs

import (
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/messages"
)

// Progress is a line for the job and one for each of its stages.
func TestProgressLines(t *testing.T) {
	noon := messages.TimeOf(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	p := &cli.Page{Now: noon, Zone: time.UTC, Columns: 80}
	job := messages.JobDetail{
		JobSummary: messages.JobSummary{Job: 103, State: messages.Failed, Submitted: noon, Ended: noon.Add(messages.Duration(185 * time.Second))},
		Stages:     []messages.StageStatus{{Name: "count", Tasks: 16, Done: 16}, {Name: "total", Tasks: 4, Running: 1, Done: 1}},
	}
	const want = `Job 103  Failed  3m05s
  count  ████████████████████████  16/16
  total  ██████░░░░░░░░░░░░░░░░░░  1/4  1 running`
	if got := strings.Join(progressLines(p, job), "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
