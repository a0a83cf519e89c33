package measure

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/deploy/simulated/bids"
	"github.com/candor-grid/candor/deploy/simulated/core"
	"github.com/candor-grid/candor/deploy/simulated/rules"
	"github.com/candor-grid/candor/deploy/simulated/workload"
	"github.com/candor-grid/candor/messages"
)

func run(t *rapid.T, mechanism, worth string) *Study {
	nodes := rapid.IntRange(1, 3).Draw(t, "nodes")
	w := &workload.Workload{Nodes: nodes, Parallel: workload.Split, Users: []int64{1, -1}, Groups: []int64{7}}
	if rules.Wide(mechanism) {
		w.Parallel = workload.Gang
	}
	at := 0
	for i := range rapid.IntRange(1, 10).Draw(t, "jobs") {
		at += rapid.IntRange(0, 60).Draw(t, "gap")
		w.Jobs = append(w.Jobs, workload.Job{Number: int64(i), Submit: float64(at), Runtime: float64(rapid.IntRange(0, 200).Draw(t, "runtime")),
			Width: rapid.IntRange(1, nodes).Draw(t, "width"), User: i % 2})
	}
	m := byDefault(mechanism)
	m.Worth = worth
	if mechanism == rules.Deadline {
		m.Slot = messages.Duration(10e9)
	}
	b := m.Bids.Draw(w, rapid.Uint64().Draw(t, "seed"))
	o, err := core.Run(&core.Problem{Market: m, Work: w, Bids: b})
	if err != nil {
		t.Fatal(err)
	}
	return &Study{Market: m, Work: w, Bids: b, Outcome: o}
}

// An upper bound is computed for each measure of welfare. No mechanism may have more welfare than this bound.
func TestNoMechanismIsAboveTheBound(t *testing.T) {
	for _, mechanism := range []string{rules.HighestBid, rules.FIFO, rules.Backfill, rules.Deadline, rules.Proportional, rules.BatchQueue} {
		for _, worth := range []string{rules.ByDelay, rules.ByDeadline, rules.ByRun} {
			t.Run(mechanism+"/"+worth, func(t *testing.T) {
				rapid.Check(t, func(t *rapid.T) {
					s := run(t, mechanism, worth)
					r, err := s.Report("user")
					if err != nil {
						t.Fatal(err)
					}
					achieved, bound := r.Results.Welfare, s.optimum()
					if achieved > bound+1e-6*math.Abs(bound)+1e-6 {
						t.Fatalf("achieved %v, bound %v: %+v", achieved, bound, s.Work.Jobs)
					}
					checkSums(t, r)
				})
			})
		}
	}
}

// The numbers of the groups must add up to the numbers of the whole report.
func checkSums(t *rapid.T, r *Report) {
	jobs, paid, welfare := 0, 0.0, 0.0
	for _, g := range r.Groups {
		jobs, paid, welfare = jobs+g.Jobs, paid+g.Revenue, welfare+g.Welfare
	}
	all := &r.Results
	if jobs != all.Jobs || math.Abs(paid-all.Revenue) > 1e-5 || math.Abs(welfare-all.Welfare) > 1e-6*(1+math.Abs(all.Welfare)) {
		t.Fatalf("groups come to %d jobs, %v, %v; all are %d, %v, %v", jobs, paid, welfare, all.Jobs, all.Revenue, all.Welfare)
	}
	if want := map[bool]string{true: "balanced", false: "surplus"}[r.Market.Mechanism == rules.BatchQueue || all.Payments == 0]; all.Balance != want {
		t.Fatalf("the budget is called %s, %v were paid and %v received", all.Balance, all.Payments, all.Receipts)
	}
	if all.Completed+all.Discarded+all.Expired+all.Refused != all.Jobs || all.Utilisation < 0 || all.Utilisation > 1+1e-9 {
		t.Fatalf("%+v", all)
	}
}

// All jobs are there at the start. So the lower bound for the cost of delay must be the cost of Smith's order. By hand:
// the first job has the cost of delay 10 per second and ends at 2, so it costs 10·2. The second has 3 per second and
// ends at 7, so it costs 3·7.
func TestDelayIsExactOnOneSlot(t *testing.T) {
	w := &workload.Workload{Nodes: 1, Jobs: []workload.Job{{Runtime: 5, Width: 1}, {Runtime: 2, Width: 1}}}
	s := &Study{Work: w, Bids: []bids.Bid{{Value: 3}, {Value: 10}}, Outcome: &core.Outcome{Jobs: make([]core.Job, 2)}}
	if got := s.Delay(); math.Abs(got-(10*2+3*7)) > 1e-9 {
		t.Errorf("bound %v, want 41", got)
	}
}

// The bound is the largest value that a schedule could have. If there is more work than time, the bound must be below
// the sum of the values of all jobs. It must never be below the value of the best set of jobs that can all meet their
// deadlines.
func TestValueIsNearTheOptimum(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	w, b := &workload.Workload{Nodes: 1}, []bids.Bid{}
	for range 100 { // 100 jobs of 10 s, all due at 100 s: only ten fit
		w.Jobs = append(w.Jobs, workload.Job{Runtime: 10, Width: 1})
		b = append(b, bids.Bid{Value: 1 + rng.Float64(), Deadline: 100})
	}
	all, best := 0.0, make([]float64, 0, 100)
	for i := range b {
		all += 10 * b[i].Value
		best = append(best, 10*b[i].Value)
	}
	optimum := 0.0
	for range 10 {
		at := 0
		for i := range best {
			if best[i] > best[at] {
				at = i
			}
		}
		optimum += best[at]
		best[at] = 0
	}
	s := &Study{Work: w, Bids: b}
	if got := s.Value(); got < optimum || got > 1.1*optimum || got > all/4 {
		t.Errorf("bound %v, optimum %v, all %v", got, optimum, all)
	}
}

func TestSpread(t *testing.T) {
	if got := (spread([]float64{3, 1, 2, 10})); got != (Spread{4, 2, 10, 10}) {
		t.Errorf("%+v", got)
	}
	if got := spread(nil); got != (Spread{}) {
		t.Errorf("%+v", got)
	}
}

func TestGroupings(t *testing.T) {
	w := &workload.Workload{Nodes: 1, Users: []int64{5, -1}, Groups: []int64{2}, Jobs: []workload.Job{{Runtime: 5, Width: 1}, {Runtime: 2, Width: 3, User: 1, Queue: 4}}}
	s := &Study{Market: byDefault(rules.FIFO), Work: w, Bids: []bids.Bid{{Value: 3, High: true}, {Value: 1, Aggressive: true}}, Outcome: &core.Outcome{Jobs: make([]core.Job, 2)}}
	for by, want := range map[string]string{"user": "unknown", "group": "group 2", "value": "low value", "shading": "aggressive", "width": "up to 4", "queue": "queue 4"} {
		name, err := s.namer(by)
		if err != nil || name(1) != want {
			t.Errorf("%s: %v, want %s", by, err, want)
		}
	}
	if _, err := s.Report("colour"); messages.KindOf(err) != messages.Invalid {
		t.Errorf("a grouping that is none: %v", err)
	}
}

func byDefault(mechanism string) *rules.Market {
	m, err := rules.Decode("market", []byte("mechanism: "+mechanism))
	if err != nil {
		panic(err)
	}
	m.Bids = bids.Default()
	return m
}

// The bid has a length of 10 s and a deadline 50 s after the submission. If the job ends within its length, it must be
// worth its full value. After this time, its worth must fall linearly. In the middle between this time and the
// deadline, it must be half of the value. At the deadline and later, it must be 0.
func TestWorthThatDecays(t *testing.T) {
	j, b := &workload.Job{Submit: 100, Width: 2}, &bids.Bid{Value: 3, Length: 10, Deadline: 150}
	j.Runtime = 10
	for at, want := range map[float64]float64{105: 60, 110: 60, 130: 30, 150: 0, 400: 0} {
		if got := Worth(rules.ByDecay, j, b, &core.Job{Finish: at, Fate: core.Completed}); math.Abs(got-want) > 1e-9 {
			t.Errorf("at %v: worth %v, want %v", at, got, want)
		}
	}
	if got := Worth(rules.ByDecay, j, b, &core.Job{Finish: 105, Fate: core.Expired}); got != 0 {
		t.Errorf("not completed: %v", got)
	}
}
