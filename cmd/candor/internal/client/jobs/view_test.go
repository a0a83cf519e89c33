package jobs

import (
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

func TestProgressLines(t *testing.T) {
	noon := messages.TimeOf(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	p := &cli.Page{Now: noon, Zone: time.UTC, Columns: 80}
	job := job.JobDetail{
		JobSummary: job.JobSummary{Job: 103, State: job.Failed, Submitted: noon, Ended: noon.Add(messages.Duration(185 * time.Second))},
		Stages:     []job.StageStatus{{Name: "count", Tasks: 16, Done: 16}, {Name: "total", Tasks: 4, Running: 1, Done: 1}},
	}
	const want = `Job 103  Failed  3m05s
  count  ████████████████████████  16/16
  total  ██████░░░░░░░░░░░░░░░░░░  1/4  1 running`
	if got := strings.Join(progressLines(p, job), "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestTasksFitTheTerminal(t *testing.T) {
	p := &cli.Page{Zone: time.UTC, Columns: 80, Layout: terminal.Layout{Width: 80}}
	status := job.TaskStatus{Stage: "main", Attempt: 1, State: "Stopped", Node: "node2", Claimed: 1, Ran: 2e9, CPU: 1e6, MaxRSS: 2 << 20, Suspended: 3e9, ExitCode: new(143),
		Reason: "Preempted", Message: "was ended on node2 because its market gave the slot to others"}
	writeTasks(p, &tasksQuery{job: 3}, job.TasksReply{Tasks: []job.TaskStatus{status}})
	for line := range strings.Lines(p.String()) {
		if n := terminal.Width(strings.TrimRight(line, "\n")); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if text := p.String(); !strings.Contains(text, "143  Preempted\n") || !strings.Contains(text, "main.0, attempt 1: was ended") {
		t.Error(text)
	}
}
