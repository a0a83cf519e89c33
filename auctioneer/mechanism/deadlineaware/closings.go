package deadlineaware

import "math"

// Closing takes slots away between the times From and To, in seconds from now.
type Closing struct {
	From, To float64
	Slots    int
}

// A closing takes a number of slots away for a time. closed decides which slots each closing takes, and returns a list
// of closings for each slot. A slot never has two closings at the same time. The last slots are taken first: if any
// slot is idle, it is one of the last. Without closings, the result is nil.
func closed(p *Problem) [][]Closing {
	if len(p.Closings) == 0 {
		return nil
	}
	shut := make([][]Closing, p.Slots)
	for _, c := range p.Closings {
		for i, left := p.Slots-1, c.Slots; i >= 0 && left > 0; i-- {
			if n := len(shut[i]); n == 0 || shut[i][n-1].To <= c.From {
				shut[i], left = append(shut[i], c), left-1
			}
		}
	}
	return shut
}

// opens returns the first time, not before t, at which a slot is open and stays open for at least the duration `while`.
// The result `stays` is how long it stays open.
func (m *machine) opens(slot int32, t, while float64) (at, stays float64) {
	for _, c := range m.shut[slot] {
		if t < c.To && t+while <= c.From {
			return t, c.From - t
		}
		t = max(t, c.To)
	}
	return t, math.Inf(1)
}

// placeAround does the same as place, for slots that maintenance closes at times. If the time before a closing is too
// short for the job's tasks, the slot stays free until the closing, so that shorter tasks can use it. With C slots,
// placeAround costs O(C log C). The last k < C tasks are placed one by one, which costs O(k log C).
func (m *machine) placeAround(index int, job *Job) (start, finish float64) {
	a := around{machine: m, index: index, each: job.each(), while: max(job.each(), job.Limit), left: job.Tasks, ends: make([]float64, len(m.slots))}
	before := make([]float64, len(m.slots))
	for i, s := range m.slots {
		before[s.id] = s.free
		m.slots[i].free, _ = m.opens(s.id, s.free, a.while)
	}
	m.heap()
	start = m.slots[0].free
	for a.left > len(m.slots) && a.pour() {
	}
	for a.left > 0 {
		a.give(0, 1)
		m.sink(0)
	}
	for i, s := range m.slots {
		m.slots[i].free = max(before[s.id], a.ends[s.id])
		finish = max(finish, a.ends[s.id])
	}
	m.heap()
	return start, finish
}

// around gives the tasks of one job to slots that maintenance closes for a time. A slot counts as free when it is open
// long enough for a task.
type around struct {
	*machine
	index       int
	each, while float64
	left        int       // tasks without a slot
	ends        []float64 // by id of a slot: when the last task of the job ends there, or 0 if it has none
}

// give gives tasks to the slot at position i. If the slot closes later, give gives it only as many tasks as the slot
// can run before it closes.
func (a *around) give(i, tasks int) {
	s := &a.slots[i]
	n := min(a.left, tasks)
	if _, stays := a.opens(s.id, s.free, a.while); !math.IsInf(stays, 1) {
		n = int(min(float64(n), max(0, math.Floor((stays-a.while)/a.each))+1))
	}
	if n <= 0 {
		return
	}
	a.left -= n
	a.ends[s.id] = a.add(a.index, *s, n, a.each)
	s.free, _ = a.opens(s.id, a.ends[s.id], a.while)
}

// pour gives tasks to many slots in one pass, in place of one task at a time. It computes the level: the time up to
// which the work would fill all slots if no slot ever closed. A slot gets only the tasks that end before this time,
// because these would be given to it in any case. pour returns false if no slot gets a task.
func (a *around) pour() bool {
	was := a.left
	a.sort()
	level := a.level(float64(a.left) * a.each)
	for i, s := range a.slots {
		a.give(i, int(min(float64(a.left), math.Floor((level-s.free)/a.each))))
	}
	a.heap()
	return a.left < was
}
