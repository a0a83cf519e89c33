package slurm

import (
	"testing"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/jobfile"
)

// An option of the command line must win over its variable, such as SBATCH_ACCOUNT.
func TestVariablesAreOptions(t *testing.T) {
	values := map[string]string{"SBATCH_ACCOUNT": "proj", "SBATCH_PARTITION": "cpu", "SBATCH_TIMELIMIT": "10", "SBATCH_MEM_PER_NODE": "2G", "SBATCH_ARRAY_INX": "1-3", "SBATCH_EXCLUSIVE": "", "SBATCH_QOS": ""}
	a := cli.New()
	a.Lookup = func(name string) (string, bool) { value, set := values[name]; return value, set }
	c := &call{App: a}
	o := jobfile.NewOptions(a.Lookup)
	words, err := o.SayWords(append(c.variables("SBATCH_"), "--partition=gpu", "script"))
	if err != nil || len(words) != 1 {
		t.Fatalf("%q, %v", words, err)
	}
	job := jobfile.OfCommand([]string{"true"})
	if err := o.Apply(job); err != nil {
		t.Fatal(err)
	}
	stage := &job.Spec.Stages[0]
	if job.Spec.Project != "proj" || job.Spec.Market != "gpu" || stage.TimeLimit.Std() != 10*time.Minute || stage.Memory != 2<<30 || stage.Array.Count() != 3 || !stage.Exclusive {
		t.Errorf("%+v", job.Spec)
	}
	if words := c.variables("SALLOC_"); words != nil {
		t.Errorf("%q", words)
	}
}
