package reservation

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	marketmsg "github.com/candor-grid/candor/messages/market"
)

const (
	second = messages.Time(1e6)
	hour   = 3600 * second
	day    = 24 * hour
)

func market(t *testing.T) *Mechanism {
	t.Helper()
	m, err := NewMechanism(marketmsg.Market{Name: "night", Mechanism: "reservation", Classes: []messages.Name{"cpu"}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func bid(id messages.JobID, value messages.Credits, hours, deadline int, width int) *mechanism.Job {
	return &mechanism.Job{
		Bid: &mechanism.Bid{Job: id, Arrived: 5*hour + messages.Time(id), Budget: value * messages.Credit, Value: value * messages.Credit,
			Length: messages.Duration(time.Duration(hours) * time.Hour), Deadline: day + messages.Time(deadline)*hour, Width: width},
		Pending: []int{width}, Running: []int{0},
	}
}

// The test follows bids from their submission to their payment. Until the auction, bids are sealed. Then some bids are
// served. Their jobs run and are settled. The winner must pay the value of the loser.
func TestADay(t *testing.T) {
	// the market solves the first case exactly, and the second by search
	for _, widths := range [][3]int{{8, 8, 8}, {8, 7, 8}} {
		c := market(t)
		view := &mechanism.View{Now: 6 * hour, Classes: []mechanism.Class{{Name: "cpu", Slots: 8}},
			Jobs: []*mechanism.Job{bid(1, 50, 10, 12, widths[0]), bid(2, 80, 10, 12, widths[1]), bid(3, 20, 10, 24, widths[2])}}
		for _, job := range view.Jobs {
			if err := c.Admit(view, job.Bid); err != nil {
				t.Fatal(err)
			}
		}
		a := c.Allocate(view)
		if len(a.Directives) != 0 || a.Wake != day || c.Explain(view, view.Jobs[0]).Reason != WaitingForAuction {
			t.Fatalf("before the auction: %+v", a)
		}
		view.Now = day + second/2
		a = c.Allocate(view)
		granule := messages.Time(15*60) * second // the first granule, a quarter of an hour, has begun when the auction is held
		want := []mechanism.Directive{{Job: 1, Action: mechanism.Discard},
			{Job: 2, Action: mechanism.Start, At: day + granule, Slots: widths[1]},
			{Job: 3, Action: mechanism.Start, At: day + granule + 10*hour, Slots: widths[2]}}
		if !slices.Equal(a.Directives, want) || a.Wake != day+granule || a.Prices[0] != 50 {
			t.Fatalf("%+v, want %+v", a, want)
		}
		for i, reason := range []string{Outbid, Reserved, Reserved} {
			// no message may contain 100, the value of the whole schedule
			if e := c.Explain(view, view.Jobs[i]); e.Reason != reason || e.Message == "" || strings.Contains(e.Message, "100") {
				t.Errorf("job %d: %+v, want %s", i+1, e, reason)
			}
		}
		settleADay(t, c, view, day+granule)
	}
}

func settleADay(t *testing.T, c *Mechanism, view *mechanism.View, start messages.Time) {
	t.Helper()
	one, two, three := view.Jobs[0], view.Jobs[1], view.Jobs[2]
	view.Jobs = view.Jobs[1:]
	for range 2 { // the job is settled when it is discarded, and again when it has ended
		if p := c.Settle(view, one, mechanism.End{State: job.Discarded}); p[0].Amount != 0 || p[0].From != 1 || p[0].Reason != "the job did not win a reservation" {
			t.Errorf("a loser pays %+v", p)
		}
	}
	view.Now = start
	if a := c.Allocate(view); a.Weights[0][0] != 1 || a.Weights[1][0] != 0 || a.Wake != start+10*hour {
		t.Errorf("when job 2 is to start: %+v", a)
	}
	two.Started, two.Running, two.Pending = start, []int{two.Width}, []int{0}
	if a := c.Allocate(view); len(a.Directives) != 1 || c.Explain(view, two).Reason != mechanism.Running {
		t.Errorf("while job 2 runs: %+v", a)
	}
	view.Jobs = view.Jobs[1:]
	if p := c.Settle(view, two, mechanism.End{State: job.Completed}); p[0].Amount != 50*messages.Credit || !strings.Contains(p[0].Reason, "reservation") {
		t.Errorf("job 2 pays %+v, want the 50 that job 1 would have had of it", p)
	}
	if p := c.Settle(view, three, mechanism.End{State: job.Failed}); p[0].Amount != 0 {
		t.Errorf("job 3, never started, pays %+v", p)
	}
	if p := c.Settle(view, three, mechanism.End{State: job.Failed}); p[0].Amount != 0 || len(c.rounds) != 0 {
		t.Errorf("settled again it pays %+v; %d rounds are kept", p, len(c.rounds))
	}
}

// Lengths and deadlines are counted in granules, here of 100 ms. The period has so many granules that it would take too
// long to find the best schedule. The market must still sell a good schedule.
func TestTooManyGranulesAreSearched(t *testing.T) {
	c, err := NewMechanism(marketmsg.Market{Name: "night", Mechanism: "reservation", Classes: []messages.Name{"cpu"},
		Cycle: messages.Duration(24 * time.Hour), Granule: messages.Duration(100 * time.Millisecond), Orders: 50})
	if err != nil {
		t.Fatal(err)
	}
	view := &mechanism.View{Now: day, Classes: []mechanism.Class{{Name: "cpu", Slots: 8}}}
	for i := range 2000 {
		job := bid(messages.JobID(i+1), messages.Credits(1+i), 1, 24, 8)
		job.Length -= messages.Duration(time.Duration(i) * 100 * time.Millisecond) // lengths without a common unit
		view.Jobs = append(view.Jobs, job)
	}
	won := 0
	for _, d := range c.Allocate(view).Directives {
		if d.Action == mechanism.Start {
			won++
		}
	}
	if won < 24 {
		t.Errorf("%d jobs of an hour or less won a day on the whole machine", won)
	}
}

func TestANewLeaderDecidesAlike(t *testing.T) {
	view := &mechanism.View{Now: day, Classes: []mechanism.Class{{Name: "cpu", Slots: 8}}}
	for i := range 30 {
		view.Jobs = append(view.Jobs, bid(messages.JobID(i+1), messages.Credits(1+i*37%50), 1+i%5, 6+i%18, 1+i*7%8))
	}
	a, b := market(t).Allocate(view), market(t).Allocate(view)
	if !slices.Equal(a.Directives, b.Directives) || len(a.Directives) != 30 {
		t.Errorf("%+v and %+v", a.Directives, b.Directives)
	}
	late := &mechanism.View{Now: day, Classes: []mechanism.Class{{Name: "cpu"}}, Jobs: view.Jobs[:1]}
	if a := market(t).Allocate(late); len(a.Directives) != 1 || a.Directives[0].Action != mechanism.Discard {
		t.Errorf("without nodes: %+v", a)
	}
}

func TestAdmitRefuses(t *testing.T) {
	c := market(t)
	view := &mechanism.View{Now: 6 * hour, Classes: []mechanism.Class{{Name: "cpu", Slots: 8}}}
	for says, change := range map[string]func(b *mechanism.Bid){
		"value":    func(b *mechanism.Bid) { b.Value = 0 },
		"budget":   func(b *mechanism.Bid) { b.Budget = b.Value - 1 },
		"length":   func(b *mechanism.Bid) { b.Length = messages.Duration(25 * time.Hour) },
		"width":    func(b *mechanism.Bid) { b.Width = 9 },
		"deadline": func(b *mechanism.Bid) { b.Deadline = day + hour },
	} {
		b := *bid(1, 50, 2, 12, 8).Bid
		change(&b)
		if err := c.Admit(view, &b); messages.KindOf(err) != messages.Invalid || !strings.HasPrefix(messages.Detail(err), says+": ") {
			t.Errorf("%s: %v", says, err)
		}
	}
}

func TestConfigRefuses(t *testing.T) {
	for _, classes := range [][]messages.Name{nil, {"cpu", "gpu"}} {
		if _, err := NewMechanism(marketmsg.Market{Name: "m", Classes: classes}); messages.KindOf(err) != messages.Invalid {
			t.Errorf("%v: %v", classes, err)
		}
	}
}

// Slots that maintenance takes away in a period must not be sold for this period. If maintenance takes all slots, a bid
// that ends before the maintenance begins must be served.
func TestMaintenanceIsNotSold(t *testing.T) {
	for _, c := range []struct {
		closing      mechanism.Closing
		hours, width int
		sold         bool
	}{
		{mechanism.Closing{From: day + 6*hour, To: day + 7*hour, Slots: 3}, 10, 5, true},
		{mechanism.Closing{From: day + 6*hour, To: day + 7*hour, Slots: 3}, 10, 6, false},
		{mechanism.Closing{From: day + 6*hour, To: day + 7*hour, Slots: 8}, 5, 8, true},
		{mechanism.Closing{From: day + 6*hour, To: day + 7*hour, Slots: 8}, 6, 8, false},
		{mechanism.Closing{From: 2*day + hour, To: 3 * day, Slots: 8}, 10, 8, true},
	} {
		view := &mechanism.View{Now: day + second/2, Classes: []mechanism.Class{{Name: "cpu", Slots: 8, Closings: []mechanism.Closing{c.closing}}}, Jobs: []*mechanism.Job{bid(1, 50, c.hours, 24, c.width)}}
		if a := market(t).Allocate(view); len(a.Directives) != 1 || (a.Directives[0].Action == mechanism.Start) != c.sold {
			t.Errorf("%+v: %+v", c, a.Directives)
		}
	}
}
