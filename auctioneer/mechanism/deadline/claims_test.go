package deadline

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/auctioneer/mechanism/casefile/casetest"
)

// counterexample refutes the paper's theorem 1 at λ = 1, with one slot. The third task is completed with a value v if 8
// < v < 16 or v > 17, but not between 16 and 17.
func counterexample(v float64) *Problem {
	return &Problem{Capacity: 1, Lambda: 1, Tasks: []Task{
		{Arrival: 2, Deadline: 7, Length: 3, Value: 6}, {Arrival: 2, Deadline: 4, Length: 2, Value: 8},
		{Arrival: 2, Deadline: 7, Length: 4, Value: v}, {Arrival: 3, Deadline: 5, Length: 3, Value: 17}}}
}

// Under a monotone rule, a higher declared value never loses the slots. The paper's rule is not monotone for λ > 0, so
// an owner can gain by declaring a lower value. Rule Monotone must be monotone on the same tasks.
func TestTheorem1FailsAboveZero(t *testing.T) {
	for v, want := range map[float64]bool{7: false, 8.1: true, 15.9: true, 16.1: false, 16.9: false, 17.1: true} {
		o, err := Run(counterexample(v))
		if err != nil {
			t.Fatal(err)
		}
		if o.Completed[2] != want {
			t.Errorf("value %v: completed %v, want %v", v, o.Completed[2], want)
		}
	}
	o, _ := Run(counterexample(12))
	if x := o.Payments()[2]; x != 8 {
		t.Errorf("at 12 it pays %v, want 8: of a value of 16.5 a lie of 12 gains 8.5", x)
	}
	o, _ = Run(counterexample(20))
	if x := o.Payments()[2]; x != 17 {
		t.Errorf("at 20 it pays %v, want 17, the lower end of the interval of its report", x)
	}
	for _, v := range []float64{7, 8.1, 16.5, 17.1} {
		p := counterexample(v)
		p.Rule = Monotone
		if i, low, high := nonMonotone(p, []float64{1, 4, 7, 9, 11, 13, 15, 16.5, 17.5, 20}); i >= 0 {
			t.Errorf("rule monotone: task %d is completed at %v and not at %v", i, low, high)
		}
	}
}

// nonMonotone looks for a task that is completed at a low value but not at a higher one. It returns −1 if there is
// none.
func nonMonotone(p *Problem, values []float64) (task int, low, high float64) {
	for i := range p.Tasks {
		low := math.NaN()
		for _, v := range values {
			done := completesAt(p, i, v)
			if done && math.IsNaN(low) {
				low = v
			}
			if !done && !math.IsNaN(low) {
				return i, low, v
			}
		}
	}
	return -1, 0, 0
}

// shapes returns all tasks that fit into a number of units, take at most `most` units, and have a slack of at most 2
// units before their deadline.
func shapes(units, most int) []Task {
	var all []Task
	for a := range units {
		for l := 1; l <= most; l++ {
			for d := a + l - 1; d < min(units, a+l+2); d++ {
				all = append(all, Task{Arrival: a, Deadline: d, Length: l})
			}
		}
	}
	return all
}

// everyProblem makes many small problems, each with three tasks, and calls f for each problem until f returns false. It
// combines every choice of three task shapes with every order of three fixed values, and with a capacity of one slot
// and of two slots.
func everyProblem(rule Rule, lambda float64, f func(p *Problem) bool) {
	all := shapes(5, 4)
	values := [][]float64{{3, 5, 8}, {3, 8, 5}, {5, 3, 8}, {5, 8, 3}, {8, 3, 5}, {8, 5, 3}}
	for x := range all {
		for y := range x + 1 {
			for z := range y + 1 {
				for _, v := range values {
					a, b, c := all[x], all[y], all[z]
					a.Value, b.Value, c.Value = v[0], v[1], v[2]
					for capacity := 1; capacity <= 2; capacity++ {
						if !f(&Problem{Capacity: capacity, Rule: rule, Lambda: lambda, Scale: 2, Tasks: []Task{a, b, c}}) {
							return
						}
					}
				}
			}
		}
	}
}

// grid has the values to try. For some values, two tasks of the function everyProblem have equal rank. The other values
// lie between them.
var grid = []float64{0.7, 1.5, 2.6, 3.4, 4.5, 5.7, 7.1, 9.3, 13, 20, 40}

// The test uses the paper's rule with λ = 0, and the rule Monotone with λ = 1. If a task is completed, it must also be
// completed if it declares a larger value.
func TestMonotoneByEnumeration(t *testing.T) {
	for _, c := range []struct {
		rule   Rule
		lambda float64
	}{{Paper, 0}, {Monotone, 1}} {
		n := 0
		everyProblem(c.rule, c.lambda, func(p *Problem) bool {
			n++
			i, low, high := nonMonotone(p, grid)
			if i >= 0 {
				t.Errorf("%s, λ = %v: task %d is completed at %v and not at %v: %+v", ruleNames[c.rule], c.lambda, i, low, high, p)
			}
			return i < 0
		})
		if n < 10_000 {
			t.Errorf("%d problems only", n)
		}
	}
}

// crowd draws a problem in which many tasks compete for few slots.
func crowd(r *rand.Rand, rule Rule, lambda float64) *Problem {
	p := &Problem{Capacity: 1 + r.IntN(3), Rule: rule, Lambda: lambda, Scale: float64(1 + r.IntN(4))}
	if r.IntN(2) == 0 {
		p.Scale = 0
	}
	for range 3 + r.IntN(8) {
		a, l := r.IntN(8), 1+r.IntN(6)
		p.Tasks = append(p.Tasks, Task{Arrival: a, Length: l, Deadline: a + l - 1 + r.IntN(3)*r.IntN(4), Value: float64(l) * (4 + float64(r.IntN(12)))})
	}
	return p
}

// The test searches thousands of problems with many tasks. It looks for a task that is completed with some value, but
// not with a larger value. Under rule Monotone there must be no such task. Under the paper's rule there must be some,
// to show that the search works.
func TestMonotoneInCrowds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	found := map[Rule]int{}
	for _, rule := range []Rule{Paper, Monotone} {
		for range 20_000 {
			p := crowd(r, rule, 1)
			i := r.IntN(len(p.Tasks))
			low := p.Tasks[i].Value
			if !completesAt(p, i, low) {
				continue
			}
			for _, factor := range []float64{1.05, 1.3, 2, 4} {
				if !completesAt(p, i, low*factor) {
					found[rule]++
					if rule == Monotone {
						t.Fatalf("task %d is completed at %v and not at %v: %+v", i, low, low*factor, p)
					}
				}
			}
		}
	}
	if found[Paper] == 0 {
		t.Error("no failure of the paper's rule was found: the search is too weak")
	}
}

// A task must not gain by a later arrival, an earlier deadline, a longer length or another value.
func TestNoProfitableMisreport(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t, Monotone, []float64{0, 0.6, 1})
		if rapid.Bool().Draw(t, "learned") {
			p.Scale = 0
		}
		i := rapid.IntRange(0, len(p.Tasks)-1).Draw(t, "who")
		truth := p.Tasks[i]
		honest := utility(t, p, i, truth.Value)
		lie := *p
		lie.Tasks = slices.Clone(p.Tasks)
		x := &lie.Tasks[i]
		x.Arrival = min(x.Deadline, x.Arrival+rapid.IntRange(0, 2).Draw(t, "later"))
		x.Deadline = max(x.Arrival, x.Deadline-rapid.IntRange(0, 2).Draw(t, "sooner"))
		x.Length += rapid.IntRange(0, 2).Draw(t, "longer")
		x.Value = float64(rapid.IntRange(0, 60).Draw(t, "says")) / 2
		if got := utility(t, &lie, i, truth.Value); got > honest+1e-9 {
			t.Fatalf("task %d gains %v by %+v, %v by the truth: %+v", i, got, *x, honest, p)
		}
	})
}

// utility is what task i gains if its completion is worth `worth` to its owner.
func utility(t *rapid.T, p *Problem, i int, worth float64) float64 {
	o, err := Run(p)
	if err != nil {
		t.Fatal(err)
	}
	if !o.Completed[i] {
		return 0
	}
	return worth - o.criticalValue(i)
}

// Four things must hold. A unit has at most as many tasks as slots. Tasks are served only between their arrival and
// their deadline. No task pays more than its report. A task that is not completed pays nothing.
func TestOutcomeIsFeasible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t, rapid.SampledFrom([]Rule{Paper, Monotone}).Draw(t, "rule"), []float64{0, 0.3, 1})
		o, err := Run(p)
		if err != nil {
			t.Fatal(err)
		}
		busy := map[int]int{}
		for i, x := range o.Payments() {
			task, units := p.Tasks[i], o.Units(i)
			for _, u := range units {
				if busy[u]++; busy[u] > p.Capacity || u < task.Arrival || u > task.Deadline {
					t.Fatalf("task %d in unit %d: %+v", i, u, p)
				}
			}
			if o.Completed[i] != (len(units) == task.Length) || x < 0 || x > task.Value || x > 0 && !o.Completed[i] {
				t.Fatalf("task %d has %d units, completed %v, pays %v: %+v", i, len(units), o.Completed[i], x, p)
			}
		}
	})
}

// The test multiplies all values by one factor, changes the order of the tasks, and adds a task with a value of 0. If
// no two tasks have equal rank, the same tasks must be served, and each payment must be multiplied by the same factor.
func TestScaleAndOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t, rapid.SampledFrom([]Rule{Paper, Monotone}).Draw(t, "rule"), []float64{0, 0.3, 1})
		for i := range p.Tasks {
			// values without ties
			p.Tasks[i].Value = rapid.Float64Range(1, 50).Draw(t, "value") + math.Sqrt(float64(i+2))/1000
		}
		order := rapid.Permutation(casetest.Indices(len(p.Tasks))).Draw(t, "order")
		q := *p
		q.Tasks = nil
		for _, i := range order {
			task := p.Tasks[i]
			task.Value *= 4096
			q.Tasks = append(q.Tasks, task)
		}
		q.Tasks = append(q.Tasks, Task{Arrival: 0, Deadline: 3, Length: 2})
		a, b := mustRun(t, p), mustRun(t, &q)
		pa, pb := a.Payments(), b.Payments()
		for k, i := range order {
			if a.Completed[i] != b.Completed[k] || !slices.Equal(a.Units(i), b.Units(k)) || !near(4096*pa[i], pb[k]) {
				t.Fatalf("task %d: %v for %v, as task %d %v for %v: %+v", i, a.Units(i), pa[i], k, b.Units(k), pb[k], p)
			}
		}
		if pb[len(order)] != 0 {
			t.Fatalf("a task worth nothing pays %v", pb[len(order)])
		}
	})
}

func mustRun(t *rapid.T, p *Problem) *Outcome {
	o, err := Run(p)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// With a slot for each task, every task must run at once and pay nothing.
func TestRoomForAll(t *testing.T) {
	p := crowd(rand.New(rand.NewPCG(3, 4)), Monotone, 1)
	p.Capacity = len(p.Tasks) + 5
	o, err := Run(p)
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range o.Payments() {
		if units := o.Units(i); !o.Completed[i] || x != 0 || units[0] != p.Tasks[i].Arrival || units[len(units)-1] != units[0]+len(units)-1 {
			t.Errorf("task %d, which arrives at %d: completed %v at %v, pays %v", i, p.Tasks[i].Arrival, o.Completed[i], units, x)
		}
	}
}

func TestExtremes(t *testing.T) {
	for _, rule := range []Rule{Paper, Monotone} {
		p := &Problem{Capacity: 1, Lambda: 1, Rule: rule, Tasks: []Task{
			{Arrival: -1 << 40, Deadline: -1<<40 + 20_000, Length: 20_000, Value: Largest},
			{Arrival: -1 << 40, Deadline: -1<<40 + 20_000, Length: 20_000, Value: math.SmallestNonzeroFloat64},
			{Arrival: -1<<40 + 20_000, Deadline: -1<<40 + 20_000, Length: 1, Value: 1e-6},
		}}
		o, err := Run(p)
		if err != nil {
			t.Fatal(err)
		}
		payments := o.Payments()
		if !o.Completed[0] || o.Completed[1] || !o.Completed[2] {
			t.Errorf("%s: completed %v", ruleNames[rule], o.Completed)
		}
		for i, x := range payments {
			if math.IsNaN(x) || x < 0 || x > p.Tasks[i].Value {
				t.Errorf("%s: task %d pays %v", ruleNames[rule], i, x)
			}
		}
	}
	if o, err := Run(&Problem{}); err != nil || len(o.Payments()) != 0 {
		t.Errorf("no tasks: %v", err)
	}
}

// criticalValue is what task i owes, or 0 if it was not completed.
func (o *Outcome) criticalValue(i int) float64 {
	if !o.Completed[i] {
		return 0
	}
	return o.threshold(i)
}

// At λ = 0 a short task takes a unit that a long task needs, because the short task has a little more value per unit.
// The long task then misses its deadline. The paper's proof has two such tasks: a long one of length T with the value
// v, and a short one with the value v/T + ε. The total value is then only v/T + ε instead of v.
func TestCorollary1(t *testing.T) {
	const length, value, more = 10, 100., 0.5
	for at := range length {
		p := &Problem{Capacity: 1, Tasks: []Task{
			{Deadline: length - 1, Length: length, Value: value}, {Arrival: at, Deadline: at, Length: 1, Value: value/length + more}}}
		o, err := Run(p)
		if err != nil || o.Completed[0] || !o.Completed[1] || o.TotalValue != value/length+more {
			t.Errorf("the short task in unit %d: %v %+v", at, err, o)
		}
	}
}
