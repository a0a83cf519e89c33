package deadline

import (
	"cmp"
	"math"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// slow runs the mechanism by its definition, in exact arithmetic: in every unit of time, it ranks all tasks again. One
// task is special: its index is in the field `loses`, and its value is in the field `value`. If it has the same level
// as another task, it always ranks after that task.
type slow struct {
	p     *Problem
	loses int
	value *big.Rat
	done  []int
	grown []*big.Rat // by task: total factor by which the task's level was multiplied
}

func rat(x float64) *big.Rat { return new(big.Rat).SetFloat64(x) }

// lambdaOf returns λ as an exact decimal.
func lambdaOf(p *Problem) *big.Rat {
	return new(big.Rat).SetFrac64(int64(math.Round(p.Lambda*1000)), 1000)
}

func (s *slow) level(i int) *big.Rat {
	v := rat(s.p.Tasks[i].Value)
	if i == s.loses {
		v = s.value
	}
	l := new(big.Rat).SetInt64(int64(s.p.Tasks[i].Length * s.p.Tasks[i].slots()))
	if s.p.Rule == Monotone {
		return new(big.Rat).Mul(new(big.Rat).Quo(v, l), s.grown[i])
	}
	return new(big.Rat).Quo(v, l.Sub(l, new(big.Rat).Mul(lambdaOf(s.p), new(big.Rat).SetInt64(int64(s.done[i])))))
}

// runSlow returns the units that each task gets. The task with the index `loses` reports `value` as its value, and
// comes last among tasks with equal values. If no task has this index, all tasks report their own values.
func runSlow(p *Problem, loses int, value *big.Rat) [][]int {
	s := &slow{p: p, loses: loses, value: value, done: make([]int, len(p.Tasks)), grown: make([]*big.Rat, len(p.Tasks))}
	for i := range s.grown {
		s.grown[i] = big.NewRat(1, 1)
	}
	growth := p.growths()
	units := make([][]int, len(p.Tasks))
	for t, end := p.span(); t < end; t++ {
		first, _ := p.span()
		left, rises := p.Capacity, true
		for _, i := range s.ranked(t) { // tasks that need more slots than are left are skipped; levels rise only up to the first skipped task
			if left == 0 {
				break
			}
			if rises && growth != nil {
				s.grown[i].Mul(s.grown[i], rat(growth[t-first]))
			}
			if p.Tasks[i].slots() > left {
				rises = false
				continue
			}
			left -= p.Tasks[i].slots()
			units[i] = append(units[i], t)
			s.done[i]++
		}
	}
	return units
}

func (s *slow) ranked(t int) []int {
	var ranked []int
	for i, task := range s.p.Tasks {
		rest := task.Length - s.done[i]
		if task.Arrival <= t && t <= task.Deadline && rest > 0 && task.Deadline-t+1 >= rest {
			ranked = append(ranked, i)
		}
	}
	slices.SortFunc(ranked, func(i, j int) int {
		return cmp.Or(s.level(j).Cmp(s.level(i)), s.tie(i)-s.tie(j), s.p.Tasks[i].Arrival-s.p.Tasks[j].Arrival, i-j)
	})
	return ranked
}

func (s *slow) tie(i int) int {
	if i == s.loses {
		return 1
	}
	return 0
}

func completesSlow(p *Problem, i int, value *big.Rat) bool {
	return len(runSlow(p, i, value)[i]) == p.Tasks[i].Length
}

// slowCritical returns the critical value of task i: the smallest value with which the task is completed. It starts at
// the task's declared value and goes down, until the task is no longer completed. It tries each value at which the task
// could tie with another task, and the midpoint between each two neighbouring ties.
func slowCritical(p *Problem, i int) *big.Rat {
	ties := slowTies(p, i)
	own := rat(p.Tasks[i].Value)
	at := len(ties) // index of the first tie at or above the report
	for at > 0 && ties[at-1].Cmp(own) >= 0 {
		at--
	}
	upper := own
	for ; at >= 0; at-- {
		lower := new(big.Rat)
		if at > 0 {
			lower = ties[at-1]
		}
		middle := new(big.Rat).Quo(new(big.Rat).Add(lower, upper), big.NewRat(2, 1))
		if !completesSlow(p, i, middle) {
			return upper
		}
		if at > 0 && !completesSlow(p, i, lower) {
			return lower
		}
		upper = lower
	}
	return new(big.Rat)
}

// Two tasks have the same level if their values and received units fit together. slowTies returns, in ascending order,
// all values with which task i could have the same level as another task. For this, it considers every number of units
// that the two tasks can have received.
func slowTies(p *Problem, i int) []*big.Rat {
	s := &slow{p: p, loses: -1, done: make([]int, len(p.Tasks)), grown: make([]*big.Rat, len(p.Tasks))}
	power := func(e int) *big.Rat {
		out := big.NewRat(1, 1)
		for range e {
			out.Mul(out, rat(1+p.Lambda/p.Scale))
		}
		return out
	}
	var ties []*big.Rat
	for j := range p.Tasks {
		most := func(k int) int { // an upper bound of how often the task's level has risen
			if p.wide() {
				return p.Tasks[k].Deadline - p.Tasks[k].Arrival + 1
			}
			return p.Tasks[k].Length
		}
		for e := range most(j) {
			for own := range most(i) {
				if j == i {
					continue
				}
				s.done[j], s.done[i] = e, own
				if p.Rule == Monotone {
					s.grown[j], s.grown[i] = power(e), power(own)
				}
				unit := *s
				one := slow{p: unit.p, loses: i, value: big.NewRat(1, 1), done: s.done, grown: s.grown}
				if v := one.level(j); v.Sign() > 0 {
					ties = append(ties, new(big.Rat).Quo(v, one.level(i)))
				}
			}
		}
	}
	slices.SortFunc(ties, (*big.Rat).Cmp)
	return slices.CompactFunc(ties, func(a, b *big.Rat) bool { return a.Cmp(b) == 0 })
}

// drawProblem draws a small instance in which equal ranks are likely. For the rule Monotone it sets Scale, which would
// otherwise be learned. So a test can list the values of λ at which ranks are equal.
func drawProblem(t *rapid.T, rule Rule, lambdas []float64) *Problem {
	p := &Problem{Capacity: rapid.IntRange(0, 3).Draw(t, "C"), Rule: rule, Lambda: rapid.SampledFrom(lambdas).Draw(t, "lambda")}
	if rule == Monotone {
		p.Scale = rapid.SampledFrom([]float64{1, 2, 4}).Draw(t, "scale")
	}
	for range rapid.IntRange(1, 7).Draw(t, "n") {
		a, l := rapid.IntRange(0, 5).Draw(t, "a"), rapid.IntRange(1, 4).Draw(t, "l")
		p.Tasks = append(p.Tasks, Task{Arrival: a, Length: l, Deadline: a + max(0, l-1+rapid.IntRange(-1, 4).Draw(t, "slack")),
			Value: float64(rapid.IntRange(0, 12).Draw(t, "v"))})
	}
	return p
}

func TestFastIsSlow(t *testing.T) {
	for _, rule := range []Rule{Paper, Monotone} {
		t.Run(ruleNames[rule], rapid.MakeCheck(func(t *rapid.T) {
			p := drawProblem(t, rule, []float64{0, 0.25, 0.5, 0.6, 1})
			for i := range p.Tasks { // lengths with which the levels are exact as float64
				if x := &p.Tasks[i]; rule == Monotone && x.Length == 3 {
					x.Length, x.Deadline = 4, x.Deadline+1
				}
			}
			if p.Lambda == 0.6 {
				for i := range p.Tasks { // avoid ties: 0.6 is not exact as float64
					p.Tasks[i].Value += rapid.Float64Range(0, 1).Draw(t, "more")
				}
			}
			same(t, p)
		}))
	}
}

func same(t *rapid.T, p *Problem) {
	o, err := Run(p)
	if err != nil {
		t.Fatal(err)
	}
	units, payments := runSlow(p, -1, nil), o.Payments()
	for i, task := range p.Tasks {
		if got := o.Units(i); !slices.Equal(got, units[i]) {
			t.Fatalf("task %d: units %v, want %v\n%+v", i, got, units[i], p)
		}
		want := 0.0
		if len(units[i]) == task.Length {
			want, _ = slowCritical(p, i).Float64()
		}
		if !near(payments[i], want) || payments[i] != o.criticalValue(i) {
			t.Fatalf("task %d pays %v (alone %v), want %v\n%+v", i, payments[i], o.criticalValue(i), want, p)
		}
	}
}

// Tasks are ranked. For each unit, the schedule remembers only a few ranks around the last rank that has a slot. If
// these are too few for a critical value, the mechanism must notice this and remember more. The critical values must be
// the same as with a schedule that remembers 1,000 ranks.
func TestLargerCrowds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &Problem{Capacity: rapid.IntRange(1, 12).Draw(t, "C"), Rule: rapid.SampledFrom([]Rule{Paper, Monotone}).Draw(t, "rule"),
			Lambda: rapid.SampledFrom([]float64{0, 0.6, 1}).Draw(t, "lambda")}
		for range rapid.IntRange(20, 60).Draw(t, "n") {
			a, l := rapid.IntRange(0, 15).Draw(t, "a"), rapid.IntRange(1, 9).Draw(t, "l")
			p.Tasks = append(p.Tasks, Task{Arrival: a, Length: l, Deadline: a + l + rapid.IntRange(0, 12).Draw(t, "slack"),
				Value: rapid.Float64Range(0, 50).Draw(t, "v"), Work: rapid.IntRange(0, l).Draw(t, "work")})
		}
		wide := &Outcome{Completed: make([]bool, len(p.Tasks)), schedule: newSchedule(p, 1000)}
		narrow := &Outcome{Completed: make([]bool, len(p.Tasks)), schedule: newSchedule(p, 1)}
		for i := range p.Tasks {
			wide.Completed[i] = wide.schedule.completed(i)
			narrow.Completed[i] = wide.Completed[i]
		}
		if a, b := wide.Payments(), narrow.Payments(); !slices.Equal(a, b) {
			t.Fatalf("payments %v with all ranks, %v with few", a, b)
		}
		for i := range p.Tasks { // a report just above the critical value must complete the task, and a report just below it must not
			if x := wide.criticalValue(i); wide.Completed[i] && p.monotone() {
				if !completesAt(p, i, x*(1+1e-9)+1e-12) || x > 0 && completesAt(p, i, x*(1-1e-9)) {
					t.Fatalf("task %d: %v is not its critical value", i, x)
				}
			}
		}
	})
}

func completesAt(p *Problem, i int, value float64) bool {
	q := *p
	q.Tasks = slices.Clone(p.Tasks)
	q.Tasks[i].Value = value
	return newSchedule(&q, 0).completed(i)
}
