// Package clock is virtual time: a queue of what is to happen and when. Time
// goes on to the next event at once; nothing waits.
//
// Events of the same instant come out in the order in which they were put in,
// so that a run depends on nothing but its inputs.
package clock

import "github.com/candor-grid/candor/messages"

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

func (e *entry[T]) before(o *entry[T]) bool {
	return e.at < o.at || e.at == o.at && e.seq < o.seq
}

// Len is how many events wait.
func (q *Queue[T]) Len() int { return len(q.heap) }

// Next is when the next event is; 0 if there is none.
func (q *Queue[T]) Next() messages.Time {
	if len(q.heap) == 0 {
		return 0
	}
	return q.heap[0].at
}

// Push enters an event.
func (q *Queue[T]) Push(at messages.Time, what T) {
	q.seq++
	e := entry[T]{at, q.seq, what}
	q.heap = append(q.heap, e)
	i := len(q.heap) - 1
	for i > 0 && e.before(&q.heap[(i-1)/2]) {
		q.heap[i] = q.heap[(i-1)/2]
		i = (i - 1) / 2
	}
	q.heap[i] = e
}

// Pop takes the next event out. The queue must not be empty.
func (q *Queue[T]) Pop() T {
	top := q.heap[0].what
	last := q.heap[len(q.heap)-1]
	q.heap[len(q.heap)-1] = entry[T]{}
	q.heap = q.heap[:len(q.heap)-1]
	if n := len(q.heap); n > 0 {
		i := 0
		for c := 1; c < n; c = 2*i + 1 {
			if c+1 < n && q.heap[c+1].before(&q.heap[c]) {
				c++
			}
			if !q.heap[c].before(&last) {
				break
			}
			q.heap[i] = q.heap[c]
			i = c
		}
		q.heap[i] = last
	}
	return top
}
