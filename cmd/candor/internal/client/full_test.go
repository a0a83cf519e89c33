package client

import (
	"bytes"
	"strings"
	"syscall"
	"testing"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/slurm"
)

// full is a writer that fails as if the disk were full.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// TestLostOutputIsAFailure checks that no command succeeds if its output cannot be written. After a submission,
// standard error must have the job's number.
func TestLostOutputIsAFailure(t *testing.T) {
	s, _ := slurmSite(t)
	for _, c := range []struct{ line, says string }{
		{"submit -b 1 --id-only -- true", " is submitted, but its number was not written"},
		{"submit -b 1 -- true", " is submitted, but its number was not written"},
		{"help job-file", "no space left"},
		{"--help", "no space left"},
		{"jobs", "no space left"},
		{"sbatch --wrap true", " is submitted, but its number was not written"},
		{"sbatch --parsable --wrap true", " is submitted, but its number was not written"},
		{"scontrol show job 10", "no space left"},
		{"sacct --helpformat", "no space left"},
	} {
		var errs bytes.Buffer
		a, args, code := s.app(full{}, &errs), strings.Fields(c.line), 0
		if strings.HasPrefix(args[0], "s") && args[0] != "submit" {
			code = slurm.Run(t.Context(), a, args[0], args[1:])
		} else {
			code = run(t.Context(), a, args, root(a, nil))
		}
		if code != cli.CodeFailed || !strings.Contains(errs.String(), c.says) {
			t.Errorf("%s: exit code %d, %q", c.line, code, errs.String())
		}
	}
}
