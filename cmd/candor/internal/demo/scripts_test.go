package demo

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/candor-grid/candor/deploy/examples"
	"github.com/candor-grid/candor/messages/job"
)

// TestScripts runs the scripts of each submission with the shell and awk of this machine. The results must be the known
// answers. The test uses fewer map tasks than the submitted job, because the result must not depend on the number of
// map tasks.
func TestScripts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "example")
	if err := examples.Unpack(examples.TraceAnalysis(), dir); err != nil {
		t.Fatal(err)
	}
	for i, s := range loadWorkload(t).Submissions {
		t.Run(s.Answer(), func(t *testing.T) {
			t.Parallel()
			out := outDir(t.TempDir(), i, &s)
			spec := s.Spec(dir, out)
			for _, stage := range spec.Stages {
				if stage.Name == "map" {
					stage.Tasks = 2
				}
				runStage(t, &spec, &stage)
			}
			got, err := collect(out)
			if err != nil {
				t.Fatal(err)
			}
			want, err := fs.ReadFile(examples.TraceAnalysis(), "answers/"+s.Answer())
			if err != nil {
				t.Fatal(err)
			}
			if d := firstDifference(got, string(want)); d != "" {
				t.Error(d)
			}
		})
	}
}

// runStage runs the tasks of a stage one after the other, in the environment of an agent.
func runStage(t *testing.T, spec *job.JobSpec, stage *job.Stage) {
	t.Helper()
	tasks := max(stage.Tasks, 1)
	for task := range tasks {
		command := exec.Command(stage.Command[0], stage.Command[1:]...)
		command.Dir = spec.Dir
		command.Env = append(os.Environ(), "CANDOR_JOB=1", fmt.Sprint("CANDOR_TASK=", task), fmt.Sprint("CANDOR_TASKS=", tasks))
		for _, v := range append(append(job.Env{}, spec.Env...), stage.Env...) {
			command.Env = append(command.Env, v.Name+"="+v.Value)
		}
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%s task %d: %v\n%s", stage.Name, task, err, output)
		}
	}
}

// Each map task writes one file for each reduce task. The variable REDUCERS tells the map tasks how many reduce tasks
// there are. The stage reduce must have the same number of tasks.
func TestReducersMatchTheReduceStage(t *testing.T) {
	for _, s := range loadWorkload(t).Submissions {
		reducers, shared := "1", false
		for _, v := range s.spec.Env {
			if v.Name == "REDUCERS" {
				reducers = v.Value
			}
		}
		for _, stage := range s.spec.Stages {
			for _, v := range stage.Env {
				shared = shared || v.Name == "BUCKET"
			}
			if stage.Name == "reduce" && !shared && fmt.Sprint(stage.Tasks) != reducers {
				t.Errorf("%s: %d tasks reduce what is left for %s", s.Job, stage.Tasks, reducers)
			}
		}
	}
}
