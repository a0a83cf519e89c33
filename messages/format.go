package messages

import (
	"strconv"
	"strings"
)

// NewerFormat is the error for state that a newer release wrote.
func NewerFormat(what string, version, reads int) error {
	return Errorf(Conflict, "%s: has format %d, and this build reads formats up to %d, because a newer release wrote it; start the newer release, or restore an older backup", what, version, reads)
}

// CheckFormat returns NewerFormat for state whose first line names a higher version than
// ours, such as "candor-ledger-4\n" where ours is "candor-ledger-3\n"; nil for all else.
func CheckFormat(what, first, ours string) error {
	kind, reads := splitFormat(ours)
	if other, version := splitFormat(first); other == kind && version > reads {
		return NewerFormat(what, version, reads)
	}
	return nil
}

// splitFormat parts the number from what is before it.
func splitFormat(line string) (kind string, version int) {
	line, _, _ = strings.Cut(line, "\n")
	kind = strings.TrimRight(line, "0123456789")
	version, _ = strconv.Atoi(line[len(kind):])
	return kind, version
}
