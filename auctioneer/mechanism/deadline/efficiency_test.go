package deadline

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// settings are the rules that are compared.
var settings = []Problem{
	{Rule: Paper, Lambda: 0},
	{Rule: Monotone, Lambda: 0.6},
	{Rule: Paper, Lambda: 0.6},
}

// optimum returns the largest total value that could be completed if all tasks were known at the start. It tries every
// set of tasks.
func optimum(p *Problem) float64 {
	best := 0.0
	for set := range 1 << len(p.Tasks) {
		value := 0.0
		for i, task := range p.Tasks {
			if set>>i&1 == 1 {
				value += task.Value
			}
		}
		if value > best && feasible(p, set) {
			best = value
		}
	}
	return best
}

// matching assigns units of tasks to units of time, by augmenting paths.
type matching struct {
	p     *Problem
	users map[int][]int // by unit: the tasks served in it
	seen  map[int]bool
}

func feasible(p *Problem, set int) bool {
	m := matching{p: p, users: map[int][]int{}}
	for i, task := range p.Tasks {
		for range task.Length {
			if m.seen = map[int]bool{}; set>>i&1 == 1 && !m.augment(i) {
				return false
			}
		}
	}
	return true
}

func (m *matching) augment(i int) bool {
	for t := m.p.Tasks[i].Arrival; t <= m.p.Tasks[i].Deadline; t++ {
		if m.seen[t] || m.has(t, i) {
			continue
		}
		m.seen[t] = true
		if len(m.users[t]) < m.p.Capacity {
			m.users[t] = append(m.users[t], i)
			return true
		}
		for k, j := range m.users[t] {
			m.users[t][k] = i
			if m.augment(j) {
				return true
			}
			m.users[t][k] = j
		}
	}
	return false
}

func (m *matching) has(t, i int) bool {
	return slices.Contains(m.users[t], i)
}

// workload draws n tasks with the distributions of the paper. Each task arrives in one of the first `units` units, and
// has a length of at most `most` units.
func workload(r *rand.Rand, n, units, most int, slack float64, narrow bool) []Task {
	var tasks []Task
	for range n {
		a, l := r.IntN(units), 1+r.IntN(most)
		worth := 50 * r.ExpFloat64()
		if narrow { // a unit of work is worth 50 to 150
			worth = 50 + 100*r.Float64()
		}
		tasks = append(tasks, Task{Arrival: a, Length: l, Deadline: a + l - 1 + int(float64(l)*r.ExpFloat64()*slack), Value: worth * float64(l)})
	}
	return tasks
}

// values draws many problems. It calls the function `each` for each problem, and solves the problem once with each
// element of the variable settings. It returns the total value for each setting.
func values(repeats int, draw func(r *rand.Rand) *Problem, each func(p *Problem)) []float64 {
	r := rand.New(rand.NewPCG(3, 4))
	totals := make([]float64, len(settings))
	for range repeats {
		p := draw(r)
		for k, s := range settings {
			q := *p
			q.Rule, q.Lambda = s.Rule, s.Lambda
			o, err := Run(&q)
			if err != nil {
				panic(err)
			}
			totals[k] += o.TotalValue
		}
		each(p)
	}
	return totals
}

// The problems have few tasks, with similar values for each unit of work. The paper's rule at λ = 0.6 reaches a higher
// total value than at λ = 0. Rule Monotone must reach at least four fifths of this gain. No rule may be above the
// optimum.
func TestEfficiency(t *testing.T) {
	best := 0.0
	for _, narrow := range []bool{false, true} {
		totals := values(300, func(r *rand.Rand) *Problem {
			return &Problem{Capacity: 1 + r.IntN(2), Tasks: workload(r, 8, 12, 5, 1, narrow)}
		}, func(p *Problem) { best += optimum(p) })
		if gain, ours := totals[2]-totals[0], totals[1]-totals[0]; narrow && !(gain > 0 && ours > 0.8*gain) {
			t.Errorf("totals %v: ours gains %v, λ = 0.6 %v", totals, ours, gain)
		}
		for k, x := range totals {
			if x > best {
				t.Errorf("%s, λ = %v: %v, above the optimum %v", ruleNames[settings[k].Rule], settings[k].Lambda, x, best)
			}
		}
		best = 0
	}
}

// BenchmarkEfficiency reports the total value of each rule, as a multiple of a base. The base is the offline optimum.
// If this optimum cannot be computed, the base is the total at λ = 0.
func BenchmarkEfficiency(b *testing.B) {
	report := func(b *testing.B, totals []float64, by float64) {
		for k, s := range settings {
			b.ReportMetric(totals[k]/by, fmt.Sprintf("%s/%v", ruleNames[s.Rule], s.Lambda))
		}
	}
	for _, narrow := range []bool{false, true} {
		b.Run(fmt.Sprintf("optimum/narrow=%v", narrow), func(b *testing.B) {
			for b.Loop() {
				best := 0.0
				totals := values(1000, func(r *rand.Rand) *Problem {
					return &Problem{Capacity: 1 + r.IntN(2), Tasks: workload(r, 10, 16, 6, 1, narrow)}
				}, func(p *Problem) { best += optimum(p) })
				report(b, totals, best)
			}
		})
		b.Run(fmt.Sprintf("crowd/narrow=%v", narrow), func(b *testing.B) {
			for b.Loop() {
				totals := values(100, func(r *rand.Rand) *Problem {
					return &Problem{Capacity: 10, Tasks: workload(r, 300, 200, 30, 1, narrow)}
				}, func(*Problem) {})
				report(b, totals, totals[0])
			}
		})
	}
}
