package job_test

import (
	"testing"

	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
)

// For each reason, the text must say how the attempt ended, with the exit code or the signal, and on which node. An
// attempt that never had a process must show no exit code.
func TestEndings(t *testing.T) {
	for want, e := range map[string]job.Ending{
		"":                             job.Ending{Node: "n1"},
		"ended with exit code 2 on n1": {Reason: job.EndExitCode, ExitCode: 2, Node: "n1"},
		"ended with exit code 137 on n1 (a shell reports SIGKILL so)": {Reason: job.EndExitCode, ExitCode: 137, Node: "n1"},
		"ended by SIGSEGV on n1":                                            {Reason: job.EndSignal, ExitCode: 139, Detail: job.SignalDetail("SIGSEGV"), Node: "n1"},
		"ended by a signal on n1":                                           {Reason: job.EndSignal, Node: "n1"},
		"ended after 3s by its time limit of 3s on n1":                      {Reason: job.EndTimeLimit, ExitCode: 143, Detail: "ended after 3s by its time limit of 3s", Node: "n1"},
		"ended by its memory limit on n1":                                   {Reason: job.EndMemoryLimit, Node: "n1"},
		"ended by its disk limit of 20 MiB on n1: its directory holds more": {Reason: job.EndDiskLimit, Detail: "ended by its disk limit of 20 MiB: its directory holds more", Node: "n1"},
		"could not be started on n1: directory /x does not exist":           {Reason: job.EndCannotStart, Detail: "directory /x does not exist", Node: "n1"},
		"was lost with n1, which stopped answering":                         {Reason: job.EndNodeLost, Node: "n1"},
		"was ended because n1 drains and the notice has passed":             {Reason: job.EndEvicted, Node: "n1"},
	} {
		if got := e.String(); got != want {
			t.Errorf("%+v: %q, want %q", e, got, want)
		}
	}
}

func TestFinishedReason(t *testing.T) {
	for _, c := range []struct {
		f    agent.Finished
		want string
	}{
		{agent.Finished{}, ""},
		{agent.Finished{ExitCode: 9}, "ExitCode"},
		{agent.Finished{ExitCode: 137, Detail: job.SignalDetail("SIGKILL")}, "Signal"},
		{agent.Finished{Outcome: agent.TimedOut}, "TimeLimit"},
		{agent.Finished{Outcome: agent.OutOfMemory}, "MemoryLimit"},
		{agent.Finished{MemoryKilled: true}, "MemoryKilled"},
		{agent.Finished{MemoryKilled: true, ExitCode: 1}, "ExitCode"},
		{agent.Finished{Outcome: agent.OutOfDisk}, "DiskLimit"},
		{agent.Finished{Outcome: agent.Exceeded}, "LimitExceeded"},
		{agent.Finished{Outcome: agent.Unstartable}, "CannotStart"},
		{agent.Finished{Outcome: agent.Stopped}, "AgentStopped"},
	} {
		if got := c.f.Reason().String(); got != c.want {
			t.Errorf("%+v: %s, want %s", c.f, got, c.want)
		}
	}
}

// No text may move the cursor, or be longer than permitted.
func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{"a\x1b[2Jb\n": "a·[2Jb·", "é\xff": "é·", "12345678901234567890": "1234567890"} {
		if got := job.Printable(in, 10); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
