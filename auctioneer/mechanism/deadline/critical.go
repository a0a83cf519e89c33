package deadline

import (
	"math"
	"runtime"
	"slices"
	"sync"
)

// Outcome is the allocation that the mechanism decided.
type Outcome struct {
	Completed  []bool // by task: whether it was completed
	TotalValue float64
	schedule   *schedule
}

// The computation of critical values needs the ranks of tasks, but not all ranks can be kept. In each unit, the
// schedule keeps only the tasks near the border: firstMargin tasks above the last rank that gets a slot, and
// firstMargin tasks below it. If these are too few, the run is repeated with moreMargin times as many.
const (
	firstMargin = 64
	moreMargin  = 16
)

// Run decides which tasks are served in which units.
func Run(p *Problem) (*Outcome, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	margin := firstMargin
	o := &Outcome{Completed: make([]bool, len(p.Tasks)), schedule: newSchedule(p, margin)}
	for i := range p.Tasks {
		if o.Completed[i] = o.schedule.completed(i); o.Completed[i] {
			o.TotalValue += p.Tasks[i].Value
		}
	}
	return o, nil
}

// Units returns the units in which task i was served, ascending.
func (o *Outcome) Units(i int) []int {
	units := make([]int, 0, o.schedule.served[i])
	for _, s := range o.schedule.spans[i] {
		for t := s.from; t < s.to; t++ {
			units = append(units, o.schedule.first+int(t))
		}
	}
	return units
}

// Payments returns what each task owes: its critical value if it was completed, else 0. It uses all processors.
func (o *Outcome) Payments() []float64 {
	asked := func(i int) bool { return o.schedule.p.Asked == nil || o.schedule.p.Asked(i) }
	payments := make([]float64, len(o.Completed))
	as := func(i int) bool { return o.twin(i) && asked(i-1) }
	var todo []int32
	for i, done := range o.Completed {
		if done && asked(i) && !as(i) {
			todo = append(todo, int32(i))
		}
	}
	for s := o.schedule; len(todo) > 0; {
		if todo = priceAll(s, todo, payments); len(todo) > 0 {
			s = newSchedule(s.p, s.margin*moreMargin)
		}
	}
	for i := range payments {
		if o.Completed[i] && asked(i) && as(i) {
			payments[i] = payments[i-1]
		}
	}
	return payments
}

// threshold returns the critical value of task i, but at most the task's value. Under a monotone rule, it can also be
// called for a task that was not completed.
func (o *Outcome) threshold(i int) float64 {
	for s := o.schedule; ; s = newSchedule(s.p, s.margin*moreMargin) {
		if v, ok := newReplay(s).price(int32(i)); ok {
			return v
		}
	}
}

// twin reports whether task i equals the task before it, and must therefore pay the same. Equal tasks pay the same only
// under a monotone rule, where a critical value depends only on the other tasks.
func (o *Outcome) twin(i int) bool {
	p := o.schedule.p
	return i > 0 && o.Completed[i-1] && p.Tasks[i] == p.Tasks[i-1] && p.monotone()
}

func (p *Problem) monotone() bool { return p.Rule == Monotone || p.Lambda == 0 }

// priceAll computes the payments of the tasks in the list `todo`. It returns the tasks whose payment it could not
// compute, because the schedule has kept too few ranks of tasks.
func priceAll(s *schedule, todo []int32, payments []float64) []int32 {
	const block = 64
	failed := make([]bool, len(todo))
	starts := make(chan int)
	var group sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(todo)/block+1) {
		group.Go(func() {
			r := newReplay(s)
			for at := range starts {
				for k := at; k < min(at+block, len(todo)); k++ {
					v, ok := r.price(todo[k])
					payments[todo[k]], failed[k] = v, !ok
				}
			}
		})
	}
	for at := 0; at < len(todo); at += block {
		starts <- at
	}
	close(starts)
	group.Wait()
	var left []int32
	for k, i := range todo {
		if failed[k] {
			left = append(left, i)
		}
	}
	return left
}

// price returns the critical value of a completed task. To limit the memory, the schedule keeps the ranks of only some
// tasks. If it kept too few of them for the computation, price returns false.
func (r *replay) price(i int32) (float64, bool) {
	if !r.p.monotone() {
		return r.descend(i)
	}
	var ladder ladder
	task := &r.p.Tasks[i]
	if r.wide {
		for _, b := range without(r.p, i) {
			ladder.levels, ladder.raises = append(ladder.levels, b.served), append(ladder.raises, b.raised)
		}
	} else if !r.run(i, 0, true, func(t int, s step) bool {
		ladder.levels = append(ladder.levels, s.rival)
		return true
	}) {
		return 0, false
	}
	ladder.length, ladder.work = task.Length, task.work()
	if r.p.Rule == Monotone && r.p.Lambda > 0 {
		ladder.growth = r.growth[task.Arrival-r.first:]
	}
	top := r.p.initial(i, task.Value)
	return min(ladder.least(top)*task.area(), task.Value), true
}

// without computes the schedule as if task i did not exist. For each unit from the arrival of task i to its deadline,
// it returns a level: task i gets a slot in this unit only if it is above this level.
func without(p *Problem, i int32) []bar {
	m := newSimulation(p, 0)
	m.absent = i
	m.run(0, p.Tasks[i].Deadline-m.first+1)
	return m.bars
}

// The critical value of a task is the smallest value with which it is completed. descend finds it with the paper's
// search, which begins at the reported value. In each step, the search takes the largest smaller value at which the
// task would lose a unit of time. It goes on as long as the task is still completed with this value. If the task has
// the same rank as another task, the other task is served first.
func (r *replay) descend(i int32) (float64, bool) {
	value, served := r.given(i)
	for last := math.Inf(1); served && value > 0 && value < last; {
		next, done := 0.0, int32(0)
		ok := r.run(i, value, false, func(t int, s step) bool {
			if s.served {
				done = s.done + 1
				c := contender{task: i, done: s.done}
				next = max(next, s.rival*r.p.remaining(c))
			}
			return int(done) < r.p.Tasks[i].work()
		})
		if !ok {
			return 0, false
		}
		if int(done) < r.p.Tasks[i].work() {
			break
		}
		last, value = value, next
	}
	return value, served
}

// given returns the largest value with which task i would lose at least one of the units that it got. It returns false
// if it needs ranks of tasks that the schedule did not keep.
func (r *replay) given(i int32) (float64, bool) {
	value, done := 0.0, int32(0)
	for _, s := range r.spans[i] {
		for t := s.from; t < s.to; t++ {
			u := &r.units[int(t)-r.from]
			if u.ranked > u.slots {
				k := int(u.slots - u.skip)
				if k >= len(u.near) {
					return 0, false
				}
				value = max(value, u.near[k].level*r.p.remaining(contender{task: i, done: done}))
			}
			done++
		}
	}
	return min(value, r.p.Tasks[i].Value), true
}

// ladder has, for each unit of time, the level above which a task is served in this unit.
type ladder struct {
	levels []float64 // the level above which the task is served; −1 if a slot is free
	raises []float64 // the level above which the task's own level rises; nil if the same as levels
	growth []float64 // by unit: its level is multiplied by this factor; nil if levels do not rise
	length int       // number of units that the task declared
	work   int       // number of units after which the task is completed
}

// climb goes through the units of time, with a task that starts at the level `from` and loses all ties. It reports
// whether the task is completed. climb also returns the largest lower starting level that makes a difference: with it,
// the task does not get a unit that it gets now, or its level does not rise in a unit in which it rises now.
func (l *ladder) climb(from float64) (bool, float64) {
	level, done, next := from, 0, 0.0
	for t, rival := range l.levels {
		if len(l.levels)-t < l.length-done {
			return false, 0
		}
		outdoes := func(rival float64) bool {
			if level <= rival*(1+slack) {
				return false
			}
			if rival > 0 {
				next = max(next, from*(rival/level))
			}
			return true
		}
		served := outdoes(rival)
		if served {
			if done++; done == l.work {
				return true, next
			}
		}
		if rises := served && l.raises == nil || l.raises != nil && outdoes(l.raises[t]); rises && l.growth != nil {
			level = min(level*l.growth[t], math.MaxFloat64)
		}
	}
	return false, 0
}

// least returns the smallest starting level with which the task is completed. The result is at most `top`. The caller
// must know that the task is completed with the starting level `top`.
func (l *ladder) least(top float64) float64 {
	if l.length > len(l.levels) {
		return top
	}
	if l.growth == nil && l.work == l.length {
		slices.Sort(l.levels)
		return min(max(l.levels[l.length-1], 0), top)
	}
	low, high := 0.0, top
	done, next := l.climb(high)
	if !done { // the task was completed only because it won a tie
		return top
	}
	for next > low {
		high = next
		if done, next = l.climb(high); !done {
			return high
		}
		if middle := low + (high-low)/2; middle > low && middle < high {
			if ok, below := l.climb(middle); ok {
				high, next = middle, below
			} else {
				low = middle
			}
		}
	}
	return max(low, next)
}
