package state

// Idle returns the number of slots without a task or a claim.
func (s *State) Idle() (n int) {
	for i := range s.slots {
		n += s.slots[i].free()
	}
	return n
}
