package backfill

import "math"

// queue keeps the waiting jobs in the order of arrival, each at a place. Over the places there is a tree. Each node of
// the tree has the least width and the least estimate of the jobs below it. So the queue finds the next job that fits
// without looking at all jobs.
type queue struct {
	jobs  []int // by place; jobs that were taken leave an empty place
	size  int   // number of places, a power of two
	least []need
	first int // all places before this one are empty
}

// need is the width and the estimated run time of a job in the queue. A place of the queue may be empty. Its need then
// has larger numbers than any job, so that a search for a job that fits always skips this place.
type need struct {
	width    int
	estimate float64
}

// want describes the jobs that may start ahead of the first job in the queue. Such a job must fit into the free nodes.
// In addition, it must end by the shadow time, at which the first job can start, or fit into the nodes that the first
// job will not need.
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

// front returns the first place that has a job, or the number after the last place.
func (q *queue) front() int {
	for q.first < len(q.jobs) && q.least[q.size+q.first] == empty {
		q.first++
	}
	return q.first
}

// find looks for a job that meets the conditions in `w`, from the place `from` on. It returns the first place with such
// a job, or −1. It looks at O(log n) places if narrow jobs are also short, and at worst at all waiting jobs.
func (q *queue) find(from int, w want) int {
	return q.search(1, 0, q.size, from, w)
}

// search does the same as find, but only in the part of the tree below `node`. That part covers the places from low to
// low+size−1.
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
