package proportional

import (
	"cmp"
	"math"
	"slices"
)

// Jobs may have minimum utilities. Pool is the set of jobs that the market serves together, so that each of them
// reaches its minimum.
type Pool struct {
	Members     []int   // the greedy pool, in ascending order
	Profit      float64 // sum of the pool's budgets
	Best        []int   // the most profitable group that the search found
	BestProfit  float64 // sum of the budgets in Best; at least Profit
	Evaluations int     // number of fixed points computed
	Complete    bool    // the search was complete: no group is more profitable than Best
}

// slack allows for rounding if a utility equals its minimum exactly.
const slack = 1e-12

// pooling looks for a group of jobs that can be served together, so that each of them reaches its minimum utility.
type pooling struct {
	p       *Problem
	minimum []float64 // n: least utility of each job; −∞ for none
	order   []int     // by descending budget, ties by index
	solver  Solver
	sub     Problem
	limit   int
	count   int
}

// NewPool chooses the jobs of p that are served: the pool. The other jobs wait. `minimum` has the least utility that
// each job demands. It is −∞ for a job that demands none.
//
// The greedy pool tries jobs by descending budget, and among equal budgets by index. It keeps a job if every member of
// the pool still reaches its minimum at the fixed point of the bids. Then a search looks for a group with a larger sum
// of budgets. The search computes at most `limit` further fixed points; 0 means no search.
//
// One fixed point of a group takes O(n·m²). The greedy pool computes one for each job.
func NewPool(p *Problem, minimum []float64, limit int) (*Pool, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	q := &pooling{p: p, minimum: minimum, order: byBudget(p.Budgets), limit: math.MaxInt}
	pool := &Pool{}
	for _, i := range q.order {
		if group := with(pool.Members, i); q.serves(group) {
			pool.Members = group
		}
	}
	pool.Profit = q.profit(pool.Members)
	q.limit = q.count + limit
	pool.Best, pool.Complete = q.search(pool.Members)
	pool.BestProfit = q.profit(pool.Best)
	pool.Evaluations = q.count
	return pool, nil
}

func byBudget(budgets []float64) []int {
	order := make([]int, len(budgets))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(budgets[b], budgets[a]) })
	return order
}

func with(group []int, i int) []int {
	at, _ := slices.BinarySearch(group, i)
	return slices.Insert(slices.Clone(group), at, i)
}

func without(group []int, i int) []int {
	return slices.DeleteFunc(slices.Clone(group), func(x int) bool { return x == i })
}

func (q *pooling) profit(group []int) float64 {
	sum := 0.0
	for _, i := range group {
		sum += q.p.Budgets[i]
	}
	return sum
}

// serves reports whether each member of a group reaches its minimum utility, if only the group's members bid. It solves
// the auction among them.
func (q *pooling) serves(group []int) bool {
	q.count++
	q.sub.choose(q.p, group)
	r, err := q.solver.Solve(&q.sub)
	if err != nil {
		return false
	}
	m := q.p.Classes
	for k, i := range group {
		if u := q.p.Utility(i, r.Shares[k*m:(k+1)*m]); u < q.minimum[i]-slack*math.Abs(q.minimum[i]) {
			return false
		}
	}
	return true
}

// choose copies from the problem `q` the jobs whose indices are in `group`. It uses the memory that p already has.
func (p *Problem) choose(q *Problem, group []int) {
	p.Alpha, p.Classes = q.Alpha, q.Classes
	p.Budgets, p.Weights, p.Log = p.Budgets[:0], p.Weights[:0], p.Log[:0]
	for _, i := range group {
		p.Budgets = append(p.Budgets, q.Budgets[i])
		p.Weights = append(p.Weights, q.Weights[i*q.Classes:(i+1)*q.Classes]...)
		p.Log = append(p.Log, q.log(i))
	}
}

// search looks for a group with a larger sum of budgets. It first exchanges single jobs, and then uses branch and
// bound.
func (q *pooling) search(group []int) (best []int, complete bool) {
	for {
		better, ok := q.exchange(group)
		if !ok {
			break
		}
		group = better
	}
	b := bounding{pooling: q, best: group, profit: q.profit(group)}
	b.left = make([]float64, len(q.order)+1)
	for k := len(q.order) - 1; k >= 0; k-- {
		b.left[k] = b.left[k+1] + q.p.Budgets[q.order[k]]
	}
	b.hopeful = true
	if b.branch(0, nil, 0) {
		b.hopeful = false
		complete = b.branch(0, nil, 0)
	}
	return b.best, complete
}

// exchange looks for a job that can join the group and make its sum of budgets larger. The job may take the place of
// one member that has a smaller budget.
func (q *pooling) exchange(group []int) ([]int, bool) {
	for _, i := range q.order {
		if slices.Contains(group, i) {
			continue
		}
		for k := -1; k < len(group); k++ {
			next := group
			if k >= 0 {
				if q.p.Budgets[group[k]] >= q.p.Budgets[i] {
					continue
				}
				next = without(group, group[k])
			}
			if q.count >= q.limit {
				return nil, false
			}
			if next = with(next, i); q.serves(next) {
				return next, true
			}
		}
	}
	return nil, false
}

// bounding searches for the group of jobs with the best profit (branch and bound). It decides for each job, by
// descending budget, whether the job is in the group. A branch ends when all remaining jobs together could not exceed
// the best profit.
//
// If the field `hopeful` is true, a branch also ends when the group so far does not get its minimum utilities. A
// further member rarely changes this, because it usually reduces the shares of the other members. In about one instance
// in fifty a further member helps, because its bid makes other members move to other classes. Therefore a second search
// runs without this rule.
type bounding struct {
	*pooling
	best    []int
	profit  float64
	left    []float64 // left[i]: sum of the budgets from position i on
	hopeful bool
}

// branch goes through the jobs in b.order from the position `at`. For each of them, it tries both cases: the job is in
// the group, or it is not. It returns false if the search reached the limit of its work.
func (b *bounding) branch(at int, group []int, profit float64) bool {
	if at == len(b.order) || profit+b.left[at] <= b.profit {
		return true
	}
	if b.count >= b.limit {
		return false
	}
	i := b.order[at]
	more, gain := with(group, i), profit+b.p.Budgets[i]
	ok := false
	if b.hopeful || gain > b.profit {
		if ok = b.serves(more); ok && gain > b.profit {
			b.best, b.profit = more, gain
		}
	}
	if (ok || !b.hopeful) && !b.branch(at+1, more, gain) {
		return false
	}
	return b.branch(at+1, group, profit)
}
