package audit

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/candor-grid/candor/deploy/simulated/bids"
	"github.com/candor-grid/candor/deploy/simulated/core"
	"github.com/candor-grid/candor/deploy/simulated/workload"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/spelling"
)

// Equilibrium is the state in which users no longer change their lies. Each user lies only if the lie gains. The JSON
// keys are stable. Welfare and revenue are fractions of the value of all jobs.
type Equilibrium struct {
	Market    string  `json:"market"`
	Mechanism string  `json:"mechanism"`
	Passes    int     `json:"passes"`
	Rest      bool    `json:"at_rest"`      // in the last pass, nobody could gain more than Least
	Left      float64 `json:"largest_gain"` // largest possible gain in the last pass, as a part of a user's value
	Runs      int     `json:"runs"`
	// Honest has the sums over all jobs if all users tell the truth. In each pass of the search, every user chooses the
	// best lie. Resting has the sums after the last pass.
	Honest  Sums     `json:"truth"`
	Resting Sums     `json:"rest"`
	Users   []Player `json:"users"` // by value, the largest first
	Gainers int      `json:"gainers"`
	Losers  int      `json:"losers"`
	Liars   int      `json:"liars"`
	Notes   []string `json:"notes"`
}

// Sums has the welfare and the revenue of a market, each added up over all jobs.
type Sums struct {
	Welfare float64 `json:"welfare"`
	Revenue float64 `json:"revenue"`
}

// Player is a user who tells the same lie for all of their jobs. A payoff is the worth of the outcomes minus the
// payments. Each payoff is divided by the value of the user's jobs.
type Player struct {
	User   int64   `json:"user"`
	Jobs   int     `json:"jobs"`
	Value  float64 `json:"value"`
	Lie    string  `json:"lie"`
	Honest float64 `json:"truth"` // the user's payoff if all users tell the truth
	Rest   float64 `json:"rest"`
}

// Truth is the name of the strategy to tell the truth.
const Truth = "truth"

// Least is the smallest gain for which a user changes to another lie. It is a fraction of the user's value.
const Least = 1e-3

type strategy struct {
	name string
	lie  lie // nil means the truth
}

func strategies() []strategy {
	out := []strategy{{name: Truth}}
	for _, kind := range []string{Value, Deadline, Length, Arrival, Split} {
		for _, l := range liesOf(kind) {
			out = append(out, strategy{named(kind, l), l})
		}
	}
	return out
}

func named(kind string, l lie) string {
	probe := entry{job: workload.Job{Runtime: 1000, Width: 1}, bid: bids.Bid{Value: 1, Rate: 1, Length: 1000, Deadline: 1000, Budget: 1}}
	told := l([]entry{probe}, 1)
	if len(told) == 0 {
		return kind
	}
	switch e := &told[0]; kind {
	case Value:
		return fmt.Sprintf("%s ×%g", kind, e.bid.Rate)
	case Deadline:
		return fmt.Sprintf("%s ×%g", kind, e.bid.Deadline/1000)
	case Length:
		return fmt.Sprintf("%s ×%g", kind, e.bid.Length/1000)
	case Arrival:
		return fmt.Sprintf("%s +%v", kind, time.Duration(e.job.Submit)*time.Second)
	}
	return kind
}

type game struct {
	*audit
	strategies []strategy
	truth      []entry // by job
	jobs       [][]int // by user
	value      []float64
	plays      []int       // strategy of each user
	regret     [][]float64 // by user and strategy: the sum of the gains that the strategy would have had
	rng        *rand.Rand
	runs       int
}

// Play searches for an equilibrium. One user after another computes what each strategy would gain, while all other
// users keep their strategies, and adds these gains to its regrets. A user who could gain draws its next strategy in
// proportion to its positive regrets (Hart and Mas-Colell 2000). Play ends after a pass in which no user could gain, or
// after the given number of passes.
func Play(p *core.Problem, passes int, progress func(done, of int)) (*Equilibrium, error) {
	own := *p
	own.Prior = own.PriorJobs()
	g := &game{audit: &audit{Problem: &own, seeds: seedsOf(&own, 4)}, strategies: strategies(), rng: rand.New(rand.NewPCG(p.Seed, 0x706c6179))}
	n := len(p.Work.Users)
	g.jobs, g.value, g.plays, g.regret = make([][]int, n), make([]float64, n), make([]int, n), make([][]float64, n)
	all := make([]int, len(p.Work.Jobs))
	for i := range all {
		u := p.Work.Jobs[i].User
		all[i], g.jobs[u], g.value[u] = i, append(g.jobs[u], i), g.value[u]+p.Bids[i].Worth(&p.Work.Jobs[i])
	}
	for u := range g.regret {
		g.regret[u] = make([]float64, len(g.strategies))
	}
	g.truth = g.entries(all)
	for i := range g.truth {
		g.truth[i].name = 0 // all jobs of a user have the same account
	}
	out := &Equilibrium{Market: string(p.Market.Name), Mechanism: p.Market.Mechanism, Notes: []string{}}
	before, paid, err := g.everybody()
	if err != nil {
		return nil, err
	}
	out.Honest = g.sums(before, paid)
	for out.Passes < passes && !out.Rest {
		out.Left = 0
		for u := range g.plays {
			gain, err := g.turn(u, func(done, of int) {
				if progress != nil {
					progress((out.Passes*n+u)*of+done, passes*n*of)
				}
			})
			if err != nil {
				return nil, err
			}
			out.Left = max(out.Left, gain)
		}
		out.Passes++
		out.Rest = out.Left <= Least
	}
	after, paid, err := g.everybody()
	if err != nil {
		return nil, err
	}
	out.Resting, out.Runs = g.sums(after, paid), g.runs
	g.tell(out, before, after)
	return out, nil
}

// turn lets one user play: it computes what the user would gain by each strategy, and chooses one of the strategies for
// the user. It returns the largest of these gains, as a fraction of the user's value.
func (g *game) turn(u int, progress func(done, of int)) (most float64, err error) {
	if g.value[u] == 0 {
		return 0, nil
	}
	payoffs, could := make([]float64, len(g.strategies)), make([]bool, len(g.strategies))
	err = inParallel(len(g.strategies), progress, nil, func(k int) error {
		plays := slices.Clone(g.plays)
		plays[u] = k
		of, _, err := g.outcome(plays, u)
		if messages.KindOf(err) == messages.Invalid && k > 0 {
			return nil // the market would refuse this lie
		}
		payoffs[k], could[k] = of[u], true
		return err
	})
	if err != nil {
		return 0, err
	}
	g.runs += len(g.strategies) * len(g.seeds)
	now, sum := payoffs[g.plays[u]], 0.0
	for k := range payoffs {
		if could[k] {
			gain := (payoffs[k] - now) / g.value[u]
			most = max(most, gain)
			g.regret[u][k] += gain
			sum += max(0, g.regret[u][k])
		}
	}
	if most <= Least {
		return most, nil
	}
	draw := g.rng.Float64() * sum
	for k, r := range g.regret[u] {
		if could[k] && r > 0 {
			if draw -= r; draw <= 0 {
				g.plays[u] = k
				break
			}
		}
	}
	return most, nil
}

// everybody returns the payoffs and the payments of all users, by user.
func (g *game) everybody() (of, paid []float64, err error) {
	g.runs += len(g.seeds)
	return g.outcome(g.plays, -1)
}

// outcome runs the market with each seed. It returns payoffs and payments by user, as means over the seeds. If `only`
// is −1, it returns them for all users. Otherwise it returns them for the single user with this number.
func (g *game) outcome(plays []int, only int) (of, paid []float64, err error) {
	told := make([]entry, 0, len(g.truth))
	for i := range g.truth {
		e := g.truth[i]
		if l := g.strategies[plays[e.job.User]].lie; l != nil {
			if lies := l([]entry{e}, g.Work.Nodes); lies != nil {
				told = append(told, lies...)
				continue
			}
		}
		told = append(told, e)
	}
	q, owner, _ := variant(&core.Problem{Market: g.Market, Work: g.emptied(), Prior: g.Prior, Class: g.Problem, Seed: g.Seed}, nil, told)
	of, paid = make([]float64, len(g.jobs)), make([]float64, len(g.jobs))
	parts := make([][]int, len(g.truth))
	for k, me := range owner {
		parts[me-1] = append(parts[me-1], k)
	}
	for _, seed := range g.seeds {
		q.Seed = seed
		o, err := core.Run(&q)
		if err != nil {
			return nil, nil, err
		}
		for i := range g.truth {
			u := g.Work.Jobs[i].User
			if only >= 0 && u != only {
				continue
			}
			t := &g.truth[i]
			of[u] += t.payoffOf(&q, o, parts[i]) / float64(len(g.seeds))
			for _, k := range parts[i] {
				paid[u] += o.Jobs[k].Paid.Float() / float64(len(g.seeds))
			}
		}
	}
	return of, paid, nil
}

func (g *game) emptied() *workload.Workload {
	w := *g.Work
	w.Jobs = nil
	return &w
}

func (g *game) sums(payoffs, paid []float64) (s Sums) {
	value := 0.0
	for u := range payoffs {
		value += g.value[u]
		s.Welfare += payoffs[u] + paid[u]
		s.Revenue += paid[u]
	}
	if value > 0 {
		s.Welfare, s.Revenue = s.Welfare/value, s.Revenue/value
	}
	return s
}

func (g *game) tell(out *Equilibrium, before, after []float64) {
	for u, k := range g.plays {
		if g.value[u] == 0 {
			continue
		}
		p := Player{User: g.Work.Users[u], Jobs: len(g.jobs[u]), Value: g.value[u], Lie: g.strategies[k].name, Honest: before[u] / g.value[u], Rest: after[u] / g.value[u]}
		if k > 0 {
			out.Liars++
		}
		switch d := p.Rest - p.Honest; {
		case d > Least:
			out.Gainers++
		case d < -Least:
			out.Losers++
		}
		out.Users = append(out.Users, p)
	}
	slices.SortStableFunc(out.Users, func(a, b Player) int { return cmp.Compare(b.Value, a.Value) })
	if !out.Rest {
		out.Notes = append(out.Notes, fmt.Sprintf("no equilibrium in %s: a user can gain %.2g of its value", spelling.Number(out.Passes, "pass", "passes"), out.Left))
	}
}

// Lies returns the names of the lies and, for each lie, the number of users who tell it.
func (e *Equilibrium) Lies() (names []string, users map[string]int) {
	users = map[string]int{}
	for i := range e.Users {
		users[e.Users[i].Lie]++
	}
	names = slices.Sorted(maps.Keys(users))
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(users[b], users[a]) })
	return names, users
}
