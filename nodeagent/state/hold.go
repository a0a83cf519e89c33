package state

import "github.com/candor-grid/candor/messages"

// take takes a task in hand, and begins it unless it is held.
func (s *State) take(class int, start Start) {
	a := start.Grant.Attempt
	t := &task{class: class, start: &start, held: s.held[a]}
	s.hand[a] = t
	s.alive++
	if !t.held {
		s.classes[class].tasks++
		s.begin(t)
	}
}

func (s *State) begin(t *task) {
	s.out.Start = append(s.out.Start, *t.start)
	t.start = nil
}

// Adopt takes a task in hand that an earlier run of the agent began, and
// suspended if it is held; before the first Act. It reports false if the node has
// no such slots any more. A task that the leader does not hold goes on with the
// first answer.
func (s *State) Adopt(a messages.Attempt, class messages.Name, held bool) bool {
	at := s.classOf(class)
	if at < 0 || s.hand[a] != nil {
		return false
	}
	s.hand[a] = &task{class: at, held: held}
	s.alive++
	if !held {
		s.classes[at].tasks++
		return true
	}
	if s.held == nil {
		s.held = map[messages.Attempt]bool{}
	}
	s.held[a] = true // as the earlier run was told
	return true
}

// obey holds what is listed and lets everything else run, unless something
// newer was obeyed before.
func (s *State) obey(version uint64, held []messages.Attempt) {
	if version < s.version {
		return
	}
	s.version = version
	if len(held) == 0 && len(s.held) == 0 {
		return
	}
	s.held = make(map[messages.Attempt]bool, len(held))
	for _, a := range held {
		s.held[a] = true
	}
	for _, a := range s.inHand() {
		if t := s.hand[a]; !t.ended && t.held != s.held[a] {
			s.setHeld(a, t)
		}
	}
}

// setHeld turns a task round. A held task leaves its slot: how many may run at
// once is the leader's to say.
func (s *State) setHeld(a messages.Attempt, t *task) {
	t.held = !t.held
	switch c := &s.classes[t.class]; {
	case t.held:
		c.tasks--
		s.out.Hold = append(s.out.Hold, a) // it has begun: others are held from the start
	case t.start != nil:
		c.tasks++
		s.begin(t)
	default:
		c.tasks++
		s.out.Resume = append(s.out.Resume, a)
	}
}
