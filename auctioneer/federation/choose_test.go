package federation

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/messages"
)

const (
	now    = messages.Time(1_700_000_000_000_000)
	second = messages.Duration(time.Second)
	c      = messages.Credit
)

func offer(site messages.Name, seconds int64, price messages.Credits) messages.Offer {
	o := messages.Offer{Site: site, Price: price, Budget: price}
	if seconds > 0 {
		o.Completion = now.Add(messages.Duration(seconds) * second)
	}
	return o
}

// with returns an offer with a number of free slots.
func with(o messages.Offer, free int) messages.Offer {
	o.Free = free
	return o
}

func TestChoose(t *testing.T) {
	plain := messages.JobSpec{Budget: 10 * c}
	hard := messages.JobSpec{Budget: 10 * c, Valuation: &messages.Valuation{Class: messages.Hard, Max: 8, Deadline: 100}}
	decay := messages.JobSpec{Budget: 10 * c, Valuation: &messages.Valuation{Class: messages.LinearDecay, Max: 8, Mu: 0, Delta: 800}}
	valued := messages.JobSpec{Budget: 10 * c, Value: 8 * c, Deadline: now.Add(100 * second)}
	for name, x := range map[string]struct {
		spec   *messages.JobSpec
		offers []messages.Offer
		best   int
		why    string
	}{
		"nobody":                          {&plain, nil, -1, "no offer"},
		"the earliest":                    {&plain, []messages.Offer{offer("west", 50, 1*c), offer("east", 40, 9*c)}, 1, "earliest of 2 offers"},
		"as early for less":               {&plain, []messages.Offer{offer("west", 50, 2*c), offer("east", 50, 1*c)}, 1, "earliest"},
		"as early for as much: the first": {&plain, []messages.Offer{offer("west", 50, c), offer("east", 50, c)}, 0, "earliest"},
		"beyond the budget":               {&plain, []messages.Offer{offer("west", 50, 2*c), offer("east", 40, 11*c)}, 0, "earliest"},
		"all beyond the budget":           {&plain, []messages.Offer{offer("west", 50, 11*c)}, -1, "within the budget"},
		"a time that is not known":        {&plain, []messages.Offer{offer("west", 0, c), offer("east", 5000, 2*c)}, 1, "earliest"},
		"no time known":                   {&plain, []messages.Offer{offer("west", 0, 2*c), offer("east", 0, c)}, 1, "no site knows"},
		"no time known, and other slots":  {&plain, []messages.Offer{with(offer("west", 0, c), -3), with(offer("east", 0, c), 2)}, 1, "most free slots"},
		"free slots, and a higher price":  {&plain, []messages.Offer{offer("west", 0, c), with(offer("east", 0, 2*c), 9)}, 0, "cheapest"},
		"later and cheaper in time":       {&hard, []messages.Offer{offer("west", 10, 6*c), offer("east", 99, 1*c)}, 1, "worth 8 credits"},
		"too late for any value":          {&hard, []messages.Offer{offer("west", 101, 1*c)}, -1, "no offer is worth its price"},
		"a credit a hundred seconds":      {&decay, []messages.Offer{offer("west", 100, 4*c), offer("east", 300, 1*c)}, 1, "worth 5 credits"}, // surplus 7−4, and 5−1
		"value and deadline":              {&valued, []messages.Offer{offer("west", 101, 0), offer("east", 99, 7*c)}, 1, "worth 8 credits"},
		"no time, and a value":            {&valued, []messages.Offer{offer("west", 0, c)}, -1, "completion time"},
	} {
		best, why := Choose(x.spec, now, x.offers)
		if best != x.best || !strings.Contains(why, x.why) {
			t.Errorf("%s: got %d, %q; want %d, %q", name, best, why, x.best, x.why)
		}
	}
}

// TestChooseIsBest checks that no other offer within the budget has a larger surplus than the chosen one.
func TestChooseIsBest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := &messages.JobSpec{Budget: messages.Credits(rapid.Int64Range(1, 20).Draw(t, "budget")) * c,
			Valuation: &messages.Valuation{Class: messages.LinearDecay, Max: float64(rapid.IntRange(1, 20).Draw(t, "max")), Mu: 10, Delta: 90}}
		var offers []messages.Offer
		for range rapid.IntRange(0, 8).Draw(t, "offers") {
			offers = append(offers, offer("west", rapid.Int64Range(0, 120).Draw(t, "at"), messages.Credits(rapid.Int64Range(0, 25).Draw(t, "price"))*c))
		}
		best, _ := Choose(spec, now, offers)
		most := 0.0
		if best >= 0 {
			most = offers[best].Value - offers[best].Price.Float()
			if offers[best].Price > spec.Budget || most < 0 {
				t.Fatalf("took %+v with a budget of %v", offers[best], spec.Budget)
			}
		}
		for i, o := range offers {
			if surplus := o.Value - o.Price.Float(); o.Completion != 0 && o.Price <= spec.Budget && surplus > most {
				t.Fatalf("took %d of %v, and %+v leaves %v", best, offers, offers[i], surplus)
			}
		}
	})
}

// TestExpectSaysHowFullAMarketIs checks the number of free slots in an offer: it is that of the job's class with the
// least room.
func TestExpectSaysHowFullAMarketIs(t *testing.T) {
	prices := []messages.ClassPrice{{Class: "cpu", Slots: 8, Idle: 3, Pending: 5}, {Class: "gpu", Slots: 2, Idle: 2}}
	market := &messages.Market{Name: "main", Mechanism: messages.Proportional, Classes: []messages.Name{"cpu", "gpu", "tape"}}
	for want, stages := range map[int][]messages.Stage{-2: {{Class: "gpu"}, {Class: "cpu"}}, 2: {{Class: "gpu"}}, 0: {{Class: "tape"}}} {
		if o := Expect(&messages.JobSpec{Budget: c, Stages: stages}, &Outlook{Market: market, Prices: prices}); o.Free != want {
			t.Errorf("%+v: %d free slots, want %d", stages, o.Free, want)
		}
	}
}

func TestExpect(t *testing.T) {
	spec := &messages.JobSpec{Budget: 10 * c, Rate: c / 4, Stages: []messages.Stage{{Name: "a", Class: "cpu", Tasks: 4}}}
	estimate := &messages.EstimateReply{Runs: 12,
		Stages:     []messages.RuntimeEstimate{{Spread: messages.Spread{Mean: 5 * second}}},
		Wait:       messages.Spread{Median: 30 * second},
		Completion: messages.Spread{Low: 40 * second, Median: 60 * second, High: 90 * second}}
	busy := []messages.ClassPrice{{Class: "cpu", Slots: 8, Idle: 3, Pending: 2}}
	idle := []messages.ClassPrice{{Class: "cpu", Slots: 8, Idle: 4}}
	reserve := messages.Price(c / 10)
	tariffs := []messages.SlotTariff{{Class: "cpu", Price: c / 20}}
	market := func(mechanism string) *messages.Market {
		m := &messages.Market{Name: "main", Mechanism: mechanism, Classes: []messages.Name{"cpu"}}
		if mechanism == messages.FIFO {
			m.Reserve = &reserve
		}
		return m
	}
	for name, x := range map[string]struct {
		state Outlook
		in    messages.Duration
		price messages.Credits
		basis string
	}{
		"proportional pays the budget":       {Outlook{Market: market(messages.Proportional), Prices: busy, Estimate: estimate}, 60 * second, 10 * c, "3 of 8 slots of cpu idle, 2 wanted"},
		"no wait with idle slots":            {Outlook{Market: market(messages.Proportional), Prices: idle, Estimate: estimate}, 30 * second, 10 * c, "4 of 8 slots"},
		"fifo: 20 slot-seconds at a tenth":   {Outlook{Market: market(messages.FIFO), Prices: busy, Estimate: estimate}, 60 * second, 2 * c, "present prices"},
		"spot: 20 slot-seconds at a 20th":    {Outlook{Market: market(messages.HighestBid), Prices: busy, Tariffs: tariffs, Estimate: estimate}, 60 * second, c, "present prices"},
		"spot at the own bid: a quarter":     {Outlook{Market: market(messages.HighestBid), Prices: busy, Tariffs: []messages.SlotTariff{{Class: "cpu", OwnBid: true}}, Estimate: estimate}, 60 * second, 5 * c, "present prices"},
		"nothing is known":                   {Outlook{Market: market(messages.FIFO), Prices: busy}, 0, 10 * c, "no estimate of the time"},
		"a deadline market asks at the most": {Outlook{Market: market(messages.DeadlineBid), Prices: busy, Estimate: estimate}, 60 * second, 10 * c, "at most the value"},
	} {
		x.state.Site, x.state.Now = "east", now
		o := Expect(spec, &x.state)
		in := messages.Duration(0)
		if o.Completion != 0 {
			in = o.Completion.Sub(now)
		}
		if in != x.in || o.Price != x.price || o.Site != "east" || o.Market != "main" || !strings.Contains(o.Basis, x.basis) {
			t.Errorf("%s: in %v for %v: %s; want %v, %v, %q", name, in, o.Price, o.Basis, x.in, x.price, x.basis)
		}
	}
}

// TestExpectCountsSlots checks that a task of four slots pays for four slots, and is expected to start at once only
// if a node has four.
func TestExpectCountsSlots(t *testing.T) {
	reserve := messages.Price(c / 10)
	market := &messages.Market{Name: "main", Mechanism: messages.FIFO, Classes: []messages.Name{"cpu"}, Reserve: &reserve}
	estimate := &messages.EstimateReply{Runs: 12, Stages: []messages.RuntimeEstimate{{Spread: messages.Spread{Mean: 5 * second}}},
		Wait: messages.Spread{Median: 30 * second}, Completion: messages.Spread{Median: 60 * second}}
	for _, x := range []struct {
		idle, place int
		start, end  messages.Duration
	}{{8, 2, 0, 30 * second}, {8, 1, 30 * second, 60 * second}, {7, 2, 30 * second, 60 * second}} {
		spec := &messages.JobSpec{Budget: 10 * c, Stages: []messages.Stage{{Name: "a", Class: "cpu", Tasks: 2, Width: 4}}}
		o := Expect(spec, &Outlook{Market: market, Now: now, Prices: []messages.ClassPrice{{Class: "cpu", Slots: 8, Idle: x.idle}}, Estimate: estimate, Places: []int{x.place}})
		if o.Price != 4*c || o.Width != 4 || o.SlotHour != 360*c || o.Start != now.Add(x.start) || o.Completion != now.Add(x.end) {
			t.Errorf("%d idle, %d places: %+v", x.idle, x.place, o)
		}
		if !strings.Contains(o.Basis, "each task of a takes 4 slots of cpu") {
			t.Error(o.Basis)
		}
	}
	o := Expect(&messages.JobSpec{Budget: c, Stages: []messages.Stage{{Name: "a", Class: "cpu", Tasks: 2, Width: 4}}}, &Outlook{Market: market, Estimate: estimate})
	if o.Price != c || !strings.Contains(o.Basis, "which would cost 4 credits: more than the budget") {
		t.Errorf("with too small a budget: %v, %s", o.Price, o.Basis)
	}
}

func TestPortable(t *testing.T) {
	if err := Portable(&messages.JobSpec{Stages: []messages.Stage{{Name: "a"}}}); err != nil {
		t.Error(err)
	}
	for field, spec := range map[string]messages.JobSpec{
		"after_jobs":   {AfterJobs: []messages.JobID{1}},
		"after_ok":     {AfterOK: []messages.JobID{1}},
		"after_failed": {AfterFailed: []messages.JobID{1}},
		"after_start":  {AfterStart: []messages.JobID{1}},
		"after_each":   {AfterEach: 1},
	} {
		if err := Portable(&spec); messages.KindOf(err) != messages.Invalid || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: got %v", field, err)
		}
	}
}
