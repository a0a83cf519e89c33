package contract

import (
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/auctioneer/mechanism/deadlineaware"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	marketmsg "github.com/candor-grid/candor/messages/market"
)

// The market keeps its promise if the job is late by at most a second, or by at most a hundredth of the promised time.
// The promise is also kept if the actual completion is worth as much as was promised. If the job is late because its
// own tasks took longer than declared, the promise counts as kept. If the owner ended the job before the promised time,
// it is unknown whether the promise would have been kept.
func TestKept(t *testing.T) {
	const arrived, promised = 1000 * second, 1400 * second
	falls := job.Valuation{Class: job.LinearDecay, Max: 20, Mu: 100, Delta: 1000}
	lasts := job.Valuation{Class: job.Hard, Max: 20, Deadline: 600}
	for name, c := range map[string]struct {
		contract    *job.Contract
		end         mechanism.End
		kept, known bool
	}{
		"on time":               {&job.Contract{Completion: promised, Promised: 14, Replica: falls}, mechanism.End{Completed: promised, Began: 1}, true, true},
		"3 s late of 400":       {&job.Contract{Completion: promised, Promised: 14, Replica: falls}, mechanism.End{Completed: promised + 3*second, Began: 1}, true, true},
		"20 s late":             {&job.Contract{Completion: promised, Promised: 14, Replica: falls}, mechanism.End{Completed: promised + 20*second, Began: 1, Delivered: 10e9}, false, true},
		"by its own doing":      {&job.Contract{Completion: promised, Promised: 14, Replica: falls}, mechanism.End{Completed: promised + 20*second, Began: 1, Delivered: 40e9}, true, true},
		"worth as much":         {&job.Contract{Completion: promised, Promised: 20, Replica: lasts}, mechanism.End{Completed: promised + 199*second, Began: 1, Delivered: 10e9}, true, true},
		"worth nothing":         {&job.Contract{Completion: promised, Promised: 20, Replica: lasts}, mechanism.End{Completed: promised + 201*second, Began: 1, Delivered: 10e9}, false, true},
		"ended before it is":    {&job.Contract{Completion: promised, Promised: 14, Replica: falls}, mechanism.End{At: promised}, false, false},
		"never, and ended late": {&job.Contract{Completion: promised, Promised: 14, Replica: falls}, mechanism.End{At: promised + 20*second}, false, true},
		"promised nothing":      {&job.Contract{Completion: promised, Replica: falls}, mechanism.End{Completed: promised + 900*second, Began: 1}, false, false},
		"no contract":           {nil, mechanism.End{Completed: promised, Began: 1}, false, false},
	} {
		job := &mechanism.Job{Bid: &mechanism.Bid{Arrived: arrived, Length: 10e9, Contract: c.contract}}
		if kept, known := new(Mechanism).Kept(job, c.end); kept != c.kept || known != c.known {
			t.Errorf("%s: kept %v, known %v; want %v, %v", name, kept, known, c.kept, c.known)
		}
	}
}

// Three jobs of 40 s want the only slot. Each job is more urgent than the job before it. A scheduler that ignored its
// promises would promise completion after 40 s to all three jobs. Each job must be promised a different time, and all
// promises must be kept. This must hold even if all quotes are made before the first job is submitted.
func TestNoPromiseIsSoldTwice(t *testing.T) {
	m := market(t, marketmsg.Market{})
	urgent := func(id messages.JobID) *mechanism.Bid {
		bid := bidOf(id, 1000*second, 4)
		bid.Valuation = &job.Valuation{Class: job.LinearDecay, Max: 20, Delta: 600 / float64(id)}
		return bid
	}
	quoted := func(view *mechanism.View, bid *mechanism.Bid) job.Contract {
		q, err := m.Quote(view, bid, []job.Valuation{*bid.Valuation}, 1)
		if err != nil {
			t.Fatal(err)
		}
		if q.Contracts[q.Free].Price != 0 {
			t.Error("a menu without a free contract")
		}
		return q.Contracts[q.Declared]
	}
	forgetful := func(view *mechanism.View, bid *mechanism.Bid) job.Contract {
		p, at := with(view, bid)
		times, err := DeadlineAware(p, at)([]job.Valuation{*bid.Valuation})
		if err != nil {
			t.Fatal(err)
		}
		declared := curve(t, *bid.Valuation)
		return job.Contract{Completion: view.Now.Add(seconds(times[0])), Promised: declared.At(times[0]), Replica: *bid.Valuation, Surrogate: *bid.Valuation}
	}
	underneath := func(view *mechanism.View) []int {
		order, err := deadlineaware.Order(problem(view))
		if err != nil {
			t.Fatal(err)
		}
		return order
	}
	for name, c := range map[string]struct {
		quote  func(*mechanism.View, *mechanism.Bid) job.Contract
		order  func(*mechanism.View) []int
		atOnce bool
		times  int
		kept   int
	}{
		"one by one":             {quoted, order, false, 3, 3},
		"all before the first":   {quoted, order, true, 3, 3},
		"control: no memory":     {forgetful, underneath, false, 1, 1},
		"control: order by need": {quoted, underneath, false, 3, 2},
	} {
		view, kept, times := grid(1, 1), 0, map[messages.Time]bool{}
		early := map[messages.JobID]job.Contract{}
		for id := range messages.JobID(3) {
			early[id+1] = c.quote(view, urgent(id+1))
		}
		for id := range messages.JobID(3) {
			bid := urgent(id + 1)
			bid.Job = 0
			offer := early[id+1]
			if !c.atOnce {
				offer = c.quote(view, bid)
			}
			bid.Contract = &offer
			if err := m.Admit(view, bid); c.atOnce && id > 0 {
				if messages.KindOf(err) != messages.Expired {
					t.Errorf("%s: job %d is admitted for a time that was sold: %v", name, id+1, err)
				}
				offer = c.quote(view, bid)
				bid.Contract = &offer
			} else if err != nil && c.times == 3 {
				t.Errorf("%s: %v", name, err)
			}
			bid.Job = id + 1
			times[offer.Completion] = true
			view.Jobs = append(view.Jobs, &mechanism.Job{Bid: bid, Pending: []int{4}, Running: []int{0}})
		}
		for len(view.Jobs) > 0 { // the slot runs tasks of 10 s, one after another
			i := c.order(view)[0]
			job := view.Jobs[i]
			view.Now += 10 * second
			job.Pending[0]--
			if job.Done++; job.Done == 4 {
				if ok, known := m.Kept(job, mechanism.End{Completed: view.Now, Began: 4, Delivered: 40e9}); ok && known {
					kept++
				}
				view.Jobs = slices.Delete(view.Jobs, i, i+1)
			}
		}
		if len(times) != c.times || kept != c.kept {
			t.Errorf("%s: %d times are promised, and %d kept; want %d and %d", name, len(times), kept, c.times, c.kept)
		}
	}
}

// The first job has a promise to complete by a certain time. If it can start later and still keep the promise, an
// urgent second job may go first. If not, the second job must come after the first.
func TestSlackIsSold(t *testing.T) {
	m := market(t, marketmsg.Market{})
	for slack, want := range map[messages.Time]float64{0: 80, 39: 80, 45: 40} {
		view := grid(1, 1)
		first := bidOf(1, view.Now, 4)
		first.Contract = &job.Contract{Completion: view.Now + (40+slack)*second, Promised: 5, Replica: job.Valuation{Class: job.Hard, Max: 5, Deadline: 1}, Surrogate: *first.Valuation}
		view.Jobs = []*mechanism.Job{{Bid: first, Pending: []int{4}, Running: []int{0}}}
		p, at := with(view, bidOf(2, view.Now, 4))
		if alone, among := look(view, p).room(at); alone != 40 || among != want {
			t.Errorf("with %d s of slack there is room at %v s, want %v", slack, among, want)
		}
		if q := quote(t, m, view, bidOf(2, view.Now, 4), 3); (len(q.Contracts) > 1) != (want == 40) || q.Contracts[0].Completion < view.Now.Add(seconds(want)) {
			t.Errorf("with %d s of slack the menu is %+v", slack, q.Contracts)
		}
	}
}

// Both slots of the market, or one of them, are closed by maintenance from second 30 to second 100. A job of 40 s on
// one slot has four tasks of 10 s. The market must not promise a completion time that needs a closed slot.
func TestMaintenanceIsNotPromised(t *testing.T) {
	m := market(t, marketmsg.Market{})
	closing := func(slots int) *mechanism.View {
		view := grid(2, 2)
		view.Classes[0].Closings = []mechanism.Closing{{From: view.Now + 30*second, To: view.Now + 100*second, Slots: slots}}
		return view
	}
	for name, c := range map[string]struct {
		closed int
		tasks  int
		limit  messages.Duration // time limit of a task
		want   float64
	}{
		"no maintenance":            {0, 8, 10e9, 40},
		"of one slot":               {1, 8, 10e9, 50},
		"of both":                   {2, 8, 10e9, 110},
		"it ends before":            {2, 6, 10e9, 30},
		"its limit passes it":       {2, 6, 15e9, 110},
		"no limit, of one slot":     {1, 6, 0, 60},
		"no limit, of both":         {2, 6, 0, 130},
		"no limit, no maintenance":  {0, 6, 0, 30},
		"more tasks than are quick": {2, 400, 10e9, 100 + 1970},
	} {
		view, bid := closing(c.closed), bidOf(0, 1000*second, c.tasks)
		bid.Limit = c.limit
		bid.Valuation = &job.Valuation{Class: job.LinearDecay, Max: 20, Delta: 9000}
		q, err := m.Quote(view, bid, []job.Valuation{*bid.Valuation}, 1)
		if err != nil {
			t.Fatal(err)
		}
		if got := q.Contracts[q.Declared].Completion; got != view.Now.Add(seconds(c.want)) {
			t.Errorf("%s: promised for second %v from now, want %v", name, got.Sub(view.Now).Seconds(), c.want)
		}
	}
	bid := bidOf(0, 1000*second, 8)
	bid.Limit = 10e9
	bid.Contract = &job.Contract{Completion: bid.Arrived + 40*second, Promised: 20, Replica: job.Valuation{Class: job.Hard, Max: 20, Deadline: 60}, Surrogate: *bid.Valuation}
	if err := m.Admit(grid(2, 2), bid); err != nil {
		t.Error(err)
	}
	if err := m.Admit(closing(2), bid); messages.KindOf(err) != messages.Expired || !strings.Contains(err.Error(), "maintenance") {
		t.Errorf("maintenance after the quote: %v", err)
	}
}
