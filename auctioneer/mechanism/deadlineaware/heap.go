package deadlineaware

// heap is a binary heap of jobs; the first is before all others.
type heap struct {
	jobs   []int32
	before func(a, b int32) bool
}

func (h *heap) push(job int32) {
	h.jobs = append(h.jobs, job)
	i := len(h.jobs) - 1
	for up := (i - 1) / 2; i > 0 && h.before(job, h.jobs[up]); up = (i - 1) / 2 {
		h.jobs[i] = h.jobs[up]
		i = up
	}
	h.jobs[i] = job
}

// pop takes the first away.
func (h *heap) pop() int32 {
	first, n := h.jobs[0], len(h.jobs)-1
	last := h.jobs[n]
	h.jobs = h.jobs[:n]
	if n == 0 {
		return first
	}
	i := 0
	for child := 1; child < n; child = 2*i + 1 {
		if child+1 < n && h.before(h.jobs[child+1], h.jobs[child]) {
			child++
		}
		if !h.before(h.jobs[child], last) {
			break
		}
		h.jobs[i] = h.jobs[child]
		i = child
	}
	h.jobs[i] = last
	return first
}
