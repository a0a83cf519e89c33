package bus

import (
	"slices"
	"strings"
)

// index finds the listeners of a subject among many patterns. It is a tree with one level for each token of a pattern.
// The cost does not grow with the number of patterns.
type index[T comparable] struct {
	next map[string]*index[T]
	ends []T // listeners of the pattern that ends here
	rest []T // listeners of patterns that end here with ">"
}

func (x *index[T]) add(pattern string, listener T) {
	token, after, more := strings.Cut(pattern, ".")
	if token == ">" {
		x.rest = append(x.rest, listener)
		return
	}
	if x.next == nil {
		x.next = make(map[string]*index[T])
	}
	n := x.next[token]
	if n == nil {
		n = new(index[T])
		x.next[token] = n
	}
	if more {
		n.add(after, listener)
	} else {
		n.ends = append(n.ends, listener)
	}
}

func (x *index[T]) remove(pattern string, listener T) {
	token, after, more := strings.Cut(pattern, ".")
	same := func(other T) bool { return other == listener }
	if token == ">" {
		x.rest = slices.DeleteFunc(x.rest, same)
		return
	}
	n := x.next[token]
	switch {
	case n == nil:
		return
	case more:
		n.remove(after, listener)
	default:
		n.ends = slices.DeleteFunc(n.ends, same)
	}
	if len(n.next)+len(n.ends)+len(n.rest) == 0 {
		delete(x.next, token)
	}
}

// find appends the listeners of a subject, always in the same order.
func (x *index[T]) find(subject string, found []T) []T {
	token, after, more := strings.Cut(subject, ".")
	for _, n := range []*index[T]{x.next[token], x.next["*"]} {
		switch {
		case n == nil:
		case more:
			found = n.find(after, found)
		default:
			found = append(found, n.ends...)
		}
	}
	return append(found, x.rest...)
}
