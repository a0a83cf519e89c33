package jobfile

import (
	"testing"

	"github.com/candor-grid/candor/messages/job"
)

func TestFilesAreReadFromThePrelude(t *testing.T) {
	values := map[string]string{"CANDOR_JOB": "7", "SLURM_JOB_ID": "9", "CANDOR_JOB_NAME": "a $b", "CANDOR_ARRAY_INDEX": "2", "CANDOR_NODE": "n1"}
	for _, one := range []struct {
		out, errs, in, wantOut, wantErrs string
		numbered, after                  bool
	}{
		{out: "slurm-%j.out", wantOut: "slurm-7.out", wantErrs: "slurm-7.out"},
		{out: "it's %x/%A_%4a.log", errs: "e %N", wantOut: "it's a $b/7_0002.log", wantErrs: "e n1", numbered: true},
		{out: "%j", errs: "%j", in: "input file", wantOut: "9", wantErrs: "9", numbered: true, after: true},
		{errs: "only", wantErrs: "only"},
		{},
	} {
		j := Job{Stdout: one.out, Stderr: one.errs, Stdin: one.in, Append: one.after, Spec: job.JobSpec{Stages: []job.Stage{{Script: "#!/bin/bash\nexec something\n"}}}}
		if one.numbered {
			j.Slurm, j.Spec.Stages[0].Array = true, job.Array{{First: 0, Last: 3, Step: 1}}
		}
		if err := j.AddPrelude("alice"); err != nil {
			t.Fatal(err)
		}
		in, out, errs := Files(j.Spec.Stages[0].Script, func(name string) string { return values[name] })
		if out != one.wantOut || errs != one.wantErrs || in != one.in {
			t.Errorf("%q, %q and %q are %q, %q and %q", one.in, one.out, one.errs, in, out, errs)
		}
	}
	if _, out, errs := Files("#!/bin/sh\nexec >x || exit 73\n", func(string) string { return "" }); out+errs != "" {
		t.Errorf("of another script: %q and %q", out, errs)
	}
}

// PathOf finds the path of the submitted file in the text that candor puts before a script (the prelude). There,
// CANDOR_SCRIPT is set to the path.
func TestThePathOfAScriptIsReadFromThePrelude(t *testing.T) {
	for _, path := range []string{"/home/alice/it's run.sh", ""} {
		j := Job{Slurm: true, Path: path, Stdout: "slurm-%j.out", Spec: job.JobSpec{Stages: []job.Stage{{Script: "#!/bin/bash\nX=1 CANDOR_SCRIPT=other srun true || exit 73\n"}}}}
		if err := j.AddPrelude("alice"); err != nil {
			t.Fatal(err)
		}
		if got := PathOf(j.Spec.Stages[0].Script); got != path {
			t.Errorf("%q, want %q", got, path)
		}
	}
}
