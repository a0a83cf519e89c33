package jobfile

import (
	"strings"
	"testing"
)

// The test submits the copy of a script that a task runs, as sbatch $0 does. The script's options must be read again,
// and nothing of the earlier job may be left.
func TestAScriptThatSubmitsItself(t *testing.T) {
	for _, source := range []string{
		"#!/bin/bash -l\n#SBATCH -n 3 -t 5\n\necho $1 # the script goes on in line x\n",
		"#SBATCH -n 3 -t 5\necho $1",
	} {
		text, arguments := source, []string{"a\nb", "c"}
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
	if own := "#!/bin/sh\ntrue # the script goes on in line 2\ntrue\n"; withoutPrelude(own) != own {
		t.Error("a line of the user's script was removed")
	}
}
