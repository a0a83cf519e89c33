package slurm

//lint:file-ignore ST1005 errors are in the words of Slurm's commands, which programs look for

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/candor-grid/candor/messages/job"
)

type state struct{ long, short string }

var (
	pending    = state{"PENDING", "PD"}
	running    = state{"RUNNING", "R"}
	suspended  = state{"SUSPENDED", "S"}
	completing = state{"COMPLETING", "CG"}
	completed  = state{"COMPLETED", "CD"}
	cancelled  = state{"CANCELLED", "CA"}
	failed     = state{"FAILED", "F"}
	timeout    = state{"TIMEOUT", "TO"}
	outOfMem   = state{"OUT_OF_MEMORY", "OOM"}
	nodeFail   = state{"NODE_FAIL", "NF"}
	deadline   = state{"DEADLINE", "DL"}
	preempted  = state{"PREEMPTED", "PR"}

	states = []state{pending, running, suspended, completing, completed, cancelled, failed, timeout, outOfMem, nodeFail, deadline, preempted}
)

// An attempt has the reason memoryKilled if it exited with 0, although the memory limit had killed one of its
// processes. Slurm calls this OUT_OF_MEMORY.
var memoryKilled = job.EndMemoryKilled.String()

// This method reports whether no task of the job will run any more.
func (s state) ended() bool { return s != pending && s != running && s != suspended && s != completing }

func stateOf(j *job.JobSummary) state {
	switch j.State {
	case job.Waiting:
		return pending
	case job.Running:
		if j.Running > 0 && j.Suspended == j.Running {
			return suspended
		}
		if j.Running == 0 && j.Done+j.Failed < j.Tasks {
			return pending
		}
		return running
	case job.Settling:
		return completing
	case job.Completed:
		if j.Reason == memoryKilled {
			return outOfMem
		}
		return completed
	case job.Cancelled:
		return cancelled
	case job.Failed:
		return failure(j.Reason, j.Message)
	}
	if j.Reason == "Preempted" {
		return preempted
	}
	return deadline // the market will not run the job
}

// failure returns the state of a failed job or task from Candor's reason and message.
func failure(reason, message string) state {
	switch {
	case reason == "TimeLimit":
		return timeout
	case reason == "MemoryLimit", reason == "LimitExceeded" && strings.Contains(message, "memory"):
		return outOfMem
	case reason == "NodeLost", reason == "AgentLost", reason == "AgentStopped", reason == "PeerLost", reason == "NodesLost":
		return nodeFail
	}
	return failed
}

func taskState(t *job.TaskStatus, job state) state {
	switch t.State {
	case "Running":
		return running
	case "Suspended":
		return suspended
	case "Done":
		if t.Reason == memoryKilled {
			return outOfMem
		}
		return completed
	case "Failed":
		return failure(t.Reason, t.Message)
	case "Cancelled":
		return cancelled
	}
	if job.ended() {
		return job
	}
	return pending
}

// exit writes an exit code as Slurm does: the code, a colon, and the signal that ended the process.
func exit(code int, reason string, s state) string {
	switch {
	case s == outOfMem:
		return "0:125"
	case s == cancelled:
		return "0:15"
	case s == timeout, !s.ended():
		return "0:0"
	case code == 0 && (s == failed || s == nodeFail): // there is no exit code, and programs read 0:0 as success
		return "1:0"
	case reason == "Signal" || reason == "TaskFailed" && code > 128:
		return "0:" + strconv.Itoa(code-128)
	}
	return strconv.Itoa(code) + ":0"
}

// slurmBounds says which word Slurm uses for each limit that a job may wait for.
var slurmBounds = map[string]string{
	"AccountSlotsBound": "QOSMaxCpuPerUserLimit", "AccountGPUsBound": "QOSMaxGRESPerUser", "AccountTasksBound": "QOSMaxJobsPerUserLimit",
	"ProjectSlotsBound": "AssocGrpCpuLimit", "ProjectGPUsBound": "AssocGrpGRES", "ProjectTasksBound": "AssocGrpJobsLimit",
}

// reasonOf returns why a job waits, in Slurm's words if there are any.
func reasonOf(j *job.JobSummary, s state) string {
	switch {
	case s == pending && strings.Contains(j.Reason, "Hold"):
		return "JobHeldUser"
	case s == pending && j.Reason == "WaitingForJobs":
		return "Dependency"
	case s == pending && j.Reason == "WaitingForLicenses":
		return "Licenses"
	case s == pending && slurmBounds[j.Reason] != "":
		return slurmBounds[j.Reason]
	case s == pending && strings.Contains(j.Reason, "Begin"):
		return "BeginTime"
	case s == pending:
		return "Resources"
	case s == timeout:
		return "TimeLimit"
	case s == outOfMem:
		return "OutOfMemory"
	case s == failed:
		return "NonZeroExitCode"
	}
	return "None"
}

// named reads a list of long or short names of states, and returns these states. For "all" and for an empty list it
// returns nil.
func named(list string) (found []state, err error) {
	if list == "" {
		return nil, nil
	}
	for name := range strings.SplitSeq(strings.ToUpper(list), ",") {
		if name == "ALL" {
			return nil, nil
		}
		i := -1
		for k, s := range states {
			if name == s.long || name == s.short {
				i = k
			}
		}
		if i < 0 {
			// No job of Candor is in these states of Slurm.
			if strings.Contains(" BOOT_FAIL BF CONFIGURING CF PREEMPTED PR REQUEUED RQ RESIZING RS REVOKED RV SIGNALING SI SPECIAL_EXIT SE STAGE_OUT SO STOPPED ST ", " "+name+" ") {
				found = append(found, state{name, name})
				continue
			}
			return nil, fmt.Errorf("Invalid job state specified: %s", name)
		}
		found = append(found, states[i])
	}
	return found, nil
}
