package deadlineaware

import (
	"cmp"
	"slices"

	"github.com/candor-grid/candor/messages/heap"
)

// serve chooses the jobs that are served while they are worth anything, and
// gives up as few as possible. Of the choices that serve as many it takes one
// whose least valued job is worth the most, and finds it by Moore's rule.
// Changed stands for the job of its index. The flags are by job; those of jobs
// without work are false.
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
	// The first value that is too high a threshold; the lowest never is.
	at, _ := slices.BinarySearchFunc(values, most, func(value float64, most int) int {
		if m.count(jobs, value) < most {
			return 1
		}
		return -1
	})
	m.count(jobs, values[at-1])
	return m.served
}

// urgentFirst returns the jobs with work in the order of byLast, changed where
// it belongs.
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

// moore is Moore's rule: take jobs in the order of their deadlines; whenever
// one is late, leave out the longest so far.
type moore struct {
	*planner
	changed *item
	served  []bool
	order   heap.Order[int32]
	taken   []int32 // a heap, by order: the jobs served so far, the longest first
}

func (m *moore) item(j int32) *item {
	if m.changed != nil && int(j) == m.changed.index {
		return m.changed
	}
	return &m.items[j]
}

// all serves all jobs, if they can be.
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

// count serves as many as possible of the jobs whose best is at least least.
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

// longer orders jobs by work; of equal ones the one worth less, then the later,
// is the longer.
func (m *moore) longer(a, b int32) bool {
	x, y := m.item(a), m.item(b)
	return cmp.Or(cmp.Compare(x.work, y.work), cmp.Compare(y.best, x.best), cmp.Compare(x.index, y.index)) > 0
}
