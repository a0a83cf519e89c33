package job

import (
	"slices"
	"strconv"
	"strings"

	"github.com/candor-grid/candor/messages"
)

// Interactive streams the standard input and output of a task to and from its owner. Without it, there is no input, and
// the output is a log.
type Interactive struct {
	Terminal bool `json:"terminal,omitempty"` // the streams are a terminal
	Rows     int  `json:"rows,omitempty"`     // rows of the terminal
	Columns  int  `json:"columns,omitempty"`
	// Linger is how long the process goes on after its client's last request; 0 means 5 minutes.
	Linger messages.Duration `json:"linger,omitempty"`
	// Idle is how long the process goes on without input or output; 0 means no limit.
	Idle messages.Duration `json:"idle,omitempty"`
}

// MaxWindow is the largest number of rows or columns of a terminal.
const MaxWindow = 10_000

// Validate checks the fields. A nil pointer is valid.
func (i *Interactive) Validate(path string) error {
	switch {
	case i == nil:
		return nil
	case i.Rows < 0 || i.Columns < 0 || i.Rows > MaxWindow || i.Columns > MaxWindow:
		return messages.Errorf(messages.Invalid, "%s: %d rows and %d columns must be from 0 to %d", path, i.Rows, i.Columns, MaxWindow)
	case i.Linger < 0 || i.Idle < 0:
		return messages.Errorf(messages.Invalid, "%s: the fields linger and idle must not be negative; leave them out for the default", path)
	}
	return nil
}

var signals = []string{"HUP", "INT", "QUIT", "ABRT", "KILL", "USR1", "USR2", "ALRM", "TERM", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "WINCH"}

// CheckSignal returns an error if the name is not in the list of signals.
func CheckSignal(path, name string) error {
	if !slices.Contains(signals, name) {
		return messages.Errorf(messages.Invalid, "%s: %q is not one of %s", path, messages.Clipped(name), strings.Join(signals, ", "))
	}
	return nil
}

// ParseSignal reads a signal that users may send: "USR1", "SIGUSR1", "usr1" or "10". It returns the name.
func ParseSignal(text string) (string, error) {
	name := strings.TrimPrefix(strings.ToUpper(text), "SIG")
	if number, err := strconv.Atoi(name); err == nil {
		name = signalNumbers[number]
	}
	if !slices.Contains(signals, name) {
		return "", messages.Errorf(messages.Invalid, "signal %s: is not one of %s", messages.Clipped(text), strings.Join(signals, ", "))
	}
	return name, nil
}

var signalNumbers = map[int]string{1: "HUP", 2: "INT", 3: "QUIT", 6: "ABRT", 9: "KILL", 10: "USR1", 12: "USR2", 14: "ALRM", 15: "TERM",
	18: "CONT", 19: "STOP", 20: "TSTP", 21: "TTIN", 22: "TTOU", 23: "URG", 24: "XCPU", 28: "WINCH"}
