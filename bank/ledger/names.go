package ledger

import (
	"iter"
	"slices"

	"github.com/candor-grid/candor/messages"
)

// names is a set of names in order, to page through: sorted runs, each longer
// than the next. A new name is a run of its own, merged with those before it
// that are no longer; so adding costs the logarithm of their number, and there
// are at most that many runs.
type names struct{ runs [][]messages.Name }

// add enters a name that is not in the set.
func (n *names) add(name messages.Name) {
	run := []messages.Name{name}
	last := len(n.runs) - 1
	for ; last >= 0 && len(n.runs[last]) <= len(run); last-- {
		run = merge(n.runs[last], run)
	}
	n.runs = append(n.runs[:last+1], run)
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

// after are the names above one, in order.
func (n *names) after(name messages.Name) iter.Seq[messages.Name] {
	return func(yield func(messages.Name) bool) {
		var runs [][]messages.Name
		for _, run := range n.runs {
			if run = above(run, name); len(run) > 0 {
				runs = append(runs, run)
			}
		}
		for len(runs) > 0 {
			least := 0
			for i := range runs {
				if runs[i][0] < runs[least][0] {
					least = i
				}
			}
			next := runs[least][0]
			if runs[least] = runs[least][1:]; len(runs[least]) == 0 {
				runs = slices.Delete(runs, least, least+1)
			}
			if !yield(next) {
				return
			}
		}
	}
}

// above is the part of a sorted list after a name.
func above(sorted []messages.Name, name messages.Name) []messages.Name {
	i, found := slices.BinarySearch(sorted, name)
	if found {
		i++
	}
	return sorted[i:]
}
