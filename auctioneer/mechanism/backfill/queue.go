package backfill

import "math"

// queue has the waiting jobs in the order of arrival. A tree over its places has the least width and
// the least estimate of the jobs below each node, so that the next job that fits is found without
// looking at all jobs.
type queue struct {
	jobs  []int // by place
	size  int   // places, a power of two
	least []need
	first int // all places before it are empty
}

// need is the width and the estimate of a job; for an empty place, larger numbers than any job has.
type need struct {
	width    int
	estimate float64
}

// want says which jobs to find: a job must fit into the free nodes, and either end by the shadow time
// or fit into the spare nodes.
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

// front returns the first place with a job, one past the last place if there is none.
func (q *queue) front() int {
	for q.first < len(q.jobs) && q.least[q.size+q.first] == empty {
		q.first++
	}
	return q.first
}

// find returns the first place, starting at from, whose job meets w; −1 if there is none. It looks at
// a logarithmic number of places if narrow jobs are also short, and at all waiting jobs at worst.
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
