package measure

import (
	"math"
	"math/bits"
)

// Value is an upper bound of the value that any schedule can reach: Σ v·width·(run time) over the jobs that it
// completes by their deadlines.
//
// By weak duality, any prices of slot-seconds give such a bound; a price may be different in each stretch of time. The
// bound has two terms. The first is the cost of all slots at these prices. The second is what each job would gain if it
// did its work at the lowest prices between its submission and its deadline. Value tries the prices at which the jobs
// with the most value per slot-second go first, and fractions of these prices.
func (s *Study) Value() float64 {
	jobs := s.fluid(func(i int) bool {
		j := &s.Work.Jobs[i]
		return j.Submit+j.Runtime <= s.Bids[i].Deadline
	})
	if len(jobs) == 0 {
		return 0
	}
	d := newDual(float64(s.Work.Nodes), jobs)
	prices := d.greedy()
	best := math.Inf(1)
	for _, part := range []float64{0, 0.25, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1} {
		best = min(best, d.bound(prices, part))
	}
	return best
}

// dual computes a bound on the value of all jobs. It divides the time into intervals of equal length (stretches), and
// knows how much work the slots can do in each of them.
type dual struct {
	slots, begin, length float64
	stretches            int
	jobs                 []fluid
}

func newDual(slots float64, jobs []fluid) *dual {
	const most = 1 << 16 // number of stretches
	begin, end, work := jobs[0].release, jobs[0].release, 0.0
	for _, j := range jobs {
		work += j.work
		end = max(end, j.release+j.runtime)
		if !math.IsInf(j.deadline, 1) {
			end = max(end, j.deadline)
		}
	}
	end += work / slots // all work can be done by this time
	length := max(1, (end-begin)/most)
	return &dual{slots, begin, length, int((end-begin)/length) + 1, jobs}
}

// window returns the first and the last period in which a job may run. The periods divide the time into equal parts.
func (d *dual) window(j *fluid) (first, last int) {
	first = int((j.release - d.begin) / d.length)
	last = d.stretches - 1
	if !math.IsInf(j.deadline, 1) {
		last = min(last, int((j.deadline-d.begin)/d.length))
	}
	return first, last
}

// Time is divided into stretches. The density of a job is what a slot-second is worth to it. In each stretch, greedy
// serves the jobs with the highest density first. For each stretch, it returns the highest density among the jobs that
// still have work after this stretch.
func (d *dual) greedy() []float64 {
	prices := make([]float64, d.stretches)
	f := fast{jobs: make([]fluid, len(d.jobs)), left: make([]float64, len(d.jobs))}
	copy(f.jobs, d.jobs)
	last := make([]int, len(d.jobs))
	for i := range f.jobs { // the heap is ordered by density
		_, last[i] = d.window(&d.jobs[i])
		f.jobs[i].weight, f.jobs[i].work = d.jobs[i].density, 1
		f.left[i] = d.jobs[i].work
	}
	next := 0
	for t := range prices {
		for ; next < len(d.jobs); next++ {
			if first, _ := d.window(&d.jobs[next]); first > t {
				break
			}
			f.push(int32(next))
		}
		prices[t] = f.serve(t, last, d.slots*d.length)
	}
	return prices
}

// serve gives slot time to jobs, first to the job with the largest weight, until it has given the time `room`. It
// returns the weight of the first job whose work is not done, or 0 if all work is done.
func (f *fast) serve(t int, last []int, room float64) float64 {
	for len(f.heap) > 0 {
		best := f.heap[0]
		switch {
		case last[best] < t:
			f.pop()
		case f.left[best] > room:
			f.left[best] -= room
			return f.jobs[best].weight
		default:
			room -= f.left[best]
			f.pop()
		}
	}
	return 0
}

// bound returns an upper bound of the total value. It multiplies each price by `part`, and computes the bound from
// these prices.
func (d *dual) bound(prices []float64, part float64) float64 {
	sum := 0.0
	for _, p := range prices {
		sum += part * p * d.slots * d.length
	}
	cheapest := newLeast(prices)
	for i := range d.jobs {
		j := &d.jobs[i]
		first, last := d.window(j)
		sum += j.work * max(0, j.density-part*cheapest.of(first, last))
	}
	return sum
}

// least finds the smallest number in a range of numbers in O(1). levels[k][i] is the smallest of the 2^k numbers from
// index i on.
type least struct{ levels [][]float64 }

func newLeast(x []float64) *least {
	l := &least{levels: [][]float64{x}}
	for width := 1; 2*width <= len(x); width *= 2 {
		below := l.levels[len(l.levels)-1]
		level := make([]float64, len(x)-2*width+1)
		for i := range level {
			level[i] = min(below[i], below[i+width])
		}
		l.levels = append(l.levels, level)
	}
	return l
}

func (l *least) of(first, last int) float64 {
	k := bits.Len(uint(last-first+1)) - 1
	return min(l.levels[k][first], l.levels[k][last+1-1<<k])
}
