// Package clock is virtual time: a queue of future events. Time jumps to the next event; nothing waits.
//
// Events of the same instant come out in the order in which they were added, so a run depends only on its inputs.
package clock

import (
	"slices"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/heap"
)

// Queue holds events by time. Its zero value is empty and ready. Push and Pop
// cost O(log n). It is not safe for concurrent use.
type Queue[T any] struct {
	heap []entry[T]
	seq  uint64
}

type entry[T any] struct {
	at   messages.Time
	seq  uint64
	what T
}

// Len returns how many events wait.
func (q *Queue[T]) Len() int { return len(q.heap) }

// Clone returns a copy of the queue.
func (q *Queue[T]) Clone() Queue[T] { return Queue[T]{slices.Clone(q.heap), q.seq} }

// Next returns the time of the next event. It returns 0 if there is no event.
func (q *Queue[T]) Next() messages.Time {
	if len(q.heap) == 0 {
		return 0
	}
	return q.heap[0].at
}

// Push adds an event that happens at a time.
func (q *Queue[T]) Push(at messages.Time, what T) {
	q.seq++
	order := ordered[T]()
	order.Push(&q.heap, entry[T]{at, q.seq, what})
}

// Pop removes and returns the next event. The queue must not be empty.
func (q *Queue[T]) Pop() T {
	order := ordered[T]()
	return order.Pop(&q.heap).what
}

func ordered[T any]() heap.Order[entry[T]] {
	return heap.Order[entry[T]]{Before: func(e, o entry[T]) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }}
}
