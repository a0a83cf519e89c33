package batchqueue

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/auctioneer/mechanism/casefile/casetest"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	marketmsg "github.com/candor-grid/candor/messages/market"
)

// taxesSlowly returns the tax of each account and the sum of the taxes. An account pays a tax if the decision without
// the account would be different. The tax is the amount that the other accounts lose because of the account.
func taxesSlowly(gains []float64) (taxes []float64, total float64) {
	sum := func(without int) (s float64) {
		for i, x := range gains {
			if i != without {
				s += x
			}
		}
		return s
	}
	runs := sum(-1) >= 0
	for i := range gains {
		tax, others := 0.0, sum(i)
		if runs != (others >= 0) {
			tax = math.Abs(others)
		}
		taxes, total = append(taxes, tax), total+tax
	}
	return taxes, total
}

// rebateSlowly returns the rebate of account i. What this account announces changes the total of all taxes.
// rebateSlowly tries many announcements of the account, and takes the smallest total. The rebate is this total, divided
// by the number of accounts. The largest announcements are much larger than the stakes of all other accounts.
func rebateSlowly(stakes []Stake, i int) float64 {
	gains := make([]float64, len(stakes))
	reach := 1.0
	for k, s := range stakes {
		gains[k] = s.Gain
		reach += 2 * math.Abs(s.Gain)
	}
	least := math.Inf(1)
	for z := max(-reach, stakes[i].Least); z <= min(reach, stakes[i].Most); z++ {
		gains[i] = z
		_, total := taxesSlowly(gains)
		least = min(least, total)
	}
	return least / float64(len(stakes))
}

// draw returns the stakes of a few accounts, in whole numbers: mostly a front job and jobs that it delays.
func draw(r *rand.Rand) []Stake {
	out := make([]Stake, 1+r.IntN(7))
	for i := range out {
		most := r.IntN(10)
		s := &out[i]
		switch {
		case i == 0:
			s.Gain, s.Most = float64(r.IntN(10*len(out))), math.Inf(1)
		default:
			s.Gain, s.Least = float64(-r.IntN(20)), math.Inf(-1)
		}
		if most == 0 { // sometimes, the account also gains: it has a job that gains, or several jobs
			s.Gain, s.Most = float64(r.IntN(30)), math.Inf(1)
			if s.Least = 0; r.IntN(2) == 0 {
				s.Gain, s.Least = s.Gain-15, math.Inf(-1)
			}
		}
		if most == 1 && i > 0 {
			*s = Stake{}
		}
	}
	return out
}

func TestPivotIsTheSlowOne(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	back := 0
	for k := range 4000 {
		stakes := draw(r)
		taxes, rebates := Pivot(stakes)
		gains := make([]float64, len(stakes))
		for i, s := range stakes {
			gains[i] = s.Gain
		}
		want, total := taxesSlowly(gains)
		given := 0.0
		for i := range stakes {
			if math.Abs(taxes[i]-want[i]) > 1e-9 {
				t.Fatalf("%d: %+v: taxes %v, want %v", k, stakes, taxes, want)
			}
			if slow := rebateSlowly(stakes, i); len(stakes) > 1 && math.Abs(rebates[i]-slow) > 1e-9 {
				t.Fatalf("%d: %+v: rebate %d is %v, want %v", k, stakes, i, rebates[i], slow)
			}
			given += rebates[i]
		}
		if given > total+1e-9 {
			t.Fatalf("%d: %+v: %v is given back of %v", k, stakes, given, total)
		}
		if given > 0 {
			back++
		}
	}
	if back < 400 {
		t.Errorf("only %d decisions had a rebate", back)
	}
}

// In the pivot mechanism, no announcement may give an account more than the truth gives it, whatever the other accounts
// announce. No announcement may change the account's own rebate. The truth must never be worse than no announcement.
func TestPivotIsHonest(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for k := range 1000 {
		stakes := draw(r)
		i := r.IntN(len(stakes))
		truth := stakes[i].Gain
		utility := func(announced float64) (u, rebate float64) {
			told := slices.Clone(stakes)
			told[i].Gain = announced
			gains := make([]float64, len(told))
			for j, s := range told {
				gains[j] = s.Gain
			}
			taxes, rebates := Pivot(told)
			if stands(gains) {
				u = truth
			}
			return u - taxes[i] + rebates[i], rebates[i]
		}
		honest, rebate := utility(truth)
		for lie := max(-60, stakes[i].Least); lie <= min(60, stakes[i].Most); lie += 0.5 {
			u, moved := utility(lie)
			if u > honest+1e-9 {
				t.Fatalf("%d: %+v: account %d gains %v by announcing %v", k, stakes, i, u-honest, lie)
			}
			if math.Abs(moved-rebate) > 1e-9 {
				t.Fatalf("%d: %+v: account %d moves its rebate from %v to %v by announcing %v", k, stakes, i, rebate, moved, lie)
			}
		}
		if silent, _ := utility(0); silent > honest+1e-9 {
			t.Fatalf("%d: %+v: account %d does better by announcing nothing", k, stakes, i)
		}
	}
}

// Taxes go to the site. Rebates come from the site to an account's first job, and are never more than the taxes. If a
// job declares more than it can pay, its tax is computed from what it can pay.
func TestALiveMarketLevies(t *testing.T) {
	c := market(t, marketmsg.Market{Pricing: PivotPricing})
	jobs := []*mechanism.Job{waiting(1, 100, 0, 10, 8), waiting(2, 40, 2, 10, 8), waiting(3, 50, 3, 10, 8), waiting(4, 60, 1, 10, 8)}
	for i, account := range []messages.Name{"ann", "ben", "cat", "ben"} {
		jobs[i].Account = account
	}
	c.Allocate(grid(8, jobs...))
	// The run of ann's job costs ben 20 + 10 and cat 30, so ann pays 60. ben and cat each get a rebate. To compute it,
	// vary the announcement of this account, and find the smallest total that all accounts pay. The rebate is a third
	// of this total. For ben and for cat, the total is min(30, 100 − 30) = 30.
	var got []mechanism.Payment
	for _, p := range c.Settle(grid(8), jobs[0], mechanism.End{State: job.Completed}) {
		if !p.Now || p.Reason == "" {
			t.Errorf("%+v", p)
		}
		p.Now, p.Reason = false, ""
		got = append(got, p)
	}
	want := []mechanism.Payment{{From: 1, Amount: 60 * messages.Credit}, {To: 2, Amount: 10 * messages.Credit}, {To: 3, Amount: 10 * messages.Credit}}
	if !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	poor := []*mechanism.Job{waiting(1, 100, 0, 10, 8), waiting(2, 40, 1000, 10, 8)}
	c = market(t, marketmsg.Market{Pricing: PivotPricing})
	if a := c.Allocate(grid(8, poor...)); len(a.Directives) == 0 || a.Directives[0].Action != mechanism.Start {
		t.Errorf("a job that can pay 40 stops one that is worth 100: %+v", a.Directives)
	}
}

// The job at the front of a batch queue pays a tax for the delay of the other jobs. The tax is computed from the
// declared length of the front job, because this length also determines which value is enough to run first. If the tax
// were computed from the actual time, which can be shorter, a job could gain by bidding more than its value.
func TestAChargeByTheTimeTakenInvitesOverbids(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	const queues = 3000
	gainers, gains := 0, []float64{}
	for range queues {
		value, loss := float64(1+r.IntN(100)), 0.0 // what one second of delay costs the other jobs
		for range 1 + r.IntN(4) {
			loss += float64(r.IntN(6))
		}
		declared := float64(1 + r.IntN(20))
		took := declared * r.Float64()
		payoff := func(bid, charged float64) float64 {
			taxes, _ := Pivot([]Stake{{Gain: bid, Most: math.Inf(1)}, {Gain: -loss * declared, Least: math.Inf(-1)}})
			if !stands([]float64{bid, -loss * declared}) {
				return -taxes[0]
			}
			return value - taxes[0]*charged/declared
		}
		if payoff(1e6, declared) > payoff(value, declared) {
			t.Fatalf("%v, losses of %v a second, %v s: a larger bid gains", value, loss, declared)
		}
		gain := payoff(1e6, took) - payoff(value, took)
		if gain > 0 {
			gainers++
		}
		gains = append(gains, max(0, gain)/value)
	}
	var mean, squares float64
	for _, x := range gains {
		mean += x / queues
		squares += x * x / queues
	}
	if gainers < queues/10 {
		t.Errorf("only %d of %d gain, so that taxes could be of the time that is taken", gainers, queues)
	}
	t.Logf("%d of %d gain, %.4f ± %.4f of the value", gainers, queues, mean, 1.96*math.Sqrt((squares-mean*mean)/queues))
}

func TestSolvePivot(t *testing.T) {
	out := casetest.Solve[*output](t, SolveDocument, `{"queue":[{"v":100,"r":10},{"d":2,"r":1,"account":"ben"},{"d":3,"r":1},{"d":1,"r":1,"account":"ben"}],"pricing":"pivot"}`)
	near(t, "taxes", out.Taxes, []float64{60, 0, 0, 0})
	near(t, "rebates", out.Rebates, []float64{0, 10, 10, 0})
	near(t, "payments", out.Payments, []float64{60, -10, -10, 0})
	if !out.Runs || out.Rest != 40 {
		t.Errorf("%+v", out)
	}
}
