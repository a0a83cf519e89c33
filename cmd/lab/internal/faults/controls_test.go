package faults

import (
	"reflect"
	"testing"
)

// Each element of controls has a bug to insert, the invariant that it violates, and the rates of faults. It also has
// the number of seeds within which the checks must find the bug. BenchmarkControls measures what part of all seeds
// finds a bug. A test misses a bug with a probability below one in 10,000.
var controls = []struct {
	name      string
	bug       Bug
	invariant string
	rates     map[string]float64 // rates that replace the default ones
	within    uint64
}{
	{"a refund on time-out", RefundTimeout, "1", map[string]float64{Reorder: 8}, 35},
	{"a refund of a payment to another site", RefundRemit, "1", nil, 5},
	{"a payment made twice", PaidTwice, "1", nil, 10},
	{"a removed dedupe", NoDedupe, "2", nil, 5},
	{"a stale attempt accepted", StaleAttempt, "2", map[string]float64{Partition: 8, Jump: 4, Isolate: 0, Power: 0, Skew: 4}, 30},
	{"a lease that is not heeded", LeaseIgnored, "2", map[string]float64{Partition: 20, Jump: 0, Skew: 0, Crash: 0, Power: 0}, 45},
	{"a double charge", DoubleCharge, "2", map[string]float64{Loss: 3, Repeat: 3, Delay: 3}, 35},
	{"a skipped sync", SkippedSync, "3", map[string]float64{Power: 6, SlowDisk: 8, Crash: 4}, 5},
	{"a vote without a log", ForgottenVote, "3", map[string]float64{LostDisk: 10, Partition: 6, Crash: 6}, 20},
	{"damage that nobody heals", DamageStays, "4", map[string]float64{Damage: 6}, 10},
	{"a clock in a replica", LocalClock, "4", nil, 10},
	{"a bank that waits for others", WaitsForPeers, "5", map[string]float64{Isolate: 3, Lie: 0}, 10},
	{"an instruction sent once", SentOnce, "5", nil, 10},
	{"shares that do not sum to one", Tilted, "6", nil, 10},
	{"a payment that goes astray", Skim, "6", nil, 5},
	{"a peer without a limit", NoLimit, "1", map[string]float64{Lie: 4}, 20},
	{"a leader that is blind to black holes", BlindToHoles, "8", map[string]float64{BlackHole: 4}, 10},
	{"an effect confirmed before the bank answers", ConfirmedEarly, "5", nil, 10},
	{"a round after the charge of a job that pays", RoundLate, "1", nil, 100},
	{"a settlement forgotten", SettlementForgotten, "5", map[string]float64{SlowDisk: 20}, 50},
	{"an effect that waits for ever", AskForgotten, "5", nil, 50},
	{"a directive that is not repeated", DirectiveOnce, "9", nil, 50},
	{"a lease taken back too early", LeaseEarly, "9", nil, 5},
	{"a lease by the clock on the wall", WallLease, "9", map[string]float64{Jump: 4, Skew: 4}, 10},
	{"a leap of the clock that is paid for", LeapPaid, "1", map[string]float64{Jump: 10, Skew: 10, Crash: 0, Power: 0, LostDisk: 0, Isolate: 0}, 30},
	{"a leader by its machine's clock", BareClock, "5", map[string]float64{Jump: 0, Skew: 20}, 20},
	{"a lease never taken back", LeaseForever, "9", nil, 10},
	{"a gang never disbanded", GangForever, "9", map[string]float64{Jump: 0, Skew: 0}, 50},
	{"an eviction forgotten", EvictionForgotten, "9", map[string]float64{Jump: 0, Skew: 0}, 40},
	{"a settlement proposed anew", SettledAnew, "9", nil, 10},
	{"a decision during another", DecidesTwice, "9", nil, 60},
	{"vectors that go back", VectorBack, "9", nil, 5},
	{"a raise that the bank does not hold", RaiseShort, "1", nil, 20},
	{"a task that begins after it was given back", WithdrawnBegins, "2", map[string]float64{Power: 0, Jump: 0, Crash: 0, Isolate: 0, Partition: 0, BlackHole: 0}, 200},
	{"a rerun of other tasks than those that failed", RerunMoved, "2", nil, 20},
	{"a budget that is spent, and a job that goes on", SpentForgotten, "9", nil, 15},
}

func controlPlan(rates map[string]float64) *Plan {
	p := Default()
	for kind, rate := range rates {
		p.Rates[kind] = rate
	}
	return p
}

func TestPlantedBugsAreFound(t *testing.T) {
	for _, c := range controls {
		t.Run(c.name, func(t *testing.T) {
			if o, ok := find(t, controlPlan(c.rates), c.bug, c.invariant, c.within); ok {
				t.Logf("seed %d: %v", o.Seed, o.Violation)
			}
		})
	}
}

// find returns the outcome of the first seed that finds an inserted bug.
func find(t *testing.T, plan *Plan, bug Bug, invariant string, within uint64) (Outcome, bool) {
	t.Helper()
	for seed := uint64(1); seed <= within; seed++ {
		if o := Run(plan, seed, bug); o.Invariant() == invariant {
			return o, true
		}
	}
	t.Errorf("not found within %d seeds", within)
	return Outcome{}, false
}

// A seed has violated an invariant. Shrink must find a smaller plan with fewer faults and less work, which violates the
// same invariant.
func TestAFailingSeedShrinks(t *testing.T) {
	for _, c := range controls {
		if c.bug != LeaseForever && c.bug != WaitsForPeers {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			plan := controlPlan(c.rates)
			found, ok := find(t, plan, c.bug, c.invariant, c.within)
			if !ok {
				return
			}
			text, err := Shrink(plan, found.Seed, c.bug).YAML()
			if err != nil {
				t.Fatal(err)
			}
			short, err := Decode("plan.yaml", []byte(text))
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			o := Run(short, short.Seed, c.bug)
			if o.Invariant() != c.invariant || len(short.Events) > 4 || len(short.Events) >= len(plan.draw(found.Seed)) || len(short.Events) > 0 && short.Trades+short.Jobs >= plan.Trades+plan.Jobs {
				t.Errorf("violation: %v\n%s", o.Violation, text)
			}
		})
	}
}

// If a seed does not fail, Shrink must return its plan unchanged.
func TestASoundSeedDoesNotShrink(t *testing.T) {
	if got, want := Shrink(Default(), 1, Sound), Drawn(Default(), 1); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func BenchmarkControls(b *testing.B) {
	for _, c := range controls {
		b.Run(c.name, func(b *testing.B) {
			plan, found := controlPlan(c.rates), 0
			for seed := uint64(1); b.Loop(); seed++ {
				if o := Run(plan, seed, c.bug); o.Invariant() == c.invariant {
					found++
				}
			}
			b.ReportMetric(float64(found)/float64(b.N), "found/seed")
		})
	}
}
