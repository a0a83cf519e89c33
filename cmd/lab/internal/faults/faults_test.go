package faults

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func fromEnv(t *testing.T, name string, otherwise uint64) uint64 {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s=%q is no number", name, text)
	}
	return n
}

// TestSeeds runs 100 seeds from 1 on. CANDOR_SEEDS and CANDOR_FIRST_SEED change these numbers.
func TestSeeds(t *testing.T) {
	var report Report
	first := fromEnv(t, "CANDOR_FIRST_SEED", 1)
	for seed := first; seed < first+fromEnv(t, "CANDOR_SEEDS", 100); seed++ {
		o := Run(Default(), seed, Sound)
		report.Add(&o)
		if o.Violation != nil {
			fmt.Fprintf(os.Stderr, "seed %d: %v\n", seed, o.Violation) // printed at once, because making the plan smaller takes some time
			short := Shrink(Default(), seed, Sound)
			plan, _ := short.YAML()
			t.Fatalf("seed %d: %v\n%s\n%s", seed, o.Violation, plan, strings.Join(Tell(short, seed, Sound), "\n"))
		}
	}
	t.Logf("%+v", report)
}

// TestSeedsThatFailed runs seeds that once found a fault of the program or of a checker.
func TestSeedsThatFailed(t *testing.T) {
	for seed, why := range map[uint64]string{
		1800001227: "a directive was not heeded by the second answer",
		7100001536: "a desk that began by a clock behind slept too long",
		7101008330: "a desk that began by a clock behind slept too long",
		7300012278: "a late gang was given back late, because a commit had failed",
		7600002581: "a checker counted a drain by a clock that was set",
		8000005359: "a host that had just started led by its wrong clock, and a hold lapsed",
		8000031937: "the second books did not know that holds lapse",
		9000004702: "a snapshot from another replica built on a file of the history that was not on the disk",
		9000003711: "a checker took the end of a drain for that of the next",
		9400000043: "a charge was refused that was asked for again after a task had ended",
		8000043969: "a checker held a leader to its duty that had been succeeded",
		2002320:    "the first leader of a new bank began with its host's clock, which was ahead",
		41371:      "a job was to pay for a task that had failed at once, after its node was found to be at fault",
	} {
		if o := Run(Default(), seed, Sound); o.Violation != nil {
			t.Errorf("seed %d, by which %s: %v", seed, why, o.Violation)
		}
	}
}

// The simulated runs with the default plan must contain every kind of fault, jobs at every site, settlements between
// sites, and sites that stay cut off until the end.
func TestTheWorkloadIsRich(t *testing.T) {
	var report Report
	long := 0
	for seed := uint64(1); seed <= 10; seed++ {
		o := Run(Default(), seed, Sound)
		report.Add(&o)
		for _, e := range Default().draw(seed) {
			if e.Kind == Isolate && e.For > Default().Duration+patience {
				long++
			}
		}
	}
	for _, k := range Kinds {
		if report.Faults[k] == 0 {
			t.Errorf("no fault of kind %s", k)
		}
	}
	if slices.Min(report.Steered[:]) < 3 {
		t.Errorf("released, raised, requeued, cancelled in part, done again and ended by their budgets: %v jobs", report.Steered)
	}
	if report.Jobs < 80 || report.Visits < 10 || report.Alone < 10 || report.Instructions < 200 || long < 3 {
		t.Errorf("%d jobs, %d of other sites, %d during cuts, %d instructions, %d long cuts", report.Jobs, report.Visits, report.Alone, report.Instructions, long)
	}
}

func TestASeedReplaysExactly(t *testing.T) {
	for seed := uint64(1); seed <= 3; seed++ {
		if a, b := Run(Default(), seed, Sound), Run(Default(), seed, Sound); !reflect.DeepEqual(a, b) {
			t.Errorf("seed %d: %+v, and then %+v", seed, a, b)
		}
	}
}

// A plan can name a seed, or list the events that follow from a seed. Both plans must run in the same way.
func TestListedEventsReplayASeed(t *testing.T) {
	for seed := uint64(1); seed <= 3; seed++ {
		text, err := Drawn(Default(), seed).YAML()
		if err != nil {
			t.Fatal(err)
		}
		listed, err := Decode("plan.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if a, b := Run(Default(), seed, Sound), Run(listed, listed.Seed, Sound); !reflect.DeepEqual(a, b) {
			t.Errorf("seed %d: %+v, and from the list %+v", seed, a, b)
		}
	}
}

// A plan may have an empty list of events. The empty list must still be there after the plan was written and read.
// Without a list, random events would be drawn.
func TestAPlanWithoutEventsStaysSo(t *testing.T) {
	text, err := Default().with(nil, 7).YAML()
	if err != nil {
		t.Fatal(err)
	}
	p, err := Decode("plan.yaml", []byte(text))
	if err != nil || p.Rates != nil || len(p.draw(7)) != 0 || p.Seed != 7 {
		t.Errorf("%+v, %v\n%s", p, err, text)
	}
}

func TestTargetsAreDrawnFromAll(t *testing.T) {
	seen := map[string]bool{}
	for seed := uint64(1); seed <= 100; seed++ {
		for _, e := range Default().draw(seed) {
			seen[e.Kind+" "+e.Target] = true
		}
	}
	for _, kind := range Kinds {
		for _, target := range Default().targets(kind) {
			if !seen[kind+" "+target] {
				t.Errorf("%s is never about %q", kind, target)
			}
		}
	}
	if want := []string{"east", "north", "west"}; !slices.Equal(Default().targets(Isolate), want) {
		t.Errorf("targets of %s: %v", Isolate, Default().targets(Isolate))
	}
}

func TestMistakesInPlansAreLocated(t *testing.T) {
	for text, want := range map[string]string{
		"job: 3\n":                    "p.yaml:1:1: ",
		"jobs: -1\n":                  "p.yaml:1:7: jobs: must be from 0",
		"nodes: 2\nrates: {los: 1}\n": "p.yaml:2:14: rates.los: must be one of",
		"events:\n- {at: 1s, kind: crash, target: east.m7}\n": "p.yaml:2:33: events[0].target: must be one of",
		"events:\n- {at: 1s, kind: isolate, target: south}\n": "p.yaml:2:35: events[0].target: must be one of",
		"events:\n- {at: 1s, kind: loss, target: east}\n":     "p.yaml:2:32: events[0].target: must be one of",
		"rates: {loss: 1}\nevents: []\n":                      "p.yaml:1:8: rates: faults are either",
		"jobs: [\n":                                           "p.yaml:1:7: ",
	} {
		if _, err := Decode("p.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error is %v, want %q", text, err, want)
		}
	}
}
