package slurm

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// An index at the maximum of its type must not loop for ever. A list with too many elements must be refused.
func TestIndicesEnd(t *testing.T) {
	got, err := indicesOf("1-3,9223372036854775806-9223372036854775807")
	if err != nil || !slices.Equal(got, []int64{1, 2, 3, math.MaxInt64 - 1, math.MaxInt64}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, text := range []string{"", "x", "3-1", "0-100000", "1-60000,1-60000", "0-9223372036854775807"} {
		if got, err := indicesOf(text); err == nil {
			t.Errorf("%q: %d indices", text, len(got))
		}
	}
}

func TestNodesAndProcessors(t *testing.T) {
	for _, v := range []struct {
		job         job.JobSummary
		nodes, cpus int
	}{
		{job.JobSummary{}, 1, 1}, {job.JobSummary{CPUs: 8}, 1, 8}, {job.JobSummary{Nodes: 2}, 2, 2}, {job.JobSummary{Nodes: 2, CPUs: 12}, 2, 12},
	} {
		if r := (row{JobSummary: v.job}); r.nodes() != v.nodes || r.cpus() != v.cpus {
			t.Errorf("%+v: %d nodes and %d processors", v.job, r.nodes(), r.cpus())
		}
	}
}

// scontrol must show a job's ranks and the processors of each rank. squeue must show why a job waits.
func TestSizesOfAllocations(t *testing.T) {
	stage := job.Stage{Script: "#!/bin/sh\nexport SLURM_NNODES=2 SLURM_NTASKS=5 SLURM_NPROCS=5\ntrue\n", CPUs: 6}
	r := row{JobSummary: job.JobSummary{Nodes: 2, CPUs: 12}, state: pending, detail: &job.JobDetail{Spec: job.JobSpec{Stages: []job.Stage{stage}, AfterOK: []messages.JobID{7}}}}
	if got, want := r.sizes(), "NumNodes=2 NumCPUs=12 NumTasks=5 CPUs/Task=2"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := (&call{App: cli.New()}).queueFields()['E'].text(&r); got != "afterok:7" {
		t.Errorf("it waits for %s", got)
	}
}

// The command seff shows the efficiency of a job: the used resources divided by the resources that the job had.
func TestEfficiency(t *testing.T) {
	r := row{JobSummary: job.JobSummary{Job: 7, Account: "alice", Nodes: 2, CPUs: 8}, state: completed, began: 1e9, ended: messages.Time(0).Add(messages.Duration(101e9)), cpu: messages.Duration(200e9), rss: 3 << 29,
		detail: &job.JobDetail{Spec: job.JobSpec{Stages: []job.Stage{{Memory: 4 << 30}}}}}
	r.began = messages.Time(0).Add(messages.Duration(1e9))
	want := "Job ID: 7\nCluster: west\nUser/Group: alice/alice\nState: COMPLETED (exit code 0)\nNodes: 2\nCores per node: 4\nCPU Utilized: 00:03:20\nCPU Efficiency: 25.00% of 00:13:20 core-walltime\n" +
		"Job Wall-clock time: 00:01:40\nMemory Utilized: 1.50 GB\nMemory Efficiency: 37.50% of 4.00 GB (of the node that used most)\n"
	if got := r.efficiency("west", r.ended); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	r.state, r.ended = running, 0
	if got, want := r.efficiency("west", r.began), "Job ID: 7\nCluster: west\nUser/Group: alice/alice\nState: RUNNING\nEfficiency not available for RUNNING jobs: the site knows what a job used when it has ended.\n"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Scripts shorten the names of sacct's fields: they use only the first letters. Such a short name must be accepted.
func TestFieldsMayBeShortened(t *testing.T) {
	c := &call{App: cli.New()}
	_, names, err := recordColumns("User,JobID,Jobname,partition,state,time,start,elap,MaxRss,nn,TresUsageInTot", c.records("", "K"), false, "|", false)
	want := []string{"user", "jobid", "jobname", "partition", "state", "timelimit", "start", "elapsed", "maxrss", "nnodes", "tresusageintot"}
	if err != nil || !slices.Equal(names, want) {
		t.Errorf("%v, %v, want %v", names, err, want)
	}
	if _, _, err := recordColumns("JobIDs", c.records("", "K"), false, "|", false); err == nil {
		t.Error("a field that there is not is taken")
	}
}

// A user has the numbers that this machine or its directory service knows.
func TestJobsHaveTheNumbersOfUsers(t *testing.T) {
	bin := t.TempDir()
	script := "#!/bin/sh\ncase $* in \"passwd ann\") echo ann:*:70001:70002:Ann:/home/ann:/bin/sh;; \"group 70002\") echo staff:*:70002:;; *) exit 2;; esac\n"
	if err := os.WriteFile(filepath.Join(bin, "getent"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	c := &call{App: cli.New()}
	for account, want := range map[messages.Name]string{"root": "UserId=root(0) GroupId=root(0)", "no.user": "UserId=no.user(65534) GroupId=no.user(65534)", "ann": "UserId=ann(70001) GroupId=staff(70002)"} {
		for range 2 {
			if got := c.owner(account); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
	}
}
