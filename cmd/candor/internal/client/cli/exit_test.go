package cli_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/clienttest"
	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
)

func TestErrorsHaveExitCodes(t *testing.T) {
	for kind, code := range map[messages.Kind]int{
		messages.Internal: 1, messages.Invalid: 2, messages.TooLarge: 2, messages.NotFound: 3, messages.PermissionDenied: 4,
		messages.Insufficient: 5, messages.Conflict: 1, messages.NotLeader: 6, messages.Unavailable: 6, messages.Unknown: 6,
		messages.Fenced: 1, messages.Exhausted: 1, messages.Expired: 1, messages.Ended: 1,
	} {
		if got := cli.ExitCode(messages.Errorf(kind, "x")); got != code {
			t.Errorf("%v: exit code %d, want %d", kind, got, code)
		}
		if got := cli.ExitCode(fmt.Errorf("further: %w", messages.Errorf(kind, "x"))); got != code {
			t.Errorf("%v, wrapped: exit code %d, want %d", kind, got, code)
		}
	}
	s := newSite(t)
	clienttest.Refuse[jobmsg.JobRequest](s, messages.Auctioneer, messages.VerbJob, messages.Errorf(messages.NotFound, "job 9: does not exist; candor jobs lists yours"))
	s.Run("job", "9").Expect(t, cli.CodeNotFound, "", "candor job: job 9: does not exist; candor jobs lists yours (NotFound)\n")
}

func TestErrorsFitTheTerminal(t *testing.T) {
	s := newSite(t)
	s.Width = 80
	clienttest.Refuse[jobmsg.JobRequest](s, messages.Auctioneer, messages.VerbJob, messages.Errorf(messages.NotFound, "job 9: keeps no files: name them with --output when you submit; candor logs 9 prints what it wrote"))
	got := s.Run("job", "9")
	for line := range strings.Lines(got.Err) {
		if n := len(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	got.Expect(t, cli.CodeNotFound, "", "candor job: job 9: keeps no files")
}

// An error of the site about a file must not refer to a file on the user's machine.
func TestFilesOfAnotherMachine(t *testing.T) {
	s := newSite(t)
	clienttest.Answer(s, messages.Auctioneer, messages.VerbJob, func(jobmsg.JobRequest) (r jobmsg.JobDetail, err error) {
		return r, messages.Errorf(messages.Internal, "open /var/lib/elsewhere/jobs/1: no such file or directory")
	})
	s.Run("job", "1").Expect(t, cli.CodeFailed, "", "candor job: there is no file or directory /var/lib/elsewhere/jobs/1 (Internal)\n")
}
