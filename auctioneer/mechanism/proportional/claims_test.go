package proportional

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// payoff is the utility of job i if the sub-budgets of all jobs are b.
func payoff(p *Problem, b []float64, i int) float64 {
	m := p.Classes
	shares := make([]float64, m)
	for j := range m {
		total := 0.0
		for l := range p.Budgets {
			total += math.Pow(b[l*m+j], p.Alpha)
		}
		shares[j] = math.Pow(b[i*m+j], p.Alpha) / total
	}
	return p.Utility(i, shares)
}

// The test checks lemma 1 of the paper: for alpha in [0, 1], the marginal utility of a sub-budget falls as the
// sub-budget grows.
func TestLemma1MarginalUtilityFalls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := contested(t, 4, 2, 0.2, 0.5, 0.9, 1)
		b := slices.Clone(solve(t, p).Subbudgets)
		k := rapid.IntRange(0, len(b)-1).Draw(t, "entry")
		last := math.Inf(1)
		for x := 1.0; x < 1e4; x *= 3 {
			b[k] = x
			low := payoff(p, b, k/p.Classes)
			b[k] = x * 1.01
			slope := (payoff(p, b, k/p.Classes) - low) / (0.01 * x)
			if slope > last*(1+1e-6) {
				t.Fatalf("marginal utility %g at %g, %g before", slope, x, last)
			}
			last = slope
		}
	})
}

// By lemmas 2 and 3, if algorithm 2 does not change the row of a job, the job cannot improve its row. The test moves
// money between two classes of such a row.
func TestLemmas2And3NoOtherSplitIsBetter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := contested(t, 5, 3, 0.1, 0.5, 0.5, 0.7, 0.9)
		b := slices.Clone(solve(t, p).Subbudgets)
		i := rapid.IntRange(0, len(p.Budgets)-1).Draw(t, "i")
		row := b[i*p.Classes : (i+1)*p.Classes]
		best := payoff(p, b, i)
		from, to := rapid.IntRange(0, p.Classes-1).Draw(t, "from"), rapid.IntRange(0, p.Classes-1).Draw(t, "to")
		move := row[from] * rapid.Float64Range(0.001, 1).Draw(t, "part")
		row[from] -= move
		row[to] += move
		if u := payoff(p, b, i); u > best+1e-9*(1+math.Abs(best)) {
			t.Fatalf("moving %v from %d to %d raises %v to %v: %+v", move, from, to, best, u, p)
		}
	})
}

// Lemma 4: a larger budget never gives less utility. The paper's proof ignores the reactions of other jobs. The lemma
// still holds in these instances.
func TestLemma4MoreBudgetMoreUtility(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := contested(t, 5, 2, 0.2, 0.5, 0.5, 0.8)
		i := rapid.IntRange(0, len(p.Budgets)-1).Draw(t, "i")
		before := payoff(p, solve(t, p).Subbudgets, i)
		p.Budgets[i] *= rapid.Float64Range(1.001, 10).Draw(t, "raise")
		if after := payoff(p, solve(t, p).Subbudgets, i); after < before-1e-9*(1+math.Abs(before)) {
			t.Fatalf("more budget lowers the utility from %v to %v: %+v", before, after, p)
		}
	})
}

// Theorem 1 of the paper says: for alpha below 1/2, the algorithm in rounds ends. The test checks this with and without
// damping.
func TestTheorem1RoundsEndBelowHalf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := contested(t, 6, 6, 0.1, 0.3, 0.49, 0.5)
		var s Solver
		r, err := s.Rounds(p, 2000)
		if err != nil || !r.Converged {
			t.Fatalf("still moving after %d rounds (%v): %+v", r.Rounds, err, p)
		}
		rounds := slices.Clone(r.Subbudgets)
		for k, b := range solve(t, p).Subbudgets {
			if math.Abs(b-rounds[k]) > 1e-9*p.Budgets[k/p.Classes] {
				t.Fatalf("entry %d: %v by rounds, %v by Newton: %+v", k, rounds[k], b, p)
			}
		}
	})
}

// circling is an auction in which the paper's rounds never end: they go in a circle. It has alpha = 0.9, and budgets
// five orders of magnitude apart. The paper says that the rounds always end.
var circling = &Problem{Alpha: 0.9, Classes: 2, Budgets: []float64{1e5, 1}, Weights: []float64{3, 2, 2, 3}}

func TestPlainRoundsCircleAboveHalf(t *testing.T) {
	var s Solver
	r, err := s.Rounds(circling, 5000)
	if err != nil {
		t.Fatal(err)
	}
	if r.Converged {
		t.Errorf("the plain round robin ended after %d rounds: not a counterexample any more", r.Rounds)
	}
	solve(t, circling)
}

// The solver halves the changes of the bids when they no longer become smaller. With this damping, the rounds must end
// at the fixed point.
func TestDampedRoundsEnd(t *testing.T) {
	want := slices.Clone(solve(t, circling).Subbudgets)
	var s Solver
	s.reset(circling)
	s.auction.contest()
	s.auction.splitByWeight()
	if !s.rounds.settle() {
		t.Fatalf("still moving after %d rounds", s.auction.passes)
	}
	for k, b := range s.auction.subbudgets {
		if math.Abs(b-want[k]) > 1e-9*circling.Budgets[k/2] {
			t.Errorf("entry %d: %v, want %v", k, b, want[k])
		}
	}
}

// Theorem 2 says that it is best to report the true utility. This is not quite true. The true utility of the first job
// is 4x + 9y, where x and y are its shares of the two classes. If it reports 7x + 13y, it gains 0.17 %.
func TestTheorem2Counterexample(t *testing.T) {
	p := &Problem{Alpha: 0.5, Classes: 2, Budgets: []float64{50, 150}, Weights: []float64{4, 9, 8, 5}}
	honest := p.Utility(0, solve(t, p).Shares[:2])
	lie := *p
	lie.Weights = []float64{7, 13, 8, 5}
	gain := p.Utility(0, solve(t, &lie).Shares[:2])/honest - 1
	if math.Abs(gain-0.0017) > 5e-5 {
		t.Errorf("the lie gains %.4f %%, want 0.17 %%", 100*gain)
	}
}

// bestLie returns the largest relative gain that job 0 can get by a lie. Each lie multiplies the job's first declared
// weight by a factor from 0.5 to 2.
func bestLie(t testing.TB, p *Problem) float64 {
	honest, best := p.Utility(0, solve(t, p).Shares[:2]), 0.0
	lie := *p
	lie.Weights = slices.Clone(p.Weights)
	for f := 0.5; f < 2; f *= 1.05 {
		lie.Weights[0] = p.Weights[0] * f
		best = max(best, p.Utility(0, solve(t, &lie).Shares[:2])/honest-1)
	}
	return best
}

// In a lie, a job declares one of its weights multiplied by a factor. The test looks at the lie with the largest gain.
// Its mean gain must fall at least as fast as 1/n, where n is the number of jobs. (The test begins with 8 jobs: with
// two jobs the gain is small, 0.006 % on average.)
func TestGainOfALieShrinksWithTheMarket(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	mean := map[int]float64{}
	for _, n := range []int{8, 32} {
		for range 40 {
			p := &Problem{Alpha: 0.5, Classes: 2}
			for range n {
				p.Budgets = append(p.Budgets, 50+150*r.Float64())
				p.Weights = append(p.Weights, 0.5+1.5*r.Float64(), 0.5+1.5*r.Float64())
			}
			mean[n] += bestLie(t, p) / 40
		}
		t.Logf("%d jobs: the best lie gains %.2g on average", n, mean[n])
	}
	if mean[32] > mean[8]/4 {
		t.Errorf("mean gains %v do not shrink as the market grows", mean)
	}
}

// climbedLie searches for false weights with which job 0 gains. It begins with the true weights, and makes random
// changes. It keeps a change if the gain becomes larger. It returns the largest gain, as a part of the utility that job
// 0 has with its true weights.
func climbedLie(t testing.TB, p *Problem, r *rand.Rand, steps int) (best float64) {
	m := p.Classes
	honest, lie := p.Utility(0, solve(t, p).Shares[:m]), *p
	at := slices.Clone(p.Weights)
	for range steps {
		lie.Weights = slices.Clone(at)
		for j := range m {
			lie.Weights[j] *= math.Exp(0.3 * r.NormFloat64())
		}
		if gain := p.Utility(0, solve(t, &lie).Shares[:m])/honest - 1; gain > best {
			best, at = gain, lie.Weights
		}
	}
	return best
}

// The page honesty.md says how much lies about weights gain. The numbers on the page come from 30 draws, with 60 steps
// of the search for each draw. This test has fewer draws and steps, to be fast. At α = 1 the lies must gain.
func TestLiesAboutManyClasses(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	mean, most := map[float64]float64{}, map[float64]float64{}
	const draws = 4
	for range draws {
		p := &Problem{Classes: 8}
		for range 8 {
			p.Budgets = append(p.Budgets, 50+150*r.Float64())
			for range 8 {
				p.Weights = append(p.Weights, 0.5+1.5*r.Float64())
			}
		}
		for _, alpha := range []float64{0.5, 1} {
			p.Alpha = alpha
			gain := climbedLie(t, p, r, 40)
			mean[alpha] += gain / draws
			most[alpha] = max(most[alpha], gain)
		}
	}
	t.Logf("8 jobs, 8 classes: lies gain %.3g on average, %.3g at most", mean, most)
	if mean[1] < 0.005 || most[1] > 0.15 || mean[0.5] > 0.002 {
		t.Errorf("mean gains %.3g, at most %.3g: not what the pages say", mean, most)
	}
}

// If alpha is above 1/2, there can be several fixed points. The paper computes a fixed point by rounds of best answers,
// and begins with budgets that are divided evenly among the classes. Solve must return the same fixed point. The test
// also checks that there is a second fixed point, which the rounds reach from another beginning.
func TestSeveralFixedPoints(t *testing.T) {
	p := &Problem{Alpha: 0.7, Classes: 2, Budgets: []float64{124.09377607517196, 153.99265260594922}, Weights: []float64{1.875, 0.1, 0.125, 3.75}}
	var s Solver
	rounds, err := s.Rounds(p, 5000)
	if err != nil || !rounds.Converged {
		t.Fatalf("%+v, %v", rounds, err)
	}
	got := slices.Clone(solve(t, p).Subbudgets)
	other := []float64{117.80299905054316, 6.29077702462944, 4.961429161097148, 149.03122344485251}
	for k, b := range got {
		if math.Abs(b-rounds.Subbudgets[k]) > 1e-8 {
			t.Errorf("entry %d: %v, by rounds %v", k, b, rounds.Subbudgets[k])
		}
		if next := slowRow(p, other, k/2)[k%2]; math.Abs(next-other[k]) > 1e-9 {
			t.Errorf("the other point moves on from %v to %v", other[k], next)
		}
		if math.Abs(b-other[k]) < 1 {
			t.Errorf("entry %d is the other point's", k)
		}
	}
}
