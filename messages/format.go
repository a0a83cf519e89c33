package messages

import (
	"strconv"
	"strings"
)

// NewerFormat returns the error for a state that a newer release has written.
func NewerFormat(what string, version, reads int) error {
	return Errorf(Conflict, "%s: has format %d, and this build reads formats up to %d, because a newer release wrote it; start the newer release, or restore an older backup", what, version, reads)
}

// CheckFormat returns NewerFormat if a state's format is too new for this release. The argument `first` is the first
// line of the state, such as "candor-ledger-4" and a newline. The argument `ours` is the first line of a state in the
// newest format that this release reads.
func CheckFormat(what, first, ours string) error {
	kind, reads := splitFormat(ours)
	if other, version := splitFormat(first); other == kind && version > reads {
		return NewerFormat(what, version, reads)
	}
	return nil
}

// splitFormat splits a line into the number at its end and the text before it.
func splitFormat(line string) (kind string, version int) {
	line, _, _ = strings.Cut(line, "\n")
	kind = strings.TrimRight(line, "0123456789")
	version, _ = strconv.Atoi(line[len(kind):])
	return kind, version
}
