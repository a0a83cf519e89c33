package jobfile

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// The test submits the copy of a script that a task runs, as sbatch $0 does. The script's options must be read again,
// and nothing of the earlier job may be left.
func TestAScriptThatSubmitsItself(t *testing.T) {
	for _, source := range []string{
		"#!/bin/bash -l\n#SBATCH -n 3 -t 5\n\necho $1 # the script goes on in line x\n",
		"#SBATCH -n 3 -t 5\necho $1",
		"#!/bin/sh\n\n#SBATCH -n 3 -t 5\necho $1 # the script goes on: \n",
	} {
		text, arguments := source, []string{"a\nb", "c"}
		if source[2] == '/' {
			arguments = arguments[1:]
		}
		for range 3 {
			job := parse(t, text, arguments...)
			if s := &job.Spec.Stages[0]; s.CPUs != 3 || s.TimeLimit == 0 {
				t.Errorf("%d processors, %v, from %s", s.CPUs, s.TimeLimit, text)
			}
			job.Stdout = "out"
			if err := job.AddPrelude("alice"); err != nil {
				t.Fatal(err)
			}
			if text = job.Spec.Stages[0].Script; withoutPrelude(text) != source {
				t.Fatalf("%q is without its prelude %q, want %q", text, withoutPrelude(text), source)
			}
			if arguments = nil; strings.Count(text, "SLURM_JOB_ID=") != 1 {
				t.Errorf("several preludes: %s", text)
			}
		}
	}
	for _, own := range []string{"#!/bin/sh\ntrue # the script goes on in line 2\ntrue\n", "#!/bin/sh\ntrue # the script goes on: \ntrue\n"} {
		if withoutPrelude(own) != own {
			t.Error("a line of the user's script was removed:", own)
		}
	}
}

// TestMessagesNameTheLinesOfTheScript runs scripts with a mistake. Bash must name the line of the submitted script, with
// arguments and without.
func TestMessagesNameTheLinesOfTheScript(t *testing.T) {
	for _, arguments := range [][]string{nil, {"a", "b"}} {
		job := parse(t, "#!/bin/bash\n#SBATCH -n 3\n\nno-such-command\necho $LINENO $#\n", arguments...)
		if err := job.AddPrelude("alice"); err != nil {
			t.Fatal(err)
		}
		command := exec.Command("bash", "-c", job.Spec.Stages[0].Script)
		command.Env = []string{"PATH=" + os.Getenv("PATH"), "CANDOR_JOB=1", "CANDOR_ATTEMPT=1"}
		out, err := command.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "line 4: no-such-command") || !strings.HasSuffix(string(out), fmt.Sprintf("\n5 %d\n", len(arguments))) {
			t.Errorf("%v: %s", err, out)
		}
	}
}
