package jobfile

import (
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
)

// parse reads a script of a user who has HOME and LANG set.
func parse(t *testing.T, script string, arguments ...string) *Job {
	t.Helper()
	job, err := ParseScript([]byte(script), arguments, lookup)
	if err != nil {
		t.Fatal(err)
	}
	if err := job.Options.Apply(job); err != nil {
		t.Fatal(err)
	}
	return job
}

func lookup(name string) (string, bool) {
	value, ok := map[string]string{"HOME": "/home/alice", "LANG": "C"}[name]
	return value, ok
}

func TestDirectivesSayTheOptionsOfSubmit(t *testing.T) {
	job := parse(t, `#!/bin/bash
#CANDOR --budget 12.5 --name 'two words'   # a comment
#CANDOR -A climate --market=main -c map

# an ordinary comment
#CANDOR --array 0-9:3%2 --time 1h30m --attempts 5 --env A=1 --env HOME --utility reduce=2,map=3 --wait
#CANDOR --chdir "/data/my files"
sort input
`)
	want := jobmsg.JobSpec{
		Name: "two words", Project: "climate", Market: "main", Budget: 12_500_000, Dir: "/data/my files",
		Utility: &jobmsg.Utility{Weights: jobmsg.Weights{{Class: "map", Weight: 3}, {Class: "reduce", Weight: 2}}},
		Env:     jobmsg.Env{{Name: "A", Value: "1"}, {Name: "HOME", Value: "/home/alice"}},
		Stages: []jobmsg.Stage{{Name: "main", Class: "map", Attempts: 5, MaxRunning: 2, Script: job.Spec.Stages[0].Script,
			TimeLimit: messages.Duration(90 * time.Minute), Array: jobmsg.Array{{First: 0, Last: 9, Step: 3}}}},
	}
	if !reflect.DeepEqual(job.Spec, want) {
		t.Errorf("got  %+v\nwant %+v", job.Spec, want)
	}
	if !job.HasBudget || !job.Options.Wait || len(job.Warnings) != 0 {
		t.Errorf("budget %v, wait %v, warnings %q", job.HasBudget, job.Options.Wait, job.Warnings)
	}
}

func TestSbatchDirectivesAreAliases(t *testing.T) {
	job := parse(t, `#!/bin/bash
#SBATCH --job-name=flights -A climate
#SBATCH -pmain --time=10
#SBATCH -a 1,3 --ntasks=1
#SBATCH --chdir /data --export=LANG,NOWHERE,X=y --no-requeue -W
##SBATCH --name=off
./run
`)
	stage := job.Spec.Stages[0]
	if job.Spec.Name != "flights" || job.Spec.Project != "climate" || job.Spec.Market != "main" || job.Spec.Dir != "/data" {
		t.Errorf("job %+v", job.Spec)
	}
	if time.Duration(stage.TimeLimit) != 10*time.Minute || stage.Attempts != 1 || stage.Tasks != 0 {
		t.Errorf("stage %+v", stage)
	}
	if want := (jobmsg.Array{{First: 1, Last: 1, Step: 1}, {First: 3, Last: 3, Step: 1}}); !reflect.DeepEqual(stage.Array, want) {
		t.Errorf("array %v, want %v", stage.Array, want)
	}
	if want := (jobmsg.Env{{Name: "LANG", Value: "C"}, {Name: "X", Value: "y"}}); !reflect.DeepEqual(job.Spec.Env, want) {
		t.Errorf("env %v, want %v", job.Spec.Env, want)
	}
	if !job.Options.Wait || len(job.Warnings) != 0 {
		t.Errorf("wait %v, warnings %q", job.Options.Wait, job.Warnings)
	}
}

func TestHarmlessSbatchDirectivesAreReported(t *testing.T) {
	job := parse(t, "#!/bin/sh\n#SBATCH --mail-type ALL -J x\n#SBATCH -N 1 -o out.%j --ntasks=1\n#SBATCH --array=0-1\ntrue\n")
	want := []string{
		"ignored options that the job does not need (see candor help slurm): #SBATCH -o (line 3), --mail-type (without --mail-user)",
	}
	if !reflect.DeepEqual(job.Warnings, want) {
		t.Errorf("got %q, want %q", job.Warnings, want)
	}
	if job.Spec.Name != "x" {
		t.Errorf("an option after a harmless one was lost: %+v", job.Spec)
	}
}

func TestCandorWinsOverSbatchAndTheCommandLineOverBoth(t *testing.T) {
	job := parse(t, "#!/bin/sh\n#CANDOR --name ours --market ours --env A=script\n#SBATCH --job-name=theirs -p theirs -A theirs\ntrue\n")
	if job.Spec.Name != "ours" || job.Spec.Market != "ours" || job.Spec.Project != "theirs" {
		t.Fatalf("%+v", job.Spec)
	}
	line := NewOptions(nil)
	if err := line.Flags.Parse([]string{"--name", "line", "-e", "A=line", "--wait=false"}); err != nil {
		t.Fatal(err)
	}
	if err := job.Options.Overlay(line); err != nil {
		t.Fatal(err)
	}
	if err := job.Options.Apply(job); err != nil {
		t.Fatal(err)
	}
	if job.Spec.Name != "line" || job.Spec.Market != "ours" || job.Spec.Env[0].Value != "line" {
		t.Errorf("%+v", job.Spec)
	}
}

func TestDirectivesEndAtTheFirstCommand(t *testing.T) {
	job := parse(t, "#!/bin/sh\n\n  # indented comment\n#CANDOR --budget 1\ntrue\n#CANDOR --nonsense\n#CANDOR --budget 99\n")
	if job.Spec.Budget != messages.Credit {
		t.Errorf("budget %v, want 1", job.Spec.Budget)
	}
}

func TestBadScriptsAreRefusedWithTheirLine(t *testing.T) {
	for _, c := range []struct{ script, want string }{
		{"#!/bin/sh\n#CANDOR --bugdet 5\ntrue\n", "line 2: #CANDOR --bugdet 5: unknown flag: --bugdet"},
		{"#!/bin/sh\n\n#CANDOR --budget five\ntrue\n", `line 3: #CANDOR --budget five: --budget: amount "five": must be a decimal number`},
		{"#!/bin/sh\n#CANDOR -b\ntrue\n", "line 2: #CANDOR -b: flag needs an argument"},
		{"#!/bin/sh\n#CANDOR budget 5\ntrue\n", `line 2: #CANDOR budget 5: "budget" is not an option`},
		{"#!/bin/sh\n#CANDOR --name 'x\ntrue\n", "line 2: #CANDOR --name 'x: a quote is not closed"},
		{"#!/bin/sh\n#CANDOR --tasks 0\ntrue\n", `--tasks "0": must be a whole number from 1 on`},
		{"#!/bin/sh\n#CANDOR --env 9X=1\ntrue\n", `"9X" is not the name of a variable`},
		{"#!/bin/sh\n#CANDOR --env UNSET\ntrue\n", "UNSET is not set in your environment"},
		{"#!/bin/sh\n#CANDOR --utility map=x\ntrue\n", `"map=x": write a weight for each class`},
		{"#!/bin/sh\n#SBATCH --time=soon\ntrue\n", `line 2: #SBATCH --time=soon: --time: time "soon": write it like`},
		{"#!/bin/sh\n#SBATCH --array\ntrue\n", "line 2: #SBATCH --array: --array needs a value"},
		{"#!/bin/sh\n#CANDOR --budget 5\n# nothing\n", "the script has no command: nothing but comments in 3 lines"},
		{"", "the script has no command"},
		{"#!/bin/sh\r\ntrue\r\n", "line 1: has a Windows line end"},
		{"\x7fELF\x00", "this is a binary file"},
	} {
		_, err := ParseScript([]byte(c.script), nil, lookup)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %q", c.script, err, c.want)
		}
		if messages.KindOf(err) != messages.Invalid {
			t.Errorf("%q: kind %v, want Invalid", c.script, messages.KindOf(err))
		}
	}
}

func TestArgumentsBecomePositionalParametersOfShells(t *testing.T) {
	for _, c := range []struct{ script, want string }{
		{"#!/bin/sh\necho $1\n", "#!/bin/sh\nset -- 'a b' 'it'\\''s' '$x' # the script goes on in line 3\necho $1\n"},
		{"#!/usr/bin/env -S bash -e\n\necho $1\n", "#!/usr/bin/env -S bash -e\nset -- 'a b' 'it'\\''s' '$x' # the script goes on: \necho $1\n"},
		{"echo $1\n", "set -- 'a b' 'it'\\''s' '$x' # the script goes on in line 2\necho $1\n"},
	} {
		job := parse(t, c.script, "a b", "it's", "$x")
		if err := job.AddPrelude("alice"); err != nil {
			t.Fatal(err)
		}
		if got := job.Spec.Stages[0].Script; got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// A script of an interpreter that is not a shell also gets its arguments, with and without Slurm's variables.
func TestArgumentsOfOtherScripts(t *testing.T) {
	awk, err := exec.LookPath("awk")
	if err != nil {
		t.Skip(err)
	}
	for _, slurm := range []bool{false, true} {
		job := parse(t, "#!"+awk+" -f\nBEGIN { print ARGV[1] \"|\" ARGV[2] }\n", "a b", "it's")
		if job.Slurm = slurm; job.AddPrelude("alice") != nil {
			t.Fatal("no prelude")
		}
		command := exec.Command("sh", "-c", job.Spec.Stages[0].Script)
		command.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + t.TempDir(), "CANDOR_JOB=1", "CANDOR_ATTEMPT=1"}
		if out, err := command.CombinedOutput(); err != nil || string(out) != "a b|it's\n" {
			t.Errorf("slurm %v: %v: %q", slurm, err, out)
		}
	}
}

func TestAScriptIsToldFromADocument(t *testing.T) {
	for _, c := range []struct {
		name, text string
		script, ok bool
	}{
		{"x", "#!/bin/sh\ntrue\n", true, true},
		{"job.yaml", "#!/bin/sh\ntrue\n", true, true},
		{"job.yaml", "budget: 5\n", false, true},
		{"run.sh", "true\n", true, true},
		{"standard input", "# a job\n\nbudget: 5\n", false, true},
		{"standard input", `{"budget": 5}`, false, true},
		{"standard input", "#CANDOR --budget 5\ntrue\n", true, true},
		{"standard input", "#SBATCH -n 5\ntrue\n", true, true},
		{"standard input", "echo budget: 5\n", false, false},
		{"standard input", "", false, false},
	} {
		if script, ok := IsScript(c.name, []byte(c.text)); script != c.script || ok != c.ok {
			t.Errorf("%s %q: got %v, %v, want %v, %v", c.name, c.text, script, ok, c.script, c.ok)
		}
	}
}

func TestExportAllTakesWhatNothingElseSet(t *testing.T) {
	job := parse(t, "#!/bin/sh\n#CANDOR --env A=mine\ntrue\n")
	long := strings.Repeat("x", jobmsg.MaxVariable)
	left := job.AddEnvironment([]string{"A=theirs", "B=2", "CANDOR_JOB=7", "BASH_FUNC_a-b%%=() { :\n}", "Z=", "L=" + long[1:], "M=" + long, "x.y=1", "BASH_FUNC_%%=", "U=\xff"})
	want := jobmsg.Env{{Name: "A", Value: "mine"}, {Name: "B", Value: "2"}, {Name: "BASH_FUNC_a-b%%", Value: "() { :\n}"}, {Name: "L", Value: long[1:]}, {Name: "Z", Value: ""}}
	if !reflect.DeepEqual(job.Spec.Env, want) {
		t.Errorf("got %v, want %v", job.Spec.Env, want)
	}
	if want := []string{"M", "x.y", "BASH_FUNC_%%", "U"}; !slices.Equal(left, want) {
		t.Errorf("left out: %q, want %q", left, want)
	}
}

func FuzzParseScript(f *testing.F) {
	f.Add([]byte("#!/bin/sh\n#CANDOR --budget 5 'x\n#SBATCH -J x --mem 4 -d afterok:3\ntrue\n"))
	f.Add([]byte("#CANDOR -a 0-9:2%4,12 -t 1-2:3:4\ntrue"))
	f.Fuzz(func(t *testing.T, source []byte) {
		job, err := ParseScript(source, []string{"x"}, lookup)
		if err != nil {
			if messages.KindOf(err) != messages.Invalid {
				t.Errorf("kind %v of %v", messages.KindOf(err), err)
			}
			return
		}
		if !strings.HasSuffix(job.Spec.Stages[0].Script, lastLine(string(source))) {
			t.Errorf("the script was changed: %q", job.Spec.Stages[0].Script)
		}
	})
}

func lastLine(s string) string { return s[strings.LastIndexByte(strings.TrimSuffix(s, "\n"), '\n')+1:] }

func TestMemoryOfSbatch(t *testing.T) {
	job := parse(t, "#!/bin/sh\n#SBATCH --mem=2G\ntrue\n")
	if len(job.Warnings) != 0 || job.Spec.Stages[0].Memory != 2<<30 {
		t.Errorf("%q, %+v", job.Warnings, job.Spec.Stages)
	}
}

// A job that a task submits must not get the task's number of threads.
func TestAJobOfAJobHasItsOwnThreads(t *testing.T) {
	job := &Job{}
	job.AddSafeEnvironment([]string{"OMP_NUM_THREADS=8", "GOMAXPROCS=3", "CANDOR_CPUS=8", "A=8"})
	if want := (jobmsg.Env{{Name: "A", Value: "8"}, {Name: "GOMAXPROCS", Value: "3"}}); !slices.Equal(job.Spec.Env, want) {
		t.Errorf("%v, want %v", job.Spec.Env, want)
	}
}
