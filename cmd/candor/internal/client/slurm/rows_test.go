package slurm

import (
	"math"
	"slices"
	"testing"

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
