// Package heap keeps slices as binary heaps: the first value is before all others, and a value
// is added or removed in logarithmic time. If neither of two values is before the other, their
// order depends only on the sequence of earlier operations.
package heap

// Order is the order of the values of a heap.
type Order[T any] struct {
	Before func(a, b T) bool
	// Moved is called with the new index of a value, −1 if it was removed; nil: it is not
	// called.
	Moved func(v T, at int)
}

// Push adds a value.
func (o *Order[T]) Push(h *[]T, v T) {
	*h = append(*h, v)
	o.up(*h, len(*h)-1, v)
}

// Pop removes and returns the first value. There must be one.
func (o *Order[T]) Pop(h *[]T) T { return o.Remove(h, 0) }

// Remove removes and returns the value at an index.
func (o *Order[T]) Remove(h *[]T, at int) T {
	var none T
	s, last := *h, len(*h)-1
	gone, moved := s[at], s[last]
	s[last] = none // otherwise the old element would be kept in memory
	*h = s[:last]
	if at < last {
		o.place(*h, at, moved)
	}
	if o.Moved != nil {
		o.Moved(gone, -1)
	}
	return gone
}

// Fix moves the value at an index to its place after it has changed.
func (o *Order[T]) Fix(h []T, at int) { o.place(h, at, h[at]) }

// place moves a value from the free index at to its place.
func (o *Order[T]) place(h []T, at int, v T) {
	if !o.up(h, at, v) {
		o.down(h, at, v)
	}
}

// up moves a value from the free index at up to its place, and reports whether it moved.
func (o *Order[T]) up(h []T, at int, v T) bool {
	from := at
	for parent := (at - 1) / 2; at > 0 && o.Before(v, h[parent]); parent = (at - 1) / 2 {
		o.set(h, at, h[parent])
		at = parent
	}
	o.set(h, at, v)
	return at < from
}

// down moves a value from the free index at down to its place.
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
