package jobfile

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/candor-grid/candor/messages"
)

// TestOutputFileThatCannotBeMade: a script whose output file cannot be made fails before
// its first command, in every shell.
func TestOutputFileThatCannotBeMade(t *testing.T) {
	for _, shell := range []string{"sh", "bash"} {
		path, err := exec.LookPath(shell)
		if err != nil {
			continue
		}
		for _, j := range []Job{{Stdout: "missing/%j.out"}, {Stderr: "missing/%j.err"}, {Stdout: "out", Stderr: "missing/err"}} {
			dir := t.TempDir()
			j.Spec = messages.JobSpec{Dir: dir, Stages: []messages.Stage{{Script: "#!" + path + "\ntouch ran\n"}}}
			if err := j.AddPrelude("alice"); err != nil {
				t.Fatal(err)
			}
			command := exec.Command(path, "-c", j.Spec.Stages[0].Script)
			command.Dir, command.Env = dir, append(os.Environ(), "CANDOR_JOB=1")
			if command.Run() == nil {
				t.Errorf("%s: %+v ends with 0", shell, j)
			}
			if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
				t.Errorf("%s: %+v: the script ran", shell, j)
			}
		}
	}
}
