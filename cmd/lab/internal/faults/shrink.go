package faults

// shrinkRuns limits how many times Shrink may run the plan of one seed.
const shrinkRuns = 400

// Shrink reduces the plan of a failing seed to the events, jobs, trades and nodes that are needed to violate the same
// invariant (delta debugging). For a seed that does not fail, it returns the drawn plan.
func Shrink(p *Plan, seed uint64, bug Bug) *Plan {
	first := Run(p, seed, bug)
	if first.Violation == nil {
		return Drawn(p, seed)
	}
	s := &shrinker{p, seed, bug, first.Invariant(), shrinkRuns}
	short := s.events(p.draw(seed))
	for _, n := range []func(*Plan) *int{
		func(p *Plan) *int { return &p.Trades }, func(p *Plan) *int { return &p.Jobs }, func(p *Plan) *int { return &p.Nodes },
	} {
		short = s.fewer(short, n)
	}
	return short
}

type shrinker struct {
	plan      *Plan
	seed      uint64
	bug       Bug
	invariant string
	left      int // number of runs that are left
}

func (s *shrinker) fails(p *Plan) bool {
	s.left--
	if _, err := p.check(); err != nil || s.left < 0 {
		return false
	}
	o := Run(p, s.seed, s.bug)
	return o.Violation != nil && o.Invariant() == s.invariant
}

func (s *shrinker) events(events []Event) *Plan {
	if none := s.plan.with(nil, s.seed); s.fails(none) {
		return none
	}
	for parts := 2; len(events) > 1; {
		size := max(1, len(events)/parts)
		shorter := false
		for from := 0; from < len(events) && !shorter; from += size {
			rest := append(append([]Event{}, events[:from]...), events[min(len(events), from+size):]...)
			if shorter = s.fails(s.plan.with(rest, s.seed)); shorter {
				events = rest
			}
		}
		switch {
		case shorter:
			parts = max(2, parts-1)
		case size == 1: // no single event can be left out
			return s.plan.with(events, s.seed)
		default:
			parts *= 2
		}
	}
	return s.plan.with(events, s.seed)
}

// fewer makes a number of the plan, such as the number of jobs, as small as possible while the plan still fails. It
// subtracts half of the number, and then ever smaller steps down to one.
func (s *shrinker) fewer(p *Plan, number func(*Plan) *int) *Plan {
	for step := max(1, *number(p)/2); step > 0; {
		smaller := *p
		*number(&smaller) -= step
		if s.fails(&smaller) {
			p = &smaller
		} else {
			step /= 2
		}
	}
	return p
}

// A plan can have rates of faults. Drawn returns a copy of the plan with single faults instead. They are drawn from the
// rates with the given seed.
func Drawn(p *Plan, seed uint64) *Plan { return p.with(p.draw(seed), seed) }

func (p *Plan) with(events []Event, seed uint64) *Plan {
	short := *p
	short.Rates, short.Events, short.Seed = nil, events, seed
	if short.Events == nil {
		short.Events = []Event{}
	}
	return &short
}
