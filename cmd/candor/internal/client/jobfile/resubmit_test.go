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
		"#!/bin/sh\n#SBATCH -n 3 -t 5\n# Solves one case.\n#SBATCH -J a\necho $1\n",
		"#!/bin/sh\n#SBATCH -n 3 -t 5",
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

// TestAScriptReadsItsDirectives runs scripts that read their own file. In this file, all directives must be as they
// were submitted. If a script adds a directive to a copy of the file and submits the copy, this directive must count.
func TestAScriptReadsItsDirectives(t *testing.T) {
	for _, source := range []string{
		"#!/bin/bash\n#SBATCH --mem=3G\n#SBATCH -n 3\n\ntrue\n",
		"#!/bin/bash\n#SBATCH --mem=3G\n# Solves one case.\n#SBATCH -n 3\ntrue\n",
		"#!/bin/bash\n#SBATCH --mem=3G\n#SBATCH -n 3\ntrue\n",
		"#SBATCH --mem=3G\n#SBATCH -n 3\ntrue\n",
	} {
		job := parse(t, source, "a", "b")
		if err := job.AddPrelude("alice"); err != nil {
			t.Fatal(err)
		}
		text := job.Spec.Stages[0].Script
		if !strings.Contains("\n"+text, "\n#SBATCH --mem=3G\n") || !strings.Contains("\n"+text, "\n#SBATCH -n 3\n") {
			t.Errorf("directives are not as submitted: %s", text)
		}
		first, rest, _ := strings.Cut(text, "\n")
		added := first + "\n#SBATCH -t 5\n" + rest
		if !strings.HasPrefix(first, "#") {
			added = "#SBATCH -t 5\n" + text
		}
		job = parse(t, added)
		if s := job.Spec.Stages[0]; s.TimeLimit == 0 || s.CPUs != 3 || s.Memory != 3<<30 || strings.Contains(s.Script, "SLURM_JOB_ID") || len(s.Script) != len(source)+len("#SBATCH -t 5\n") {
			t.Errorf("%v, %d processors, %d bytes: %s", s.TimeLimit, s.CPUs, s.Memory, s.Script)
		}
		script, _, err := ForQsub([]byte(text), []string{"-N", "x"})
		if err == nil || !strings.Contains(err.Error(), "lines that qsub does not read") {
			t.Errorf("qsub reads the prelude: %v: %s", err, script)
		}
	}
}

// TestPreludesOfEarlierVersions checks copies of scripts that earlier versions made.
func TestPreludesOfEarlierVersions(t *testing.T) {
	const prelude = `export SLURM_JOB_ID="$CANDOR_JOB"; exec >"$CANDOR_JOB"'.out' 2>&1 || exit 73`
	for copied, want := range map[string]string{
		"#!/bin/sh\n" + prelude + " # the script goes on in line 3\n#SBATCH -n 3\ntrue\n":                                 "#!/bin/sh\n#SBATCH -n 3\ntrue\n",
		"#!/bin/sh\n" + prelude + " # the script goes on in line 4\nset -- 'a'\n#SBATCH -n 3\ntrue\n":                     "#!/bin/sh\n#SBATCH -n 3\ntrue\n",
		"#!/bin/sh\n" + prelude + " # the script goes on in line 5\nset -- 'a\nb'\n#SBATCH -n 3\ntrue\n":                  "#!/bin/sh\n#SBATCH -n 3\ntrue\n",
		prelude + " # the script goes on in line 2\n#SBATCH -n 3\ntrue\n":                                                 "#SBATCH -n 3\ntrue\n",
		"#!/bin/sh\n" + prelude + " # the script goes on: #SBATCH -n 3\ntrue\n":                                           "#!/bin/sh\n#SBATCH -n 3\ntrue\n",
		"#!/bin/sh\n" + prelude + "; set -- 'a' # the script goes on: \n#SBATCH -n 3\ntrue\n":                             "#!/bin/sh\n\n#SBATCH -n 3\ntrue\n",
		"#!/bin/sh\n" + prelude + " # the script goes on in line 3\n# the script goes on in line 3\n#SBATCH -n 3\ntrue\n": "#!/bin/sh\n# the script goes on in line 3\n#SBATCH -n 3\ntrue\n",
	} {
		if got := withoutPrelude(copied); got != want {
			t.Errorf("%q: %q, want %q", copied, got, want)
		}
	}
}

// A script can be submitted with arguments. candor then puts commands that set the arguments before the script. Such a
// script may submit itself again. Its #CANDOR lines must then be read, although they are no longer at the beginning,
// and the original script must be submitted.
func TestAScriptWithArgumentsSubmitsItself(t *testing.T) {
	for _, source := range []string{"#!/bin/sh\n#CANDOR --memory 3G\ntrue\n", "#!/bin/sh\n\n#CANDOR --memory 3G\ntrue\n", "#CANDOR --memory 3G\ntrue\n"} {
		for _, argument := range []string{"a", "a\nb"} {
			job := parse(t, source, argument)
			if err := job.AddPrelude("alice"); err != nil {
				t.Fatal(err)
			}
			if s := parse(t, job.Spec.Stages[0].Script, "b").Spec.Stages[0]; s.Memory != 3<<30 || s.Script != source {
				t.Errorf("%d bytes of memory, %s", s.Memory, s.Script)
			}
		}
	}
}

// TestMessagesNameTheLinesOfTheScript runs scripts with a mistake, some with arguments and some without. In its error,
// bash must name the line of the script that the user submitted.
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

// The script of a job can be read again as it was submitted, with any interpreter.
func TestTheSubmittedScript(t *testing.T) {
	for _, source := range []string{
		"#!/bin/bash\n#SBATCH -n 3\n\necho a\n",
		"#!/usr/bin/env python3\n#SBATCH -n 3\nprint('END_x')\n",
		"#!/bin/sh\nscript=$(mktemp) && cat >\"$script\" <<'X'\na\nX\n",
	} {
		job := parse(t, source, "a", "b")
		job.Slurm = true
		if err := job.AddPrelude("alice"); err != nil {
			t.Fatal(err)
		}
		if text := job.Spec.Stages[0].Script; Submitted(text) != source || text == source {
			t.Errorf("%q is read as %q from %s", source, Submitted(text), text)
		}
	}
}
