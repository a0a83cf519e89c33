package shapes

import (
	"cmp"
	"slices"
)

// piece is a task for which the packing must find a place.
type piece struct {
	submit, runtime float64
	width           int
}

func (m *machine) pieces() (out []piece) {
	for i := range m.work.Jobs {
		j := &m.work.Jobs[i]
		for range j.Width {
			out = append(out, piece{j.Submit, j.Runtime, m.widths[i]})
		}
	}
	return out
}

// A piece occupies some slots for its run time. within returns the slot time that it uses up to the time `until`, if it
// begins at the time `start`.
func (p *piece) within(start, until float64) float64 {
	return float64(p.width) * max(0, min(p.runtime, until-start))
}

// lane is the plan of one node. For each time at which it changes, the lane has the number of free slots from then on.
type lane struct {
	at   []float64
	free []int
}

// soonest returns the earliest time from which the node has enough free slots for the whole run time of a piece. If
// this time is not earlier than the argument `before`, it returns false.
func (l *lane) soonest(p *piece, before float64) (float64, bool) {
	i, _ := slices.BinarySearch(l.at, p.submit)
	if i == len(l.at) || l.at[i] > p.submit {
		i--
	}
	start := p.submit
	for k := i; k < len(l.at); k++ {
		if l.at[k] >= start+p.runtime {
			break
		}
		if l.free[k] >= p.width {
			continue
		}
		if k+1 == len(l.at) {
			return 0, false
		}
		if start = l.at[k+1]; start >= before {
			return 0, false
		}
	}
	return start, start < before
}

// The method `put` takes the slots of a piece, from the time `start` on, for the run time of the piece.
func (l *lane) put(p *piece, start float64) {
	from, to := l.cut(start), l.cut(start+p.runtime)
	for k := from; k < to; k++ {
		l.free[k] -= p.width
	}
}

// A lane has entries. Each entry has a time and the number of slots that are free from this time to the next entry. cut
// returns the position of the entry with the time `at`. If the lane has no such entry, cut inserts one.
func (l *lane) cut(at float64) int {
	i, found := slices.BinarySearch(l.at, at)
	if !found {
		l.at, l.free = slices.Insert(l.at, i, at), slices.Insert(l.free, i, l.free[i-1])
	}
	return i
}

// orders are the orders in which tasks are packed: the most slot time first, the widest first, and as submitted.
var orders = []func(x, y piece) int{
	func(x, y piece) int { return cmp.Compare(y.runtime*float64(y.width), x.runtime*float64(x.width)) },
	func(x, y piece) int { return cmp.Or(cmp.Compare(y.width, x.width), cmp.Compare(y.runtime, x.runtime)) },
	func(x, y piece) int { return cmp.Compare(x.submit, y.submit) },
}

// packing packs the tasks several times, once for each element of `orders`. For each packing, it computes the slot time
// that tasks use until the horizon. It returns the largest of these slot times.
func (m *machine) packing() (sold float64) {
	for _, by := range orders {
		sold = max(sold, m.pack(by))
	}
	return sold
}

// pack finds a place for every task, and returns how much slot time the tasks have until the horizon. It takes the
// tasks in the order that the function `by` defines. Each task gets the earliest time, on the first node, with enough
// free slots for its whole run time. A task that is placed is not moved again.
func (m *machine) pack(by func(x, y piece) int) (sold float64) {
	all := m.pieces()
	slices.SortStableFunc(all, by)
	lanes := make([]lane, m.work.Nodes/nodeSlots)
	for i := range lanes {
		lanes[i] = lane{[]float64{m.from}, []int{nodeSlots}}
	}
	for k := range all {
		p := &all[k]
		best, at := -1, m.until
		for i := range lanes {
			if start, ok := lanes[i].soonest(p, at); ok {
				if best, at = i, start; start == p.submit {
					break
				}
			}
		}
		if best < 0 {
			continue // the task would start after the horizon
		}
		lanes[best].put(p, at)
		sold += p.within(at, m.until)
	}
	return sold
}

// bound returns an upper bound of the slot time that can be used. It counts the machine as one node, and assumes that
// tasks can be divided at will.
func (m *machine) bound() float64 {
	done, waiting, last := 0.0, 0.0, m.from
	for i := range m.work.Jobs {
		j := &m.work.Jobs[i]
		n := min(waiting, float64(m.work.Nodes)*(j.Submit-last))
		done, waiting, last = done+n, waiting-n, j.Submit
		waiting += float64(m.slots(i)) * min(j.Runtime, m.until-j.Submit)
	}
	return done + min(waiting, float64(m.work.Nodes)*(m.until-last))
}
