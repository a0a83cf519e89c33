package lease

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/candor-grid/candor/messages"
)

// Variable is the variable of a task's environment that names the file and the attempt.
const Variable = "CANDOR_LEASE"

// File is the file of a node, below its state directory: where tasks see their jobs'
// directories, they see it.
func File(dir string) string { return filepath.Join(dir, "jobs", "lease") }

// Value is the value of [Variable] for an attempt.
func Value(dir string, a messages.Attempt) string { return File(dir) + ":" + name(a) }

func name(a messages.Attempt) string {
	return fmt.Sprintf("%d.%d.%d.%d", a.Task.Job, a.Task.Stage, a.Task.Index, a.Number)
}

// Write replaces the file. until is the end of the lease since the machine was started;
// 0: there is none.
func Write(file string, until time.Duration, stopping []messages.Attempt) error {
	text := strconv.FormatFloat(until.Seconds(), 'f', 6, 64) + "\n"
	for _, a := range stopping {
		text += name(a) + "\n"
	}
	next := file + ".next"
	if err := os.WriteFile(next, []byte(text), 0o644); err != nil {
		return err
	}
	if err := os.Chmod(next, 0o644); err != nil { // whatever the umask
		return err
	}
	return os.Rename(next, file)
}

// Alive is nil where the attempt that a value of [Variable] names is the current one now,
// by the machine's clock, and will be for a time yet unless it is stopped. The kind of the
// error is Fenced where the attempt is not, and Unavailable where that cannot be known.
func Alive(value string, now, yet time.Duration) error {
	at := strings.LastIndexByte(value, ':')
	if at < 0 {
		return messages.Errorf(messages.Unavailable, "%s is not set: ask from inside a task", Variable)
	}
	text, err := os.ReadFile(value[:at])
	if err != nil {
		return messages.Errorf(messages.Unavailable, "the node tells nothing here: %v", err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	seconds, err := strconv.ParseFloat(lines[0], 64)
	if err != nil {
		return messages.Errorf(messages.Unavailable, "%s cannot be read", value[:at])
	}
	left := time.Duration(seconds*float64(time.Second)) - now
	switch {
	case slices.Contains(lines[1:], value[at+1:]):
		return messages.Errorf(messages.Fenced, "no: this attempt was told to stop")
	case seconds == 0:
		return messages.Errorf(messages.Fenced, "no: the node has lost its lease, and the task may run elsewhere")
	case left <= 0:
		return messages.Errorf(messages.Fenced, "no: the node's lease ended %v ago, and the task may run elsewhere", (-left).Round(time.Millisecond))
	case left < yet:
		return messages.Errorf(messages.Fenced, "no: the node's lease lasts %v more, and you ask for %v", left.Round(time.Millisecond), yet)
	}
	return nil
}
