package contract

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/auctioneer/mechanism/deadlineaware"
	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
	marketmsg "github.com/candor-grid/candor/messages/market"
	"pgregory.net/rapid"
)

const second = messages.Time(1e6)

func market(t testing.TB, c marketmsg.Market) *Mechanism {
	t.Helper()
	c.Name, c.Classes = "contracts", []messages.Name{"cpu"}
	m, err := NewMechanism(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func sigmoid(most, mu, delta float64) jobmsg.Valuation {
	return jobmsg.Valuation{Class: jobmsg.Sigmoidal, Max: most, Mu: mu, Delta: delta}
}

// class is a list of types, as the estimator would have collected them.
var class = []jobmsg.Valuation{sigmoid(10, 50, 60), sigmoid(30, 100, 100), sigmoid(20, 200, 50), sigmoid(25, 400, 300), sigmoid(15, 800, 200)}

// bidOf returns a bid for the given number of tasks of 10 s each, submitted at the time `at`.
func bidOf(id messages.JobID, at messages.Time, tasks int) *mechanism.Bid {
	declared := sigmoid(20, 120, 80)
	return &mechanism.Bid{Job: id, Arrived: at, Budget: 1000 * messages.Credit, Length: messages.Duration(10e9), Tasks: tasks, Valuation: &declared}
}

// take accepts one contract of the quote m: the contract for the type that the bid declares. It returns the job with
// this contract.
func take(t testing.TB, m *mechanism.Quote, bid *mechanism.Bid) *mechanism.Job {
	t.Helper()
	c := m.Contracts[m.Declared]
	bid.Contract = &c
	return &mechanism.Job{Bid: bid, Pending: []int{bid.Tasks}, Running: []int{0}}
}

func grid(slots, idle int, jobs ...*mechanism.Job) *mechanism.View {
	return &mechanism.View{Now: 1000 * second, Classes: []mechanism.Class{{Name: "cpu", Slots: slots, Idle: idle}}, Jobs: jobs}
}

func quote(t testing.TB, m *Mechanism, view *mechanism.View, bid *mechanism.Bid, seed uint64) *mechanism.Quote {
	t.Helper()
	q, err := m.Quote(view, bid, class, seed)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// Jobs must get slots in the order of the scheduler, and owe the prices of their contracts.
func TestTheLifeOfAContract(t *testing.T) {
	m := market(t, marketmsg.Market{})
	view := grid(4, 4)
	for id := range messages.JobID(6) {
		bid := bidOf(id+1, view.Now, 10)
		q := quote(t, m, view, bid, uint64(id))
		if n := len(q.Contracts); n == 0 || n > mostShown || q.Contracts[q.Free].Price != 0 {
			t.Fatalf("%d contracts, the free one at %v", len(q.Contracts), q.Contracts[q.Free].Price)
		}
		job := take(t, q, bid)
		if err := m.Admit(view, job.Bid); err != nil {
			t.Fatal(err)
		}
		view.Jobs = append(view.Jobs, job)
	}
	a := m.Allocate(view)
	first := order(view)[0]
	if a.Weights[first][0] != 1 || a.Wake != view.Now+10*second {
		t.Fatalf("%+v, first is %d", a, first)
	}
	job := view.Jobs[first]
	view.Now += 60 * second
	p := m.Settle(view, job, mechanism.End{State: jobmsg.Completed, Completed: view.Now})[0]
	replica := curve(t, job.Contract.Replica)
	want := job.Contract.Price.Float() * replica.At(60) / job.Contract.Promised
	if math.Abs(p.Amount.Float()-want) > 5.1e-7 || p.From != job.Job || p.To != 0 || !strings.Contains(p.Reason, "received") {
		t.Errorf("%+v, want %v", p, want)
	}
}

// The amounts were computed by hand. The agreed price is 6 credits, for completion within 100 s. The value of the job
// is 10 credits until 80 s, and falls linearly to 0 at 180 s. So completion at 100 s is worth 8 credits.
func TestSettlement(t *testing.T) {
	falls := jobmsg.Valuation{Class: jobmsg.LinearDecay, Max: 10, Mu: 80, Delta: 100}
	c := &jobmsg.Contract{Completion: 1100 * second, Price: 6 * messages.Credit, Promised: 8, Replica: falls, Surrogate: falls}
	for _, test := range []struct {
		after    messages.Time
		state    jobmsg.State
		budget   messages.Credits
		both     messages.Credits
		lateOnly messages.Credits
		says     string
	}{
		{100, jobmsg.Completed, 100, 6_000_000, 6_000_000, "= 6:"},
		{80, jobmsg.Completed, 100, 7_500_000, 6_000_000, "6 credits agreed × 10 received / 8 promised = 7.5: completed 80 s after submission, promised 100 s"},
		{10, jobmsg.Completed, 100, 7_500_000, 6_000_000, "10 received"},
		{130, jobmsg.Completed, 100, 3_750_000, 3_750_000, "6 credits agreed × 5 received / 8 promised = 3.75"},
		{180, jobmsg.Completed, 100, 0, 0, "0 received"},
		{10, jobmsg.Completed, 7, 7_000_000, 6_000_000, "no more is charged than its budget"},
		{10, jobmsg.Failed, 100, 7_500_000, 6_000_000, "if it had completed when its program"},
		{10, jobmsg.Cancelled, 100, 7_500_000, 6_000_000, "if it had completed when its program"},
	} {
		job := &mechanism.Job{Bid: &mechanism.Bid{Job: 3, Arrived: 1000 * second, Budget: test.budget * messages.Credit, Contract: c}}
		job.Received = 10e9
		view := grid(1, 1)
		view.Now += test.after * second
		end := mechanism.End{State: test.state, Tasks: 4, Began: 2, Completed: view.Now, Delivered: job.Received}
		p := market(t, marketmsg.Market{}).Settle(view, job, end)[0]
		if p.Amount != test.both || !strings.Contains(p.Reason, test.says) {
			t.Errorf("after %d s, %v: %+v, want %v, %q", test.after, test.state, p, test.both, test.says)
		}
		p = market(t, marketmsg.Market{LateOnly: true}).Settle(view, job, end)[0]
		if p.Amount != test.lateOnly || p.Reason == "" {
			t.Errorf("late only, after %d s, %v: %+v, want %v", test.after, test.state, p, test.lateOnly)
		}
	}
	p := market(t, marketmsg.Market{}).Settle(grid(1, 1), &mechanism.Job{Bid: &mechanism.Bid{Job: 3}}, mechanism.End{State: jobmsg.Completed})[0]
	if p.Amount != 0 || !strings.Contains(p.Reason, "no contract") {
		t.Errorf("without a contract: %+v", p)
	}
}

// A job completes at the promised instant, but was submitted some time after its quote. So the job waited less and pays
// more. The text in the payment's field Reason must say why.
func TestAQuoteThatWasTakenLate(t *testing.T) {
	m := market(t, marketmsg.Market{Replicas: 2})
	const told = "counts from the quote"
	for _, late := range []messages.Time{0, 10} {
		replica := sigmoid(20, 80, 40)
		c := jobmsg.Contract{Completion: 1100 * second, Price: 6 * messages.Credit, Promised: 10, Replica: replica, Surrogate: replica}
		bid := bidOf(1, (1000+late)*second, 1)
		bid.Contract = &c
		p := m.Settle(&mechanism.View{Now: 1100 * second, Classes: []mechanism.Class{{Name: "cpu", Slots: 1}}}, &mechanism.Job{Bid: bid, Received: messages.Duration(10e9)}, mechanism.End{State: jobmsg.Completed, Began: 1, Completed: 1100 * second, Delivered: messages.Duration(10e9)})
		if (p[0].Amount > c.Price) != (late > 0) || strings.Contains(p[0].Reason, told) != (late > 0) {
			t.Errorf("%d s late: %+v", late, p)
		}
	}
}

// A completed job must owe no more than its completion is worth by the valuation in its contract, up to rounding. It
// must owe no more than the budget that Admit demands.
func TestExPostRationalityOnTheMarket(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		lateOnly := rapid.Bool().Draw(r, "late only")
		m, view := market(t, marketmsg.Market{Replicas: 20, LateOnly: lateOnly}), grid(2, 1)
		for id := range messages.JobID(rapid.IntRange(0, 8).Draw(r, "jobs")) {
			bid := bidOf(id+1, view.Now, 3)
			view.Jobs = append(view.Jobs, take(t, quote(t, m, view, bid, uint64(id)), bid))
		}
		bid := bidOf(99, view.Now, 2)
		declared := rapid.SampledFrom(class).Draw(r, "declared")
		bid.Valuation = &declared
		q := quote(t, m, view, bid, rapid.Uint64().Draw(r, "seed"))
		c := rapid.SampledFrom(q.Contracts).Draw(r, "taken")
		bid.Contract, bid.Budget = &c, Most(&c, lateOnly)
		if err := m.Admit(view, bid); err != nil {
			r.Fatal(err)
		}
		after := rapid.IntRange(0, 3000).Draw(r, "seconds")
		at := *view
		at.Now += messages.Time(after) * second
		p := m.Settle(&at, &mechanism.Job{Bid: bid}, mechanism.End{State: jobmsg.Completed, Completed: at.Now})[0]
		if received := curve(t, c.Replica).At(float64(after)); p.Amount < 0 || p.Amount.Float() > received+5.1e-7 {
			r.Errorf("%+v completed after %d s, is worth %v and owes %v", c, after, received, p.Amount)
		}
		if strings.Contains(p.Reason, "budget") {
			r.Errorf("the budget that Admit demands does not do: %+v of %+v", p, c)
		}
	})
}

// If a job has tasks to start, the shares must sum to 1. Idle slots must go to jobs in the order of the scheduler, up
// to the number of their tasks.
func TestAllocationsOfAContractMarket(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		m, view := market(t, marketmsg.Market{Replicas: 5}), grid(rapid.IntRange(0, 5).Draw(r, "slots"), rapid.IntRange(0, 9).Draw(r, "idle"))
		pending := 0
		for id := range messages.JobID(rapid.IntRange(0, 7).Draw(r, "jobs")) {
			bid := bidOf(id+1, view.Now, 3)
			job := take(t, quote(t, m, view, bid, uint64(id)), bid)
			job.Pending[0], job.Running[0] = rapid.IntRange(0, 3).Draw(r, "pending"), rapid.IntRange(0, 2).Draw(r, "running")
			pending += job.Pending[0]
			view.Jobs = append(view.Jobs, job)
		}
		a := m.Allocate(view)
		want, sum := make([]float64, len(view.Jobs)), 0.0
		if pending > 0 {
			slots := min(pending, max(1, view.Classes[0].Idle))
			given := 0
			for _, i := range order(view) {
				for n := 0; n < view.Jobs[i].Pending[0] && given < slots; n++ {
					want[i] += 1 / float64(slots)
					given++
				}
			}
		}
		for i, w := range a.Weights {
			sum += w[0]
			if math.Abs(w[0]-want[i]) > 1e-12 || w[0] > 0 && view.Jobs[i].Pending[0] == 0 {
				r.Errorf("job %d has %v, want %v", i, w[0], want[i])
			}
		}
		if pending > 0 && math.Abs(sum-1) > 1e-12 {
			r.Errorf("shares sum to %v", sum)
		}
	})
}

// If there are more jobs than the scheduler can plan, it must serve them in the order of their promised completion
// times.
func TestMoreJobsThanCanBePlanned(t *testing.T) {
	m, view := market(t, marketmsg.Market{}), grid(1, 1)
	for id := range messages.JobID(deadlineaware.MostJobs + 1) {
		c := &jobmsg.Contract{Completion: view.Now + messages.Time(id%1000+1), Surrogate: class[0]}
		view.Jobs = append(view.Jobs, &mechanism.Job{Bid: &mechanism.Bid{Job: id + 1, Arrived: view.Now, Contract: c}, Pending: []int{1}, Running: []int{0}})
	}
	view.Jobs[0].Contract = nil
	if order := order(view); order[0] != 1000 || order[len(order)-1] != 0 {
		t.Errorf("from %d to %d", order[0], order[len(order)-1])
	}
	if e := m.Explain(view, view.Jobs[5]); e.Reason != mechanism.WaitingForTurn || !strings.Contains(e.Message, "limit") {
		t.Errorf("%+v", e)
	}
}

func TestExplanationsOfAContractMarket(t *testing.T) {
	m, view := market(t, marketmsg.Market{}), grid(2, 0)
	for id := range messages.JobID(3) {
		job := take(t, quote(t, m, view, bidOf(id+1, view.Now, 4), uint64(id)), bidOf(id+1, view.Now, 4))
		job.Contract.Surrogate = sigmoid(10, 200*float64(id+1), 50)
		view.Jobs = append(view.Jobs, job)
	}
	hopeless := take(t, quote(t, m, view, bidOf(9, view.Now, 4), 9), bidOf(9, view.Now, 4))
	hopeless.Contract.Surrogate = jobmsg.Valuation{Class: jobmsg.Hard, Max: 1, Deadline: 1}
	view.Jobs = append(view.Jobs, hopeless)
	check := func(job *mechanism.Job, reason, says string) {
		t.Helper()
		e := m.Explain(view, job)
		if e.Reason != reason || !strings.Contains(e.Message, says) || !strings.Contains(e.Message, "contract") || (reason != mechanism.Running && len(e.Change) == 0) {
			t.Errorf("%+v, want %s with %q", e, reason, says)
		}
	}
	check(view.Jobs[0], mechanism.NextInTurn, "plan completes the job by 1970-01-01T00:17:00")
	check(view.Jobs[2], mechanism.WaitingForTurn, "2 jobs with waiting tasks")
	check(hopeless, GivenUp, "too late to have a worth")
	view.Jobs[1].Running[0], view.Jobs[1].Pending[0] = 1, 3
	check(view.Jobs[1], mechanism.Running, "1 task runs, and 3 more can start")
	view.Jobs[1].Running[0], view.Jobs[1].Pending[0] = 0, 0
	check(view.Jobs[1], mechanism.WaitingForStage, "earlier stage")
	stranger := &mechanism.Job{Bid: &mechanism.Bid{Job: 77}, Pending: []int{1}, Running: []int{0}}
	check(stranger, mechanism.WaitingForTurn, "no contract")
}

// A new mechanism with the same view must return the same quotes and shares as the old one. The requests to the old one
// must make no difference.
func TestANewLeaderDecidesAlike(t *testing.T) {
	old, view := market(t, marketmsg.Market{Replicas: 40}), grid(3, 2)
	for id := range messages.JobID(8) {
		bid := bidOf(id+1, view.Now, 2+int(id))
		view.Jobs = append(view.Jobs, take(t, quote(t, old, view, bid, uint64(id)), bid))
		old.Allocate(view)
	}
	fresh, bid := market(t, marketmsg.Market{Replicas: 40}), bidOf(20, view.Now, 5)
	if a, b := quote(t, old, view, bid, 5), quote(t, fresh, view, bid, 5); !reflect.DeepEqual(a, b) {
		t.Errorf("%+v, made anew %+v", a, b)
	}
	if a, b := old.Allocate(view), fresh.Allocate(view); !reflect.DeepEqual(a, b) {
		t.Errorf("%+v, made anew %+v", a, b)
	}
}
