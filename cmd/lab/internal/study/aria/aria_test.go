package aria

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/auctioneer/mechanism/casefile/casetest"
	"github.com/candor-grid/candor/messages"
)

func TestMain(m *testing.M) { casetest.Main(m, 1000) }

// bounds returns the shortest and the longest time that the phase can take on the given number of slots, over all
// orders of its tasks. There must be at least one slot.
func (p *Phase) bounds(slots int) (low, up float64) {
	if p.Tasks == 0 {
		return 0, 0
	}
	n, s := float64(p.Tasks), float64(slots)
	return max(n*p.Mean/s, p.Longest), (n-1)*p.Mean/s + p.Longest
}

// The tasks of a phase start in random order, each on the first free slot. The end of the phase must lie between the
// lower and the upper bound that are computed for it.
func TestBoundsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		durations := rapid.SliceOfN(rapid.Float64Range(0, 10), 1, 30).Draw(t, "durations")
		slots := rapid.IntRange(1, 8).Draw(t, "slots")
		p, sum := Phase{Tasks: len(durations), Longest: slices.Max(durations)}, 0.0
		free := make([]float64, slots)
		for _, d := range durations {
			slices.Sort(free)
			free[0] += d
			sum += d
		}
		p.Mean = sum / float64(len(durations))
		took := slices.Max(free)
		if low, up := p.bounds(slots); took < low*(1-1e-9) || took > up*(1+1e-9) {
			t.Fatalf("%v on %d slots take %v, not %v to %v", durations, slots, took, low, up)
		}
	})
	if low, up := (&Phase{}).bounds(3); low != 0 || up != 0 {
		t.Errorf("no tasks take %v to %v", low, up)
	}
}

func drawPhases(t *rapid.T) ([]Phase, []int) {
	slots := []int{rapid.IntRange(1, 9).Draw(t, "slots"), rapid.IntRange(1, 9).Draw(t, "slots")}
	var phases []Phase
	for range rapid.IntRange(0, 3).Draw(t, "phases") {
		mean := rapid.Float64Range(0, 5).Draw(t, "mean")
		phases = append(phases, Phase{Class: rapid.IntRange(0, 1).Draw(t, "class"), Tasks: rapid.IntRange(0, 20).Draw(t, "tasks"),
			Mean: mean, Longest: mean * rapid.Float64Range(1, 3).Draw(t, "longest")})
	}
	return phases, slots
}

// TestFewest compares Fewest with a search over all numbers of slots.
func TestFewest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		phases, slots := drawPhases(t)
		left := rapid.Float64Range(-1, 100).Draw(t, "left")
		got, ok := Fewest(phases, slots, left, nil)
		least, try := -1, make([]int, len(phases))
		var all func(k, sum int)
		all = func(k, sum int) {
			if k < len(phases) {
				for n := min(1, phases[k].Tasks); n <= min(phases[k].Tasks, slots[phases[k].Class]); n++ {
					try[k] = n
					all(k+1, sum+n)
				}
				return
			}
			if Estimate(phases, try) <= left && (least < 0 || sum < least) {
				least = sum
			}
		}
		all(0, 0)
		if ok != (least >= 0) {
			t.Fatalf("%v, %v, but the least is %d: %+v", got, ok, least, phases)
		}
		sum := 0
		for k, n := range got {
			sum += n
			if n > min(phases[k].Tasks, slots[phases[k].Class]) || n < min(1, phases[k].Tasks) {
				t.Fatalf("%d slots for %+v of %v", n, phases[k], slots)
			}
		}
		if ok && (Estimate(phases, got) > left || sum > least+len(phases)) {
			t.Fatalf("%v takes %v of %v; the least is %d: %+v", got, Estimate(phases, got), left, least, phases)
		}
	})
}

// The example has two phases, and 42 seconds are left. A phase with s slots takes the time a/s + M/2 (see the package
// comment). Here a is 4·(16−1/2) = 62 for the first phase and 4·(4−1/2) = 14 for the second. M is 4 for both phases, so
// the terms M/2 add up to 4, and 38 seconds are left for the terms a/s. The solution in real numbers is
// √62·(√62+√14)/38 = 2.4 slots and √14·(√62+√14)/38 = 1.1 slots.
func TestLagrange(t *testing.T) {
	phases := []Phase{{Tasks: 16, Mean: 4, Longest: 4}, {Class: 1, Tasks: 4, Mean: 4, Longest: 4}}
	slots := []int{16, 4}
	lagrange(phases, 38+4, slots)
	if want := []int{3, 2}; !slices.Equal(slots, want) {
		t.Errorf("%v, want %v", slots, want)
	}
	if got, ok := Fewest(phases, []int{16, 4}, 38+4, nil); !ok || !slices.Equal(got, []int{3, 1}) && !slices.Equal(got, []int{2, 2}) {
		t.Errorf("%v, %v", got, ok)
	}
}

func draw(t *rapid.T) *Instance {
	in := &Instance{Slots: []int{rapid.IntRange(1, 4).Draw(t, "slots"), rapid.IntRange(1, 3).Draw(t, "slots")},
		Rule: rapid.SampledFrom([]Rule{Least, Spare, Most}).Draw(t, "rule")}
	for range rapid.IntRange(0, 8).Draw(t, "jobs") {
		job := Job{Submit: float64(rapid.IntRange(0, 20).Draw(t, "submit")), Value: float64(rapid.IntRange(0, 9).Draw(t, "value"))}
		job.Deadline = job.Submit + float64(rapid.IntRange(-2, 40).Draw(t, "time"))
		for k := range rapid.IntRange(0, 2).Draw(t, "phases") {
			durations := rapid.SliceOfN(rapid.Float64Range(0, 4), 0, 6).Draw(t, "durations")
			p := Phase{Class: k, Tasks: len(durations)}
			for _, d := range durations {
				p.Mean += d / float64(len(durations))
				p.Longest = max(p.Longest, d)
			}
			p.Longest = max(p.Longest, p.Mean)
			job.Phases = append(job.Phases, p)
			job.Durations = append(job.Durations, durations)
		}
		in.Jobs = append(in.Jobs, job)
	}
	return in
}

// The instances are random. No job may end earlier than its work allows. The profit must be the sum of the values of
// all jobs that end before their deadlines. The work of each class must fit in the slots of the class, between the
// first start and the last end of a job.
func TestScheduleIsPossible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := draw(t)
		r, err := Schedule(in)
		if err != nil {
			t.Fatal(err)
		}
		profit, work, last := 0.0, make([]float64, 2), 0.0
		for i, job := range in.Jobs {
			least := 0.0
			for k, p := range job.Phases {
				low, _ := p.bounds(in.Slots[p.Class])
				least += low
				for _, d := range job.Durations[k] {
					work[p.Class] += d
				}
			}
			if !(r.Start[i] >= job.Submit) || !(r.Finish[i] >= r.Start[i]+least-1e-9) {
				t.Fatalf("job %d runs %v to %v, needs %v: %+v", i, r.Start[i], r.Finish[i], least, job)
			}
			if r.InTime[i] != (r.Finish[i] <= job.Deadline) {
				t.Fatalf("job %d ends at %v, in time %v: %+v", i, r.Finish[i], r.InTime[i], job)
			}
			if r.InTime[i] {
				profit += job.Value
			}
			last = max(last, r.Finish[i])
		}
		for j, n := range in.Slots {
			if work[j] > float64(n)*last+1e-9 {
				t.Fatalf("%v slot-seconds of class %d done by %v on %d slots", work[j], j, last, n)
			}
		}
		if profit != r.Profit || r.Offered < r.Profit {
			t.Fatalf("profit %v of %v, want %v", r.Profit, r.Offered, profit)
		}
	})
}

// A job runs alone, with the smallest numbers of slots that are enough for its deadline. There is an upper bound for
// its length with these slots. If the job would be in time even with this length, it must be in time under every rule.
func TestAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		phases, slots := drawPhases(t)
		for k := range phases {
			phases[k].Longest = phases[k].Mean
		}
		left := rapid.Float64Range(0, 60).Draw(t, "left")
		fewest, _ := Fewest(phases, slots, left, nil)
		most := 0.0
		for k := range phases {
			_, up := phases[k].bounds(fewest[k])
			if phases[k].Tasks > 0 {
				most += up
			}
		}
		for _, rule := range []Rule{Spare, Most} {
			r, err := Schedule(&Instance{Slots: slots, Rule: rule, Jobs: []Job{{Submit: 3, Deadline: 3 + left, Value: 1, Phases: phases}}})
			if err != nil {
				t.Fatal(err)
			}
			if most < left-1e-9 && r.Profit != 1 {
				t.Fatalf("rule %d: ends at %v, by %v: %+v", rule, r.Finish[0]-3, left, phases)
			}
		}
	})
}

// Two jobs run on 4 slots. The first has 8 tasks of length 10 and the deadline 100. The second comes a moment later,
// with 3 tasks of length 10 and the deadline 12. The first job would be in time with one slot. With the rule Least it
// gets only this slot. So the second job gets the other three slots, and is in time. With the rules Spare and Most the
// first job gets all slots, so the second job is late.
func TestWhatTheRulesDo(t *testing.T) {
	for _, c := range []struct {
		rule   Rule
		finish []float64
		profit float64
	}{{Least, []float64{80, 11}, 3}, {Spare, []float64{30, 20}, 1}, {Most, []float64{30, 20}, 1}} {
		in := &Instance{Slots: []int{4}, Rule: c.rule, Jobs: []Job{
			{Deadline: 100, Value: 1, Phases: []Phase{{Tasks: 8, Mean: 10, Longest: 10}}},
			{Submit: 1, Deadline: 12, Value: 2, Phases: []Phase{{Tasks: 3, Mean: 10, Longest: 10}}}}}
		r, err := Schedule(in)
		if err != nil || r.Profit != c.profit || !slices.Equal(r.Finish, c.finish) {
			t.Errorf("%+v: %+v, %v", c, r, err)
		}
	}
}

// A job whose deadline has passed must not delay a job that can be in time.
func TestLateJobsGoLast(t *testing.T) {
	one := []Phase{{Tasks: 1, Mean: 10, Longest: 10}}
	r, err := Schedule(&Instance{Slots: []int{1}, Rule: Spare, Jobs: []Job{
		{Deadline: 100, Value: 1, Phases: one}, {Submit: 1, Deadline: 5, Value: 1, Phases: one}, {Submit: 2, Deadline: 20, Value: 1, Phases: one}}})
	if err != nil || !slices.Equal(r.Finish, []float64{10, 30, 20}) || r.Profit != 2 || r.Offered != 3 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestRefuses(t *testing.T) {
	nan := math.NaN()
	for says, change := range map[string]func(*Instance){
		"rule":                         func(in *Instance) { in.Rule = 3 },
		"slots[0]":                     func(in *Instance) { in.Slots[0] = 0 },
		"jobs[0].submit":               func(in *Instance) { in.Jobs[0].Submit = nan },
		"jobs[0].deadline":             func(in *Instance) { in.Jobs[0].Deadline = math.Inf(1) },
		"jobs[0].value":                func(in *Instance) { in.Jobs[0].Value = -1 },
		"jobs[0].phases:":              func(in *Instance) { in.Jobs[0].Phases = make([]Phase, 63) },
		"jobs[0].phases[0].class":      func(in *Instance) { in.Jobs[0].Phases[0].Class = 1 },
		"jobs[0].phases[0].tasks":      func(in *Instance) { in.Jobs[0].Phases[0].Tasks = -1 },
		"jobs[0].phases[0].mean":       func(in *Instance) { in.Jobs[0].Phases[0].Mean = nan },
		"jobs[0].phases[0].longest":    func(in *Instance) { in.Jobs[0].Phases[0].Longest = 1 },
		"jobs[0].durations":            func(in *Instance) { in.Jobs[0].Durations = [][]float64{} },
		"jobs[0].phases[0].durations:": func(in *Instance) { in.Jobs[0].Durations = [][]float64{{1}} },
		"phases[0].durations[1]":       func(in *Instance) { in.Jobs[0].Durations = [][]float64{{1, nan}} },
	} {
		in := &Instance{Slots: []int{1}, Jobs: []Job{{Phases: []Phase{{Tasks: 2, Mean: 2, Longest: 3}}}}}
		change(in)
		if _, err := Schedule(in); messages.KindOf(err) != messages.Invalid || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}

// The 1,000 jobs have 50 map and 10 reduce tasks each. Together they need about all the time that the slots have.
func BenchmarkSchedule(b *testing.B) {
	rng, in := rand.New(rand.NewPCG(1, 2)), &Instance{Slots: []int{100, 20}, Rule: Spare}
	for i := range 1000 {
		submit := float64(i) * 10
		in.Jobs = append(in.Jobs, Job{Submit: submit, Deadline: submit + 500 + 500*rng.Float64(), Value: 1 + rng.Float64(),
			Phases: []Phase{{Tasks: 50, Mean: 20, Longest: 30}, {Class: 1, Tasks: 10, Mean: 20, Longest: 40}}})
	}
	for b.Loop() {
		if _, err := Schedule(in); err != nil {
			b.Fatal(err)
		}
	}
}
