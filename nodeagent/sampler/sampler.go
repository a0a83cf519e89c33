package sampler

import (
	"math"
	"slices"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
)

// group is how many neighbouring jobs share one leaf of the tree of sums of weights. Their weights fill one or two
// cache lines. To scan them is faster than to go down a deeper tree.
const group = 32

// Sampler draws jobs in proportion to their weights. The zero value is empty
// and ready. It is not safe for concurrent use.
type Sampler struct {
	jobs    []messages.JobID // job numbers, in ascending order
	weights []float32        // by job; 0 means that the job was removed, and stays until the next compaction
	live    int              // number of weights above 0
	// sums is a binary tree in a slice: the root is sums[1], and the node sums[i] has the children sums[2i] and
	// sums[2i+1]. The leaf of group g is sums[leaves+g].
	sums   []float64
	leaves int // number of leaves: a power of two, at least the number of groups
}

// Replace replaces all jobs. Their numbers must ascend. A job with weight 0 is left out.
func (s *Sampler) Replace(jobs []agent.JobWeight) error {
	if err := check(jobs); err != nil {
		return err
	}
	n := 0
	for _, j := range jobs {
		if j.Weight > 0 {
			n++
		}
	}
	s.resize(n)
	n = 0
	for _, j := range jobs {
		if j.Weight > 0 {
			s.jobs[n], s.weights[n] = j.Job, j.Weight
			n++
		}
	}
	s.live = n
	s.rebuild()
	return nil
}

// Update sets the weights of some jobs. Job numbers must ascend. A weight of 0 removes a job; removing an unknown job
// is not an error.
func (s *Sampler) Update(changes []agent.JobWeight) error {
	if err := check(changes); err != nil {
		return err
	}
	var fresh []agent.JobWeight
	for _, c := range changes {
		at, found := slices.BinarySearch(s.jobs, c.Job)
		if found {
			s.set(at, c.Weight)
		} else if c.Weight > 0 {
			fresh = append(fresh, c)
		}
	}
	s.insert(fresh)
	if len(s.jobs) > group && s.live < len(s.jobs)/2 {
		s.compact()
	}
	return nil
}

// Sample returns the job whose part of [0, 1) contains u, or 0 if there are no jobs. A job's part is as long as its
// share of the weights; parts are in the order of the job numbers.
func (s *Sampler) Sample(u float64) messages.JobID {
	if s.live == 0 {
		return 0
	}
	x, node := u*s.sums[1], 1
	for node < s.leaves {
		left, right := s.sums[2*node], s.sums[2*node+1]
		node *= 2
		// x was drawn below the sum of all weights. Rounding can make it too large for the left half although all
		// weights of the right half are 0. So the search enters the right half only if the sum of the right half is
		// above 0.
		if x >= left && right > 0 {
			x -= left
			node++
		}
	}
	return s.scan(node-s.leaves, x)
}

// scan finds the job of group g whose weight covers the point x, if the weights of the group's jobs are laid one after
// another on a line, from 0. At least one of the weights must be above 0.
func (s *Sampler) scan(g int, x float64) (job messages.JobID) {
	from, to := s.bounds(g)
	for i := from; i < to; i++ {
		w := float64(s.weights[i])
		if w == 0 {
			continue
		}
		job = s.jobs[i]
		if x < w {
			break
		}
		x -= w
	}
	return job
}

// Len returns the number of jobs.
func (s *Sampler) Len() int { return s.live }

// Total returns the sum of all weights.
func (s *Sampler) Total() float64 {
	if s.live == 0 {
		return 0
	}
	return s.sums[1]
}

func check(jobs []agent.JobWeight) error {
	for i, j := range jobs {
		w := float64(j.Weight)
		if !(w >= 0) || math.IsInf(w, 1) {
			return messages.Errorf(messages.Invalid, "weight %v of job %v: must be a finite number, at least 0", w, j.Job)
		}
		if i > 0 && jobs[i-1].Job >= j.Job {
			return messages.Errorf(messages.Invalid, "job %v follows job %v: job numbers must ascend", j.Job, jobs[i-1].Job)
		}
	}
	return nil
}

// set changes the weight at a position. It also changes each sum in the tree that contains this weight.
func (s *Sampler) set(at int, w float32) {
	if s.weights[at] > 0 {
		s.live--
	}
	if w > 0 {
		s.live++
	}
	s.weights[at] = w
	s.refresh(at / group)
}

// refresh computes the leaf of a group again, and all sums between the leaf and the root. The sums form a binary tree,
// and a leaf is the sum of the weights of one group.
func (s *Sampler) refresh(g int) {
	node := s.leaves + g
	s.sums[node] = s.groupSum(g)
	for node /= 2; node > 0; node /= 2 {
		s.sums[node] = s.sums[2*node] + s.sums[2*node+1]
	}
}

func (s *Sampler) insert(fresh []agent.JobWeight) {
	if len(fresh) == 0 {
		return
	}
	if n := len(s.jobs); n > 0 && fresh[0].Job < s.jobs[n-1] {
		s.merge(fresh)
		return
	}
	for _, j := range fresh {
		s.jobs = append(s.jobs, j.Job)
		s.weights = append(s.weights, 0)
		if s.groups() > s.leaves {
			s.rebuild() // this doubles the number of leaves, so it happens seldom
		}
		s.set(len(s.jobs)-1, j.Weight)
	}
}

// merge adds new jobs to the sorted list of jobs. It fills the list from its end, so that each job is moved at most
// once.
func (s *Sampler) merge(fresh []agent.JobWeight) {
	old, n := len(s.jobs)-1, len(s.jobs)+len(fresh)
	s.jobs = slices.Grow(s.jobs, len(fresh))[:n]
	s.weights = slices.Grow(s.weights, len(fresh))[:n]
	next := len(fresh) - 1
	for to := n - 1; next >= 0; to-- {
		if old >= 0 && s.jobs[old] > fresh[next].Job {
			s.jobs[to], s.weights[to] = s.jobs[old], s.weights[old]
			old--
		} else {
			s.jobs[to], s.weights[to] = fresh[next].Job, fresh[next].Weight
			next--
		}
	}
	s.live += len(fresh)
	s.rebuild()
}

func (s *Sampler) compact() {
	n := 0
	for i, w := range s.weights {
		if w > 0 {
			s.jobs[n], s.weights[n] = s.jobs[i], w
			n++
		}
	}
	s.resize(n)
	s.rebuild()
}

// resize makes the slices large enough for n jobs. It also frees them if they are far too large. The two slices may
// have different capacities, because append may have reserved more in one of them.
func (s *Sampler) resize(n int) {
	if min(cap(s.jobs), cap(s.weights)) >= n && cap(s.jobs) <= 4*n+group {
		s.jobs, s.weights = s.jobs[:n], s.weights[:n]
		return
	}
	jobs, weights := make([]messages.JobID, n), make([]float32, n)
	copy(jobs, s.jobs)
	copy(weights, s.weights)
	s.jobs, s.weights = jobs, weights
}

func (s *Sampler) rebuild() {
	s.leaves = 1
	for s.leaves < s.groups() {
		s.leaves *= 2
	}
	if cap(s.sums) < 2*s.leaves || cap(s.sums) > 8*s.leaves {
		s.sums = make([]float64, 2*s.leaves)
	}
	s.sums = s.sums[:2*s.leaves]
	for g := range s.leaves {
		s.sums[s.leaves+g] = s.groupSum(g)
	}
	for node := s.leaves - 1; node > 0; node-- {
		s.sums[node] = s.sums[2*node] + s.sums[2*node+1]
	}
}

func (s *Sampler) groups() int { return (len(s.jobs) + group - 1) / group }

func (s *Sampler) bounds(g int) (from, to int) {
	return min(g*group, len(s.jobs)), min((g+1)*group, len(s.jobs))
}

// groupSum returns the sum of the weights in group g. It adds them in the same order as the method scan, so that
// rounding is the same.
func (s *Sampler) groupSum(g int) (sum float64) {
	from, to := s.bounds(g)
	for _, w := range s.weights[from:to] {
		sum += float64(w)
	}
	return sum
}
