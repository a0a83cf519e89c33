package slurm

import (
	"math"
	"slices"
	"testing"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/messages"
)

// TestIndicesEnd: an index at the top of its type does not make the reading endless, and a list
// names no more elements than a command may.
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

// TestNodesAndProcessors: a row has at least one processor on each of its nodes.
func TestNodesAndProcessors(t *testing.T) {
	for _, v := range []struct {
		job         messages.JobSummary
		nodes, cpus int
	}{
		{messages.JobSummary{}, 1, 1}, {messages.JobSummary{CPUs: 8}, 1, 8}, {messages.JobSummary{Nodes: 2}, 2, 2}, {messages.JobSummary{Nodes: 2, CPUs: 12}, 2, 12},
	} {
		if r := (row{JobSummary: v.job}); r.nodes() != v.nodes || r.cpus() != v.cpus {
			t.Errorf("%+v: %d nodes and %d processors", v.job, r.nodes(), r.cpus())
		}
	}
}

// TestSizesOfAllocations: scontrol shows the ranks of a job and the processors of each, and squeue what a job waits for.
func TestSizesOfAllocations(t *testing.T) {
	stage := messages.Stage{Script: "#!/bin/sh\nexport SLURM_NNODES=2 SLURM_NTASKS=5 SLURM_NPROCS=5\ntrue\n", CPUs: 6}
	r := row{JobSummary: messages.JobSummary{Nodes: 2, CPUs: 12}, state: pending, detail: &messages.JobDetail{Spec: messages.JobSpec{Stages: []messages.Stage{stage}, AfterOK: []messages.JobID{7}}}}
	if got, want := r.sizes(), "NumNodes=2 NumCPUs=12 NumTasks=5 CPUs/Task=2"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := (&call{App: cli.New()}).queueFields()['E'].text(&r); got != "afterok:7" {
		t.Errorf("it waits for %s", got)
	}
}
