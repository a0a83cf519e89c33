package agent

import (
	"strings"

	"github.com/candor-grid/candor/messages/job"
)

// Reason returns why an attempt ended, according to its node's report.
func (f *Finished) Reason() job.EndReason {
	switch f.Outcome {
	case TimedOut:
		return job.EndTimeLimit
	case OutOfMemory:
		return job.EndMemoryLimit
	case OutOfDisk:
		return job.EndDiskLimit
	case Exceeded:
		return job.EndLimit
	case Unstartable, Unprepared:
		return job.EndCannotStart
	case Stopped:
		return job.EndAgentStops
	}
	switch {
	case f.ExitCode == 0 && f.MemoryKilled:
		return job.EndMemoryKilled
	case f.ExitCode == 0:
		return job.NoReason
	case strings.HasPrefix(f.Detail, job.BySignal):
		return job.EndSignal
	}
	return job.EndExitCode
}
