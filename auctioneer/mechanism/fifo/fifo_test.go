package fifo

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/auctioneer/mechanism/casefile/casetest"
	"github.com/candor-grid/candor/auctioneer/mechanism/rigid"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/market"
)

func TestMain(m *testing.M) { casetest.Main(m, 2000) }

// slowly places the jobs in their order. Each job starts at the earliest time at which enough nodes are free, but not
// before the job placed before it. Nodes become free only when placed jobs end, so it is enough to try these times and
// the job's submission.
func slowly(in *rigid.Instance) []float64 {
	start := make([]float64, len(in.Jobs))
	var placed []int
	ahead := math.Inf(-1)
	for _, i := range in.Arrivals() {
		candidates := []float64{max(ahead, in.Jobs[i].Submit)}
		for _, k := range placed {
			if end := start[k] + in.Jobs[k].Runtime; end > candidates[0] {
				candidates = append(candidates, end)
			}
		}
		slices.Sort(candidates)
		for _, t := range candidates {
			held := 0
			for _, k := range placed {
				if start[k] <= t && t < start[k]+in.Jobs[k].Runtime {
					held += in.Jobs[k].Width
				}
			}
			if held+in.Jobs[i].Width <= in.Nodes {
				start[i], ahead = t, t
				break
			}
		}
		placed = append(placed, i)
	}
	return start
}

func draw(t *rapid.T) *rigid.Instance {
	in := &rigid.Instance{Nodes: rapid.IntRange(1, 8).Draw(t, "nodes")}
	for range rapid.IntRange(0, 25).Draw(t, "jobs") {
		runtime := float64(rapid.IntRange(0, 20).Draw(t, "runtime")) / 3
		in.Jobs = append(in.Jobs, rigid.Job{Submit: float64(rapid.IntRange(0, 20).Draw(t, "submit")),
			Runtime: runtime, Estimate: runtime, Width: rapid.IntRange(1, in.Nodes).Draw(t, "width")})
	}
	return in
}

func TestScheduleIsTheSlowOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := draw(t)
		s, err := Schedule(in)
		if err != nil {
			t.Fatal(err)
		}
		if want := slowly(in); !slices.Equal(s.Start, want) {
			t.Fatalf("starts %v, want %v: %+v", s.Start, want, in)
		}
	})
}

func TestNobodyStartsBeforeTheJobAhead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := draw(t)
		s, err := Schedule(in)
		if err != nil {
			t.Fatal(err)
		}
		last := math.Inf(-1)
		for _, i := range in.Arrivals() {
			if s.Start[i] < last {
				t.Fatalf("job %d starts at %v, one ahead of it at %v: %+v", i, s.Start[i], last, in)
			}
			last = s.Start[i]
		}
	})
}

func TestDocument(t *testing.T) {
	got, err := SolveDocument([]byte(`{"nodes":2,"price":2,"jobs":[
		{"submit":0,"runtime":100,"width":1},
		{"submit":1,"runtime":10,"width":2,"budget":30},
		{"submit":2,"runtime":40,"width":1,"user":"ada","weight":2,"estimate":50}]}`))
	if err != nil {
		t.Fatal(err)
	}
	out := got.(*rigid.Output)
	if want := []float64{0, 100, 110}; !slices.Equal(out.Start, want) {
		t.Errorf("starts %v, want %v", out.Start, want)
	}
	if want := []float64{100, 109, 148}; !slices.Equal(out.Flow, want) {
		t.Errorf("flow %v, want %v", out.Flow, want)
	}
	if want := []float64{1, 109. / 60, 148. / 60}; !slices.Equal(out.BSD, want) {
		t.Errorf("bsd %v, want %v", out.BSD, want)
	}
	if want := []float64{200, 30, 80}; !slices.Equal(out.Payments, want) || out.Revenue != 310 {
		t.Errorf("payments %v, revenue %v, want %v and 310", out.Payments, out.Revenue, want)
	}
	if out.Makespan != 150 || out.Utilisation != 160./300 {
		t.Errorf("makespan %v, utilisation %v", out.Makespan, out.Utilisation)
	}
}

func job(id messages.JobID, arrived messages.Time, pending int) *mechanism.Job {
	return &mechanism.Job{Bid: &mechanism.Bid{Job: id, Arrived: arrived, Budget: 5 * messages.Credit},
		Pending: []int{pending}, Running: []int{0}}
}

func TestLiveMarket(t *testing.T) {
	m := New(market.Market{Name: "main", Classes: []messages.Name{"cpu"}})
	view := &mechanism.View{Classes: []mechanism.Class{{Name: "cpu", Slots: 4}},
		Jobs: []*mechanism.Job{job(1, 30, 1), job(2, 20, 0), job(3, 20, 5), job(4, 20, 5)}}
	if got, want := m.Allocate(view).Weights, [][]float64{{0}, {0}, {1}, {0}}; !reflect.DeepEqual(got, want) {
		t.Errorf("weights %v, want %v", got, want)
	}
	if e := m.Explain(view, view.Jobs[0]); e.Reason != "WaitingForTurn" || e.Message != "2 jobs go before this job: first come, first served" {
		t.Errorf("%+v", e)
	}
	view.Jobs = view.Jobs[1:2]
	if got := m.Allocate(view).Weights; got[0][0] != 0 {
		t.Errorf("weights %v of a job without work pending", got)
	}
}
