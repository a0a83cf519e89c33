package deadlineaware

// InOrder returns when the jobs of a problem complete, in seconds from now, if they get slots in the given order. The
// argument `busy` has the times when the slots in use become free, in seconds from now.
func InOrder(p *Problem, order []int, busy []float64) []float64 {
	m := newMachine(p)
	for i, free := range busy[:min(len(busy), p.Slots)] {
		m.slots[i].free = free
	}
	m.heap()
	out := make([]float64, len(p.Jobs))
	for _, j := range order {
		_, out[j] = m.place(j, &p.Jobs[j])
	}
	return out
}
