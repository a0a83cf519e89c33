package deadlineaware

import (
	"cmp"
	"math"
	"slices"
)

// slot is a slot with the time when it becomes free.
type slot struct {
	free float64
	id   int32
}

func (a slot) before(b slot) bool { return a.free < b.free || a.free == b.free && a.id < b.id }

// machine gives tasks to slots: each task to the slot that is free first.
type machine struct {
	slots []slot                                    // a heap, the slot that is free first at the top
	given func(job, tasks int, s slot, end float64) // is called, unless nil, for each run that a slot gets
	shut  [][]Closing                               // by id of a slot: when it is closed, in the order of time; nil means never
}

func newMachine(p *Problem) *machine {
	m := &machine{slots: make([]slot, p.Slots), shut: closed(p)}
	for i := range m.slots {
		m.slots[i].id = int32(i)
	}
	return m
}

// place gives the tasks of a job to slots. It returns the start of the first task and the end of the last.
func (m *machine) place(index int, job *Job) (start, finish float64) {
	start = m.slots[0].free
	tasks, each := job.Tasks, job.each()
	if tasks == 0 || each == 0 {
		return start, start
	}
	if m.shut != nil {
		return m.placeAround(index, job)
	}
	if tasks > len(m.slots) {
		tasks, finish = m.pour(index, tasks, each)
	}
	for range tasks {
		s := m.slots[0]
		s.free = m.add(index, s, 1, each)
		finish = max(finish, s.free)
		m.slots[0] = s
		m.sink(0)
	}
	return start, finish
}

// sink moves the slot at position i down, until the slots form a heap again.
func (m *machine) sink(i int) {
	x := m.slots[i]
	for {
		child := 2*i + 1
		if child >= len(m.slots) {
			break
		}
		if child+1 < len(m.slots) && m.slots[child+1].before(m.slots[child]) {
			child++
		}
		if !m.slots[child].before(x) {
			break
		}
		m.slots[i] = m.slots[child]
		i = child
	}
	m.slots[i] = x
}

// The schedule gives tasks one by one to the slot that is free first. Most of the tasks can be given in one step.
// Imagine that the work fills the slots up to one level, like water. Each slot certainly gets the tasks that would end
// on this slot below the level. pour gives these tasks to the slots. pour returns how many tasks are left, usually few.
//
// If tasks are so short that adding them to a time does not change it, each slot gets the same number of tasks.
func (m *machine) pour(job, tasks int, each float64) (left int, finish float64) {
	m.sort()
	level := m.level(float64(tasks) * each)
	left = tasks
	give := func(i, n int) {
		if n <= 0 {
			return
		}
		left -= n
		m.slots[i].free = m.add(job, m.slots[i], n, each)
		finish = max(finish, m.slots[i].free)
	}
	for i, s := range m.slots {
		give(i, int(min(float64(left), math.Floor((level-s.free)/each))))
	}
	if more := left / len(m.slots); more > 1 {
		for i := range m.slots {
			give(i, more)
		}
	}
	m.heap()
	return left, finish
}

func (m *machine) sort() {
	slices.SortFunc(m.slots, func(a, b slot) int { return cmp.Or(cmp.Compare(a.free, b.free), cmp.Compare(a.id, b.id)) })
}

func (m *machine) heap() {
	for i := len(m.slots)/2 - 1; i >= 0; i-- {
		m.sink(i)
	}
}

// level returns the earliest time at which the work can end if it may be divided in any way among the slots. The slots
// are sorted by the time from which they are free.
func (m *machine) level(work float64) float64 {
	free := 0.0
	for i, s := range m.slots {
		free += s.free
		level := (work + free) / float64(i+1)
		if i+1 == len(m.slots) || level <= m.slots[i+1].free {
			return level
		}
	}
	return 0
}

// add appends n tasks of a job to the work of a slot. It returns the time at which the slot is free again.
func (m *machine) add(job int, s slot, n int, each float64) float64 {
	end := s.free + float64(n)*each
	if m.given != nil {
		m.given(job, n, s, end)
	}
	return end
}

// clone returns a copy of the machine without its callback (the field `given`).
func (m *machine) clone() *machine { return &machine{slots: slices.Clone(m.slots), shut: m.shut} }
