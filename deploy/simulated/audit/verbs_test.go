package audit

import (
	"math"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/candor-grid/candor/deploy/simulated/core"
	"github.com/candor-grid/candor/deploy/simulated/grid"
)

// failing matches steps in which the owner has the result and lets the job fail.
const failing = "exits with 1|cancels when the result|requeues when the result"

// planted has markets that lack one of their rules; a missing rule is called a hole. Each entry also describes the jobs
// on which the search must find the hole.
var planted = map[string]struct {
	market       string
	hole         hole
	nodes, width int // number of nodes of the study, and width of its jobs
	every        float64
	VerbOptions
	known []string // steps that are known to bring a gain
	says  string   // pattern that a found sequence must match
}{
	"deadline, free computing": {"mechanism: deadline\nslot: 1m\n", unpriced, 2, 1, 1, VerbOptions{Jobs: 80, Window: 20},
		[]string{"exits with 1 in its only attempt", "declares a unit more than is needed"}, failing},
	"contract, retry until worthless": {softContract, unpriced, 4, 1, 1, VerbOptions{Jobs: 60, Window: 24},
		[]string{"exits with 1 in each of 3 attempts"}, failing},
	"contract, quotes are shopped": {"mechanism: contract\nM: 2\nbids: {deadline: {slack: exponential, mean: 4, least: 60}}\n", shopped, 3, 1, 1, VerbOptions{Jobs: 120, Window: 24},
		[]string{"asks for 10 menus"}, "menus"},
	"proportional, starts are sold": {"mechanism: proportional\n", byStarts, 8, 100, 1, VerbOptions{Jobs: 8, Window: 12, Slots: 8},
		[]string{"packs 4 tasks into one"}, "packs|array"},
	"proportional": {"mechanism: proportional\n", unowed, 4, 6, 1, VerbOptions{Jobs: 6, Window: 16}, []string{"exits with 1 in its only attempt"}, failing},
	"highest-bid":  {"mechanism: highest-bid\n", unowed, 4, 1, 1, VerbOptions{Jobs: 6, Window: 16}, []string{"exits with 1 in its only attempt"}, failing},
	"pivot prices": {"mechanism: highest-bid\nprice: pivot\n", unowed, 4, 1, 1, VerbOptions{Jobs: 6, Window: 16}, []string{"exits with 1 in its only attempt"}, failing},
	"batch-queue":  {"mechanism: batch-queue\npricing: pivot\n", unowed, 4, 1, 1, VerbOptions{Jobs: 24, Window: 24}, []string{"exits with 1 in its only attempt"}, failing},
	"reservation":  {"mechanism: reservation\nmode: fixed\nT: 120\ngranule: 1m\n", unowed, 2, 1, 10, VerbOptions{Jobs: 60, Window: 48}, []string{"exits with 1 in its only attempt"}, failing},
	"fifo":         {"mechanism: fifo\nprice: 1\n", unowed, 4, 1, 1, VerbOptions{Jobs: 6, Window: 16}, []string{"exits with 1 in its only attempt"}, failing},
}

const softContract = "mechanism: contract\nworth: decay\nM: 8\nbids: {deadline: {slack: exponential, mean: 4, least: 60}}\n"

// plantedIn returns the study for one entry of the map `planted`. It multiplies all times of the jobs by the factor
// `every` of this entry.
func plantedIn(t *testing.T, name string) *core.Problem {
	c := planted[name]
	p := crowd(t, 600, c.market, c.width)
	p.Work.Nodes = c.nodes
	for i := range p.Work.Jobs {
		p.Work.Jobs[i].Submit *= c.every
		p.Work.Jobs[i].Runtime *= c.every
	}
	p.Bids = p.Market.Bids.Draw(p.Work, 5)
	return p
}

// without measures how much more one plan gains in a market without one of its rules (a hole) than in the full market.
// The plan is chosen by `of`. For each of the first jobs, the function returns the gain in the hole minus the gain in
// the full market.
func without(t *testing.T, name string, jobs int, of func(*hunt) plan) []float64 {
	c := planted[name]
	var gains [2][]float64
	for k, hole := range []hole{c.hole, noHole} {
		o := c.VerbOptions
		o.hole = hole
		h := newHunt(plantedIn(t, name), o)
		scenes, err := h.scenes(jobs, 1)
		if err != nil {
			t.Fatal(err)
		}
		tried := &candidate{plan: of(h)}
		if _, err := h.best([]*candidate{tried}, scenes, 1); err != nil || tried.void {
			t.Fatalf("%v: cannot be done: %v", tried.words(h.steps), err)
		}
		gains[k] = bounded(tried.gains)
		mean, ci := confidence(gains[k])
		t.Logf("%q: %.4f %.4f", hole, mean, ci)
	}
	for k := range gains[0] {
		gains[0][k] -= gains[1][k]
	}
	return gains[0]
}

func knownIn(words ...string) func(h *hunt) plan {
	return func(h *hunt) (of plan) {
		for _, words := range words {
			of = append(of, slices.IndexFunc(h.steps, func(s step) bool { return s.words == words }))
		}
		return of
	}
}

// A user packs several tasks into one wide task. If the market counts a wide task like a narrow task, the user must
// gain by this. If the market divides slot time, and not numbers of tasks, the user must not gain.
func TestWideTasksMustCountTheirSlots(t *testing.T) {
	const name = "proportional, starts are sold"
	packed := knownIn("packs 4 tasks side by side into one of 4 slots")
	if more, ci := confidence(without(t, name, 24, packed)); ci[0] <= Rounding {
		t.Errorf("it gains %.4f %.4f more without the rule", more, ci)
	}
}

// Each rule of a market makes certain sequences of commands useless to a user. The test removes one rule at a time.
// Without the rule, these sequences must gain more for the user than with the rule.
func TestEachRuleMatters(t *testing.T) {
	for name, c := range planted {
		t.Run(name, func(t *testing.T) {
			if more, ci := confidence(without(t, name, c.Jobs, knownIn(c.known...))); ci[0] <= Rounding {
				t.Errorf("%v gains %.4f %.4f more without the rule", c.known, more, ci)
			}
		})
	}
}

// TestVerbsFindEachHole removes a rule from a market. A search must then find a sequence of commands that gains. With
// the rule, this sequence must gain less. The test removes one rule; with CANDOR_HOLES=all it removes each rule in
// turn.
func TestVerbsFindEachHole(t *testing.T) {
	sample, every := 2, os.Getenv("CANDOR_HOLES") == "all"
	if every {
		sample = 4
	}
	for name, c := range planted {
		if !every && name != "deadline, free computing" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			o := c.VerbOptions
			o.Jobs, o.Tries, o.hole = sample*c.Jobs, 4, c.hole
			found, err := search(plantedIn(t, name), o)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%+v", found)
			if !found.Fired() || !regexp.MustCompile(c.says).MatchString(found.Sequence) {
				t.Fatalf("with the hole it finds: %+v", found)
			}
			if more, ci := confidence(without(t, name, max(c.Jobs, 48), func(*hunt) plan { return found.plan })); ci[0] <= Rounding {
				t.Errorf("%s gains %.4f %.4f more without the rule", found.Sequence, more, ci)
			}
		})
	}
}

// In a fifo market, the search for sequences of requests that pay must find none.
func TestNoSequenceGainsInAQueue(t *testing.T) {
	p := crowd(t, 60, "mechanism: fifo\n", 1)
	p.Work.Nodes = 2
	if v, err := search(p, VerbOptions{Jobs: 8, Tries: 4, Window: 16}); err != nil || v.Fired() || v.Tried < 40 {
		t.Errorf("it finds: %+v %v", v, err)
	}
}

// Each change of a sequence must give a sequence of 1 to 4 steps, in which no step occurs twice.
func TestASequenceIsAChangeOfAnother(t *testing.T) {
	h := newHunt(crowd(t, 10, "mechanism: contract\n", 1), VerbOptions{})
	s := plan{1}
	for range 1000 {
		if s = s.neighbour(h.rng, h.steps); len(s) < 1 || len(s) > longest || slices.Max(s) >= len(h.steps) {
			t.Fatalf("%v", s)
		}
		if sorted := slices.Sorted(slices.Values(s)); len(slices.Compact(sorted)) < len(s) {
			t.Fatalf("%v does a step twice", s)
		}
	}
}

// TestWaysOutEndAsTheySay lets owners do what a step describes, such as "exits with 1 in its only attempt". The job
// must have the fate and the total run time that this description implies.
func TestWaysOutEndAsTheySay(t *testing.T) {
	p := crowd(t, 1, "mechanism: fifo\n", 1)
	takes := p.Work.Jobs[0].Runtime
	for _, c := range []struct {
		words string
		fate  core.Fate
		times float64 // time from the start to the end of the job, as a multiple of the task's run time
	}{
		{"exits with 1, once, and the retry is over at once", core.Completed, 1},
		{"exits with 1, once, and runs again in full", core.Completed, 2},
		{"exits with 1 in each of 3 attempts", core.Expired, 3},
		{"exits with 1 in its only attempt", core.Expired, 1},
		{"cancels when the result is printed", core.Expired, 1},
		{"requeues when the result is printed", core.Completed, 2},
	} {
		of := &grid.Owner{}
		steps := outs()
		step := steps[slices.IndexFunc(steps, func(s step) bool { return s.words == c.words })]
		step.do([]entry{{owner: of}}, p)
		o, _, err := grid.Run(p, grid.Config{Owners: map[int]*grid.Owner{0: of}})
		if err != nil {
			t.Fatal(err)
		}
		if r := &o.Jobs[0]; r.Fate != c.fate || math.Abs(r.Finish-r.Start-c.times*takes) > 2 {
			t.Errorf("%s: %v, over %.1f s after its start, with a task of %.1f s", c.words, r.Fate, r.Finish-r.Start, takes)
		}
	}
}
