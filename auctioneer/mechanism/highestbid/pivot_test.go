package highestbid

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// crowd draws a market of a few jobs.
func crowd(r *rand.Rand, jobs int, price Price) *Problem {
	p := &Problem{Nodes: 1 + r.IntN(3), Rule: Rule{HB, price, false}, Reserve: float64(r.IntN(2))}
	for range jobs {
		v := float64(1 + r.IntN(9))
		p.Jobs = append(p.Jobs, Job{Submit: float64(r.IntN(30)), Runtime: float64(1 + r.IntN(20)), Value: v, Bid: v})
	}
	return p
}

// The test runs the market again with each lower bid of a job. So it finds how long the job would wait at each place in
// the order. The price of the job must be a sum over the other jobs that come after it. For each of them, the sum has
// its bid, multiplied by the additional time that the first job would wait if it came after this other job.
func TestAPivotPriceIsWhatThePlaceSpares(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 500 {
		p := crowd(r, 8, Pivot)
		p.Horizon = float64(r.IntN(2) * (5 + r.IntN(60)))
		got := mustRun(t, p)
		for i := range p.Jobs {
			finish := func(bid float64) float64 {
				q := *p
				q.Jobs, q.Rule.Price, q.Horizon = slices.Clone(p.Jobs), Kth, 0
				q.Jobs[i].Bid = bid
				f := mustRun(t, &q).Finish[i]
				if p.Horizon > 0 {
					f = min(f, p.Jobs[i].Submit+p.Horizon)
				}
				return f
			}
			want := p.Reserve * p.Jobs[i].Runtime
			for b := 1.0; b <= p.Jobs[i].Bid; b++ {
				above := finish(b + 0.5)
				if b == p.Jobs[i].Bid {
					above = finish(b)
				}
				want += b * (finish(b-0.5) - above)
			}
			if !(math.Abs(got.Payment[i]-want) <= 1e-9*max(1, want)) {
				t.Fatalf("job %d of %+v pays %v, want %v", i, p, got.Payment[i], want)
			}
		}
	}
}

// At pivot prices, no false bid and no later submission may give a job more than the truth. At k-th prices, some false
// bids must give more.
func TestUnderPivotPricesTruthIsBest(t *testing.T) {
	gains := map[Price]int{}
	for _, price := range []Price{Kth, Pivot} {
		r := rand.New(rand.NewPCG(2, 2))
		for range 3000 {
			p := crowd(r, 6, price)
			i, late := r.IntN(len(p.Jobs)), float64(r.IntN(3)*r.IntN(9))
			p.Jobs[i].Value = max(p.Jobs[i].Value, p.Reserve)
			p.Jobs[i].Bid = p.Jobs[i].Value
			truth := mustRun(t, p).Utility[i]
			p.Jobs[i].Bid = max(p.Reserve, float64(r.IntN(40))/4)
			p.Jobs[i].Submit += late
			if lie := mustRun(t, p).Utility[i] - late*p.Jobs[i].Value; !(lie <= truth+1e-9) {
				gains[price]++
			}
		}
	}
	if gains[Pivot] != 0 || gains[Kth] == 0 {
		t.Errorf("lies that gain, of 3000: %v; want none under pivot prices, and some under k-th prices", gains)
	}
}

// A short job with a low value overtakes a long job. At k-th prices this costs nothing. At pivot prices the short job
// must pay for the thousand seconds that it then does not have to wait.
func TestTenSecondsAgainstAThousand(t *testing.T) {
	for price, want := range map[Price][2]float64{Kth: {-1020, -30}, Pivot: {-1020, -2020}} {
		for k, bid := range []float64{1, 2.1} {
			o := mustRun(t, &Problem{Nodes: 1, Rule: Rule{HB, price, false}, Reserve: 1,
				Jobs: []Job{{Runtime: 10, Value: 1, Bid: bid}, {Runtime: 1000, Value: 2, Bid: 2}}})
			if !(math.Abs(o.Utility[0]-want[k]) <= 1e-9) {
				t.Errorf("%s: bidding %v it has %v, want %v", price, bid, o.Utility[0], want[k])
			}
		}
	}
}

// Leadership changes while a price is not yet certain. The mechanism of the old leader has stored notes. From these
// notes, the mechanism of the next leader must compute the same price for a job's slots. It must not settle the job
// before this price is certain.
func TestThePriceSurvivesALeader(t *testing.T) {
	open := func() *PivotMechanism {
		m, err := NewMechanism(market.Market{Name: "spot", Classes: []messages.Name{"cpu"}, Price: string(Pivot), Reserve: new(messages.Price(messages.Credit))})
		if err != nil {
			t.Fatal(err)
		}
		return m.(*PivotMechanism)
	}
	job := func(id messages.JobID, rate messages.Credits) *mechanism.Job {
		return &mechanism.Job{Bid: &mechanism.Bid{Job: id, Arrived: 1, Rate: rate, Budget: messages.MaxCredits, Tasks: 1}, Pending: []int{1}, Running: []int{0}}
	}
	short, long := job(1, 21*credit/10), job(2, 2*credit)
	v := &mechanism.View{Now: 1, Classes: []mechanism.Class{{Name: "cpu", Slots: 1}}, Jobs: []*mechanism.Job{short, long}}
	before := open()
	if d := before.Allocate(v).Directives; len(d) != 1 || d[0].Job != 1 {
		t.Fatalf("directives %+v", d)
	}
	notes, _ := before.Notes(10)
	before.Saved()
	if again, _ := before.Notes(10); len(notes) != 1 || again != nil {
		t.Fatalf("notes %+v, then %+v", notes, again)
	}
	after := open()
	after.Recall(notes, []messages.JobID{1, 2}, func(id messages.JobID) mechanism.Past { return mechanism.Past{Bid: v.Jobs[id-1].Bid} })
	end := mechanism.End{State: jobmsg.Completed, At: 1 + 10*second}
	late := mechanism.End{State: jobmsg.Completed, At: 1 + 1010*second}
	short.Received, short.Accrued = 10e9, 10*credit
	for name, m := range map[string]*PivotMechanism{"the same": before, "made anew": after} {
		if at := m.SettleAt(end.At, short, end); at <= end.At {
			t.Errorf("%s: settled at %v, while the job that it went before still runs", name, at)
		}
		long.Received = 1000e9
		m.SettleAt(late.At, long, late)
		if at := m.SettleAt(late.At, short, end); at > late.At {
			t.Errorf("%s: not certain at %v, put off to %v", name, late.At, at)
		}
		if p := m.Settle(v, short, end); p[0].Amount != 2010*credit {
			t.Errorf("%s: pays %v for %q, want 10 at the reserve and 1000 s of 2", name, p[0].Amount, p[0].Reason)
		}
		if p := m.Settle(v, long, late); p[0].Amount != long.Accrued {
			t.Errorf("%s: the job that waited pays %v", name, p[0].Amount)
		}
	}
}

// TestPivotMarketsRefuse checks that a pivot market refuses bids for which its pivot price is not defined.
func TestPivotMarketsRefuse(t *testing.T) {
	m, err := NewMechanism(market.Market{Name: "spot", Classes: []messages.Name{"cpu"}, Price: string(Pivot), Horizon: 100e9, Reserve: new(messages.Price(messages.Credit))})
	if err != nil {
		t.Fatal(err)
	}
	bid := func(budget messages.Credits, tasks int, serial bool) *mechanism.Bid {
		return &mechanism.Bid{Rate: 2 * credit, Budget: budget, Tasks: tasks, Serial: serial}
	}
	if err := m.Admit(view(1), bid(201*credit, 3, true)); err != nil {
		t.Errorf("three stages, one after another: %v", err)
	}
	for want, b := range map[string]*mechanism.Bid{"": bid(201*credit, 1, true), "budget: must be above 200": bid(200*credit, 1, true), "stages: a job of a market with price pivot": bid(300*credit, 2, false)} {
		err := m.Admit(view(1), b)
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(messages.AsError("", err).Message, want)) {
			t.Errorf("%+v: %v, want %q", b, err, want)
		}
	}
}
