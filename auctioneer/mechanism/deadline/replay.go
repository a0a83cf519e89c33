package deadline

import (
	"math"
	"slices"
)

// replay computes what would have happened during the time of one task, the payer, if it had reported another value or
// had not come. It follows only the tasks whose state differs from the schedule. There are few such tasks, and the time
// that replay takes for a unit is proportional to their number.
type replay struct {
	*schedule
	value   float64     // the value that the payer reports
	absent  bool        // the payer is left out
	changed []change    // tasks whose state differs from the schedule; changed[0] is the payer
	mark    []int32     // by task: its position in changed plus 1, or 0 if it is unchanged
	rivals  []contender // the changed tasks that compete in the unit, in the order of rank
	fresh   int         // the tasks changed[fresh:] are not yet in rivals
	// A replay goes through one unit of time after another. These fields are about the present unit:
	base  int  // number of slots in use in the schedule
	pos   int  // rank in the schedule of the first unchanged task that is not served
	total int  // number of unchanged tasks that compete
	lost  bool // the schedule kept too few ranks, so the replay fails
}

// change is a task that has two states in a replay: the state in the replay itself, and the state in the original
// schedule. The two differ.
type change struct {
	now, was  contender
	at        int32 // index of the first span of the task in the schedule that ends after the unit
	wasServed bool
	served    bool
}

// step describes one unit of time: whether the payer gets a slot in it, and with which task the payer competes. The
// payer is the task whose payment is computed.
type step struct {
	served bool
	done   int32   // number of units that the payer got before
	rival  float64 // level of the best other task without a slot; if the payer is absent: level of the last task with a slot; −1 means none
}

func newReplay(s *schedule) *replay {
	return &replay{schedule: s, mark: make([]int32, len(s.p.Tasks))}
}

// run plays the units from the arrival to the deadline of task i (the payer) again, and calls `see` for each unit. The
// payer reports the given value. If `absent` is true, it does not take part. run returns false if it needs ranks of
// tasks that the schedule did not keep.
func (r *replay) run(i int32, value float64, absent bool, see func(t int, s step) bool) bool {
	r.value, r.absent, r.lost = value, absent, false
	defer r.forget()
	r.add(contender{task: i, level: r.p.initial(i, value)}, contender{task: i, level: r.p.initial(i, r.p.Tasks[i].Value)}, 0)
	from, end := r.p.Tasks[i].Arrival-r.first, r.p.Tasks[i].Deadline-r.first+1
	for t := from; t < end; t++ {
		s := r.unit(t)
		if r.lost {
			return false
		}
		if !see(t, s) {
			break
		}
	}
	return true
}

func (r *replay) forget() {
	for _, c := range r.changed {
		r.mark[c.now.task] = 0
	}
	r.changed, r.rivals, r.fresh = r.changed[:0], r.rivals[:0], 0
}

func (r *replay) add(now, was contender, t int) {
	spans := r.spans[now.task]
	at, _ := slices.BinarySearchFunc(spans, int32(t), func(s span, t int32) int {
		if s.to <= t {
			return -1
		}
		return 1
	})
	r.changed = append(r.changed, change{now: now, was: was, at: int32(at)})
	r.mark[now.task] = int32(len(r.changed))
}

// unit makes the decision for unit t again, with the changed tasks. It also updates the state of these tasks.
func (r *replay) unit(t int) step {
	u := &r.units[t-r.from]
	r.base = u.taken()
	r.total = int(u.ranked)
	kept := r.base // number of unchanged tasks that are served in the schedule
	for k := range r.changed {
		c := &r.changed[k]
		c.wasServed, c.served = r.wasServed(c, t), false
		if r.effective(c.was.task, c.was.done, t) {
			r.total--
		}
		if c.wasServed {
			kept--
		}
	}
	r.rank(t)
	taken := r.settle(u, kept)
	if r.lost {
		return step{}
	}
	s := r.meet(u, taken)
	r.advance(u, t, taken)
	return s
}

// rank brings r.rivals up to date for unit t. A rival is a task whose progress has changed, and that competes in this
// unit. The rivals are nearly in order of rank already, so inserting each of them is fast.
func (r *replay) rank(t int) {
	old := r.rivals
	r.rivals = r.rivals[:0]
	for _, c := range old {
		if m := r.mark[c.task]; m > 0 && r.effective(c.task, r.changed[m-1].now.done, t) {
			r.insert(r.changed[m-1].now)
		}
	}
	for ; r.fresh < len(r.changed); r.fresh++ {
		c := r.changed[r.fresh].now
		if !(r.fresh == 0 && r.absent) && r.effective(c.task, c.done, t) {
			r.insert(c)
		}
	}
}

func (r *replay) insert(c contender) {
	r.rivals = append(r.rivals, c)
	k := len(r.rivals) - 1
	for ; k > 0 && r.ahead(c, r.rivals[k-1]); k-- {
		r.rivals[k] = r.rivals[k-1]
	}
	r.rivals[k] = c
}

func (r *replay) wasServed(c *change, t int) bool {
	spans := r.spans[c.was.task]
	for int(c.at) < len(spans) && spans[c.at].to <= int32(t) {
		c.at++
	}
	return int(c.at) < len(spans) && spans[c.at].from <= int32(t)
}

// settle decides which tasks are served in unit u. The list r.rivals has the changed tasks that compete for the unit.
// settle returns how many of the rivals are served. It also sets r.pos: the unchanged tasks with ranks before r.pos get
// the other slots.
func (r *replay) settle(u *unit, kept int) int {
	r.pos = r.base
	slots := min(int(u.slots), r.total+len(r.rivals))
	taken := min(max(slots-kept, 0), len(r.rivals))
	for ; kept > slots-taken && !r.lost; kept-- {
		r.back(u)
	}
	for ; kept < slots-taken && kept < r.total && !r.lost; kept++ {
		r.forth(u)
	}
	for taken < len(r.rivals) && kept > 0 && !r.lost {
		if last := r.last(u); r.lost || !r.ahead(r.rivals[taken], *last) {
			break
		}
		r.back(u)
		taken, kept = taken+1, kept-1
	}
	for taken > 0 && kept < r.total && !r.lost {
		if next := r.next(u); r.lost || r.ahead(r.rivals[taken-1], *next) {
			break
		}
		r.forth(u)
		taken, kept = taken-1, kept+1
	}
	return taken
}

// seek returns the position of an unchanged task in the list u.near. It begins at position k. If the task at the
// position has changed, seek adds `by` (1 or −1) to the position and tries again. If seek comes to an end of the list,
// the schedule has kept too few ranks. Then r.lost becomes true, and the replay must be repeated with more ranks.
func (r *replay) seek(u *unit, k, by int) int {
	for k >= 0 && k < len(u.near) && r.mark[u.near[k].task] != 0 {
		k += by
	}
	r.lost = r.lost || k < 0 || k >= len(u.near)
	return k
}

// last returns the unchanged task just before the replay's position r.pos in the ranking of the unit. It returns nil if
// the replay has failed: the schedule did not keep enough ranks of the unit.
func (r *replay) last(u *unit) *contender { return r.near(u, r.seek(u, r.pos-int(u.skip)-1, -1)) }

// next returns the task with the highest rank among the unchanged tasks from the position r.pos on. It returns nil if
// this replay has failed, because the schedule kept too few ranks.
func (r *replay) next(u *unit) *contender { return r.near(u, r.seek(u, r.pos-int(u.skip), 1)) }

func (r *replay) near(u *unit, k int) *contender {
	if r.lost {
		return nil
	}
	return &u.near[k]
}

// The method back moves r.pos back by one unchanged task, so that this task loses its slot. r.pos is always the
// position of the first unchanged task that is not served.
func (r *replay) back(u *unit) { r.pos = r.seek(u, r.pos-int(u.skip)-1, -1) + int(u.skip) }

// forth moves r.pos forward by one unchanged task, so that this task is also served.
func (r *replay) forth(u *unit) { r.pos = r.seek(u, r.pos-int(u.skip), 1) + 1 + int(u.skip) }

// meet returns what happens to the payer in one unit of time. The payer is the task whose payment is computed. In this
// unit, two kinds of tasks are served: the first `taken` rivals, and the unchanged tasks before the position r.pos.
// Rivals are tasks whose progress has changed because the payer reports another value.
func (r *replay) meet(u *unit, taken int) step {
	payer := &r.changed[0]
	s := step{done: payer.now.done, rival: -1}
	for _, c := range r.rivals[:taken] {
		s.served = s.served || c.task == payer.now.task
	}
	if r.absent {
		s.rival = r.threshold(u, taken)
		return s
	}
	for _, c := range r.rivals[taken:] {
		if c.task != payer.now.task {
			s.rival = max(s.rival, c.level)
			break
		}
	}
	if r.unserved(u, taken) > 0 {
		if next := r.next(u); next != nil {
			s.rival = max(s.rival, next.level)
		}
	}
	return s
}

func (r *replay) unserved(u *unit, taken int) int {
	return r.total - (min(int(u.slots), r.total+len(r.rivals)) - taken)
}

// If no slot is free, threshold returns the level of the last task that is served. Otherwise it returns −1.
func (r *replay) threshold(u *unit, taken int) float64 {
	if r.total+len(r.rivals) < int(u.slots) {
		return -1
	}
	least := math.Inf(1) // if there are no slots, nobody is served
	if taken > 0 {
		least = r.rivals[taken-1].level
	}
	if int(u.slots) > taken {
		if last := r.last(u); last != nil {
			least = min(least, last.level)
		}
	}
	return least
}

// advance completes unit t of the replay. Each changed task is marked as served or not served in this unit. If another
// task gained or lost a slot because of this, it becomes a changed task.
func (r *replay) advance(u *unit, t, taken int) {
	for _, c := range r.rivals[:taken] {
		r.changed[r.mark[c.task]-1].served = true
	}
	old := len(r.changed)
	r.displace(u, t)
	keep, known := r.changed[:0], 0
	for k := range r.changed {
		c := r.changed[k]
		if k < old {
			r.grow(&c, t)
		}
		if k > 0 && r.same(&c, t+1) {
			r.mark[c.now.task] = 0
			continue
		}
		keep = append(keep, c)
		if k < old {
			known = len(keep)
		}
		r.mark[c.now.task] = int32(len(keep))
	}
	r.changed = keep
	r.fresh = min(known, len(keep))
}

func (r *replay) displace(u *unit, t int) {
	for k := min(r.pos, r.base); k < max(r.pos, r.base); k++ {
		c := u.near[k-int(u.skip)]
		if r.mark[c.task] != 0 {
			continue
		}
		up := r.raised(c, r.p.Tasks[c.task].Value, t)
		if r.pos < r.base {
			r.add(c, up, t+1)
		} else {
			r.add(up, c, t+1)
		}
	}
}

// grow updates a changed task after unit t: its state in the replay and its state in the original schedule. If the task
// was served in the unit, its level may rise.
func (r *replay) grow(c *change, t int) {
	truth := r.p.Tasks[c.now.task].Value
	if c.wasServed {
		c.was = r.raised(c.was, truth, t)
	}
	if !c.served {
		return
	}
	if c.now.task == r.changed[0].now.task {
		truth = r.value
	}
	c.now = r.raised(c.now, truth, t)
}

// same reports whether a changed task is unchanged again from unit t on. This is so if its state in the replay, c.now,
// equals its state in the original schedule, c.was. It is also so if the task cannot get a slot in unit t in either
// state.
func (r *replay) same(c *change, t int) bool {
	if c.now.done == c.was.done && c.now.level == c.was.level {
		return true
	}
	return !r.effective(c.now.task, c.now.done, t) && !r.effective(c.was.task, c.was.done, t)
}

// ahead reports whether contender a ranks before contender b. It uses the order of p.before, with one exception. The
// payer is the task whose price is computed, and it comes last among equals. Its level counts as equal to another level
// if the two differ by at most the fraction `slack`.
func (r *replay) ahead(a, b contender) bool {
	if r.absent {
		return r.p.before(a, b)
	}
	payer := r.changed[0].now.task
	if (a.task == payer || b.task == payer) && math.Abs(a.level-b.level) <= slack*max(a.level, b.level) {
		return b.task == payer
	}
	return r.p.before(a, b)
}
