package contract

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/candor-grid/candor/auctioneer/mechanism/deadlineaware"
	"github.com/candor-grid/candor/auctioneer/mechanism/valuation"
	"github.com/candor-grid/candor/messages/job"
)

// curve makes a curve of a valuation that is known to be valid.
func curve(t testing.TB, v job.Valuation) *valuation.Curve {
	t.Helper()
	c, err := valuation.New(v)
	if err != nil {
		t.Fatal(err)
	}
	return &c
}

// crowd returns the scheduler of the paper's scenario: 200 other jobs with 20 seconds of work each. Their types are
// drawn from the paper's distribution.
func crowd(t testing.TB, seed uint64) Scheduler {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 7))
	draw := Valid(paperType)
	var others []Other
	for range 200 {
		v, _ := draw(r)
		others = append(others, Other{Deadline: v.Mu + v.Delta/2, Demand: 20})
	}
	schedule, err := EarliestDeadline(1, 100, others)
	if err != nil {
		t.Fatal(err)
	}
	return schedule
}

func offer(t testing.TB, declared job.Valuation, m int, seed uint64, schedule Scheduler) *Offer {
	t.Helper()
	d, err := NewDraw(declared, paperType, m, seed)
	if err != nil {
		t.Fatal(err)
	}
	o, err := NewOffer(new(Solver), d, schedule)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// The test has the setting of figures 4 and 5 of the paper. The values are sigmoids with two parameters, in seconds:
// the value falls after mu, and the fall takes delta. The types (mu, delta) of the other jobs are drawn from N((2000,
// 1000), diag(1000², 500²)), and M is 100. A later completion must never cost more. Some contract must be free. The
// contract that is best for a user must complete near the time at which the user's value begins to fall, and before
// half of the value is lost. It must be better for the user than the first and the last contract.
func TestPaperScenario(t *testing.T) {
	for seed, mu := range []float64{1200, 1800, 2500, 3200} {
		declared := job.Valuation{Class: job.Sigmoidal, Max: 100, Mu: mu, Delta: 800}
		o := offer(t, declared, 100, uint64(seed), crowd(t, uint64(seed)))
		truth := curve(t, declared)
		best, at := math.Inf(-1), Contract{}
		for i, c := range o.Menu {
			if i > 0 && c.Price > o.Menu[i-1].Price+1e-10 {
				t.Errorf("μ = %v: completing at %v costs %v, at %v %v", mu, c.Completion, c.Price, o.Menu[i-1].Completion, o.Menu[i-1].Price)
			}
			if u := truth.At(c.Completion) - c.Price; u > best {
				best, at = u, c
			}
		}
		last := o.Menu[len(o.Menu)-1]
		if !last.Free {
			t.Errorf("μ = %v: the last to complete pays %v", mu, last.Price)
		}
		if at.Completion < mu-600 || at.Completion > mu+declared.Delta/2 {
			t.Errorf("μ = %v: the best contract completes at %v", mu, at.Completion)
		}
		for _, end := range []Contract{o.Menu[0], last} {
			if u := truth.At(end.Completion) - end.Price; best < u+0.1 {
				t.Errorf("μ = %v: no peak: %v at best, %v completing at %v", mu, best, u, end.Completion)
			}
		}
	}
}

// underneath returns the paper's scheduler, on 10 slots, in the paper's scenario. One job of 20 tasks of 5 s competes
// with 200 such jobs. The work of all jobs takes about as much time as the valuations need to fall.
func underneath(t testing.TB, seed uint64) Scheduler {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 8))
	draw := Valid(paperType)
	p := &deadlineaware.Problem{Slots: 10}
	for range 200 {
		v, _ := draw(r)
		p.Jobs = append(p.Jobs, deadlineaware.Job{Tasks: 20, Demand: 200 * r.Float64(), Valuation: *curve(t, v)})
	}
	p.Jobs = append(p.Jobs, deadlineaware.Job{Tasks: 20, Demand: 100})
	return DeadlineAware(p, 200)
}

// This test repeats TestPaperScenario, but the completion times come from the paper's own scheduler. Prices must not
// rise with the completion time. One contract must have the price 0. A user's best contract must complete before half
// of the value is lost.
func TestPaperScenarioUnderneath(t *testing.T) {
	for seed, mu := range []float64{800, 1200, 1600} {
		declared := job.Valuation{Class: job.Sigmoidal, Max: 100, Mu: mu, Delta: 800}
		o := offer(t, declared, 100, uint64(seed), underneath(t, uint64(seed)))
		truth := curve(t, declared)
		best, at, free := math.Inf(-1), Contract{}, false
		for i, c := range o.Menu {
			if i > 0 && c.Price > o.Menu[i-1].Price+1e-10 {
				t.Errorf("μ = %v: completing at %v costs %v, at %v %v", mu, c.Completion, c.Price, o.Menu[i-1].Completion, o.Menu[i-1].Price)
			}
			if u := truth.At(c.Completion) - c.Price; u > best {
				best, at = u, c
			}
			free = free || c.Free
		}
		if !free || at.Completion > mu+declared.Delta/2 || o.Menu[0].Completion == o.Menu[99].Completion {
			t.Errorf("μ = %v: the best contract completes at %v, of %v to %v", mu, at.Completion, o.Menu[0].Completion, o.Menu[99].Completion)
		}
	}
}

// The user declares its true type. No contract on the menu may be better for this user than the contract of the
// declared type. This is theorem 1. The test checks it for single draws of types, and not only on average.
func TestTruthIsBestOnTheMenu(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	draw := Valid(paperType)
	for seed := range uint64(20) {
		declared, _ := draw(r)
		o := offer(t, declared, 60, seed, crowd(t, seed))
		truth := curve(t, declared)
		own := math.Inf(-1)
		for _, c := range o.Menu {
			if c.Declared {
				own = c.Value - c.Price
			}
		}
		for _, c := range o.Menu {
			if u := truth.At(c.Completion) - c.Price; u > own+1e-10 {
				t.Errorf("seed %d: %v by contract %+v, %v by the declared one", seed, u, c, own)
			}
		}
	}
}

// If a user values the job as the contract's replica does, the user must never pay more than the job is worth at its
// completion. The test tries every time of completion, and both rules of adjustment.
func TestTheorem2ForTheReplica(t *testing.T) {
	o := offer(t, job.Valuation{Class: job.Sigmoidal, Max: 100, Mu: 1500, Delta: 700}, 80, 3, crowd(t, 3))
	for _, c := range o.Menu {
		replica := curve(t, o.Replicas[c.Replica])
		for completed := 0.0; completed < 12_000; completed += 37 {
			for _, lateOnly := range []bool{false, true} {
				if owed := c.Settle(replica, completed, lateOnly); owed < 0 || owed > replica.At(completed)*(1+1e-12) {
					t.Fatalf("%+v completed at %v, is worth %v and owes %v (late only: %v)", c, completed, replica.At(completed), owed, lateOnly)
				}
			}
		}
	}
}

// A contract belongs to a replica. If its valuation differs from the user's, the user can pay more than the job is
// worth. Here the user's job is worthless after 100 s, but the replica keeps its full value until 1000 s. The job
// completes at 500 s, so the user pays 8 for nothing.
func TestTheorem2NotForAnotherUser(t *testing.T) {
	user := curve(t, job.Valuation{Class: job.Hard, Max: 10, Deadline: 100})
	replica := curve(t, job.Valuation{Class: job.Hard, Max: 10, Deadline: 1000})
	c := Contract{Completion: 90, Price: 8, Value: replica.At(90)}
	if u := user.At(90) - c.Price; u != 2 {
		t.Errorf("the user expects %v", u)
	}
	if u := user.At(500) - c.Settle(replica, 500, false); u != -8 {
		t.Errorf("the user gets %v", u)
	}
}

// risky has two equally probable completion times of a job, in seconds. The mean is 100 s. If 100 s is the deadline,
// half of such jobs miss it.
var risky = [2]float64{50, 150}

// The job completes after 50 s or after 150 s, each with probability 1/2. The mean is 100 s, as promised. But the mean
// of the two values is not the value at the mean time, so the expected price is not the agreed price. A menu that uses
// the mean time can therefore show the risky contract as the better one, although its expected value minus price is
// worse.
func TestTheorem3ExpectationOfARatio(t *testing.T) {
	v := curve(t, job.Valuation{Class: job.Hard, Max: 10, Deadline: 100})
	contract := Contract{Completion: 100, Price: 4, Value: v.At(100)}
	price, value := 0.0, 0.0
	for _, x := range risky {
		price += contract.Settle(v, x, false) / 2
		value += v.At(x) / 2
	}
	if price != 2 || value != 5 {
		t.Errorf("expected price %v of 4 agreed, expected value %v of 10 promised", price, value)
	}
	safe := Contract{Completion: 90, Price: 6, Value: v.At(90)} // this contract is always kept
	if onMenu := contract.Value - contract.Price; onMenu <= safe.Value-safe.Price || value-price >= safe.Value-safe.Price {
		t.Errorf("on the menu %v against %v, in expectation %v", onMenu, safe.Value-safe.Price, value-price)
	}
}

// Here a contract promises the expected value of the completion. It does not promise the value at the expected
// completion time. Then the expected price must equal the agreed price.
func TestTheorem3WithExpectedValues(t *testing.T) {
	v := curve(t, job.Valuation{Class: job.Sigmoidal, Max: 10, Mu: 80, Delta: 60})
	promise, price := 0.0, 0.0
	for _, x := range risky {
		promise += v.At(x) / 2
	}
	contract := Contract{Price: 4, Value: promise}
	for _, x := range risky {
		price += contract.Settle(v, x, false) / 2
	}
	if math.Abs(price-4) > 1e-12 {
		t.Errorf("expected price %v of 4 agreed", price)
	}
}

// According to theorem 4 of the paper, (1−O(ε)) of the value with declared types is an upper bound of the value with
// surrogates. In fact it is a lower bound: the value with surrogates is at least (1−O(ε)) of the value with declared
// types. If the schedule ignores the type, nothing is lost with any number M of surrogates, so there is no upper bound.
// Otherwise the loss shrinks as M grows.
func TestTheorem4IsReversed(t *testing.T) {
	constant := func(types []job.Valuation) ([]float64, error) {
		x := make([]float64, len(types))
		for k := range x {
			x[k] = 1500
		}
		return x, nil
	}
	if kept := surplus(t, constant, 2, 200); kept != 1 {
		t.Errorf("a constant schedule keeps %v of the value", kept)
	}
	few, many := surplus(t, crowd(t, 1), 2, 400), surplus(t, crowd(t, 1), 100, 400)
	if !(few < many && many > 0.97) {
		t.Errorf("%v of the value is kept with M = 2, %v with M = 100", few, many)
	}
}

// surplus returns the ratio of two values that truthful users receive. For the first value, the scheduler uses the
// surrogates of their contracts. For the second value, it uses their true types.
func surplus(t *testing.T, schedule Scheduler, m, users int) float64 {
	t.Helper()
	r := rand.New(rand.NewPCG(6, 9))
	draw := Valid(paperType)
	with, without := 0.0, 0.0
	for seed := range uint64(users) {
		declared, _ := draw(r)
		truth := curve(t, declared)
		x, err := schedule([]job.Valuation{declared})
		if err != nil {
			t.Fatal(err)
		}
		without += truth.At(x[0])
		o := offer(t, declared, m, seed, schedule)
		with += o.Weights[o.Declared*m+o.Matching.Surrogate[o.Declared]]
	}
	return with / without
}
