package faults

import (
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// seeds is how many TestSeeds runs; the environment's CANDOR_SEEDS says otherwise.
func seeds(t *testing.T) uint64 {
	text := os.Getenv("CANDOR_SEEDS")
	if text == "" {
		return 200
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		t.Fatalf("CANDOR_SEEDS=%q is no number of seeds", text)
	}
	return n
}

func TestSeeds(t *testing.T) {
	var report Report
	for seed := uint64(1); seed <= seeds(t); seed++ {
		o := Run(Default(), seed, Sound)
		report.Add(&o)
		if o.Violation != nil {
			plan, _ := Shrink(Default(), seed, Sound).YAML()
			t.Fatalf("seed %d: %v\n%s", seed, o.Violation, plan)
		}
	}
	t.Logf("%+v", report)
}

func TestPlantedBugsAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		bug  Bug
		want string
	}{
		"a removed dedupe":         {NoDedupe, "invariant 2"},
		"a skipped sync":           {SkippedSync, "invariant 3"},
		"a stale attempt accepted": {StaleAttempt, "invariant 2"},
		"a double charge":          {DoubleCharge, "invariant 2"},
		"a refund on time-out":     {RefundTimeout, "invariant 1"},
		"a clock in a replica":     {LocalClock, "invariant 4"},
	} {
		t.Run(name, func(t *testing.T) {
			const within = 150
			plan := Default()
			if c.bug != StaleAttempt { // which needs machines that live long
				plan.Rates[Power], plan.Rates[SlowDisk], plan.Rates[Partition] = 4, 4, 4
			}
			for seed := uint64(1); seed <= within; seed++ {
				o := Run(plan, seed, c.bug)
				if o.Violation != nil && strings.Contains(o.Violation.Error(), c.want) {
					t.Logf("seed %d: %v", seed, o.Violation)
					return
				}
			}
			t.Errorf("not found within %d seeds", within)
		})
	}
}

func TestASeedReplaysExactly(t *testing.T) {
	for seed := uint64(1); seed <= 5; seed++ {
		if a, b := Run(Default(), seed, Sound), Run(Default(), seed, Sound); !reflect.DeepEqual(a, b) {
			t.Errorf("seed %d: %+v, and then %+v", seed, a, b)
		}
	}
}

// A shrunk plan, written down and read again, fails still, under fewer faults.
func TestAFailingSeedShrinks(t *testing.T) {
	const seed = 5
	long := Default().draw(seed)
	text, err := Shrink(Default(), seed, RefundTimeout).YAML()
	if err != nil {
		t.Fatal(err)
	}
	short, err := Decode("plan.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if o := Run(short, short.Seed, RefundTimeout); o.Violation == nil || len(short.Events) > 4 || len(long) < 10 {
		t.Errorf("%d of %d faults are left, violation: %v\n%s", len(short.Events), len(long), o.Violation, text)
	}
}

func TestMistakesInPlansAreLocated(t *testing.T) {
	for text, want := range map[string]string{
		"job: 3\n":                    "p.yaml:1:1: ",
		"jobs: 0\n":                   "p.yaml:1:7: jobs: must be from 1",
		"nodes: 2\nrates: {los: 1}\n": "p.yaml:2:14: rates.los: must be one of",
		"events:\n- {at: 1s, kind: crash, target: m7}\n": "p.yaml:2:33: events[0].target: must be one of",
		"rates: {loss: 1}\nevents: []\n":                 "p.yaml:1:8: rates: faults are either",
		"jobs: [\n":                                      "p.yaml:1:7: ",
	} {
		if _, err := Decode("p.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error is %v, want %q", text, err, want)
		}
	}
}
