package deadlineaware

import (
	"cmp"
	"math"
	"slices"
)

// The order of jobs is determined from its last place to its first. There is an upper bound for the utility of each job
// without a place. After every `ahead` places, the bounds are computed again.
const ahead = 24

// goesLast compares two jobs for the last position in the order. The job at this position completes at the time t.
// goesLast reports whether job a should be last. A job that still has its best utility at t goes last before a job that
// does not. If both jobs have their best utility at t, the job that keeps it longer goes last. If no job has it, the
// job with more utility at t goes last. If these are equal, the job with more work goes last, and if the work is equal
// too, the job with the higher index.
func goesLast(a, b *item, t, utilityA, utilityB float64) bool {
	contentA, contentB := a.top >= t, b.top >= t
	if contentA != contentB {
		return contentA
	}
	order := cmp.Compare(utilityA, utilityB)
	if contentA {
		order = cmp.Compare(a.top, b.top)
	}
	return cmp.Or(order, cmp.Compare(a.work, b.work), cmp.Compare(a.index, b.index)) > 0
}

// layer is a job whose position in the order is fixed. Positions are counted from the end of the order.
type layer struct {
	job     int32
	t       float64 // when the work of this job and of all jobs before it is done
	utility float64 // the job's utility at t
}

// peeling has the jobs whose places in the schedule are not fixed yet.
type peeling struct {
	*planner
	work   float64   // `extra` plus the work of the jobs in left
	tops   []int32   // the jobs in the order of byTop, without some fixed ones at the start
	fixed  []bool    // by job: whether its place is fixed
	left   []int32   // the jobs that are not fixed
	bounds []float64 // for each job in left: an upper bound of its utility, valid while work is at least `until`
	until  float64   // the work down to which bounds are valid
}

// peel fixes the places of jobs in the schedule, the last place first. The argument `jobs` must be sorted as the method
// byTop sorts. The argument `extra` is the work of other jobs, which all come before these jobs.
func (q *planner) peel(jobs []int32, extra float64) []layer {
	p := q.newPeeling(jobs, extra)
	layers := make([]layer, 0, len(jobs))
	for len(layers) < len(jobs) {
		layers = append(layers, p.next())
	}
	return layers
}

func (q *planner) newPeeling(jobs []int32, extra float64) *peeling {
	p := &peeling{planner: q, work: extra, fixed: make([]bool, len(q.items)), until: math.Inf(1)}
	for _, j := range jobs {
		p.work += q.items[j].work
	}
	p.left, p.tops = slices.Clone(jobs), jobs
	return p
}

func (p *peeling) next() layer {
	t := p.work / p.slots
	job := p.content(t)
	if job < 0 {
		job = p.richest(t)
	}
	p.fixed[job] = true
	p.work -= p.items[job].work
	return layer{job, t, p.items[job].at(t)}
}

// content looks for jobs that lose nothing if they complete at the time t: their utility at this time is still the best
// possible one. It returns the job whose utility stays at its best for the longest time, or −1 if there is no such job.
func (p *peeling) content(t float64) int32 {
	for len(p.tops) > 0 && p.fixed[p.tops[0]] {
		p.tops = p.tops[1:]
	}
	if len(p.tops) > 0 && p.items[p.tops[0]].top >= t {
		return p.tops[0]
	}
	return -1
}

func (p *peeling) richest(t float64) int32 {
	if p.work < p.until {
		p.bound()
	}
	at, utility := -1, math.Inf(-1)
	for k := 0; k < len(p.left); k++ {
		if p.bounds[k] < utility {
			continue
		}
		j := p.left[k]
		if p.fixed[j] {
			p.drop(k)
			k--
			continue
		}
		u := p.items[j].at(t)
		if at < 0 || goesLast(&p.items[j], &p.items[p.left[at]], t, u, utility) {
			at, utility = k, u
		}
	}
	job := p.left[at]
	p.drop(at)
	return job
}

func (p *peeling) drop(k int) {
	n := len(p.left) - 1
	p.left[k], p.bounds[k] = p.left[n], p.bounds[n]
	p.left, p.bounds = p.left[:n], p.bounds[:n]
}

// bound computes an upper bound for the utility of each job whose place is not fixed yet. The bounds stay valid until a
// few more places have been fixed. bound sorts the jobs by their bounds, the largest first. With this order, a search
// for the largest utility can stop early, and skip most jobs.
func (p *peeling) bound() {
	p.left = slices.DeleteFunc(p.left, func(j int32) bool { return p.fixed[j] })
	n := float64(len(p.left))
	p.until = max(0, p.work*(1-ahead/max(ahead, n)))
	p.bounds = p.bounds[:0]
	largest := 0
	for k, j := range p.left {
		p.bounds = append(p.bounds, p.items[j].at(p.until/p.slots))
		if p.bounds[k] > p.bounds[largest] {
			largest = k
		}
	}
	p.left[0], p.left[largest] = p.left[largest], p.left[0]
	p.bounds[0], p.bounds[largest] = p.bounds[largest], p.bounds[0]
}
