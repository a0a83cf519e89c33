package slurm

import (
	"testing"

	"github.com/candor-grid/candor/messages"
)

// TestStates: each end of a job has Slurm's word for it.
func TestStates(t *testing.T) {
	for want, j := range map[string]messages.JobSummary{
		"COMPLETED":     {State: messages.Completed},
		"CANCELLED":     {State: messages.Cancelled, Reason: "CancelledByUser"},
		"FAILED":        {State: messages.Failed, Reason: "TaskFailed"},
		"TIMEOUT":       {State: messages.Failed, Reason: "TimeLimit"},
		"OUT_OF_MEMORY": {State: messages.Failed, Reason: "MemoryLimit"},
		"NODE_FAIL":     {State: messages.Failed, Reason: "NodeLost"},
		"PREEMPTED":     {State: messages.Discarded, Reason: "Preempted"},
		"DEADLINE":      {State: messages.Discarded, Reason: "TooLate"},
	} {
		if got := stateOf(&j); got.long != want {
			t.Errorf("%v, %s: %s, want %s", j.State, j.Reason, got.long, want)
		}
	}
}
