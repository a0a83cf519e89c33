package backfill

import "math"

// queue holds the waiting jobs in the order of their arrival, so that the next
// one that fits is found without looking at all of them: a tree over the places
// keeps the least width and the least estimate of what waits below.
type queue struct {
	jobs  []int // by place
	size  int   // places, a power of two
	least []need
	first int // no place before it is taken
}

// need is the width and estimate of a job; of an empty place, more than there is.
type need struct {
	width    int
	estimate float64
}

// want is what a job must not exceed to be found: it fits in what is free, and
// either ends by the shadow time or fits in what is spare then too.
type want struct {
	free, spare int
	now, shadow float64
}

var empty = need{math.MaxInt, math.Inf(1)}

func newQueue(most int) queue {
	size := 1
	for size < most {
		size *= 2
	}
	q := queue{size: size, least: make([]need, 2*size)}
	for i := range q.least {
		q.least[i] = empty
	}
	return q
}

func (q *queue) push(job, width int, estimate float64) {
	q.jobs = append(q.jobs, job)
	q.set(len(q.jobs)-1, need{width, estimate})
}

// take empties a place and returns the job that was there.
func (q *queue) take(at int) int {
	q.set(at, empty)
	return q.jobs[at]
}

func (q *queue) set(at int, n need) {
	i := q.size + at
	q.least[i] = n
	for i /= 2; i > 0; i /= 2 {
		a, b := q.least[2*i], q.least[2*i+1]
		q.least[i] = need{min(a.width, b.width), min(a.estimate, b.estimate)}
	}
}

// front is the first place that is taken, one past the last if none is.
func (q *queue) front() int {
	for q.first < len(q.jobs) && q.least[q.size+q.first] == empty {
		q.first++
	}
	return q.first
}

// find returns the first place from one on whose job is as wanted, −1 if none is.
// It looks at a logarithmic number of places if the narrow jobs are the short
// ones, and at all that wait at worst.
func (q *queue) find(from int, w want) int {
	return q.search(1, 0, q.size, from, w)
}

// search looks below a node of the tree that covers the places [low, low+size).
func (q *queue) search(node, low, size, from int, w want) int {
	n := q.least[node]
	if low+size <= from || n.width > w.free || n.width > w.spare && !(w.now+n.estimate <= w.shadow) {
		return -1
	}
	if size == 1 {
		return low
	}
	if at := q.search(2*node, low, size/2, from, w); at >= 0 {
		return at
	}
	return q.search(2*node+1, low+size/2, size/2, from, w)
}
