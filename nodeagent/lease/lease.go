package lease

import (
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"strings"
	"time"

	"github.com/candor-grid/candor/messages"
)

// Variable is the variable of a task's environment that names the file and the attempt.
const Variable = "CANDOR_LEASE"

// Value returns the value of [Variable] for the attempt of this file.
func Value(file string, a messages.Attempt) string { return file + ":" + name(a) }

func name(a messages.Attempt) string {
	return fmt.Sprintf("%d.%d.%d.%d", a.Task.Job, a.Task.Stage, a.Task.Index, a.Number)
}

// form is the format of a file: the attempt and the end of the lease in nanoseconds. A checksum of both follows. All
// files have the same length, so a write replaces everything. A read in the middle of a write gives a wrong checksum.
const form = "%-64s %020d"

// Tell writes until when an attempt is current. This time is counted from the start of the machine.
func Tell(file io.WriterAt, a messages.Attempt, until time.Duration) error {
	return write(file, name(a), until)
}

// Blank writes that there is no current attempt.
func Blank(file io.WriterAt) error { return write(file, "-", 0) }

func write(file io.WriterAt, who string, until time.Duration) error {
	text := fmt.Appendf(nil, form, who, max(until, 0))
	_, err := file.WriteAt(fmt.Appendf(text, " %08x\n", crc32.ChecksumIEEE(text)), 0)
	return err
}

// read returns the attempt that a file names, and when its lease ends.
func read(path string) (who string, until time.Duration, err error) {
	for range 10 { // read again, because the node may be writing the file
		var text []byte
		if text, err = os.ReadFile(path); err != nil {
			return "", 0, messages.Errorf(messages.Unavailable, "the lease of the node cannot be read here: %v", err)
		}
		var sum uint32
		fields, found := strings.CutSuffix(string(text), "\n")
		if at := strings.LastIndexByte(fields, ' '); found && at > 0 {
			_, err = fmt.Sscanf(fields, "%s %d %x", &who, &until, &sum)
			if err == nil && sum == crc32.ChecksumIEEE([]byte(fields[:at])) {
				return who, until, nil
			}
		}
	}
	return "", 0, messages.Errorf(messages.Unavailable, "%s cannot be read", path)
}

// Alive returns nil if the attempt in `value` is current at the time `now`, and its lease ends at `now` plus `yet` or
// later. The argument `value` is a value of [Variable]. Times are the machine's time since boot. Somebody may still
// stop the attempt earlier. The error has kind Fenced if the attempt is not current, and Unavailable if this is
// unknown.
func Alive(value string, now, yet time.Duration) error {
	at := strings.LastIndexByte(value, ':')
	if at < 0 {
		return messages.Errorf(messages.Unavailable, "%s is not set: ask from inside a task", Variable)
	}
	who, until, err := read(value[:at])
	if err != nil {
		return err
	}
	left := until - now
	switch {
	case who != value[at+1:]:
		return messages.Errorf(messages.Fenced, "no: this attempt was told to stop, or has ended")
	case left <= 0:
		return messages.Errorf(messages.Fenced, "no: the node's lease ended %v ago, and the task may run elsewhere", (-left).Round(time.Millisecond))
	case left < yet:
		return messages.Errorf(messages.Fenced, "no: the node's lease ends in %v, but you ask for at least %v", left.Round(time.Millisecond), yet)
	}
	return nil
}
