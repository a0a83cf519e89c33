package deadline

import (
	"math"
	"slices"
)

// span is the range of time units [from, to). Unit 0 is the unit of the first arrival.
type span struct{ from, to int32 }

// schedule is what the mechanism decided in one run, with the data that a replay needs.
type schedule struct {
	p      *Problem
	first  int       // the unit that is counted as 0
	growth []float64 // by unit: levels are multiplied by this factor, for rule Monotone
	spans  [][]span  // by task: the units in which it was served
	served []int32   // by task: number of units in which it was served
	units  []unit    // one entry for each unit; units[0] is the unit `from`
	margin int       // number of ranks kept on each side of the last slot
	wide   bool      // some task has several slots
	from   int       // the first unit that a replay will need
}

// unit is one unit of time. It has the tasks that compete in this unit and whose rank is near the last rank that gets a
// slot.
type unit struct {
	slots  int32
	ranked int32       // number of tasks that competed
	skip   int32       // rank of near[0]
	near   []contender // contenders in the order of rank, from rank skip on
}

func (u *unit) taken() int { return int(min(u.slots, u.ranked)) }

// simulation is a schedule that is being made.
type simulation struct {
	*schedule
	coming  []int32     // tasks that have not arrived yet, by arrival, then index
	present []contender // tasks that have arrived, in the order of rank
	spare   []contender
	absent  int32 // the task that is left out; −1 if there is none
	bars    []bar // the bars of the absent task: one for each unit from its arrival on
}

// bar is the condition for a slot in one unit of time. A task gets a slot in this unit if its level is above `served`.
// Its level rises in this unit if it is above `raised`. −1 means that every level is high enough.
type bar struct{ served, raised float64 }

// Past is a run of the mechanism from the first arrival up to a unit of time. If another problem has the same tasks up
// to this unit, its run can continue from here.
type Past struct {
	simulation
	unit int // counted from the first arrival
}

// Until runs the mechanism on a checked problem up to a unit.
func Until(p *Problem, unit int) *Past {
	q := *p
	q.Asked = func(int) bool { return false }
	m := newSimulation(&q, 0)
	end := min(unit-m.first, m.from) // not after the last deadline
	m.run(0, end)
	return &Past{*m, end}
}

// resume copies the state of an earlier run, if this state fits. It returns the unit at which the earlier run ended, or
// 0 if nothing was copied.
func (m *simulation) resume(p *Past) int {
	if p == nil || p.unit <= 0 || p.first != m.first {
		return 0
	}
	copy(m.served, p.served)
	copy(m.spans, p.spans)
	for _, c := range p.present {
		m.spans[c.task] = slices.Clone(p.spans[c.task])
	}
	m.present = slices.Clone(p.present)
	for len(m.coming) > 0 && m.p.Tasks[m.coming[0]].Arrival-m.first < p.unit {
		m.coming = m.coming[1:]
	}
	return p.unit
}

// newSchedule runs the mechanism on a checked problem.
func newSchedule(p *Problem, margin int) *schedule {
	m := newSimulation(p, margin)
	m.run(m.resume(p.Past), m.from+len(m.units))
	return m.schedule
}

func newSimulation(p *Problem, margin int) *simulation {
	first, _ := p.span()
	from, end := p.asked()
	m := &simulation{absent: -1, schedule: &schedule{p: p, wide: p.wide(), first: first, growth: p.growths(), margin: margin, from: from - first,
		spans: make([][]span, len(p.Tasks)), served: make([]int32, len(p.Tasks)), units: make([]unit, end-from)}}
	m.coming = make([]int32, len(p.Tasks))
	for i := range m.coming {
		m.coming[i] = int32(i)
	}
	slices.SortStableFunc(m.coming, func(a, b int32) int { return p.Tasks[a].Arrival - p.Tasks[b].Arrival })
	return m
}

// run simulates the units of time from `from` to `end` − 1.
func (m *simulation) run(from, end int) {
	for t := from; t < end; t++ {
		m.leave(t)
		m.arrive(t)
		slots := m.p.capacityAt(t)
		m.keep(t, slots)
		if m.wide {
			m.serveWide(t, slots)
		} else {
			m.serve(t, min(slots, len(m.present)))
		}
	}
}

// effective reports whether task i can still be completed by its deadline, with `done` units before unit t.
func (s *schedule) effective(i, done int32, t int) bool {
	task := &s.p.Tasks[i]
	if task.Until != 0 && t+s.first >= task.Until {
		return false
	}
	return int(done) < task.work() && task.Deadline-s.first-t+1 >= task.Length-int(done)
}

func (m *simulation) leave(t int) {
	m.present = slices.DeleteFunc(m.present, func(c contender) bool { return !m.effective(c.task, c.done, t) })
}

func (m *simulation) arrive(t int) {
	news := m.spare[:0]
	for len(m.coming) > 0 && m.p.Tasks[m.coming[0]].Arrival-m.first == t {
		if i := m.coming[0]; i != m.absent && m.effective(i, 0, t) {
			news = append(news, contender{task: i, level: m.p.initial(i, m.p.Tasks[i].Value)})
		}
		m.coming = m.coming[1:]
	}
	m.spare = news
	if len(news) == 0 {
		return
	}
	slices.SortFunc(news, m.p.compare)
	m.present = m.merge(m.present, news)
}

// merge merges two ranked lists of tasks. If two tasks have equal ranks, the task of the first list comes first. Rule
// Monotone needs this: if a task ranked above another task before, the merge must not change their order.
func (m *simulation) merge(old, news []contender) []contender {
	n := len(old)
	old = append(old, news...)
	i, j := n-1, len(news)-1
	for k := len(old) - 1; j >= 0; k-- {
		if i >= 0 && m.p.before(news[j], old[i]) {
			old[k] = old[i]
			i--
		} else {
			old[k] = news[j]
			j--
		}
	}
	return old
}

// keep stores those tasks that a later replay of unit t may need. These are the tasks that rank just before and just
// after the last task that is served in the unit.
func (m *simulation) keep(t, slots int) {
	if t < m.from {
		return
	}
	n := len(m.present)
	from, to := max(0, slots-m.margin), min(n, slots+m.margin)
	u := unit{slots: int32(slots), ranked: int32(n), skip: int32(min(from, n))}
	if m.margin > 0 && from < to {
		u.near = slices.Clone(m.present[from:to])
	}
	m.units[t-m.from] = u
}

func (m *simulation) serve(t, taken int) {
	for k := range m.present[:taken] {
		c := &m.present[k]
		*c = m.raised(*c, m.p.Tasks[c.task].Value, t)
		m.served[c.task]++
		m.note(c.task, int32(t))
	}
	if m.p.Rule == Paper && m.p.Lambda > 0 && taken > 0 {
		// the levels of these tasks rose by different factors, but these tasks stay before all others
		slices.SortFunc(m.present[:taken], m.p.compare)
	}
}

// serveWide gives the slots of unit t to tasks in the order of their ranks. It skips each task that needs more slots
// than are left. A task with a higher level has a better rank. serveWide raises the levels of all tasks up to the first
// skipped task, including this task. Later tasks keep their levels, so they cannot overtake the skipped task.
func (m *simulation) serveWide(t, slots int) {
	if m.absent >= 0 && t >= m.p.Tasks[m.absent].Arrival-m.first {
		m.bars = append(m.bars, m.bar(slots))
	}
	rises := true
	for k := 0; k < len(m.present) && slots > 0; k++ {
		c := &m.present[k]
		task := &m.p.Tasks[c.task]
		if rises {
			c.level = min(c.level*m.growth[t], math.MaxFloat64)
		}
		if task.slots() > slots {
			rises = false
			continue
		}
		slots -= task.slots()
		c.done++
		m.served[c.task]++
		m.note(c.task, int32(t))
	}
}

// The simulation runs without one task, the absent task. bar returns two levels for this unit of time: the level that
// the absent task would have to exceed in order to be served, and the level above which its own level would rise. The
// unit has `slots` slots.
func (m *simulation) bar(slots int) bar {
	b, rises := bar{-1, -1}, true
	wants := m.p.Tasks[m.absent].slots()
	if slots < wants {
		b.served = math.Inf(1)
	}
	if slots == 0 {
		b.raised, rises = math.Inf(1), false
	}
	for k := 0; k < len(m.present) && (slots >= wants || rises); k++ {
		c := &m.present[k]
		fits := m.p.Tasks[c.task].slots() <= slots
		if fits {
			slots -= m.p.Tasks[c.task].slots()
		}
		if rises && (!fits || slots == 0) {
			b.raised, rises = c.level, false
		}
		if slots < wants && b.served < 0 {
			b.served = c.level
		}
	}
	return b
}

func (s *schedule) note(i, t int32) {
	spans := s.spans[i]
	if n := len(spans); n > 0 && spans[n-1].to == t {
		spans[n-1].to++
		return
	}
	s.spans[i] = append(spans, span{t, t + 1})
}

func (s *schedule) completed(i int) bool { return int(s.served[i]) == s.p.Tasks[i].work() }
