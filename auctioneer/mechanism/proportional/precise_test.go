package proportional

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// extreme draws auctions of 2 to 12 jobs and up to 4 classes, with budgets from 1e-6 to 1e12 and both kinds of
// utilities. Some weights are 0. In one auction of five, all weights that are not 0 are 1 or 2, so that many jobs want
// the same classes equally.
func extreme(r *rand.Rand, alpha float64) *Problem {
	p := &Problem{Alpha: alpha, Classes: 1 + r.IntN(4)}
	alike := r.IntN(5) == 0
	for range 2 + r.IntN(11) {
		p.Budgets = append(p.Budgets, math.Pow(10, -6+18*r.Float64()))
		p.Log = append(p.Log, r.IntN(2) == 0)
		for range p.Classes {
			w := 0.5 + 4.5*r.Float64()
			if alike {
				w = float64(1 + r.IntN(2))
			}
			if r.IntN(8) == 0 {
				w = 0
			}
			p.Weights = append(p.Weights, w)
		}
	}
	return p
}

// stays checks a fixed point with numbers of 400 bits. It computes one more round of best answers. The round must
// change no sub-budget by more than 1e-11 of the job's budget. stays skips a class in which only one job bids, and a
// job for which all new sub-budgets are 0.
func stays(t *testing.T, p *Problem, b []float64) {
	t.Helper()
	m := p.Classes
	d := newDigits(400)
	power := func(x float64) *big.Float {
		if x == 0 || p.Alpha == 1 {
			return d.number(x)
		}
		return d.exp(times(d.number(p.Alpha), d.log(d.number(x))))
	}
	for i, budget := range p.Budgets {
		row, sum := d.numbers(m), d.number(0)
		spent := 0.0
		for j := range m {
			others, contenders := d.number(0), 0
			for l := range p.Budgets {
				if p.Weights[l*m+j] > 0 {
					contenders++
				}
				if l != i {
					others.Add(others, power(b[l*m+j]))
				}
			}
			if contenders < 2 || others.Sign() == 0 {
				continue
			}
			own := power(b[i*m+j])
			total := plus(own, others)
			row[j] = times(d.number(p.Weights[i*m+j]), over(others, total))
			if !p.log(i) {
				row[j] = times(row[j], over(own, total))
			}
			sum.Add(sum, row[j])
			spent += b[i*m+j]
		}
		if double(sum) < nothing {
			continue
		}
		if math.Abs(spent-budget) > 1e-11*budget {
			t.Fatalf("job %d spends %v of %v: %+v", i, spent, budget, p)
		}
		for j := range m {
			next := double(over(row[j], sum)) * budget
			if move := math.Abs(next-b[i*m+j]) / budget; p.Weights[i*m+j] > 0 && row[j].Sign() > 0 && !(move < 1e-11) {
				t.Fatalf("job %d class %d: %v moves on to %v (%g): %+v", i, j, b[i*m+j], next, move, p)
			}
		}
	}
}

// Extreme auctions must converge at every alpha. When they were solved with float64 alone, one in fifteen auctions at
// alpha = 1 did not converge.
func TestExtremeAuctionsConverge(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var s Solver
	for _, c := range []struct {
		alpha float64
		count int
	}{{1, 200}, {1 - 1e-13, 2}, {1 - 1e-9, 5}, {1 - 1e-6, 10}, {0.9999, 20}, {0.999, 20}, {0.99, 30}, {0.9, 30},
		{0.7, 30}, {0.5, 30}, {0.3, 30}, {0.01, 30}} {
		for range c.count {
			p := extreme(r, c.alpha)
			result, err := s.Solve(p)
			if err != nil {
				t.Fatal(err)
			}
			if !result.Converged {
				t.Fatalf("does not converge in %d passes: %+v", result.Rounds, p)
			}
			stays(t, p, result.Subbudgets)
		}
	}
}

// The poor job's bid decides how the rich job splits its budget. At the fixed point the prices are T = (0.4, 0.6)·1e12,
// and the poor job gains the same in both classes. Its split depends on the 18th digit of the prices, so float64 has
// too few digits.
func TestThePoorSplitTheRich(t *testing.T) {
	p := &Problem{Alpha: 1, Classes: 2, Budgets: []float64{1e12, 1e-6}, Weights: []float64{1, 1, 1, 1.5}}
	r := solve(t, p)
	for k, want := range []float64{4e11, 6e11, 4e-6 / 13, 9e-6 / 13} {
		if math.Abs(r.Subbudgets[k]-want) > 1e-11*p.Budgets[k/2] {
			t.Errorf("sub-budget %d is %v, want %v", k, r.Subbudgets[k], want)
		}
	}
}

func TestPreciseRowsAreBestAnswers(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	checked := 0
	for range 150 {
		var s Solver
		p := extreme(r, 1)
		if s.Solve(p); !s.beyond {
			continue
		}
		checked++
		x := newPrecise(&s.auction)
		if !x.attempt(0) {
			t.Fatalf("does not find again: %+v", p)
		}
		x.bestAnswers(t)
	}
	if checked < 5 {
		t.Errorf("%d auctions needed more digits", checked)
	}
}

// bestAnswers checks the best answers of jobs at alpha = 1. The marginal utility of a job per credit is w·(1−s)/T in
// the linear form, and w·(1−s)/b in the logarithmic form: w is the job's weight in a class, s its share, b its bid, and
// T the sum of all bids there. The marginal utility must be the same to 1e-25 in all classes where the job bids, and
// not larger in the other classes. In such a problem, one credit more changes only the 19th digit.
func (x *precise) bestAnswers(t *testing.T) {
	t.Helper()
	m := x.auction.m
	for i := range x.auction.n {
		most, least := x.number(0), x.number(math.Inf(1))
		for j := range m {
			k := i*m + j
			if x.weights[k] == nil || x.dominant[j] < 0 {
				continue
			}
			total, others := x.number(0), x.number(0)
			for l := range x.auction.n {
				total.Add(total, x.bids[l*m+j])
				if l != i {
					others.Add(others, x.bids[l*m+j])
				}
			}
			marginal := over(times(x.weights[k], others), times(total, total))
			if x.auction.p.log(i) {
				marginal = over(times(x.weights[k], others), times(total, x.bids[k]))
			}
			if less(most, marginal) {
				most = marginal
			}
			if x.bids[k].Sign() > 0 && less(marginal, least) {
				least = marginal
			}
		}
		if !least.IsInf() && double(minus(over(most, least), x.one)) > 1e-25 {
			t.Fatalf("job %d: marginal utilities from %g to %g: %+v", i, least, most, x.auction.p)
		}
	}
}

// Only two poor jobs want class 1. The other classes are also wanted by a rich job. Near alpha = 1, the poor jobs' bids
// in these other classes become smaller than any float64. Then the rich job must get all slots of the other classes.
func TestContestThatVanishes(t *testing.T) {
	for _, alpha := range []float64{0.97, 0.999, 1 - 1e-13, 1} {
		p := &Problem{Alpha: alpha, Classes: 4, Budgets: []float64{93744.90369, 1.3959774e-4, 1.508821e-6},
			Log:     []bool{true, false, false},
			Weights: []float64{3.4818677, 0, 4.8866471, 4.0223097, 2.4909466, 3.1826354, 2.8102035, 0, 0.8665543, 4.3703845, 2.1089934, 2.4966990}}
		r := solve(t, p)
		for _, j := range []int{0, 2, 3} {
			if r.Shares[j] != 1 {
				t.Errorf("alpha %v: the rich job's share of class %d is %v, want 1", alpha, j, r.Shares[j])
			}
		}
		for i := range 2 {
			if b := r.Subbudgets[(i+1)*4+1]; math.Abs(b-p.Budgets[i+1]) > 1e-12*b {
				t.Errorf("alpha %v: job %d bids %v on class 1, want its budget", alpha, i+1, b)
			}
		}
	}
}

// The type `digits` computes with numbers of many digits. Its functions must agree with the same functions of float64.
// Its method `log` must be the inverse of its method `exp`.
func TestDigits(t *testing.T) {
	d := newDigits(300)
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Float64Range(-300, 300).Draw(t, "x")
		e := d.exp(d.number(x))
		if got, want := double(e), math.Exp(x); math.Abs(got/want-1) > 1e-12 {
			t.Fatalf("e^%v = %v, want %v", x, got, want)
		}
		if off := double(minus(d.log(e), d.number(x))); math.Abs(off) > 1e-85*(1+math.Abs(x)) {
			t.Fatalf("ln e^%v is off by %g", x, off)
		}
	})
}
