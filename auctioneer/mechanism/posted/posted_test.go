package posted

import (
	"strings"
	"testing"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/market"
)

func desk() *Desk {
	price := messages.Price(2 * messages.Credit)
	return NewDesk(market.Market{Name: "main", Classes: []messages.Name{"cpu", "gpu"}, Reserve: &price})
}

func TestChargesWhatAccruedAtMostTheBudget(t *testing.T) {
	for _, c := range []struct{ accrued, budget, want messages.Credits }{{0, 5, 0}, {3, 5, 3}, {5, 5, 5}, {9, 5, 5}, {-1, 5, 0}} {
		job := &mechanism.Job{Bid: &mechanism.Bid{Job: 7, Budget: c.budget}, Accrued: c.accrued}
		p := desk().Settle(nil, job, mechanism.End{})
		if len(p) != 1 || p[0].From != 7 || p[0].To != 0 || p[0].Amount != c.want || p[0].Reason == "" {
			t.Errorf("accrued %v of %v: %+v, want %v", c.accrued, c.budget, p, c.want)
		}
	}
}

func TestAdmit(t *testing.T) {
	view := &mechanism.View{Classes: []mechanism.Class{{Name: "cpu", Slots: 4}, {Name: "gpu", Slots: 1}}}
	for says, change := range map[string]func(*mechanism.Bid){
		"":                            func(*mechanism.Bid) {},
		"budget: must be above 0":     func(b *mechanism.Bid) { b.Budget = 0 },
		"budget: must be above":       func(b *mechanism.Bid) { b.Budget = messages.MaxCredits + 1 },
		"length: must not":            func(b *mechanism.Bid) { b.Length = -1 },
		"deadline: must not":          func(b *mechanism.Bid) { b.Deadline = -1 },
		"width: must not":             func(b *mechanism.Bid) { b.Width = -1 },
		"width: 5 is more than the 4": func(b *mechanism.Bid) { b.Width = 5 },
	} {
		bid := &mechanism.Bid{Budget: 1, Width: 4, Length: 1, Deadline: 1}
		change(bid)
		err := desk().Admit(view, bid)
		if says == "" && err != nil || says != "" && (messages.KindOf(err) != messages.Invalid || !strings.Contains(err.Error(), says)) {
			t.Errorf("%q: %v", says, err)
		}
	}
	if err := desk().Admit(&mechanism.View{}, &mechanism.Bid{Budget: 1, Width: 5}); err != nil {
		t.Errorf("while no node is up: %v", err)
	}
}

func TestAllocationStartsEmpty(t *testing.T) {
	d, view := desk(), &mechanism.View{}
	for range 3 {
		view.Jobs = append(view.Jobs, &mechanism.Job{Bid: &mechanism.Bid{}})
	}
	d.Allocation(view).Weights[1][1] = 1
	view.Jobs = view.Jobs[:2]
	a := d.Allocation(view)
	for i, row := range a.Weights {
		for j, w := range row {
			if w != 0 {
				t.Errorf("weight %d, %d is %v", i, j, w)
			}
		}
	}
	if len(a.Weights) != 2 || a.Prices[1] != 2 || len(a.Tariffs) != 2 || a.Tariffs[1].Basis != mechanism.AtReserve {
		t.Errorf("%+v", a)
	}
}

func TestExplain(t *testing.T) {
	view := &mechanism.View{Classes: []mechanism.Class{{Slots: 1}, {Slots: 0}}}
	for _, c := range []struct {
		pending, running []int
		ahead            int
		want             string
	}{
		{[]int{0, 0}, []int{0, 0}, 0, mechanism.WaitingForStage},
		{[]int{0, 1}, []int{1, 0}, 0, mechanism.Running},
		{[]int{0, 1}, []int{0, 0}, 3, mechanism.WaitingForSlots},
		{[]int{1, 1}, []int{0, 0}, 3, mechanism.WaitingForTurn},
		{[]int{1, 1}, []int{0, 0}, 0, mechanism.NextInTurn},
	} {
		e := desk().Explain(view, &mechanism.Job{Bid: &mechanism.Bid{}, Pending: c.pending, Running: c.running}, c.ahead, "the rule")
		if e.Reason != c.want || e.Message == "" || e.Change == nil {
			t.Errorf("%+v: %+v", c, e)
		}
	}
}

// A market with a reserve of 0 must show the price 0, not the default for markets without a reserve.
func TestAReserveOfNothingIsShown(t *testing.T) {
	m := market.Market{Name: "main", Classes: []messages.Name{"cpu"}, Reserve: new(messages.Price(0))}
	if a := NewDesk(m).Allocation(&mechanism.View{}); a.Prices[0] != 0 {
		t.Errorf("shows %v", a.Prices[0])
	}
}

// A job whose slots have cost its budget must be discarded. The market must wake when the next budget will be spent.
func TestBudgetsBind(t *testing.T) {
	job := func(id messages.JobID, budget, accrued messages.Credits) *mechanism.Job {
		return &mechanism.Job{Bid: &mechanism.Bid{Job: id, Budget: budget * messages.Credit}, Accrued: accrued * messages.Credit, Pending: []int{0, 0}, Running: []int{1, 1}}
	}
	view := &mechanism.View{Now: 1e6, Classes: []mechanism.Class{{Slots: 9}, {Slots: 9}}, Jobs: []*mechanism.Job{job(1, 10, 10), job(2, 10, 2), job(3, 10, 4)}}
	a := desk().Allocation(view)
	if len(a.Directives) != 1 || a.Directives[0].Job != 1 || a.Directives[0].Action != mechanism.Discard {
		t.Errorf("directives %+v, want job 1 discarded", a.Directives)
	}
	if want := messages.Time(1e6 + 6e6/4); a.Wake != want { // the job has two slots at 2 credits a second
		t.Errorf("wakes at %v, want %v", a.Wake, want)
	}
	if e := desk().Explain(view, view.Jobs[0], 0, "the rule"); e.Reason != mechanism.BudgetSpent {
		t.Errorf("%+v", e)
	}
}
