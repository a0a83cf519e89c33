package proportional

import (
	"math"
	"math/bits"
	"testing"

	"pgregory.net/rapid"
)

// demanding draws jobs with minimum utilities, which some of them can reach, but not all.
func demanding(t *rapid.T) (*Problem, []float64) {
	p := contested(t, 8, 0.6, 0.5, 0.7)
	minimum := make([]float64, len(p.Budgets))
	for i := range minimum {
		p.Log[i] = false
		whole := 0.0
		for _, w := range p.Weights[i*p.Classes : (i+1)*p.Classes] {
			whole += w
		}
		minimum[i] = whole * rapid.Float64Range(0.02, 0.7).Draw(t, "minimum")
	}
	return p, minimum
}

func served(p *Problem, minimum []float64, group []int) bool {
	var q Problem
	var s Solver
	q.choose(p, group)
	r, err := s.Solve(&q)
	for k, i := range group {
		if err != nil || p.Utility(i, r.Shares[k*p.Classes:(k+1)*p.Classes]) < minimum[i]*(1-1e-12) {
			return false
		}
	}
	return true
}

// The greedy pool must take jobs by descending budget, as the comment on NewPool says. The search must find a group
// whose budgets have at least the same sum. With enough evaluations, it must find the best of all groups.
func TestPoolsServeTheirMembers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, minimum := demanding(t)
		pool, err := NewPool(p, minimum, 1000)
		if err != nil {
			t.Fatal(err)
		}
		var greedy []int
		for _, i := range byBudget(p.Budgets) {
			if more := with(greedy, i); served(p, minimum, more) {
				greedy = more
			}
		}
		q := pooling{p: p}
		if q.profit(greedy) != pool.Profit || !served(p, minimum, pool.Best) || pool.BestProfit < pool.Profit {
			t.Fatalf("greedy %v; pool %+v", greedy, pool)
		}
		if best := bestGroup(p, minimum); !pool.Complete || math.Abs(pool.BestProfit-best) > 1e-9*best {
			t.Fatalf("the best group makes %v; pool %+v", best, pool)
		}
	})
}

func bestGroup(p *Problem, minimum []float64) float64 {
	n, best := len(p.Budgets), 0.0
	q := pooling{p: p}
	for set := uint(1); set < 1<<n; set++ {
		var group []int
		for rest := set; rest != 0; rest &= rest - 1 {
			group = append(group, bits.TrailingZeros(rest))
		}
		if x := q.profit(group); x > best && served(p, minimum, group) {
			best = x
		}
	}
	return best
}

func TestSearchStopsAtItsLimit(t *testing.T) {
	p := workload(30, 2, 0.5, 0)
	minimum := make([]float64, 30)
	for i := range minimum {
		minimum[i] = 0.15 + 0.01*float64(i%7)
	}
	greedy, err := NewPool(p, minimum, 0)
	if err != nil {
		t.Fatal(err)
	}
	some, err := NewPool(p, minimum, 50)
	if err != nil {
		t.Fatal(err)
	}
	if greedy.Evaluations != 30 || some.Evaluations > 80 || greedy.Complete || greedy.BestProfit != greedy.Profit {
		t.Errorf("greedy %+v, with 50 more %+v", greedy, some)
	}
}

func TestGreedyInBulkIsGreedy(t *testing.T) {
	differ, instances := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		p, minimum := demanding(t)
		pool, err := NewPool(p, minimum, 0)
		if err != nil {
			t.Fatal(err)
		}
		q := pooling{p: p, minimum: minimum, order: byBudget(p.Budgets), limit: math.MaxInt}
		group := q.greedyInBulk()
		instances++
		if !served(p, minimum, group) {
			t.Fatalf("group %v is not served", group)
		}
		if q.profit(group) != q.profit(pool.Members) {
			differ++
		}
	})
	if differ*50 > instances {
		t.Errorf("%d of %d pools differ from the greedy one", differ, instances)
	}
}
