package core

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/auctioneer/mechanism/proportional"
	"github.com/candor-grid/candor/deploy/simulated/bids"
	"github.com/candor-grid/candor/deploy/simulated/rules"
	"github.com/candor-grid/candor/deploy/simulated/workload"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

func study(t *rapid.T, mechanism string, widest int) *Problem {
	nodes := rapid.IntRange(1, 4).Draw(t, "nodes")
	widest = min(widest, nodes)
	w := &workload.Workload{Nodes: nodes, Parallel: workload.Split, Users: []int64{1, 2}, Groups: []int64{1}}
	if rules.Wide(mechanism) {
		w.Parallel = workload.Gang
	}
	at := 0
	for i := range rapid.IntRange(1, 12).Draw(t, "jobs") {
		at += rapid.IntRange(0, 90).Draw(t, "gap")
		w.Jobs = append(w.Jobs, workload.Job{Number: int64(i + 1), Line: i + 1, Submit: float64(at), Runtime: float64(rapid.IntRange(0, 300).Draw(t, "runtime")),
			Width: rapid.IntRange(1, widest).Draw(t, "width"), User: i % 2})
	}
	m := byDefault(mechanism)
	switch mechanism {
	case rules.Reservation:
		m.Granule, m.T, m.Bids.Deadline.Slack = messages.Duration(60e9), 10, "none"
	case rules.Deadline:
		m.Slot = messages.Duration(10e9)
	}
	return &Problem{Market: m, Work: w, Bids: m.Bids.Draw(w, rapid.Uint64().Draw(t, "seed")), Seed: 1}
}

func mustRun(t *rapid.T, p *Problem) *Outcome {
	o, err := Run(p)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// The market types without bids (FIFO and backfill) must give the same results as a simple simulation that looks at
// everything in each second.
func TestBaselinesAreWhatTheyAreCalled(t *testing.T) {
	for _, name := range []string{rules.FIFO, rules.Backfill} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				p := study(t, name, 4)
				for i := range p.Work.Jobs {
					p.Work.Jobs[i].Runtime++ // jobs without run time are tested with the mechanism
				}
				for i := range p.Bids {
					p.Bids[i].Length = p.Work.Jobs[i].Runtime
				}
				o := mustRun(t, p)
				for i, start := range slowly(p, name == rules.Backfill) {
					if o.Jobs[i].Start != float64(start) {
						t.Fatalf("job %d starts at %v, want %d: %+v", i, o.Jobs[i].Start, start, p.Work.Jobs)
					}
				}
			})
		})
	}
}

// The function slowly is a slow simulation of first come, first served. If `fill` is true, it also does EASY backfilling.
func slowly(p *Problem, fill bool) []int {
	jobs := p.Work.Jobs
	start := make([]int, len(jobs))
	for i := range start {
		start[i] = -1
	}
	free := func(at int) int {
		n := p.Work.Nodes
		for i := range jobs {
			if start[i] >= 0 && start[i] <= at && at < start[i]+int(jobs[i].Runtime) {
				n -= jobs[i].Width
			}
		}
		return n
	}
	for now, left := 0, len(jobs); left > 0; now++ {
		blocked, shadow, spare := false, 0, 0
		for i := range jobs {
			if start[i] >= 0 || int(jobs[i].Submit) > now {
				continue
			}
			fits := jobs[i].Width <= free(now)
			switch {
			case !blocked && fits:
			case !blocked:
				for blocked, shadow = true, now; free(shadow) < jobs[i].Width; shadow++ {
				}
				spare = free(shadow) - jobs[i].Width
				continue
			case !fill || !fits:
				continue
			case now+int(jobs[i].Runtime) <= shadow:
			case jobs[i].Width <= spare:
				spare -= jobs[i].Width
			default:
				continue
			}
			start[i] = now
			left--
		}
	}
	return start
}

// Under every mechanism, a job must run after its submission, on existing slots, for its run time. No payment may
// create credits.
func TestNothingIsLostOrMade(t *testing.T) {
	for _, name := range rules.Mechanisms() {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				p := study(t, name, 3)
				o := mustRun(t, p)
				sum, used, last := messages.Credits(0), 0.0, 0.0
				for i := range o.Jobs {
					r, j := &o.Jobs[i], &p.Work.Jobs[i]
					if r.Start < j.Submit || r.Finish < j.Submit || r.Fate == Completed && (math.IsNaN(r.Start) || r.Finish < r.Start+j.Runtime-1e-6) {
						t.Fatalf("job %d: %+v of %+v", i, r, j)
					}
					if r.Fate == Completed && math.Abs(r.Used-j.Work()) > 1e-6 {
						t.Fatalf("job %d used %v of %v slot-seconds", i, r.Used, j.Work())
					}
					if r.InTime < 0 || r.InTime > 1 || r.Fate == Refused && (r.Paid != 0 || r.Used != 0) {
						t.Fatalf("job %d: %+v", i, r)
					}
					sum, used, last = sum+r.Paid, used+r.Used, max(last, r.Finish)
				}
				if room := float64(p.Work.Nodes) * (last - p.Work.Jobs[0].Submit); used > room+1e-6 {
					t.Fatalf("%v slot-seconds were used, there were %v", used, room)
				}
				if sum < 0 || name == rules.BatchQueue && sum != 0 {
					t.Fatalf("%v credits were paid in all", sum)
				}
				if again := mustRun(t, p); fmt.Sprint(again) != fmt.Sprint(o) {
					t.Fatal("another run has another outcome")
				}
				if rules.Wide(name) {
					neverTooMany(t, p, o)
				}
			})
		})
	}
}

// The gangs that run at the same time must not hold more slots than exist.
func neverTooMany(t *rapid.T, p *Problem, o *Outcome) {
	for i := range o.Jobs {
		at, held := o.Jobs[i].Start, 0
		for k := range o.Jobs {
			if o.Jobs[k].Start <= at && at < o.Jobs[k].Finish {
				held += p.Work.Jobs[k].Width
			}
		}
		if held > p.Work.Nodes {
			t.Fatalf("%d of %d slots are held at %v", held, p.Work.Nodes, at)
		}
	}
}

// The core (package core) computes the share of a job with budget b as b^α divided by the sum of b^α over all jobs.
// With one class, the mechanism must compute the same share.
func TestSharesAreTheMechanisms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		alpha := rapid.SampledFrom([]float64{0, 0.25, 0.5, 1}).Draw(t, "alpha")
		mech, err := proportional.New(market.Market{Name: "m", Classes: []messages.Name{"cpu"}, Alpha: &alpha})
		if err != nil {
			t.Fatal(err)
		}
		view, total := &mechanism.View{Classes: []mechanism.Class{{Name: "cpu", Slots: 3}}}, 0.0
		for i := range rapid.IntRange(2, 9).Draw(t, "jobs") {
			budget := messages.Credits(rapid.IntRange(1, 1e9).Draw(t, "budget"))
			view.Jobs = append(view.Jobs, &mechanism.Job{Bid: &mechanism.Bid{Job: messages.JobID(i + 1), Budget: budget, Form: job.Linear, Weights: []float64{1}},
				Pending: []int{1}, Running: []int{0}})
			total += math.Pow(budget.Float(), alpha)
		}
		for i, w := range mech.Allocate(view).Weights {
			if want := math.Pow(view.Jobs[i].Budget.Float(), alpha) / total; math.Abs(w[0]-want) > 1e-6 {
				t.Fatalf("job %d has a share of %v, want %v", i, w[0], want)
			}
		}
	})
}

// A job whose minimum utility is not reached must pay nothing. A job with a minimum may have to wait until the
// mechanism serves it, but no job may wait for ever.
func TestThoseWhoseMinimumIsNotMetPayNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := study(t, rules.Proportional, 4)
		p.Market.SLO, p.Market.Settle = rapid.SampledFrom([]float64{0.01, 0.3, 0.6, 1}).Draw(t, "slo"), market.SettleOnCompletion
		o := mustRun(t, p)
		for i := range o.Jobs {
			r := &o.Jobs[i]
			if r.Fate != Completed || r.Paid != 0 && r.Paid != Money(p.Bids[i].Budget) {
				t.Fatalf("job %d: %+v, budget %v", i, r, p.Bids[i].Budget)
			}
		}
		if again := mustRun(t, p); fmt.Sprint(again) != fmt.Sprint(o) {
			t.Fatal("another run has another outcome")
		}
	})
}

// In a market with a minimum utility, jobs that never waited owe nothing, and a note must say so.
func TestNoteOfThoseWhoNeverWaited(t *testing.T) {
	w := &workload.Workload{Nodes: 2, Parallel: workload.Split, Users: []int64{1}, Groups: []int64{1}, Jobs: []workload.Job{
		{Number: 1, Runtime: 60, Width: 2}, {Number: 2, Submit: 10, Runtime: 60, Width: 1}}}
	m := byDefault(rules.Proportional)
	m.SLO = 0.1
	o, err := Run(&Problem{Market: m, Work: w, Bids: m.Bids.Draw(w, 1)})
	if err != nil || len(o.Notes) != 1 || !strings.HasPrefix(o.Notes[0], "jobs that got all of their slots at once: 1; ") || o.Jobs[0].Paid != 0 {
		t.Errorf("%v: %+v", err, o)
	}
}

// A payment above the largest amount of credits must count as this largest amount. The outcome must have a note about
// it.
func TestPaymentsBeyondTheLargestAreSaid(t *testing.T) {
	w := &workload.Workload{Nodes: 1, Parallel: workload.Split, Users: []int64{1}, Groups: []int64{1}, Jobs: []workload.Job{{Number: 1, Runtime: 1e5, Width: 1}}}
	for rate, notes := range map[float64]int{1e6: 0, 1e9: 1} {
		m := byDefault(rules.FIFO)
		m.Price = rate
		b := m.Bids.Draw(w, 1)
		b[0].Budget = 1e15
		o, err := Run(&Problem{Market: m, Work: w, Bids: b})
		if err != nil || len(o.Notes) != notes || o.Jobs[0].Paid > messages.MaxCredits {
			t.Errorf("a price of %v: %v: %+v", rate, err, o)
		}
	}
}

// To compute the price of a winner, the thesis searches again without the winner's bid, in few new random orders. The
// new search can find a better or a worse schedule than the first search. So in some of the 20 tries, a payment must be
// negative or above the value of the bid. An exact payment must always be from 0 to this value.
func TestFewOrdersPricedAnewAreNoAuction(t *testing.T) {
	odd := 0
	for seed := range uint64(20) {
		w := &workload.Workload{Nodes: 4, Parallel: workload.Gang, Users: []int64{1}, Groups: []int64{1}}
		for i := range 12 {
			w.Jobs = append(w.Jobs, workload.Job{Number: int64(i), Submit: 1, Runtime: float64(60 * (1 + (i*7)%5)), Width: 1 + (i*3)%4})
		}
		m := byDefault(rules.Reservation)
		m.Granule, m.T, m.Bids.Deadline.Slack, m.Search.Orders, m.Search.Seed = messages.Duration(60e9), 10, "none", 3, seed
		p := &Problem{Market: m, Work: w, Bids: m.Bids.Draw(w, seed), Seed: seed}
		for _, pricing := range []string{"exact", "thesis"} {
			m.Pricing = pricing
			o, err := Run(p)
			if err != nil {
				t.Fatal(err)
			}
			for i := range o.Jobs {
				strange := o.Jobs[i].Paid < 0 || o.Jobs[i].Paid.Float() > p.Bids[i].Worth(&w.Jobs[i])+1e-6
				switch {
				case strange && pricing == "exact":
					t.Errorf("seed %d: job %d pays %v of a value of %v", seed, i, o.Jobs[i].Paid, p.Bids[i].Worth(&w.Jobs[i]))
				case strange:
					odd++
				}
			}
		}
	}
	if odd == 0 {
		t.Error("no payment of the thesis's was negative or above the value")
	}
}

func TestWhatCannotBeRunIsRefused(t *testing.T) {
	m := byDefault(rules.HighestBid)
	w := &workload.Workload{Nodes: 4, Parallel: workload.Gang, Users: []int64{1}, Groups: []int64{1},
		Jobs: []workload.Job{{Number: 1, Runtime: 5, Width: 2}}}
	p := &Problem{Market: m, Work: w, Bids: m.Bids.Draw(w, 1)}
	if _, err := Run(p); messages.KindOf(err) != messages.Invalid {
		t.Errorf("a gang under serial tasks: %v", err)
	}
	p.Bids = []bids.Bid{}
	if _, err := Run(p); messages.KindOf(err) != messages.Invalid {
		t.Errorf("no bids: %v", err)
	}
}

func byDefault(mechanism string) *rules.Market {
	m, err := rules.Decode("market", []byte("mechanism: "+mechanism))
	if err != nil {
		panic(err)
	}
	m.Bids = bids.Default()
	return m
}

// TestBudgetsBySizeSlowShortJobsDown checks why short jobs wait in a proportional market: budgets grow with the work.
// With equal budgets they must wait less than with first come, first served. With larger budgets for less work they
// must wait still less.
func TestBudgetsBySizeSlowShortJobsDown(t *testing.T) {
	w := &workload.Workload{Nodes: 4, Parallel: workload.Split, Users: []int64{1}, Groups: []int64{1}}
	for i := range 200 { // bursts of forty jobs; one in five is long
		runtime := 60.0
		if i%5 == 0 {
			runtime = 3600
		}
		w.Jobs = append(w.Jobs, workload.Job{Number: int64(i), Submit: float64(8000 * (i / 40)), Runtime: runtime, Width: 1})
	}
	slowdown := func(mechanism string, budget func(work float64) float64) float64 {
		p := &Problem{Market: byDefault(mechanism), Work: w, Seed: 1}
		p.Bids = p.Market.Bids.Draw(w, 1)
		sum := 0.0
		for i := range p.Bids {
			p.Bids[i].Budget = budget(w.Jobs[i].Work())
		}
		o, err := Run(p)
		if err != nil {
			t.Fatal(err)
		}
		for i := range o.Jobs {
			sum += (o.Jobs[i].Finish - w.Jobs[i].Submit) / w.Jobs[i].Runtime / float64(len(o.Jobs))
		}
		return sum
	}
	by := func(work float64) float64 { return work }
	fifo := slowdown(rules.FIFO, by)
	size, equal, inverse := slowdown(rules.Proportional, by), slowdown(rules.Proportional, func(float64) float64 { return 1000 }), slowdown(rules.Proportional, func(work float64) float64 { return 1e6 / work })
	if !(inverse < equal && equal < fifo && fifo < size) {
		t.Errorf("inverse %v, equal %v, first come %v, by size %v", inverse, equal, fifo, size)
	}
}

// TestTwoHalvesPayWhatTheWholePays runs a job of many short tasks among three other jobs. Then it runs two halves of
// this job, each with half the budget, among the same jobs. On average, the two halves together must not pay less than
// the whole job. With alpha below 1, the two halves together have a larger share than the whole job, so they complete a
// little sooner.
func TestTwoHalvesPayWhatTheWholePays(t *testing.T) {
	const markets, runs, accounts = 60, 6, 4
	var sooner, paid float64
	for k := range uint64(markets) {
		r := rand.New(rand.NewPCG(k, 9))
		var widths [accounts]int
		var budgets [accounts]float64
		for i := range widths {
			widths[i], budgets[i] = 8*(2+r.IntN(3)), math.Exp(r.NormFloat64())
		}
		var finish, pays [2]float64
		for parts := 1; parts <= 2; parts++ {
			p := &Problem{Market: byDefault(rules.Proportional), Work: &workload.Workload{Nodes: 8, Parallel: workload.Split, Users: make([]int64, accounts), Groups: []int64{1}}}
			for i := range widths {
				of := 1
				if i == 0 {
					of = parts
				}
				for range of {
					p.Work.Jobs = append(p.Work.Jobs, workload.Job{Number: int64(len(p.Bids) + 1), Line: len(p.Bids) + 1, Runtime: 0.25, Width: widths[i] / of, User: i})
					p.Bids = append(p.Bids, bids.Bid{Value: 1, Rate: 1, Length: 1, Deadline: math.Inf(1), Budget: budgets[i] / float64(of)})
				}
			}
			for range runs {
				p.Seed++
				o, err := Run(p)
				if err != nil {
					t.Fatal(err)
				}
				last := 0.0
				for i := range parts {
					last = max(last, o.Jobs[i].Finish)
					pays[parts-1] += o.Jobs[i].Paid.Float()
				}
				finish[parts-1] += last
			}
		}
		sooner, paid = sooner+(1-finish[1]/finish[0])/markets, paid+(pays[1]/pays[0])/markets
	}
	if paid < 1 || sooner > 0.15 {
		t.Errorf("two halves pay %.3f of the whole, and take %.3f less", paid, sooner)
	}
	t.Logf("two halves pay %.3f of the whole, and take %.3f less", paid, sooner)
}

// TestRunsThatBeginWhereAnotherEnded runs the first part of a log, saves the state (Past), and continues from it. The
// jobs of the second part must have the same outcomes as in one run of the whole log, whatever they bid.
func TestRunsThatBeginWhereAnotherEnded(t *testing.T) {
	for _, name := range []string{rules.Deadline, rules.BatchQueue, rules.Contract} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				p := study(t, name, 3)
				p.Prior, p.Class = p.PriorJobs(), &Problem{Work: p.Work, Bids: p.Bids}
				if name == rules.BatchQueue {
					p.Market.Pricing = rapid.SampledFrom([]string{"externality", "pivot"}).Draw(t, "pricing")
				}
				i := rapid.IntRange(0, len(p.Bids)-1).Draw(t, "job")
				past, err := Until(p, p.Work.Jobs[i].Submit)
				if err != nil {
					t.Fatal(err)
				}
				q := *p
				q.Bids, q.Payers = slices.Clone(p.Bids), make([]bool, len(p.Bids))
				q.Payers[i] = true
				q.Bids[i].Rate *= rapid.SampledFrom([]float64{0.1, 1, 3}).Draw(t, "rate")
				q.Bids[i].Length *= rapid.SampledFrom([]float64{0.5, 1, 2}).Draw(t, "length")
				whole := mustRun(t, &q)
				for range 2 { // a past can be used again
					q.Past = past
					if of := mustRun(t, &q); fmt.Sprint(of.Jobs[i]) != fmt.Sprint(whole.Jobs[i]) {
						t.Fatalf("job %d: %+v, from the beginning %+v", i, of.Jobs[i], whole.Jobs[i])
					}
				}
			})
		})
	}
}

// A run can ask for the outcomes of only some jobs. It must give the same outcomes for these jobs as a run that asks
// for the outcomes of all jobs.
func TestOutcomesOfSome(t *testing.T) {
	for _, name := range rules.Mechanisms() {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				p := study(t, name, 3)
				switch name {
				case rules.HighestBid:
					p.Market.Price = market.PricePivot
				case rules.BatchQueue:
					p.Market.Pricing, p.Market.Draws = rapid.SampledFrom([]string{"externality", "pivot"}).Draw(t, "pricing"), 16
				}
				all := mustRun(t, p)
				p.Payers = rapid.SliceOfN(rapid.Bool(), len(p.Bids), len(p.Bids)).Draw(t, "payers")
				of := mustRun(t, p)
				for i, pays := range p.Payers {
					if pays && fmt.Sprint(of.Jobs[i]) != fmt.Sprint(all.Jobs[i]) {
						t.Fatalf("job %d: %+v, with all outcomes %+v", i, of.Jobs[i], all.Jobs[i])
					}
				}
			})
		})
	}
}
