package highestbid

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/auctioneer/mechanism/casefile/casetest"
)

// If all amounts and the reserve are multiplied by a factor, all payments and utilities must be multiplied by the same
// factor. The times of completion must stay the same.
func TestUnitOfMoneyDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := instances(t, 12)
		before := mustRun(t, p)
		unit := rapid.SampledFrom([][2]float64{{1, 1e5}, {3, 1}, {7, 10}, {1e12, 1}}).Draw(t, "unit")
		by := func(x float64) float64 { return x * unit[0] / unit[1] }
		q := *p
		q.Reserve = by(p.Reserve)
		q.Jobs = slices.Clone(p.Jobs)
		for i := range q.Jobs {
			q.Jobs[i].Bid, q.Jobs[i].Value = by(q.Jobs[i].Bid), by(q.Jobs[i].Value)
		}
		after := mustRun(t, &q)
		for i := range p.Jobs {
			if after.Finish[i] != before.Finish[i] || !near(after.Payment[i], by(before.Payment[i]), 1e-12) ||
				!near(after.Utility[i], by(before.Utility[i]), 1e-12) {
				t.Fatalf("unit %v: job %d pays %v, before %v: %+v", unit, i, after.Payment[i], before.Payment[i], p)
			}
		}
	})
}

// All times are multiplied by a factor. Some factors are decimal fractions that a float64 cannot hold exactly. Events
// at the same instant must still be at the same instant.
func TestUnitOfTimeDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := instances(t, 12)
		before := mustRun(t, p)
		unit := rapid.SampledFrom([][2]float64{{1, 10}, {7, 1000}, {3, 1}, {1, 1e6}}).Draw(t, "unit")
		by := func(x float64) float64 { return x * unit[0] / unit[1] }
		q := *p
		q.Jobs = slices.Clone(p.Jobs)
		for i, j := range q.Jobs {
			q.Jobs[i].Submit, q.Jobs[i].Runtime, q.Jobs[i].Estimate = by(j.Submit), by(j.Runtime), by(j.Estimate)
		}
		after := mustRun(t, &q)
		for i := range p.Jobs {
			if after.Start[i] != by(before.Start[i]) || after.Finish[i] != by(before.Finish[i]) ||
				after.Flow[i] != by(before.Flow[i]) || !near(after.Payment[i], by(before.Payment[i]), 1e-12) {
				t.Fatalf("unit %v: job %d ends at %v and pays %v, before %v and %v: %+v", unit, i,
					after.Finish[i], after.Payment[i], before.Finish[i], before.Payment[i], p)
			}
		}
	})
}

// The jobs have distinct times of submission. If they are listed in another order, each must have the same outcome.
func TestOrderOfJobsDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := instances(t, 10)
		for i := range p.Jobs {
			p.Jobs[i].Submit += float64(i) / 16 // makes the times of submission distinct
		}
		order := rapid.Permutation(casetest.Indices(len(p.Jobs))).Draw(t, "order")
		q := *p
		q.Jobs = make([]Job, len(order))
		for i, to := range order {
			q.Jobs[to] = p.Jobs[i]
		}
		a, b := mustRun(t, p), mustRun(t, &q)
		for i, to := range order {
			if a.Finish[i] != b.Finish[to] || a.Payment[i] != b.Payment[to] || !slices.Equal(a.Intervals[i], b.Intervals[to]) {
				t.Fatalf("job %d moved to %d ends at %v for %v, was %v for %v: %+v", i, to, b.Finish[to], b.Payment[to], a.Finish[i], a.Payment[i], p)
			}
		}
	})
}

// A job with a run time of 0 and a high bid is added. All other outcomes must stay the same.
func TestAJobThatWantsNothingChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := instances(t, 10)
		before := mustRun(t, p)
		p.Jobs = append(p.Jobs, Job{Submit: float64(rapid.IntRange(0, 15).Draw(t, "when")), Value: 9, Bid: 1e12, Estimate: 1})
		after := mustRun(t, p)
		n := len(p.Jobs) - 1
		if !slices.Equal(after.Payment[:n], before.Payment) || !slices.Equal(after.Finish[:n], before.Finish) ||
			after.Payment[n] != 0 || after.Finish[n] != p.Jobs[n].Submit || after.Flow[n] != 0 {
			t.Fatalf("finish %v, pay %v, flow %v; before %v, %v; the new job comes at %v", after.Finish, after.Payment, after.Flow, before.Finish, before.Payment, p.Jobs[n].Submit)
		}
	})
}

// A job with a bid of 0 is added to a market with the algorithm HB. All other jobs must end at the same times as
// without it.
func TestAJobThatBidsNothingIsInNobodysWay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := instances(t, 10)
		p.Rule.Algorithm = HB
		before := mustRun(t, p)
		p.Jobs = append(p.Jobs, Job{Submit: float64(rapid.IntRange(0, 15).Draw(t, "when")), Runtime: 5, Estimate: 1})
		for i := range p.Jobs[:len(p.Jobs)-1] {
			if p.Jobs[i].Bid == 0 {
				return // the added job also bids 0, so the two jobs could tie
			}
		}
		if after := mustRun(t, p); !slices.Equal(after.Finish[:len(p.Jobs)-1], before.Finish) {
			t.Fatalf("finish %v, without it %v", after.Finish, before.Finish)
		}
	})
}

// No node is idle while a job waits, no node runs two jobs, and each job runs for its run time.
func TestWorkIsConserved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := instances(t, 14)
		o := mustRun(t, p)
		total := 0.0
		for i, j := range p.Jobs {
			ran := 0.0
			for _, v := range o.Intervals[i] {
				ran += v[1] - v[0]
			}
			if ran != j.Runtime {
				t.Fatalf("job %d ran %v s of %v", i, ran, j.Runtime)
			}
			total += ran
		}
		busy := 0.0
		for now := 0.0; busy < total; now++ {
			runs, in := 0, 0
			for i, j := range p.Jobs {
				if j.Submit <= now && now < o.Finish[i] {
					in++
				}
				if slices.ContainsFunc(o.Intervals[i], func(v Interval) bool { return v[0] <= now && now < v[1] }) {
					runs++
				}
			}
			if runs != min(in, p.Nodes) {
				t.Fatalf("at %v %d jobs run of %d on %d nodes: %+v", now, runs, in, p.Nodes, p)
			}
			busy += float64(runs)
		}
	})
}

func TestPreemptionsAreAtMostArrivals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := instances(t, 20)
		if o := mustRun(t, p); o.Preemptions > max(0, len(p.Jobs)-p.Nodes) || p.Rule.Algorithm != HB && o.Preemptions > 0 {
			t.Fatalf("%d suspensions, %d arrivals, %s", o.Preemptions, len(p.Jobs), p.Rule.Algorithm)
		}
	})
}

// Some jobs bid 10^18 times as much as others, and both kinds run in turn and at the same time. The payments of the
// cheap jobs must equal payments that are computed with rational numbers, without rounding errors.
func TestBidsFarApart(t *testing.T) {
	const dear, cheap = 1e12, 1e-6
	for _, rule := range []Rule{{HB, Kth, false}, {HB, First, false}, {NPHB, Kth, false}, {WSPT, Kth, true}, {WSEPT, Kth, false}} {
		p := &Problem{Nodes: 1, Rule: rule, Reserve: cheap / 3}
		for range 1000 {
			p.Jobs = append(p.Jobs, Job{Runtime: 3, Estimate: 3, Bid: dear, Value: 1})
		}
		for _, bid := range []float64{cheap, cheap / 2} {
			p.Jobs = append(p.Jobs, Job{Submit: 1, Runtime: 1, Estimate: 1, Bid: bid, Value: 1})
		}
		o := mustRun(t, p)
		bid := cheap
		if rule.Price == Kth {
			bid /= 2 // the first cheap job pays the bid of the second, which waits while the first runs
		}
		want, _ := new(big.Rat).SetFloat64(bid).Float64()
		if got := o.Payment[1000]; !near(got, want, 1e-9) {
			t.Errorf("%+v: pays %v, want %v", rule, got, want)
		}
		if got := o.Payment[1001]; rule.Price == Kth && !near(got, cheap/3, 1e-9) {
			t.Errorf("%+v: the last pays %v, want the reserve %v", rule, got, cheap/3)
		}
	}
}

func TestExtremes(t *testing.T) {
	rule := Rule{HB, Kth, false}
	none := mustRun(t, &Problem{Nodes: 3, Rule: rule, Reserve: 1})
	if len(none.Start) != 0 || none.Revenue != 0 || !math.IsNaN(none.Payoff()) {
		t.Errorf("nobody: %+v", none)
	}
	one := mustRun(t, &Problem{Nodes: MostNodes, Rule: rule, Reserve: 1, Jobs: []Job{{Submit: 7, Runtime: 1e6, Bid: 1e12}}})
	if one.Finish[0] != 1_000_007 || one.Payment[0] != 1e6 {
		t.Errorf("one job: %+v", one)
	}
	irrational := mustRun(t, &Problem{Nodes: 1, Rule: rule, Reserve: 1, Jobs: []Job{{Submit: math.Pi, Runtime: math.E, Bid: 2}, {Submit: 4, Runtime: 1e-9, Bid: 3}}})
	if !near(irrational.Finish[0], math.Pi+math.E+1e-9, 1e-15) || irrational.Preemptions != 1 {
		t.Errorf("no unit in common: %+v", irrational)
	}
	million(t)
}

func million(t *testing.T) {
	jobs := bursts(1_000_000, 105, 0.95)
	o := mustRun(t, &Problem{Nodes: 105, Rule: Rule{HB, Kth, false}, Reserve: 1, Jobs: jobs})
	for i, j := range jobs {
		if !(o.Finish[i] >= j.Submit+j.Runtime) || !(o.Payment[i] <= max(j.Bid, 1)*j.Runtime*(1+1e-12)) {
			t.Fatalf("job %d of a million ends at %v and pays %v: %+v", i, o.Finish[i], o.Payment[i], j)
		}
	}
}
