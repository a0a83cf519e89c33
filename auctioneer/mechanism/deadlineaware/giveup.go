package deadlineaware

import (
	"cmp"
	"slices"

	"github.com/candor-grid/candor/messages/heap"
)

// serve chooses by Moore's rule which jobs complete with some utility. It gives up as few jobs as possible. If several
// choices give up equally few, it takes the choice whose least valuable completed job is worth the most. If `changed`
// is not nil, it replaces the job with the same index. The result says for each job whether it completes. It is false
// for jobs without work.
func (q *planner) serve(changed *item) []bool {
	jobs := q.urgentFirst(changed)
	m := moore{planner: q, changed: changed, served: make([]bool, len(q.items))}
	m.order.Before = m.longer
	if m.all(jobs) {
		return m.served
	}
	most := m.count(jobs, 0)
	values := make([]float64, 0, len(jobs))
	for _, j := range jobs {
		values = append(values, m.item(j).best)
	}
	slices.Sort(values)
	// Find the first value with which fewer than `most` jobs are served. The lowest value is never this value.
	at, _ := slices.BinarySearchFunc(values, most, func(value float64, most int) int {
		if m.count(jobs, value) < most {
			return 1
		}
		return -1
	})
	m.count(jobs, values[at-1])
	return m.served
}

// urgentFirst returns the jobs with work, in the order of byLast. The argument `changed` is an item with other numbers
// for one job, or nil. If it is not nil, urgentFirst puts this job at the place that follows from `changed`.
func (q *planner) urgentFirst(changed *item) []int32 {
	if changed == nil || changed.work == 0 {
		return q.byLast
	}
	jobs := slices.DeleteFunc(slices.Clone(q.byLast), func(j int32) bool { return int(j) == changed.index })
	at, _ := slices.BinarySearchFunc(jobs, changed, func(j int32, x *item) int {
		return cmp.Or(cmp.Compare(q.items[j].last, x.last), cmp.Compare(int(j), x.index))
	})
	return slices.Insert(jobs, at, int32(changed.index))
}

// moore chooses which jobs can be in time, by Moore's rule. It takes jobs in the order of their deadlines. If a job
// would be late with all jobs taken so far, moore gives up the longest job that it has taken, which may be this job.
type moore struct {
	*planner
	changed *item
	served  []bool
	order   heap.Order[int32]
	taken   []int32 // a heap of the jobs served so far, the longest first; each element is an index into order
}

func (m *moore) item(j int32) *item {
	if m.changed != nil && int(j) == m.changed.index {
		return m.changed
	}
	return &m.items[j]
}

func (m *moore) all(jobs []int32) bool {
	work := 0.0
	for _, j := range jobs {
		x := m.item(j)
		work += x.work
		if work/m.slots > x.last {
			return false
		}
		m.served[j] = true
	}
	return true
}

// count chooses as many jobs as possible that can all be served. It considers only jobs whose best utility is at least
// `least`. It returns how many jobs it has chosen.
func (m *moore) count(jobs []int32, least float64) int {
	clear(m.served)
	m.taken = m.taken[:0]
	work := 0.0
	for _, j := range jobs {
		x := m.item(j)
		if x.best < least || x.work/m.slots > x.last {
			continue
		}
		work += x.work
		m.order.Push(&m.taken, j)
		if work/m.slots > x.last {
			work -= m.item(m.order.Pop(&m.taken)).work
		}
	}
	for _, j := range m.taken {
		m.served[j] = true
	}
	return len(m.taken)
}

// longer reports whether job a counts as longer than job b. The job with more work is longer. Of jobs with equal work,
// the one with less value is longer. If the values are equal too, the later job is longer.
func (m *moore) longer(a, b int32) bool {
	x, y := m.item(a), m.item(b)
	return cmp.Or(cmp.Compare(x.work, y.work), cmp.Compare(y.best, x.best), cmp.Compare(x.index, y.index)) > 0
}
