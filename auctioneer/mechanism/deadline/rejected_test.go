package deadline

import (
	"math"
	"testing"
)

// In a monotone rule, a task that is completed with one value is also completed with a larger value. These rules look
// monotone, but each example shows a task that is completed only with the smaller value.
func TestOtherRulesAreNotMonotone(t *testing.T) {
	task := func(a, d, l int, v float64) Task { return Task{Arrival: a, Deadline: d, Length: l, Value: v} }
	for _, c := range []struct {
		rule      string
		level     func(x Task, done, t int) float64
		tasks     []Task
		who       int
		low, high float64
	}{
		{"a boost by the time since arrival", func(x Task, _, t int) float64 {
			return x.Value / (float64(x.Length) - 0.6*float64(min(x.Length-1, t-x.Arrival)))
		}, []Task{task(0, 9, 4, 0), task(0, 5, 6, 54), task(4, 8, 5, 70)}, 0, 28, 29.5},
		{"growth by the part done", func(x Task, done, _ int) float64 {
			return x.Value / float64(x.Length) * math.Pow(2, float64(done)/float64(x.Length))
		}, []Task{task(5, 9, 5, 65), task(4, 5, 2, 20), task(4, 11, 6, 0)}, 2, 54, 67.7},
		{"a bonus for having started", func(x Task, done, _ int) float64 {
			return x.Value / float64(x.Length) * float64(1+min(done, 1))
		}, []Task{task(3, 3, 1, 18), task(0, 5, 3, 0), task(1, 4, 2, 11), task(2, 5, 3, 17.1)}, 1, 4, 8.51},
	} {
		for _, v := range []float64{c.low, c.high} {
			c.tasks[c.who].Value = v
			if got, want := completesBy(c.level, c.tasks, c.who), v == c.low; got != want {
				t.Errorf("%s: at %v completed %v, want %v", c.rule, v, got, want)
			}
		}
		for i, v := range []float64{c.low, c.high} { // rule Monotone on the same tasks
			p := &Problem{Capacity: 1, Rule: Monotone, Lambda: 1, Tasks: c.tasks}
			if i == 1 && completesAt(p, c.who, c.low) && !completesAt(p, c.who, v) {
				t.Errorf("rule monotone fails on the tasks against %s", c.rule)
			}
		}
	}
}

// completesBy runs the mechanism on one slot. A task is effective if it has arrived and can still meet its deadline.
// The function `level` gives the level of a task. In each unit of time, the effective task with the highest level runs.
// completesBy reports whether the task at index `who` is completed.
func completesBy(level func(x Task, done, t int) float64, tasks []Task, who int) bool {
	done := make([]int, len(tasks))
	for t := range 20 {
		best := -1
		for i, x := range tasks {
			effective := x.Arrival <= t && done[i] < x.Length && x.Deadline-t+1 >= x.Length-done[i]
			if effective && (best < 0 || level(x, done[i], t) > level(tasks[best], done[best], t)) {
				best = i
			}
		}
		if best >= 0 {
			done[best]++
		}
	}
	return done[who] == tasks[who].Length
}
