package job

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/candor-grid/candor/messages"
)

// EndReason is why an attempt ended. Users see its name as the reason of a task.
type EndReason uint8

// These are the reasons why an attempt can end.
const (
	NoReason         EndReason = iota // the task ended well, has not ended, or no reason was recorded
	EndExitCode                       // the process ended with an exit code that is not 0
	EndSignal                         // a signal that this site did not send ended it
	EndTimeLimit                      // the time limit was reached
	EndMemoryLimit                    // the memory limit was reached
	EndDiskLimit                      // the limit on disk space was reached
	EndLimit                          // another limit was reached
	EndCannotStart                    // the process could not be started
	EndNodeLost                       // the node stopped answering
	EndAgentLost                      // the agent of the node started again without the attempt
	EndAgentStops                     // the agent of the node stopped
	EndEvicted                        // the attempt still ran when the time to drain its node was over
	EndPreempted                      // the market gave the slot to another job
	EndGang                           // another task of the same gang was lost
	EndCancelled                      // the job was cancelled
	EndJobOver                        // the job ended for another reason
	EndRequeued                       // the user requeued the attempt
	EndTaskCancelled                  // the task was cancelled, but not its job
	EndMemoryKilled                   // the exit code is 0, but the memory limit killed a process of the attempt
)

var endReasonNames = []string{"", "ExitCode", "Signal", "TimeLimit", "MemoryLimit", "DiskLimit", "LimitExceeded", "CannotStart",
	"NodeLost", "AgentLost", "AgentStopped", "Evicted", "Preempted", "GangBroken", "JobCancelled", "JobEnded", "Requeued", "TaskCancelled", "MemoryKilled"}

// String returns the reason's name.
func (r EndReason) String() string { return messages.NameOf(endReasonNames, r, "Unknown") }

// BySignal is the beginning of the detail of an attempt that a signal ended.
const BySignal = "ended by SIG"

// SignalDetail returns the text for the detail of an attempt that a signal ended, for example "ended by SIGSEGV".
func SignalDetail(name string) string { return BySignal + strings.TrimPrefix(name, "SIG") }

// Ending is how an attempt ended, as people read it.
type Ending struct {
	Reason   EndReason
	ExitCode int
	Detail   string // a sentence from the node
	Node     messages.Name
}

// An attempt can end for a reason that the node did not see or explain. For these reasons, String uses the texts below,
// and not the sentence from the node.
var mute = map[EndReason]string{
	EndNodeLost:   "was lost with %s, which stopped answering",
	EndAgentLost:  "was lost when the agent of %s restarted",
	EndAgentStops: "was ended because the agent of %s stopped",
	EndEvicted:    "was ended because %s drains and the notice has passed",
	EndPreempted:  "was ended on %s because its market gave the slot to others",
	EndGang:       "was ended on %s because another task of its gang was lost",
	EndCancelled:  "was ended on %s because its job was cancelled",
	EndJobOver:    "was ended on %s because its job had ended",
	EndRequeued:   "was ended on %s because its user requeued it",

	EndTaskCancelled: "was ended on %s because it was cancelled",
}

// String says how the attempt ended, for example "ended with exit code 2 on node1". Callers put the name of the task
// before it.
func (e Ending) String() string {
	if e.Reason == EndTaskCancelled && e.Node == "" {
		return "was cancelled before it began"
	}
	if text := mute[e.Reason]; text != "" {
		return fmt.Sprintf(text, e.Node)
	}
	if e.Reason == NoReason {
		return ""
	}
	where := ""
	if e.Node != "" {
		where = " on " + e.Node
	}
	if e.Reason != EndExitCode { // "ended by its disk limit of 20 MiB on node1: its directory holds more"
		cause := e.cause()
		at := strings.IndexAny(cause, ":;")
		if at < 0 {
			at = len(cause)
		}
		return cause[:at] + where + cause[at:]
	}
	text := fmt.Sprintf("ended with exit code %d%s", e.ExitCode, where)
	if name := signalNames[e.ExitCode-128]; name != "" {
		text += fmt.Sprintf(" (a shell reports %s so)", name)
	}
	if e.Detail != "" {
		text += ": it " + e.Detail
	}
	return text
}

// cause returns, for an attempt without an exit code, a text that says what ended it.
func (e Ending) cause() string {
	switch e.Reason {
	case EndCannotStart:
		if e.Detail == "" {
			return "could not be started"
		}
		return "could not be started: " + e.Detail
	}
	if e.Detail != "" {
		return e.Detail
	}
	return map[EndReason]string{EndSignal: "ended by a signal", EndTimeLimit: "ended by its time limit", EndMemoryLimit: "ended by its memory limit",
		EndMemoryKilled: "lost a process to its memory limit", EndDiskLimit: "ended by its disk limit", EndLimit: "ended by a limit of its node"}[e.Reason]
}

// signalNames are the names of the signals that often end programs, by their Linux numbers.
var signalNames = map[int]string{1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL",
	11: "SIGSEGV", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM", 24: "SIGXCPU", 25: "SIGXFSZ"}

// MaxForeignText bounds a text of another site that is shown, in bytes.
const MaxForeignText = 2048

// Tamed returns the error of another site with printable, short texts.
func Tamed(err error) error {
	said, ok := errors.AsType[*messages.Error](err)
	if !ok {
		return err
	}
	return &messages.Error{Kind: said.Kind, Op: Printable(said.Op, 200), Message: Printable(said.Message, MaxForeignText)}
}

// Printable makes a text safe for one line on a terminal. It shortens the text to at most `most` bytes. Invalid bytes,
// and characters that move the cursor, become dots.
func Printable(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return '·'
		}
		return r
	}, strings.ToValidUTF8(text[:min(len(text), most)], "·"))
	return messages.Clip(text, most)
}
