package proportional

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/auctioneer/mechanism/casefile/casetest"
	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

func live(t testing.TB, alpha float64) *Mechanism {
	t.Helper()
	c, err := New(market.Market{Name: "main", Classes: []messages.Name{"map", "reduce"}, Alpha: &alpha})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func view(jobs ...*mechanism.Job) *mechanism.View {
	return &mechanism.View{Jobs: jobs, Classes: []mechanism.Class{{Name: "map", Slots: 10}, {Name: "reduce", Slots: 4}}}
}

func job(id messages.JobID, credits, wMap, wReduce float64, pending ...int) *mechanism.Job {
	budget, _ := messages.RoundCredits(credits)
	return &mechanism.Job{
		Bid:     &mechanism.Bid{Job: id, Budget: budget, Form: jobmsg.Linear, Weights: []float64{wMap, wReduce}},
		Pending: pending, Running: []int{0, 0},
	}
}

// If all jobs have pending tasks everywhere, the decision must be the fixed point of the paper's figure 2
// (testdata/proportional.json).
func TestLiveMarketIsThePaper(t *testing.T) {
	want := casetest.Cases[golden](t, "proportional.json")[0].Expect
	a := live(t, 0.5).Allocate(view(job(1, 100, 3, 2, 9, 9), job(2, 200, 3, 2, 9, 9), job(3, 160, 2, 4, 9, 9)))
	near(t, "weights", a.Weights, want.Allocation, func(int) float64 { return 1e-9 })
	for j := range a.Prices {
		if sum := want.Subbudgets[0][j] + want.Subbudgets[1][j] + want.Subbudgets[2][j]; math.Abs(a.Prices[j]-sum) > 1e-7 {
			t.Errorf("price %d is %v, want %v", j, a.Prices[j], sum)
		}
	}
}

func TestJobsBidWhereTheirWorkIs(t *testing.T) {
	c := live(t, 0.5)
	a := c.Allocate(view(job(1, 100, 3, 2, 5, 0), job(2, 100, 3, 2, 5, 0), job(3, 50, 1, 0, 0, 2)))
	near(t, "weights", a.Weights, [][]float64{{0.5, 0}, {0.5, 0}, {0, 1}}, func(int) float64 { return 1e-9 })
	if math.Abs(a.Prices[0]-200) > 1e-9 {
		t.Errorf("prices %v: the whole of both budgets is bid for map", a.Prices)
	}
	a = c.Allocate(view(job(1, 100, 3, 2, 5, 0), job(2, 100, 3, 2, 0, 5), job(3, 50, 1, 0, 0, 0)))
	near(t, "weights", a.Weights, [][]float64{{1, 0}, {0, 1}, {0, 0}}, func(int) float64 { return 1e-9 })
}

// After changes with Allocate or Update, the shares must equal the shares of a new mechanism. They must sum to one over
// the jobs with pending tasks in a class.
func TestDecisionsDoNotDependOnHistory(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c, v := live(t, rapid.SampledFrom([]float64{0, 0.5, 0.9}).Draw(rt, "alpha")), view()
		next := messages.JobID(1)
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			var changed []*mechanism.Job
			var gone []messages.JobID
			if n := len(v.Jobs); n > 0 && rapid.IntRange(0, 3).Draw(rt, "what") == 0 {
				i := rapid.IntRange(0, n-1).Draw(rt, "who")
				gone = append(gone, v.Jobs[i].Job)
				v.Jobs = append(append([]*mechanism.Job{}, v.Jobs[:i]...), v.Jobs[i+1:]...)
			} else {
				j := job(next, rapid.Float64Range(0.01, 1000).Draw(rt, "budget"), rapid.Float64Range(0.1, 3).Draw(rt, "map"), 1,
					rapid.IntRange(0, 2).Draw(rt, "maps"), rapid.IntRange(0, 2).Draw(rt, "reduces"))
				if rapid.IntRange(0, 4).Draw(rt, "slo") == 0 {
					j.MinUtility = rapid.Float64Range(0.01, 1).Draw(rt, "minimum")
				}
				v.Jobs, changed, next = append(v.Jobs, j), append(changed, j), next+1
			}
			if rapid.Bool().Draw(rt, "told") {
				c.Update(v, changed, gone)
			}
			sameAsAnew(rt, c, v)
		}
	})
}

func sameAsAnew(t *rapid.T, c *Mechanism, v *mechanism.View) {
	got := c.Allocate(v)
	fresh, err := New(market.Market{Classes: c.classes, Alpha: &c.market.problem.Alpha})
	if err != nil {
		t.Fatal(err)
	}
	want := fresh.Allocate(v)
	for j := range v.Classes {
		sum, bidders := 0.0, 0
		for i, job := range v.Jobs {
			sum += got.Weights[i][j]
			if job.Pending[j] > 0 {
				bidders++
			}
			if d := math.Abs(got.Weights[i][j] - want.Weights[i][j]); !(d <= 1e-9) {
				t.Fatalf("job %d class %d: %v, made anew %v", job.Job, j, got.Weights[i][j], want.Weights[i][j])
			}
		}
		if bidders > 0 && math.Abs(sum-1) > 1e-9 {
			t.Fatalf("class %d: shares add up to %v over %d jobs", j, sum, bidders)
		}
		if math.Abs(got.Prices[j]-want.Prices[j]) > 1e-6 {
			t.Fatalf("class %d: price %v, made anew %v", j, got.Prices[j], want.Prices[j])
		}
	}
}

// Three hundred jobs arrive, one after another, in a market of ten thousand jobs. The test tells Update only about
// every second arrival. Allocate must find the other arrivals by itself. The shares must stay within the tolerance.
func TestLargeMarketStaysWithinTolerance(t *testing.T) {
	c, v, p := live(t, 0.5), view(), workload(10_300, 2, 0.5, 0.3)
	add := func(i int) *mechanism.Job {
		j := job(messages.JobID(i+1), p.Budgets[i], p.Weights[2*i], p.Weights[2*i+1], 1, i%2)
		v.Jobs = append(v.Jobs, j)
		return j
	}
	for i := range 10_000 {
		add(i)
	}
	c.Allocate(v)
	for i := 10_000; i < 10_300; i++ {
		if j := add(i); i%2 == 0 {
			c.Update(v, []*mechanism.Job{j}, nil)
		} else {
			c.Allocate(v)
		}
	}
	got, fresh := c.Allocate(v), live(t, 0.5).Allocate(v)
	for i := range v.Jobs {
		for j, want := range fresh.Weights[i] {
			if math.Abs(got.Weights[i][j]-want) > 2*shareTolerance*want {
				t.Fatalf("job %d class %d: %v, want %v", i+1, j, got.Weights[i][j], want)
			}
		}
	}
	if c.market.full > 60 {
		t.Errorf("%d full solutions for 300 arrivals", c.market.full)
	}
}

// For each change, Update lists weights of some jobs, and a scale. The latest weights of each job, multiplied by the
// latest scale, must be the shares that a new mechanism would compute. After an arrival, the mechanism must compute the
// shares of only a few jobs.
func TestWhatUpdatesSayScalesToShares(t *testing.T) {
	c, v, rng := live(t, 0.5), view(), rand.New(rand.NewPCG(23, 1))
	weights, scale, listed, next := map[messages.JobID][]float64{}, []float64{1, 1}, 0, messages.JobID(1)
	change := func(changed []*mechanism.Job, gone []messages.JobID) {
		u := c.Update(v, changed, gone)
		for i, j := range u.Jobs {
			weights[j.Job] = slices.Clone(u.Weights[i])
		}
		scale, listed = u.Scale, listed+len(u.Jobs)
	}
	arrive := func() *mechanism.Job {
		maps, reduces := 1, 0
		if next%40 == 0 { // some jobs want both classes, so their rows depend on both totals
			reduces = 1
		} else if next%3 == 0 {
			maps, reduces = 0, 1
		}
		j := job(next, 0.1+1000*rng.Float64(), 3*rng.Float64()+0.1, 1, maps, reduces)
		v.Jobs, next = append(v.Jobs, j), next+1
		return j
	}
	for range 2000 {
		arrive()
	}
	change(v.Jobs, nil)
	listed = 0
	for step := range 1500 {
		if step%5 == 4 {
			i := rng.IntN(len(v.Jobs))
			gone := v.Jobs[i].Job
			v.Jobs = slices.Delete(slices.Clone(v.Jobs), i, i+1)
			change(nil, []messages.JobID{gone})
		} else {
			change([]*mechanism.Job{arrive()}, nil)
		}
		if step%100 != 99 {
			continue
		}
		fresh := live(t, 0.5).Allocate(v)
		for i, j := range v.Jobs {
			for k, want := range fresh.Weights[i] {
				if got := weights[j.Job][k] * scale[k]; math.Abs(got-want) > 2*shareTolerance*want {
					t.Fatalf("step %d, job %d, class %d: %v, want %v", step, j.Job, k, got, want)
				}
			}
		}
	}
	if most := 100 * 1500; listed > most {
		t.Errorf("1,500 changes listed %d rows, more than %d", listed, most)
	}
}

func TestSettleOnCompletion(t *testing.T) {
	mech, err := New(market.Market{Name: "main", Mechanism: market.Proportional, Classes: []messages.Name{"map", "reduce"}, Settle: market.SettleOnCompletion})
	if err != nil {
		t.Fatal(err)
	}
	shares := []mechanism.Share{{Allocated: 0.5, Received: 0.4}, {Allocated: 0.25, Received: 0.2}}
	for _, c := range []struct {
		name    string
		credits messages.Credits
		minimum float64
		end     mechanism.End
		want    messages.Credits
		says    string
	}{
		{"completed", 12_345_678, 0, mechanism.End{State: jobmsg.Completed, Tasks: 3, Done: 3}, 12_345_678, "completed"},
		{"half to even, down", 5, 0, mechanism.End{State: jobmsg.Failed, Tasks: 2, Done: 1}, 2, "failed with 1 of 2"},
		{"half to even, up", 7, 0, mechanism.End{State: jobmsg.Cancelled, Tasks: 2, Done: 1}, 4, "cancelled with 1 of 2"},
		{"nothing done", 7, 0, mechanism.End{State: jobmsg.Failed, Tasks: 2}, 0, "failed"},
		{"complete with an exit code", 7, 0, mechanism.End{State: jobmsg.Failed, Tasks: 2, Done: 2}, 7, "failed with 2 of 2"},
		{"large", messages.MaxCredits, 0, mechanism.End{State: jobmsg.Failed, Tasks: 1_000_000, Done: 999_999}, 999_999_000_000_000_000, ""},
		{"minimum reached", 100, 1.6, mechanism.End{State: jobmsg.Completed, Tasks: 1, Done: 1, Shares: shares}, 100, "completed"},
		{"minimum missed", 100, 1.61, mechanism.End{State: jobmsg.Completed, Tasks: 1, Done: 1, Shares: shares}, 0, "below its minimum"},
	} {
		j := job(4, 0, 3, 2, 0, 0)
		j.Budget, j.MinUtility = c.credits, c.minimum
		got := mech.Settle(view(), j, c.end)
		if len(got) != 1 || got[0].Amount != c.want || got[0].From != 4 || !strings.Contains(got[0].Reason, c.says) {
			t.Errorf("%s: %+v, want %v", c.name, got, c.want)
		}
	}
}

func TestAdmitRefuses(t *testing.T) {
	c := live(t, 0.5)
	for says, spoil := range map[string]func(b *mechanism.Bid){
		"budget":                func(b *mechanism.Bid) { b.Budget = 0 },
		"utility.form":          func(b *mechanism.Bid) { b.Form = "cubic" },
		"one for each":          func(b *mechanism.Bid) { b.Weights = b.Weights[:1] },
		"utility.weights.map":   func(b *mechanism.Bid) { b.Weights[0] = math.NaN() },
		"all zero":              func(b *mechanism.Bid) { b.Weights = []float64{0, 0} },
		"finite":                func(b *mechanism.Bid) { b.MinUtility = math.Inf(1) },
		"use a smaller minimum": func(b *mechanism.Bid) { b.MinUtility = 5.1 },
	} {
		j := job(1, 10, 3, 2, 1, 1)
		spoil(j.Bid)
		err := c.Admit(view(), j.Bid)
		if !errors.Is(err, &messages.Error{Kind: messages.Invalid}) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
	if err := c.Admit(view(), job(1, 10, 3, 2, 1, 1).Bid); err != nil {
		t.Error(err)
	}
}

func TestExplain(t *testing.T) {
	c := live(t, 0.5)
	poor, rich, early := job(1, 10, 3, 2, 5, 0), job(2, 90, 3, 2, 5, 5), job(3, 10, 3, 2, 0, 0)
	greedy := job(4, 1, 3, 2, 5, 5)
	greedy.MinUtility = 4
	busy := job(5, 10, 3, 2, 4, 0)
	busy.Running[0] = 1
	v := view(poor, rich, early, greedy, busy)
	c.Allocate(v)
	for _, x := range []struct {
		job    *mechanism.Job
		reason string
	}{{poor, WaitingForShare}, {early, mechanism.WaitingForStage}, {greedy, SLONotAdmitted}, {busy, mechanism.Running}, {job(9, 1, 1, 1, 1, 1), WaitingForShare}} {
		if e := c.Explain(v, x.job); e.Reason != x.reason || e.Message == "" {
			t.Errorf("job %d: %+v, want %s", x.job.Job, e, x.reason)
		}
	}
	v.Classes[0].Slots = 0
	if e := c.Explain(v, poor); e.Reason != mechanism.WaitingForSlots || !strings.Contains(e.Message, "map") {
		t.Errorf("%+v", e)
	}
}

// Explain suggests a larger budget to a job. With this budget, the job's share must become about twice as large.
func TestTheAdviceIsTrue(t *testing.T) {
	c, v := live(t, 0.5), view()
	for i := range 20 {
		v.Jobs = append(v.Jobs, job(messages.JobID(i+1), 50+float64(i), 3, 2, 1, 0))
	}
	before := c.Allocate(v).Weights[4][0]
	advice := c.Explain(v, v.Jobs[4]).Change
	if len(advice) != 2 {
		t.Fatalf("advice %q", advice)
	}
	amount, _, _ := strings.Cut(strings.TrimPrefix(advice[1], "a budget higher by "), " ")
	more, err := messages.ParseCredits(amount)
	if err != nil {
		t.Fatal(err)
	}
	v.Jobs[4].Budget += more
	after := live(t, 0.5).Allocate(v).Weights[4][0]
	if math.Abs(after/before-2) > 0.02 {
		t.Errorf("%s: the share goes from %v to %v", advice[1], before, after)
	}
}

// A job waits while other jobs have all slots. If the job's share is at least a whole slot, the job gets the next free
// slots, and Explain must not advise a larger budget. If the share is smaller, Explain must advise a larger budget.
func TestWhyNamesTheRunningTasks(t *testing.T) {
	c, v := live(t, 0.5), view()
	v.Jobs = append(v.Jobs, job(1, 12, 1, 1, 6, 0), job(2, 3, 1, 1, 6, 0))
	for j := range v.Classes {
		v.Classes[j].Idle = 0
	}
	c.Allocate(v)
	e := c.Explain(v, v.Jobs[1])
	if e.Reason != WaitingForShare || !strings.Contains(e.Message, "; running tasks have all slots of ") || !slices.Equal(e.Change, []string{"the end of a running task: no bid ends it"}) {
		t.Errorf("%+v", e)
	}
	for i := range 40 {
		v.Jobs = append(v.Jobs, job(messages.JobID(i+3), 12, 1, 1, 6, 0))
	}
	c = live(t, 0.5)
	c.Allocate(v)
	if e := c.Explain(v, v.Jobs[1]); len(e.Change) != 2 || !strings.Contains(e.Change[1], "would about double the job's share") {
		t.Errorf("%+v", e)
	}
}

func TestConfigIsChecked(t *testing.T) {
	bad := 1.5
	for _, m := range []market.Market{{Name: "x"}, {Name: "x", Classes: []messages.Name{"cpu"}, Alpha: &bad}} {
		if _, err := New(m); !errors.Is(err, &messages.Error{Kind: messages.Invalid}) {
			t.Errorf("%+v: %v", m, err)
		}
	}
}
