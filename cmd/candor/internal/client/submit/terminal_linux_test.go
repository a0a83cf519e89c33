package submit_test

import (
	"strings"
	"testing"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/clienttest"
	"github.com/candor-grid/candor/messages/job"
)

// On a terminal, progress is redrawn in place, and removed at the end.
func TestWaitOnATerminal(t *testing.T) {
	s := newSite(t)
	clienttest.Submissions(s)
	s.Write("x.sh", "date\n")
	clienttest.Progressing(s, job.JobSummary{Reason: "WaitingForShare"}, job.JobSummary{State: job.Running, Running: 1}, job.JobSummary{State: job.Completed, Ended: clienttest.At(9)})
	user, tty := clienttest.OpenTerminal(t)
	code := s.OnTerminal(tty, "submit", "-b", "1", "--wait", s.Path("x.sh"))
	shown := clienttest.ReadUntil(t, user, "charged to alice")
	if got := <-code; got != cli.CodeOK {
		t.Errorf("exit code %d", got)
	}
	if strings.Count(shown, "\x1b[1A\r\x1b[J") != 3 {
		t.Errorf("progress was not redrawn in place: %q", shown)
	}
}

func TestMenuIsDrawn(t *testing.T) {
	s, _ := menuSite(t)
	s.Write("job.yaml", "market: sold\nlength: 10s\ncommand: [hostname]\nvaluation: {class: hard, max: 20, deadline: 90}\n")
	user, tty := clienttest.OpenTerminal(t)
	code := s.OnTerminal(tty, "quote", s.Path("job.yaml"))
	go func() {
		<-code
		tty.WriteString("END")
	}()
	shown := clienttest.ReadUntil(t, user, "END")
	for _, mark := range []string{"│·", "◆", "└──"} {
		if !strings.Contains(shown, mark) {
			t.Errorf("no %q in:\n%s", mark, shown)
		}
	}
}
