// Package heap keeps slices as binary heaps: the first value is before all others, and
// a value is put in or taken out in logarithmic time. Values that are neither before
// the other come out in an order that depends only on what was put in and taken out.
package heap

// Order is the order of the values of a heap.
type Order[T any] struct {
	Before func(a, b T) bool
	// Moved is told where a value stands from now on, −1 of one that was taken out; nil:
	// nobody has to know.
	Moved func(v T, at int)
}

// Push puts a value in.
func (o *Order[T]) Push(h *[]T, v T) {
	*h = append(*h, v)
	o.up(*h, len(*h)-1, v)
}

// Pop takes the first value out. There must be one.
func (o *Order[T]) Pop(h *[]T) T { return o.Remove(h, 0) }

// Remove takes the value at a place out.
func (o *Order[T]) Remove(h *[]T, at int) T {
	var none T
	s, last := *h, len(*h)-1
	gone, moved := s[at], s[last]
	s[last] = none // what it leads to is not kept in memory
	*h = s[:last]
	if at < last {
		o.place(*h, at, moved)
	}
	if o.Moved != nil {
		o.Moved(gone, -1)
	}
	return gone
}

// Fix moves the value at a place to where it belongs, after it has changed.
func (o *Order[T]) Fix(h []T, at int) { o.place(h, at, h[at]) }

// place puts a value, for which there is room at a place, to where it belongs.
func (o *Order[T]) place(h []T, at int, v T) {
	if !o.up(h, at, v) {
		o.down(h, at, v)
	}
}

// up puts a value, which belongs at a place or above, to where it belongs, and reports
// whether that is above.
func (o *Order[T]) up(h []T, at int, v T) bool {
	from := at
	for parent := (at - 1) / 2; at > 0 && o.Before(v, h[parent]); parent = (at - 1) / 2 {
		o.set(h, at, h[parent])
		at = parent
	}
	o.set(h, at, v)
	return at < from
}

// down is up for a value that belongs at a place or below.
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
