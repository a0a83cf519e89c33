package client

import (
	"bytes"
	"strings"
	"testing"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/clienttest"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// No command succeeds if its output cannot be written. After a submission, standard error must have the job's number.
func TestLostOutputIsAFailure(t *testing.T) {
	s := newSite(t)
	clienttest.Submissions(s)
	clienttest.Gives[job.JobsRequest](messages.Auctioneer, messages.VerbJobs, clienttest.Jobs())(s)
	for _, c := range []struct{ line, says string }{
		{"submit -b 1 --id-only -- true", " is submitted, but its number was not written"},
		{"submit -b 1 -- true", " is submitted, but its number was not written"},
		{"help job-file", "no space left"},
		{"--help", "no space left"},
		{"jobs", "no space left"},
	} {
		var errs bytes.Buffer
		if code := s.Execute(t.Context(), s.App(clienttest.FullDisk{}, &errs), strings.Fields(c.line)...); code != cli.CodeFailed || !strings.Contains(errs.String(), c.says) {
			t.Errorf("%s: exit code %d, %q", c.line, code, errs.String())
		}
	}
}
