package federation

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/job"
	marketmsg "github.com/candor-grid/candor/messages/market"
)

const (
	now    = messages.Time(1_700_000_000_000_000)
	second = messages.Duration(time.Second)
	c      = messages.Credit
)

func offer(site messages.Name, seconds int64, price messages.Credits) clearing.Offer {
	o := clearing.Offer{Site: site, Price: price, Budget: price}
	if seconds > 0 {
		o.Completion = now.Add(messages.Duration(seconds) * second)
	}
	return o
}

func with(o clearing.Offer, free int) clearing.Offer {
	o.Free = free
	return o
}

func TestChoose(t *testing.T) {
	plain := job.JobSpec{Budget: 10 * c}
	hard := job.JobSpec{Budget: 10 * c, Valuation: &job.Valuation{Class: job.Hard, Max: 8, Deadline: 100}}
	decay := job.JobSpec{Budget: 10 * c, Valuation: &job.Valuation{Class: job.LinearDecay, Max: 8, Mu: 0, Delta: 800}}
	valued := job.JobSpec{Budget: 10 * c, Value: 8 * c, Deadline: now.Add(100 * second)}
	for name, x := range map[string]struct {
		spec   *job.JobSpec
		offers []clearing.Offer
		best   int
		why    string
	}{
		"nobody":                          {&plain, nil, -1, "no offer"},
		"the earliest":                    {&plain, []clearing.Offer{offer("west", 50, 1*c), offer("east", 40, 9*c)}, 1, "earliest of 2 offers"},
		"as early for less":               {&plain, []clearing.Offer{offer("west", 50, 2*c), offer("east", 50, 1*c)}, 1, "earliest"},
		"as early for as much: the first": {&plain, []clearing.Offer{offer("west", 50, c), offer("east", 50, c)}, 0, "earliest"},
		"beyond the budget":               {&plain, []clearing.Offer{offer("west", 50, 2*c), offer("east", 40, 11*c)}, 0, "earliest"},
		"all beyond the budget":           {&plain, []clearing.Offer{offer("west", 50, 11*c)}, -1, "within the budget"},
		"a time that is not known":        {&plain, []clearing.Offer{offer("west", 0, c), offer("east", 5000, 2*c)}, 1, "earliest"},
		"no time known":                   {&plain, []clearing.Offer{offer("west", 0, 2*c), offer("east", 0, c)}, 1, "no site knows"},
		"no time known, and other slots":  {&plain, []clearing.Offer{with(offer("west", 0, c), -3), with(offer("east", 0, c), 2)}, 1, "most free slots"},
		"free slots, and a higher price":  {&plain, []clearing.Offer{offer("west", 0, c), with(offer("east", 0, 2*c), 9)}, 0, "cheapest"},
		"later and cheaper in time":       {&hard, []clearing.Offer{offer("west", 10, 6*c), offer("east", 99, 1*c)}, 1, "worth 8 credits"},
		"too late for any value":          {&hard, []clearing.Offer{offer("west", 101, 1*c)}, -1, "no offer is worth its price"},
		"a credit a hundred seconds":      {&decay, []clearing.Offer{offer("west", 100, 4*c), offer("east", 300, 1*c)}, 1, "worth 5 credits"}, // the surpluses are 7−4 and 5−1
		"value and deadline":              {&valued, []clearing.Offer{offer("west", 101, 0), offer("east", 99, 7*c)}, 1, "worth 8 credits"},
		"no time, and a value":            {&valued, []clearing.Offer{offer("west", 0, c)}, -1, "completion time"},
	} {
		best, why := Choose(x.spec, now, x.offers)
		if best != x.best || !strings.Contains(why, x.why) {
			t.Errorf("%s: got %d, %q; want %d, %q", name, best, why, x.best, x.why)
		}
	}
}

// No other offer within the budget may have a larger surplus than the chosen one.
func TestChooseIsBest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := &job.JobSpec{Budget: messages.Credits(rapid.Int64Range(1, 20).Draw(t, "budget")) * c,
			Valuation: &job.Valuation{Class: job.LinearDecay, Max: float64(rapid.IntRange(1, 20).Draw(t, "max")), Mu: 10, Delta: 90}}
		var offers []clearing.Offer
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

// If a job uses several classes, the offer must say how many slots are free in the class with the fewest free slots. A
// negative number is the number of slots that are missing.
func TestExpectSaysHowFullAMarketIs(t *testing.T) {
	prices := []marketmsg.ClassPrice{{Class: "cpu", Slots: 8, Idle: 3, Pending: 5}, {Class: "gpu", Slots: 2, Idle: 2}}
	market := &marketmsg.Market{Name: "main", Mechanism: marketmsg.Proportional, Classes: []messages.Name{"cpu", "gpu", "tape"}}
	for want, stages := range map[int][]job.Stage{-2: {{Class: "gpu"}, {Class: "cpu"}}, 2: {{Class: "gpu"}}, 0: {{Class: "tape"}}} {
		if o := Expect(&job.JobSpec{Budget: c, Stages: stages}, &Outlook{Market: market, Prices: prices}); o.Free != want {
			t.Errorf("%+v: %d free slots, want %d", stages, o.Free, want)
		}
	}
}

func TestExpect(t *testing.T) {
	spec := &job.JobSpec{Budget: 10 * c, Rate: c / 4, Stages: []job.Stage{{Name: "a", Class: "cpu", Tasks: 4}}}
	estimate := &marketmsg.EstimateReply{Runs: 12,
		Stages:     []marketmsg.RuntimeEstimate{{Spread: marketmsg.Spread{Mean: 5 * second}}},
		Wait:       marketmsg.Spread{Median: 30 * second},
		Completion: marketmsg.Spread{Low: 40 * second, Median: 60 * second, High: 90 * second}}
	busy := []marketmsg.ClassPrice{{Class: "cpu", Slots: 8, Idle: 3, Pending: 2}}
	idle := []marketmsg.ClassPrice{{Class: "cpu", Slots: 8, Idle: 4}}
	reserve := messages.Price(c / 10)
	tariffs := []marketmsg.SlotTariff{{Class: "cpu", Price: c / 20}}
	market := func(mechanism string) *marketmsg.Market {
		m := &marketmsg.Market{Name: "main", Mechanism: mechanism, Classes: []messages.Name{"cpu"}}
		if mechanism == marketmsg.FIFO {
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
		"proportional pays the budget":       {Outlook{Market: market(marketmsg.Proportional), Prices: busy, Estimate: estimate}, 60 * second, 10 * c, "3 of 8 slots of cpu idle, 2 wanted"},
		"no wait with idle slots":            {Outlook{Market: market(marketmsg.Proportional), Prices: idle, Estimate: estimate}, 30 * second, 10 * c, "4 of 8 slots"},
		"fifo: 20 slot-seconds at a tenth":   {Outlook{Market: market(marketmsg.FIFO), Prices: busy, Estimate: estimate}, 60 * second, 2 * c, "present prices"},
		"spot: 20 slot-seconds at a 20th":    {Outlook{Market: market(marketmsg.HighestBid), Prices: busy, Tariffs: tariffs, Estimate: estimate}, 60 * second, c, "present prices"},
		"spot at the own bid: a quarter":     {Outlook{Market: market(marketmsg.HighestBid), Prices: busy, Tariffs: []marketmsg.SlotTariff{{Class: "cpu", OwnBid: true}}, Estimate: estimate}, 60 * second, 5 * c, "present prices"},
		"nothing is known":                   {Outlook{Market: market(marketmsg.FIFO), Prices: busy}, 0, 10 * c, "no estimate of the time"},
		"a deadline market asks at the most": {Outlook{Market: market(marketmsg.DeadlineBid), Prices: busy, Estimate: estimate}, 60 * second, 10 * c, "at most the value"},
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

// A task of four slots must pay for four slots, and is expected to start at once only if one node has four idle slots.
func TestExpectCountsSlots(t *testing.T) {
	reserve := messages.Price(c / 10)
	market := &marketmsg.Market{Name: "main", Mechanism: marketmsg.FIFO, Classes: []messages.Name{"cpu"}, Reserve: &reserve}
	estimate := &marketmsg.EstimateReply{Runs: 12, Stages: []marketmsg.RuntimeEstimate{{Spread: marketmsg.Spread{Mean: 5 * second}}},
		Wait: marketmsg.Spread{Median: 30 * second}, Completion: marketmsg.Spread{Median: 60 * second}}
	for _, x := range []struct {
		idle, place int
		start, end  messages.Duration
	}{{8, 2, 0, 30 * second}, {8, 1, 30 * second, 60 * second}, {7, 2, 30 * second, 60 * second}} {
		spec := &job.JobSpec{Budget: 10 * c, Stages: []job.Stage{{Name: "a", Class: "cpu", Tasks: 2, Width: 4}}}
		o := Expect(spec, &Outlook{Market: market, Now: now, Prices: []marketmsg.ClassPrice{{Class: "cpu", Slots: 8, Idle: x.idle}}, Estimate: estimate, Places: []int{x.place}})
		if o.Price != 4*c || o.Width != 4 || o.SlotHour != 360*c || o.Start != now.Add(x.start) || o.Completion != now.Add(x.end) {
			t.Errorf("%d idle, %d places: %+v", x.idle, x.place, o)
		}
		if !strings.Contains(o.Basis, "each task of a takes 4 slots of cpu") {
			t.Error(o.Basis)
		}
	}
	o := Expect(&job.JobSpec{Budget: c, Stages: []job.Stage{{Name: "a", Class: "cpu", Tasks: 2, Width: 4}}}, &Outlook{Market: market, Estimate: estimate})
	if o.Price != c || !strings.Contains(o.Basis, "which would cost 4 credits: more than the budget") {
		t.Errorf("with too small a budget: %v, %s", o.Price, o.Basis)
	}
}

func TestPortable(t *testing.T) {
	if err := Portable(&job.JobSpec{Stages: []job.Stage{{Name: "a"}}}); err != nil {
		t.Error(err)
	}
	for field, spec := range map[string]job.JobSpec{
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
