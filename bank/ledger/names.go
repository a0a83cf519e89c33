package ledger

import (
	"slices"

	"github.com/candor-grid/candor/messages"
)

// names is a set of names in order, to page through. A name goes into a short
// run, which is merged into the long one when it has grown to that one's
// square root: adding costs about the root of their number in moved words.
type names struct{ long, short []messages.Name }

// add enters a name that is not in the set.
func (n *names) add(name messages.Name) {
	i, _ := slices.BinarySearch(n.short, name)
	n.short = slices.Insert(n.short, i, name)
	if len(n.short)*len(n.short) > len(n.long) {
		n.long, n.short = merge(n.long, n.short), nil
	}
}

func merge(a, b []messages.Name) []messages.Name {
	out := make([]messages.Name, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if a[0] < b[0] {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return append(append(out, a...), b...)
}

// after calls f with the names above one, in order, until f returns false.
func (n *names) after(name messages.Name, f func(messages.Name) bool) {
	a, b := above(n.long, name), above(n.short, name)
	for len(a)+len(b) > 0 {
		var next messages.Name
		if len(b) == 0 || len(a) > 0 && a[0] < b[0] {
			next, a = a[0], a[1:]
		} else {
			next, b = b[0], b[1:]
		}
		if !f(next) {
			return
		}
	}
}

func above(sorted []messages.Name, name messages.Name) []messages.Name {
	i, found := slices.BinarySearch(sorted, name)
	if found {
		i++
	}
	return sorted[i:]
}
