package contract

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/auctioneer/mechanism/deadlineaware"
	"github.com/candor-grid/candor/auctioneer/mechanism/valuation"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	marketmsg "github.com/candor-grid/candor/messages/market"
)

// A quote must equal the offer that NewOffer makes for the same draw. For NewOffer, the test computes the completion
// times with deadlineaware.New, once for each surrogate.
func TestQuoteIsTheOffer(t *testing.T) {
	m := market(t, marketmsg.Market{Replicas: 30})
	view := grid(3, 0)
	for id := range messages.JobID(7) {
		bid := bidOf(id+1, view.Now-messages.Time(id)*5*second, 1+int(id))
		view.Jobs = append(view.Jobs, take(t, quote(t, m, view, bid, uint64(id)), bid))
		bid.Contract.Completion += 1e6 * second // this completion is so late that any other job can complete before it
	}
	view.Jobs[2].Started, view.Jobs[2].Running, view.Jobs[2].Pending = view.Now-7*second, []int{2}, []int{1}
	bid := bidOf(50, view.Now-20*second, 4)
	q := quote(t, m, view, bid, 11)

	sampler, err := FromSamples(class)
	if err != nil {
		t.Fatal(err)
	}
	d, err := NewDraw(*bid.Valuation, sampler, 30, 11)
	if err != nil {
		t.Fatal(err)
	}
	slow := func(types []job.Valuation) ([]float64, error) {
		out := make([]float64, len(types))
		for k := range types {
			alone := bidOf(50, bid.Arrived, 4)
			alone.Contract = &job.Contract{Surrogate: types[k]}
			all := append(slices.Clone(view.Jobs), &mechanism.Job{Bid: alone, Pending: []int{4}})
			s, err := deadlineaware.New(problem(&mechanism.View{Now: view.Now, Classes: view.Classes, Jobs: all}))
			if err != nil {
				return nil, err
			}
			out[k] = 20 + s.Completion[7]
		}
		return out, nil
	}
	o, err := NewOffer(new(Solver), d, slow)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range Sample(distinct(o.Menu), mostShown, 11) {
		got := q.Contracts[i]
		if math.Abs(got.Completion.Sub(bid.Arrived).Seconds()-c.Completion) > 1.1e-6 || math.Abs(got.Price.Float()-c.Price) > 1.1e-6 ||
			got.Promised != c.Value || c.Declared != (i == q.Declared) {
			t.Errorf("contract %d: %+v, want %+v", i, got, c)
		}
	}
}

// The remaining work of a job must be the number of tasks that are not done, multiplied by the robust run time, minus
// the work that the running tasks have done.
func TestPlannedWork(t *testing.T) {
	now := 1000 * second
	bid := &mechanism.Bid{Arrived: now - 100*second, Length: messages.Duration(10e9), Tasks: 9}
	job := &mechanism.Job{Bid: bid, Pending: []int{2}, Running: []int{3}, Suspended: []int{1}, Started: now - 24*second, Done: 1}
	for _, test := range []struct {
		runtimes *mechanism.Runtimes
		want     float64
	}{
		{nil, 8*10 - 3*4}, // 8 tasks are left; 3 of them have run for 24 s: they are 4 s into their third round of 10 s
		{&mechanism.Runtimes{Runs: 4}, 8*10 - 3*4},
		{&mechanism.Runtimes{Seconds: []float64{1, 2, 15, 3}, Runs: 4}, 8*15 - 3*9},
	} {
		bid.Runtimes = test.runtimes
		got := planned(now, job)
		if got.Tasks != 8 || got.Demand != test.want || got.Elapsed != 100 {
			t.Errorf("%+v, want a demand of %v", got, test.want)
		}
	}
}

// DeadlineAware returns a function that takes possible valuations (surrogates) of a job. For each of them, the function
// returns the time from the job's submission to its completion. A new schedule with this valuation must give the same
// time. An error must name the surrogate that is wrong.
func TestDeadlineAwareBox(t *testing.T) {
	late := curve(t, sigmoid(5, 300, 50))
	p := &deadlineaware.Problem{Slots: 1, Jobs: []deadlineaware.Job{
		{Tasks: 1, Demand: 100, Valuation: *late}, {Tasks: 2, Demand: 40, Elapsed: 30, Valuation: valuation.Curve{}},
	}}
	box := DeadlineAware(p, 1)
	got, err := box([]job.Valuation{sigmoid(5, 10, 100), sigmoid(5, 2000, 10)})
	if err != nil {
		t.Fatal(err)
	}
	near(t, "completion", got, []float64{70, 170}, 0)
	if _, err := box([]job.Valuation{sigmoid(5, 10, 100), {}}); err == nil || !strings.HasPrefix(messages.Detail(err), "surrogates[1].class") {
		t.Error(err)
	}
	if _, err := DeadlineAware(p, 2)(nil); messages.KindOf(err) != messages.Invalid {
		t.Error(err)
	}
}

// On an idle grid all surrogates complete at the same instant at a price of 0, so the menu must have only the declared
// contract. On a busy grid no two contracts may have the same completion and price.
func TestMenuMergesEqualOffers(t *testing.T) {
	m := market(t, marketmsg.Market{})
	view := grid(4, 4)
	q := quote(t, m, view, bidOf(1, view.Now, 1), 5)
	if len(q.Contracts) != 1 || q.Declared != 0 || q.Free != 0 || q.Contracts[0].Price != 0 {
		t.Fatalf("%d contracts on an idle grid: %+v", len(q.Contracts), q)
	}
	for id := range messages.JobID(6) {
		bid := bidOf(id+1, view.Now, 10)
		q := quote(t, m, view, bid, uint64(id))
		seen := map[terms]bool{}
		for _, c := range q.Contracts {
			k := terms{completion: c.Completion, price: c.Price}
			if c.Price != 0 {
				k.promised = c.Promised
			}
			if seen[k] {
				t.Errorf("two contracts of %+v", k)
			}
			seen[k] = true
		}
		view.Jobs = append(view.Jobs, take(t, q, bid))
	}
}
