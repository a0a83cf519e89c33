package users

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/candor-grid/candor/messages"
)

// Range is the user numbers from First to Last.
type Range struct{ First, Last uint32 }

// Least is the smallest number of users in a range. Each account takes one of these users, and keeps it.
const Least = 256

// Parse reads a range such as "100000-165535". It returns false if the text is no range.
func Parse(s string) (Range, bool) {
	a, b, found := strings.Cut(s, "-")
	first, firstErr := strconv.ParseUint(a, 10, 32)
	last, lastErr := strconv.ParseUint(b, 10, 32)
	return Range{uint32(first), uint32(last)}, found && firstErr == nil && lastErr == nil
}

func (r Range) String() string { return fmt.Sprintf("%d-%d", r.First, r.Last) }

// Size returns the count of numbers in the range.
func (r Range) Size() uint64 { return uint64(r.Last) - uint64(r.First) + 1 }

// Contains reports whether a number is in the range.
func (r Range) Contains(n uint32) bool { return r.First <= n && n <= r.Last }

// Overlaps reports whether two ranges have a number in common.
func (r Range) Overlaps(o Range) bool { return r.First <= o.Last && o.First <= r.Last }

// Check returns an error for a range that no machine can use.
func (r Range) Check() error {
	switch {
	case r.First == 0 || r.Last < r.First || r.Last == math.MaxUint32:
		return messages.Errorf(messages.Invalid, "%v: a range of user numbers begins above 0, such as 100000-165535", r)
	case r.Size() < Least:
		return messages.Errorf(messages.Invalid, "%v: has %d user numbers, and each account takes one; use at least %d", r, r.Size(), Least)
	}
	return nil
}

// Taken is a range of numbers that is in use on a machine. Who says by whom.
type Taken struct {
	Range
	Who string // such as "user bob" or "the subordinate users of bob"
}

// Machine returns the numbers that are in use on this machine: the numbers of its users and groups, and the subordinate
// numbers of users and groups.
func Machine() (all []Taken) {
	for _, f := range []struct{ path, what string }{
		{"/etc/passwd", "user"}, {"/etc/group", "group"},
	} {
		each(f.path, func(fields []string) {
			if n, err := strconv.ParseUint(field(fields, 2), 10, 32); err == nil && n < math.MaxUint32 {
				all = append(all, Taken{Range{uint32(n), uint32(n)}, f.what + " " + fields[0]})
			}
		})
	}
	for _, f := range []struct{ path, what string }{
		{"/etc/subuid", "the subordinate users of"}, {"/etc/subgid", "the subordinate groups of"},
	} {
		each(f.path, func(fields []string) {
			if r, ok := subordinate(fields); ok {
				all = append(all, Taken{r, f.what + " " + fields[0]})
			}
		})
	}
	return all
}

// Subordinate returns the largest range that a user was given in a file such as
// /etc/subuid, under its name or its number.
func Subordinate(path, name, number string) (most Range, ok bool) {
	each(path, func(fields []string) {
		r, valid := subordinate(fields)
		if valid && (fields[0] == name || fields[0] == number) && (!ok || r.Size() > most.Size()) {
			most, ok = r, true
		}
	})
	return most, ok
}

// subordinate parses the fields of a line name:first:count. Such a line gives a user a range of further user or group
// numbers.
func subordinate(fields []string) (Range, bool) {
	first, firstErr := strconv.ParseUint(field(fields, 1), 10, 32)
	count, countErr := strconv.ParseUint(field(fields, 2), 10, 32)
	if firstErr != nil || countErr != nil || count == 0 || first+count-1 >= math.MaxUint32 {
		return Range{}, false
	}
	return Range{uint32(first), uint32(first + count - 1)}, true
}

func field(fields []string, i int) string {
	if i < len(fields) {
		return strings.TrimSpace(fields[i])
	}
	return ""
}

// each calls f with the fields of each line of a file. A missing file has no lines.
func each(path string, f func(fields []string)) {
	file, err := os.Open(path)
	if err != nil {
		return
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if line := lines.Text(); line != "" && line[0] != '#' {
			f(strings.Split(line, ":"))
		}
	}
}

// Free returns nil if no user number in the range is taken. Otherwise it returns an error that names who has taken a
// part of the range.
func (r Range) Free(taken []Taken) error {
	for _, t := range taken {
		if r.Overlaps(t.Range) {
			return messages.Errorf(messages.Conflict, "%v: %s has %v on this machine; use a free range, or leave the range out", r, t.Who, t.Range)
		}
	}
	return nil
}

// size is the size of a range that [Choose] picks.
const size = 1 << 16

// candidates returns the ranges to choose from, the best first. The first ranges are above the numbers that useradd and
// container managers assign. The last range is for a process in a container that has only 65,536 numbers.
func candidates() (all []Range) {
	for _, first := range []uint32{1_900_000_000, 1_950_000_000, 2_000_000_000, 100_000, 1_000_000, 10_000_000} {
		all = append(all, Range{first, first + size - 1})
	}
	return append(all, Range{20_000, 59_999})
}

// Choose picks a range of user numbers. All numbers of the range exist on the machine, and nobody uses them.
func Choose(taken, exist []Range) (Range, error) {
	for _, r := range candidates() {
		exists := slices.ContainsFunc(exist, func(e Range) bool { return e.First <= r.First && r.Last <= e.Last })
		if exists && !slices.ContainsFunc(taken, r.Overlaps) {
			return r, nil
		}
	}
	return Range{}, messages.Errorf(messages.Unavailable, "no range of user numbers is free on this machine; name a range as tasks.user")
}

// existing returns the user numbers that exist in this process's user namespace.
func existing() (all []Range) {
	file, err := os.Open("/proc/self/uid_map")
	if err != nil {
		return []Range{{0, math.MaxUint32 - 1}}
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		f := strings.Fields(lines.Text())
		first, firstErr := strconv.ParseUint(field(f, 0), 10, 32)
		count, countErr := strconv.ParseUint(field(f, 2), 10, 32)
		if firstErr == nil && countErr == nil && count > 0 {
			all = append(all, Range{uint32(first), uint32(min(first+count-1, math.MaxUint32-1))})
		}
	}
	return all
}

// ForMachine picks a range for this machine.
func ForMachine() (Range, error) {
	var taken []Range
	for _, t := range Machine() {
		taken = append(taken, t.Range)
	}
	return Choose(taken, existing())
}
