package backfill

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	marketmsg "github.com/candor-grid/candor/messages/market"
)

const second = 1_000_000 // a second in the unit of messages.Time, which is a microsecond

func newMechanism(v Variant) *Mechanism {
	return New(marketmsg.Market{Name: "main", Classes: []messages.Name{"cpu"}, Mode: string(v)})
}

func job(id messages.JobID, width, length, pending, running int) *mechanism.Job {
	return &mechanism.Job{Bid: &mechanism.Bid{Job: id, Arrived: messages.Time(id), Width: width, Length: messages.Duration(length) * 1e9},
		Pending: []int{pending}, Running: []int{running}}
}

// market returns a view of 4 slots, 3 of them held by a gang until second 10.
func market(jobs ...*mechanism.Job) *mechanism.View {
	gang := job(1, 3, 10, 0, 3)
	return &mechanism.View{Now: 2 * second, Classes: []mechanism.Class{{Name: "cpu", Slots: 4, Idle: 1}}, Jobs: append([]*mechanism.Job{gang}, jobs...)}
}

func start(id messages.JobID, slots int) mechanism.Directive {
	return mechanism.Directive{Job: id, Action: mechanism.Start, Slots: slots}
}

func TestLiveMarket(t *testing.T) {
	both := []Variant{EASY, Conservative}
	for _, c := range []struct {
		what     string
		variants []Variant
		jobs     []*mechanism.Job
		want     []mechanism.Directive
		weights  []float64
	}{
		{"what fits starts", both, []*mechanism.Job{job(2, 1, 50, 9, 0)}, []mechanism.Directive{start(2, 1)}, []float64{0, 1}},
		{"a short one behind a wide one", both, []*mechanism.Job{job(2, 4, 5, 4, 0), job(3, 1, 8, 1, 0)}, []mechanism.Directive{start(3, 1)}, []float64{0, 0, 1}},
		{"a long one behind a wide one", both, []*mechanism.Job{job(2, 4, 5, 4, 0), job(3, 1, 9, 1, 0)}, nil, []float64{0, 1, 0}},
		{"one of unknown length", both, []*mechanism.Job{job(2, 4, 5, 4, 0), job(3, 1, 0, 1, 0)}, nil, []float64{0, 1, 0}},
		{"in what is spare", both, []*mechanism.Job{job(2, 3, 5, 3, 0), job(3, 1, 0, 7, 0)}, []mechanism.Directive{start(3, 1)}, []float64{0, 0, 1}},
		{"wider than the class is now", both, []*mechanism.Job{job(2, 9, 5, 9, 0), job(3, 1, 50, 1, 0)}, []mechanism.Directive{start(3, 1)}, []float64{0, 0, 1}},
		{"delays the second in line", []Variant{EASY}, []*mechanism.Job{job(2, 3, 5, 3, 0), job(3, 2, 5, 2, 0), job(4, 1, 50, 1, 0)}, []mechanism.Directive{start(4, 1)}, []float64{0, 0, 0, 1}},
		{"must not delay the second in line", []Variant{Conservative}, []*mechanism.Job{job(2, 3, 5, 3, 0), job(3, 4, 5, 4, 0), job(4, 1, 50, 1, 0)}, nil, []float64{0, 1, 0, 0}},
		{"the rest of a gang", both, []*mechanism.Job{job(2, 4, 5, 1, 3)}, []mechanism.Directive{start(2, 1)}, []float64{0, 1}},
	} {
		for _, v := range c.variants {
			view := market(c.jobs...)
			a := newMechanism(v).Allocate(view)
			var weights []float64
			for _, row := range a.Weights {
				weights = append(weights, row[0])
			}
			if !slices.Equal(a.Directives, c.want) || !slices.Equal(weights, c.weights) {
				t.Errorf("%s, %s: %+v %v, want %+v %v", c.what, v, a.Directives, weights, c.want, c.weights)
			}
			wake := messages.Time(11 * second) // one second after the expected end of job 1
			if c.what == "the rest of a gang" {
				wake = 6 * second // here another job is expected to end first
			}
			if a.Wake != wake {
				t.Errorf("%s, %s: wakes at %v", c.what, v, a.Wake)
			}
		}
	}
}

func wide(id messages.JobID, width, length, pending int) *mechanism.Job {
	j := job(id, width, length, pending, 0)
	j.Alone = width
	return j
}

// There are 3 idle slots. A task of 2 slots gets two of them. A task of 4 slots waits, and is promised a start at
// second 10, when the slots of job 1 are expected to be free.
func TestWideTasksStartWhole(t *testing.T) {
	view := market(wide(2, 2, 5, 8), wide(3, 4, 5, 4), job(4, 1, 50, 1, 0))
	view.Classes[0] = mechanism.Class{Name: "cpu", Slots: 6, Idle: 3}
	for _, c := range []struct {
		variant Variant
		want    []mechanism.Directive
	}{
		{EASY, []mechanism.Directive{start(2, 2), start(4, 1)}}, // at second 10 job 3 takes 4 of the 6 slots, and 2 are left
		{Conservative, []mechanism.Directive{start(2, 2), start(4, 1)}},
	} {
		if a := newMechanism(c.variant).Allocate(view); !slices.Equal(a.Directives, c.want) {
			t.Errorf("%s: %+v, want %+v", c.variant, a.Directives, c.want)
		}
	}
}

// 2 of 5 slots are idle. The wide job takes 4 slots and starts at second 10, so only one slot stays free from then on.
// So only one job that runs beyond second 10 may start now.
func TestSpareIsUsedUp(t *testing.T) {
	view := market(job(2, 4, 5, 4, 0), job(3, 1, 50, 1, 0), job(4, 1, 50, 1, 0), job(5, 1, 8, 1, 0))
	view.Classes[0] = mechanism.Class{Name: "cpu", Slots: 5, Idle: 2}
	want := []mechanism.Directive{start(3, 1), start(5, 1)}
	if a := newMechanism(EASY).Allocate(view); !slices.Equal(a.Directives, want) {
		t.Errorf("%+v, want %+v", a.Directives, want)
	}
}

func TestNothingWaits(t *testing.T) {
	a := newMechanism(EASY).Allocate(market())
	if len(a.Directives) != 0 || a.Wake != 0 || !reflect.DeepEqual(a.Weights, [][]float64{{0}}) {
		t.Errorf("%+v", a)
	}
}

func TestExpected(t *testing.T) {
	for _, c := range []struct {
		width, length int
		now, want     float64
	}{
		{3, 10, 0, 10}, {3, 10, 9.5, 10}, {3, 10, 10, 11}, {3, 10, 10.5, 11}, {3, 10, 11, 20}, {3, 10, 25, 40}, {3, 10, 45, 80}, // columns: width, length, now, expected end; after the expected end, the expected length is doubled
		{1, 10, 25, 30}, {1, 10, 20.5, 21}, {1, 10, 45, 50}, // with one slot, the tasks run one after the other
		{3, 0, 5, math.Inf(1)},
	} {
		if got := expected(job(1, c.width, c.length, 0, 1), c.now*second); got != c.want*second {
			t.Errorf("%+v: %v", c, got/second)
		}
	}
}

// The mechanism may start only pending tasks on idle slots, and the weights must sum to 1. If all tasks take one slot,
// a slot may be idle only if no task is pending.
func TestOrdersFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMechanism(rapid.SampledFrom([]Variant{EASY, Conservative}).Draw(t, "variant"))
		idle, widest := rapid.IntRange(0, 5).Draw(t, "idle"), rapid.SampledFrom([]int{0, 1, 6}).Draw(t, "widest")
		view := &mechanism.View{Now: 100 * second, Classes: []mechanism.Class{{Slots: 8, Idle: idle}}}
		pending := 0
		for id := range rapid.IntRange(0, 8).Draw(t, "jobs") {
			j := job(messages.JobID(id+1), rapid.IntRange(0, widest).Draw(t, "width"), rapid.IntRange(0, 60).Draw(t, "length"),
				rapid.IntRange(0, 6).Draw(t, "pending"), rapid.IntRange(0, 2).Draw(t, "running"))
			j.Started = messages.Time(rapid.IntRange(1, 100).Draw(t, "started")) * second
			view.Jobs = append(view.Jobs, j)
			pending += j.Pending[0]
		}
		a := m.Allocate(view)
		ordered, sum := 0, 0.0
		for _, d := range a.Directives {
			j := view.Jobs[d.Job-1]
			if d.Slots < 1 || d.Slots > j.Pending[0] || j.Width > 1 && d.Slots != min(j.Width, j.Pending[0]) {
				t.Fatalf("%+v of %+v", d, j)
			}
			ordered += d.Slots
		}
		for _, row := range a.Weights {
			sum += row[0]
		}
		if ordered > idle || widest <= 1 && ordered != min(idle, pending) {
			t.Fatalf("%d ordered, %d idle, %d pending", ordered, idle, pending)
		}
		if pending > 0 && math.Abs(sum-1) > 1e-12 || pending == 0 && sum != 0 {
			t.Fatalf("weights add up to %v", sum)
		}
	})
}

func TestEasyIsTheDefault(t *testing.T) {
	if m := newMechanism(""); m.variant != EASY {
		t.Errorf("%+v", m)
	}
}

func TestExplain(t *testing.T) {
	m, view := newMechanism(EASY), market(job(2, 4, 5, 4, 0), job(3, 1, 9, 1, 0))
	if e := m.Explain(view, view.Jobs[2]); e.Reason != mechanism.WaitingForTurn {
		t.Errorf("%+v", e)
	}
	if e := m.Explain(view, view.Jobs[1]); e.Reason != mechanism.NextInTurn {
		t.Errorf("%+v", e)
	}
}

// Maintenance takes 2 of 4 idle slots away, from second 100 to second 200. A job that would still run at second 100 may
// start only on the other 2 slots. A shorter job that was submitted later, and ends before second 100, starts first.
func TestJobsEndBeforeMaintenance(t *testing.T) {
	view := func(jobs ...*mechanism.Job) *mechanism.View {
		return &mechanism.View{Now: 2 * second, Classes: []mechanism.Class{{Name: "cpu", Slots: 4, Idle: 4, Closings: []mechanism.Closing{{From: 100 * second, To: 200 * second, Slots: 2}}}}, Jobs: jobs}
	}
	limited := job(1, 3, 0, 3, 0)
	limited.Limit = 98e9
	for _, c := range []struct {
		what string
		jobs []*mechanism.Job
		want []mechanism.Directive
	}{
		{"ends before", []*mechanism.Job{job(1, 4, 98, 4, 0)}, []mechanism.Directive{start(1, 4)}},
		{"its limit ends before", []*mechanism.Job{limited}, []mechanism.Directive{start(1, 3)}},
		{"ends too late", []*mechanism.Job{job(1, 3, 99, 3, 0)}, nil},
		{"on the other slots", []*mechanism.Job{job(1, 2, 500, 2, 0)}, []mechanism.Directive{start(1, 2)}},
		{"a shorter one goes first", []*mechanism.Job{job(1, 3, 99, 3, 0), job(2, 4, 50, 4, 0)}, []mechanism.Directive{start(2, 4)}},
	} {
		for _, v := range []Variant{EASY, Conservative} {
			if a := newMechanism(v).Allocate(view(c.jobs...)); !slices.Equal(a.Directives, c.want) {
				t.Errorf("%s, %s: %+v, want %+v", c.what, v, a.Directives, c.want)
			}
		}
	}
}
