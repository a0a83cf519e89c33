package slurm

import (
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

func TestStates(t *testing.T) {
	for want, j := range map[string]jobmsg.JobSummary{
		"COMPLETED":     {State: jobmsg.Completed, Reason: "Completed"},
		"CANCELLED":     {State: jobmsg.Cancelled, Reason: "CancelledByUser"},
		"FAILED":        {State: jobmsg.Failed, Reason: "TaskFailed"},
		"TIMEOUT":       {State: jobmsg.Failed, Reason: "TimeLimit"},
		"OUT_OF_MEMORY": {State: jobmsg.Failed, Reason: "MemoryLimit"},
		"NODE_FAIL":     {State: jobmsg.Failed, Reason: "NodeLost"},
		"PREEMPTED":     {State: jobmsg.Discarded, Reason: "Preempted"},
		"DEADLINE":      {State: jobmsg.Discarded, Reason: "TooLate"},
	} {
		if got := stateOf(&j); got.long != want {
			t.Errorf("%v, %s: %s, want %s", j.State, j.Reason, got.long, want)
		}
	}
}

// A script exits with 0 after its memory limit ended one of its processes. The job and its task must have the state
// OUT_OF_MEMORY.
func TestLostProcessesAreOutOfMemory(t *testing.T) {
	job := stateOf(&jobmsg.JobSummary{State: jobmsg.Completed, Reason: "MemoryKilled"})
	task := taskState(&jobmsg.TaskStatus{State: "Done", Reason: "MemoryKilled"}, completed)
	if job != outOfMem || task != outOfMem || exit(0, "MemoryKilled", task) != "0:125" {
		t.Errorf("the job is %v, its task %v with %s", job, task, exit(0, "MemoryKilled", task))
	}
}

// A failed task never has the exit code 0:0. Programs may look only at the exit code.
func TestNoFailureHasTheExitCodeOfSuccess(t *testing.T) {
	for _, c := range []struct {
		code   int
		reason string
		state  state
		want   string
	}{
		{0, "", completed, "0:0"}, {0, "", running, "0:0"}, {0, "TimeLimit", timeout, "0:0"}, {7, "TaskFailed", failed, "7:0"},
		{137, "Signal", failed, "0:9"}, {137, "TaskFailed", failed, "0:9"}, {0, "CancelledByUser", cancelled, "0:15"},
		{0, "StartFailed", failed, "1:0"}, {0, "NodeLost", nodeFail, "1:0"},
	} {
		if got := exit(c.code, c.reason, c.state); got != c.want {
			t.Errorf("%d, %s, %s: %s, want %s", c.code, c.reason, c.state.long, got, c.want)
		}
	}
}

func TestReasonsOfWaiting(t *testing.T) {
	for reason, want := range map[string]string{
		"OnHold": "JobHeldUser", "WaitingForJobs": "Dependency", "BeginTime": "BeginTime", "WaitingForLicenses": "Licenses", "AccountSlotsBound": "QOSMaxCpuPerUserLimit", "ProjectGPUsBound": "AssocGrpGRES", "WaitingForShare": "Resources",
	} {
		if got := reasonOf(&jobmsg.JobSummary{State: jobmsg.Waiting, Reason: reason}, pending); got != want {
			t.Errorf("%s: %s, want %s", reason, got, want)
		}
	}
	s := jobmsg.JobSpec{AfterOK: []messages.JobID{7, 8}, AfterStart: []messages.JobID{9}}
	for now, want := range map[state]string{pending: "afterok:7:8,after:9", running: "(null)"} {
		if got := dependency(&s, now); got != want {
			t.Errorf("%s: it waits for %s, want %s", now.long, got, want)
		}
	}
}

// A node can drain for a maintenance window, or because an operator asked for it. The two cases must have different
// states in Slurm's form. A node whose disk is full takes no tasks, so it has the same state as a node that drains.
func TestANodeInMaintenance(t *testing.T) {
	for want, n := range map[string]market.NodeStatus{"maint": {State: "Draining", Window: 4}, "drained": {State: "Draining"},
		"draining": {State: "Up", Abilities: []messages.Name{agent.AbilityFull}, Slots: []jobmsg.ClassSlots{{Class: "cpu", Slots: 2}}, Used: []jobmsg.ClassSlots{{Class: "cpu", Slots: 1}}}, "down": {State: "Stopped", Window: 4}} {
		if got := nodeState(&n); got != want {
			t.Errorf("%+v is %s, want %s", n, got, want)
		}
	}
}
