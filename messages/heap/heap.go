// Package heap keeps slices as binary heaps. The first value of a heap comes before all others. Adding or removing a
// value takes logarithmic time. The order of equal values depends only on the sequence of earlier operations.
package heap

// Order is the order of the values of a heap.
type Order[T any] struct {
	Before func(a, b T) bool
	// Moved is called with a value and its new index. If the value was removed, the index is −1. If Moved is nil,
	// nothing is called.
	Moved func(v T, at int)
}

// Push adds a value to the heap h.
func (o *Order[T]) Push(h *[]T, v T) {
	*h = append(*h, v)
	o.up(*h, len(*h)-1, v)
}

// Pop removes and returns the first value. The heap must not be empty.
func (o *Order[T]) Pop(h *[]T) T { return o.Remove(h, 0) }

// Remove removes and returns the value at an index.
func (o *Order[T]) Remove(h *[]T, at int) T {
	var none T
	s, last := *h, len(*h)-1
	gone, moved := s[at], s[last]
	s[last] = none // without this, the old value would stay in memory
	*h = s[:last]
	if at < last {
		o.place(*h, at, moved)
	}
	if o.Moved != nil {
		o.Moved(gone, -1)
	}
	return gone
}

// Fix moves the value at an index to its right place after the value has changed.
func (o *Order[T]) Fix(h []T, at int) { o.place(h, at, h[at]) }

// place puts the value v into the heap `h`, at the index that the order needs. The index `at` must be free. place moves
// other values as needed.
func (o *Order[T]) place(h []T, at int, v T) {
	if !o.up(h, at, v) {
		o.down(h, at, v)
	}
}

// The method `up` puts v into the heap. The place `at` must be free. up moves v from this place towards the root, as
// far as the order needs it, and returns true if v was moved.
func (o *Order[T]) up(h []T, at int, v T) bool {
	from := at
	for parent := (at - 1) / 2; at > 0 && o.Before(v, h[parent]); parent = (at - 1) / 2 {
		o.set(h, at, h[parent])
		at = parent
	}
	o.set(h, at, v)
	return at < from
}

// down puts v at its right place in the tree, which is the index `at` or a place below it. The element at this index
// has been removed.
func (o *Order[T]) down(h []T, at int, v T) {
	for child := 2*at + 1; child < len(h); child = 2*at + 1 {
		if child+1 < len(h) && o.Before(h[child+1], h[child]) {
			child++
		}
		if !o.Before(h[child], v) {
			break
		}
		o.set(h, at, h[child])
		at = child
	}
	o.set(h, at, v)
}

func (o *Order[T]) set(h []T, at int, v T) {
	h[at] = v
	if o.Moved != nil {
		o.Moved(v, at)
	}
}
