package market

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

func crowded(t interface{ Fatal(...any) }, config market.Market, jobs int, draw func(what string, least, most int) int) *Market {
	m, err := Open(config)
	if err != nil {
		t.Fatal(err)
	}
	slots := draw("slots", 1, 6)
	idle := slots
	for id := range messages.JobID(jobs) {
		running := draw("running", 0, min(2, idle))
		idle -= running
		account := string(rune('a' + int(id%5)))
		bid := &mechanism.Bid{Job: id + 1, Account: account, Arrived: messages.Time(id), Form: job.Linear, Weights: []float64{1}, Tasks: 5, Width: 1,
			Budget: messages.Credits(draw("budget", 1, 50)) * messages.Credit, Rate: messages.Credits(draw("rate", 1, 9)) * messages.Credit}
		p := Progress{Pending: []int{draw("pending", 1, 3)}, Running: []int{running}}
		if running > 0 {
			p.Started = 1
		}
		suspended := draw("suspended", 0, 2)
		if m.manner.Directs && suspended > 0 {
			p.Suspended = []int{suspended}
		}
		m.Put(1, func() *mechanism.Bid { return bid }, id+1, p)
		for i := range draw("not stuck", 0, mechanism.Sum(p.Suspended)) {
			m.number.get(id+1).joinFront(0, claim{Attempt: messages.Attempt{Number: uint32(i)}})
		}
	}
	m.SetSlots(1, []int{slots}, []int{idle})
	m.Allocate(2)
	return m
}

// A fork is a copy of a market, in which one job bids more or less. With the job's present bid, a fork must make the
// same decision as the market. A higher bid must never get less than a lower bid. The market itself must not change.
func TestForkIsTheMarket(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		config := market.Market{Name: "m", Classes: []messages.Name{"cpu"},
			Mechanism: rapid.SampledFrom([]messages.Name{market.Proportional, market.HighestBid}).Draw(t, "mechanism")}
		draw := func(what string, least, most int) int { return rapid.IntRange(least, most).Draw(t, what) }
		m := crowded(t, config, draw("jobs", 1, 8), draw)
		id := messages.JobID(draw("job", 1, m.Jobs()))
		decide := func(more messages.Credits) market.BidOutcome {
			f, why := m.SeenBy("", true).Fork(2, id, more)
			if f == nil {
				t.Fatal(why)
			}
			out, err := f.Decide(2)
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
		is := decide(0)
		x, _ := m.Explain(2, id)
		e := m.number.get(id)
		want := e.ledger[0].share
		if e.most != nil {
			slots := min(e.most[0], e.running()[0]+e.pending()[0])
			for _, d := range m.orders.Directives {
				if d.Job == id && d.Action == mechanism.Resume {
					slots += d.Slots
				}
			}
			want = float64(slots) / float64(m.view.Classes[0].Slots)
		}
		if got := is.Classes[0]; is.Reason != x.Reason || is.Message != x.Message || math.Abs(got.Share-want) > 1e-9 || math.Abs(got.Price-m.prices[0]) > 1e-9 {
			t.Fatalf("at the present bid %+v; the market has %v at %v: %+v", is, want, m.prices, x)
		}
		last := is.Classes[0].Share
		for _, more := range []messages.Credits{1, 5, 100} {
			got := decide(more * messages.Credit).Classes[0].Share
			if got < last-1e-9 {
				t.Fatalf("with %v credits more a share of %v, and with less %v", more, got, last)
			}
			last = got
		}
		if again := decide(0); again.Message != is.Message || again.Classes[0] != is.Classes[0] {
			t.Fatalf("the market is another after the questions: %+v, was %+v", again, is)
		}
	})
}

// BenchmarkFork measures two times for a market of 20,000 jobs: the time to copy the market, during which the leader
// waits, and the time of a decision on the copy.
func BenchmarkFork(b *testing.B) {
	for _, mechanism := range []messages.Name{market.Proportional, market.HighestBid} {
		m := crowded(b, market.Market{Name: "m", Classes: []messages.Name{"cpu"}, Mechanism: mechanism}, MostForked, func(_ string, _, most int) int { return most })
		b.Run(mechanism+"/copy", func(b *testing.B) {
			for b.Loop() {
				m.SeenBy("", true).Fork(2, 1, messages.Credit)
			}
		})
		b.Run(mechanism+"/decide", func(b *testing.B) {
			for b.Loop() {
				f, _ := m.SeenBy("", true).Fork(2, 1, messages.Credit)
				if _, err := f.Decide(2); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
