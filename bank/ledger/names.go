package ledger

import (
	"iter"

	"github.com/benbjohnson/immutable"

	"github.com/candor-grid/candor/messages"
)

// names is an ordered set of names, for listing page by page.
type names struct {
	set *immutable.SortedMapBuilder[messages.Name, struct{}]
}

func (n *names) add(name messages.Name) {
	if n.set == nil {
		n.set = immutable.NewSortedMapBuilder[messages.Name, struct{}](nil)
	}
	n.set.Set(name, struct{}{})
}

// The method `after` yields the names greater than `name`, in ascending order.
func (n *names) after(name messages.Name) iter.Seq[messages.Name] {
	return func(yield func(messages.Name) bool) {
		if n.set == nil {
			return
		}
		all := n.set.Iterator()
		for all.Seek(name); !all.Done(); {
			if next, _, _ := all.Next(); next != name && !yield(next) {
				return
			}
		}
	}
}
