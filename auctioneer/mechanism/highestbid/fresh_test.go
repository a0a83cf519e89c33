package highestbid

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/messages"
)

// TestStepsAgainstAFreshMarket: after any arrivals, departures, withdrawals and
// changes of the number of slots, each job has the slots, and the tariff is the
// one, that a market made anew with the offers there are comes to.
func TestStepsAgainstAFreshMarket(t *testing.T) {
	for range 10 {
		rapid.Check(t, func(t *rapid.T) {
			rule, slots := Rule{HB, rapid.SampledFrom([]Price{First, Kth}).Draw(t, "price"), false}, 2
			m, err := NewMarket(rule, messages.Credit, slots)
			fail(t, err)
			var offers []Offer
			for k := range messages.Time(rapid.IntRange(1, 40).Draw(t, "instants")) {
				for range rapid.IntRange(0, 3).Draw(t, "events") {
					switch kind := rapid.IntRange(0, 5).Draw(t, "kind"); {
					case kind == 0:
						slots = rapid.IntRange(0, 6).Draw(t, "slots")
						fail(t, m.Resize(k, slots))
					case kind < 4 || len(offers) == 0:
						offers = append(offers, arrival(t, m, k, len(offers)))
					default:
						offers = departure(t, m, k, offers, kind == 4)
					}
				}
				_, err := m.Decide(k)
				fail(t, err)
				asFresh(t, rule, m, slots, offers)
			}
		})
	}
}

func arrival(t *rapid.T, m *Market, now messages.Time, n int) Offer {
	o := Offer{Job: messages.JobID(now*100) + messages.JobID(n) + 1, Slots: rapid.IntRange(1, 3).Draw(t, "wants"),
		Rate: messages.Credits(rapid.IntRange(0, 5).Draw(t, "rate")) * messages.Credit}
	for _, taken := m.number[o.Job]; taken; _, taken = m.number[o.Job] {
		o.Job++
	}
	fail(t, m.Arrive(now, o))
	return o
}

// departure withdraws a job, or finishes a slot of one that has any.
func departure(t *rapid.T, m *Market, now messages.Time, offers []Offer, withdraw bool) []Offer {
	i := rapid.IntRange(0, len(offers)-1).Draw(t, "which")
	o := &offers[i]
	if withdraw {
		_, err := m.Withdraw(now, o.Job)
		fail(t, err)
		return slices.Delete(offers, i, i+1)
	}
	if has, _ := m.Slots(o.Job); has == 0 {
		return offers
	}
	_, err := m.Finish(now, o.Job, 1)
	fail(t, err)
	if o.Slots--; o.Slots == 0 {
		return slices.Delete(offers, i, i+1)
	}
	return offers
}

func asFresh(t *rapid.T, rule Rule, m *Market, slots int, offers []Offer) {
	fresh, err := NewMarket(rule, messages.Credit, slots)
	fail(t, err)
	for _, o := range offers {
		fail(t, fresh.Arrive(0, o))
	}
	_, err = fresh.Decide(0)
	fail(t, err)
	for _, o := range offers {
		has, waits := m.Slots(o.Job)
		if h, w := fresh.Slots(o.Job); h != has || w != waits {
			t.Fatalf("job %d has %d and waits for %d; made anew, %d and %d: %+v", o.Job, has, waits, h, w, offers)
		}
	}
	next, any := m.Next()
	if n, a := fresh.Next(); n != next || a != any || m.Tariff() != fresh.Tariff() {
		t.Fatalf("next %d at %+v; made anew, %d at %+v: %+v", next, m.Tariff(), n, fresh.Tariff(), offers)
	}
	if open := len(m.meter.accounts.began) - 1 - len(m.meter.accounts.free); open > len(offers) {
		t.Fatalf("%d bills for %d jobs", open, len(offers))
	}
}
