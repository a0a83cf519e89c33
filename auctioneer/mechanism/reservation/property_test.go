package reservation

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// gain returns the most that bid i can gain if it reports a false value instead of its true value. The payoff of a bid
// is its true value if it is served, minus its payment.
func gain(t *testing.T, p *Problem, i int, solve func(*Problem) (*Outcome, error)) float64 {
	t.Helper()
	payoff := func(report float64) float64 {
		lie := *p
		lie.Bids = slices.Clone(p.Bids)
		lie.Bids[i].Value = report
		o, err := solve(&lie)
		if err != nil {
			t.Fatal(err)
		}
		if o.Start[i] == Lost {
			return 0
		}
		return p.Bids[i].Value - o.Payments[i]
	}
	truth, best := payoff(p.Bids[i].Value), math.Inf(-1)
	if truth < 0 {
		t.Fatalf("bid %d loses %v by taking part: %+v", i, truth, p)
	}
	for report := 0.0; report <= 14; report += 0.5 {
		best = max(best, payoff(report))
	}
	return best - truth
}

// The test changes the declared value of one bid. The false values are between the other values, equal to them, and
// beyond them. The bids have any width. No false value may gain. The values are decimal, so that not even a rounding
// error is allowed.
func TestNoMisreportOfValuePays(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for k := range 150 {
		nodes := r.IntN(2) * (1 + r.IntN(5))
		p := small(r, 1+r.IntN(8), nodes)
		for i := range p.Bids {
			p.Bids[i].Value = math.Round(2*p.Bids[i].Value) / 2
		}
		orders := [][]int{r.Perm(len(p.Bids)), r.Perm(len(p.Bids)), r.Perm(len(p.Bids))}
		ways := map[string]func(*Problem) (*Outcome, error){"exact": Solve}
		if nodes > 0 {
			ways = map[string]func(*Problem) (*Outcome, error){
				"search": func(p *Problem) (*Outcome, error) {
					o, err := Find(p, Search{Candidates: 24, Seed: uint64(k), Workers: 1})
					return &o.Outcome, err
				},
				"orders": func(p *Problem) (*Outcome, error) {
					_, _, o, err := Orders(p, orders)
					return o, err
				},
			}
		}
		for name, solve := range ways {
			for i := range p.Bids {
				if g := gain(t, p, i, solve); g > 0 {
					t.Fatalf("%d: bid %d gains %v by lying (%s): %+v", k, i, g, name, p)
				}
			}
		}
	}
}

func TestCandidatesIgnoreValues(t *testing.T) {
	p := thesis(5, 60, 8, 50, 12)
	q := *p
	q.Bids = slices.Clone(p.Bids)
	for i := range q.Bids {
		q.Bids[i].Value = 1e6 / float64(1+i)
	}
	a, b := newPlan(p, 9), newPlan(&q, 9)
	for c := range 200 {
		if a.isOrder(c) {
			if x, y := slices.Clone(a.order(c, new(sorter))), b.order(c, new(sorter)); !slices.Equal(x, y) {
				t.Fatalf("order %d differs", c)
			}
			continue
		}
		var x, y division
		a.divide(c, &x)
		b.divide(c, &y)
		if fmt.Sprint(x) != fmt.Sprint(y) {
			t.Fatalf("lanes %d differ", c)
		}
	}
}

// The widths of all lanes must add up to the width of the machine. Each bid must be in at most one lane, and that lane
// must be wide enough.
func TestDivisionsAreFeasible(t *testing.T) {
	p := thesis(6, 200, 37, 50, 12)
	plan := newPlan(p, 1)
	for c := range 500 {
		var d division
		plan.divide(c, &d)
		width, seen := 0, map[int]bool{}
		for k, w := range d.widths {
			width += w
			for _, i := range d.bids[k] {
				if seen[i] || p.Bids[i].Width > w {
					t.Fatalf("candidate %d: bid %d of %d nodes in a lane of %d", c, i, p.Bids[i].Width, w)
				}
				seen[i] = true
			}
		}
		if width != p.Nodes {
			t.Fatalf("candidate %d: lanes of %d nodes", c, width)
		}
	}
}

func TestWorkersDoNotMatter(t *testing.T) {
	p := thesis(7, 150, 16, 60, 12)
	var first *Result
	for _, workers := range []int{1, 2, 7, 0} {
		r, err := Find(p, Search{Candidates: 300, Seed: 3, Workers: workers})
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = r
		}
		if fmt.Sprint(r) != fmt.Sprint(first) {
			t.Errorf("with %d workers another result", workers)
		}
	}
}

// Consider problems with many more bids than can be served. The best of 100 candidates of our search must be worth more
// than the best of 1,000 random orders, as the thesis uses them. This must hold with both kinds of values. More
// candidates must never make the result worth less.
func TestSearchIsBetterThanRandomOrders(t *testing.T) {
	for _, c := range []instance{{400, 64, 96, 16, false}, {400, 64, 96, 16, true}, {200, 8, 96, 16, true}} {
		p := c.problem(2)
		random, last := randomOrders(p, 1000), 0.0
		for _, candidates := range []int{1, 10, 100, 400} {
			r, err := Find(p, Search{Candidates: candidates, Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			if r.Value < last {
				t.Errorf("%v: %d candidates are worth %v, fewer %v", c, candidates, r.Value, last)
			}
			if last = r.Value; candidates == 100 && last < random {
				t.Errorf("%v: 1000 random orders are worth %v, 100 candidates %v", c, random, last)
			}
		}
	}
}

func best(p *Problem) (value float64) {
	order := all(len(p.Bids))
	var permute func(k int)
	permute = func(k int) {
		if k == len(order) {
			sum := 0.0
			for i, start := range firstFit(p, order) {
				if start != Lost {
					sum += p.Bids[i].Value
				}
			}
			value = max(value, sum)
			return
		}
		for i := k; i < len(order); i++ {
			order[k], order[i] = order[i], order[k]
			permute(k + 1)
			order[k], order[i] = order[i], order[k]
		}
	}
	permute(0)
	return value
}

func TestSearchAgainstOptimum(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	found, ratio := 0, 0.0
	const cases = 100
	for k := range cases {
		p := &Problem{Nodes: 8, Horizon: 20}
		for range 6 {
			p.Bids = append(p.Bids, Bid{Length: 1 + r.IntN(12), Deadline: 8 + r.IntN(16), Value: float64(1 + r.IntN(100)), Width: 1 + r.IntN(8)})
		}
		o, err := Find(p, Search{Candidates: 500, Seed: uint64(k), Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		want := best(p)
		if o.Value > want {
			t.Fatalf("%d: %v is more than the optimum %v", k, o.Value, want)
		}
		ratio += o.Value / want / cases
		if o.Value == want {
			found++
		}
	}
	t.Logf("the optimum in %d of %d cases; %.4f of it on average", found, cases, ratio)
	if found < cases*9/10 || ratio < 0.99 {
		t.Errorf("the optimum in %d of %d cases, %.4f of it on average", found, cases, ratio)
	}
}

func TestPermutation(t *testing.T) {
	r := rand.New(rand.NewPCG(10, 10))
	for range 300 {
		p := small(r, 8, 0)
		q := &Problem{Horizon: p.Horizon, Bids: make([]Bid, len(p.Bids))}
		order := r.Perm(len(p.Bids))
		for i, from := range order {
			q.Bids[i] = p.Bids[from]
		}
		a, errA := Solve(p)
		b, errB := Solve(q)
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		for i, from := range order {
			if b.Value != a.Value || bestSubset(p, from) < b.Without[i]*(1-1e-12) {
				t.Fatalf("%+v: %+v; %v: %+v", p, a, order, b)
			}
		}
	}
}

// The test changes the unit of the lengths (the granule) or the unit of money. The outcome must stay the same, except
// that its numbers are multiplied by the same factors.
func TestScaling(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 11))
	for range 300 {
		p := small(r, 8, 0)
		q := &Problem{Horizon: 60 * p.Horizon}
		for _, b := range p.Bids {
			q.Bids = append(q.Bids, Bid{Length: 60 * b.Length, Deadline: 60 * b.Deadline, Value: 4 * b.Value})
		}
		a, errA := Solve(p)
		b, errB := Solve(q)
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		for i, start := range a.Start {
			if start != Lost {
				start *= 60
			}
			if b.Start[i] != start || b.Payments[i] != 4*a.Payments[i] {
				t.Fatalf("%+v: %+v; scaled %+v", p, a, b)
			}
		}
	}
}

// This is the example of section 8.4 of the thesis. A rival values the whole period at 10. Bidders A and B value half
// of the period at 4 each. If only A bids 1,000, or only B, this bidder is served, but pays 2 more than its value. If
// both A and B bid 1,000, both are served and pay nothing.
func TestTwoWhoOverstateTogetherPayNothing(t *testing.T) {
	payoffs := func(a, b float64) (of [2]float64) {
		o, err := Solve(&Problem{Horizon: 10, Bids: []Bid{{Length: 5, Deadline: 10, Value: a}, {Length: 5, Deadline: 10, Value: b}, {Length: 10, Deadline: 10, Value: 10}}})
		if err != nil {
			t.Fatal(err)
		}
		for i := range of {
			if o.Start[i] != Lost {
				of[i] = 4 - o.Payments[i]
			}
		}
		return of
	}
	for reports, want := range map[[2]float64][2]float64{{4, 4}: {0, 0}, {1000, 4}: {4 - 6, 4}, {1000, 1000}: {4, 4}} {
		if got := payoffs(reports[0], reports[1]); got != want {
			t.Errorf("who report %v have %v, want %v", reports, got, want)
		}
	}
}
