package rigid_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/auctioneer/mechanism/backfill"
	"github.com/candor-grid/candor/auctioneer/mechanism/casefile/casetest"
	"github.com/candor-grid/candor/auctioneer/mechanism/fairshare"
	"github.com/candor-grid/candor/auctioneer/mechanism/fifo"
	"github.com/candor-grid/candor/auctioneer/mechanism/rigid"
)

func TestMain(m *testing.M) { casetest.Main(m, 2000) }

type scheduler = func(*rigid.Instance) (*rigid.Schedule, error)

// The variable `all` has the schedulers. The second argument of fairshare.Schedule is the half-life of past use, in the
// unit of time of the instances.
var all = map[string]scheduler{
	"fifo":           fifo.Schedule,
	"fairshare now":  func(in *rigid.Instance) (*rigid.Schedule, error) { return fairshare.Schedule(in, 0) },
	"fairshare past": func(in *rigid.Instance) (*rigid.Schedule, error) { return fairshare.Schedule(in, 8) },
	"easy":           func(in *rigid.Instance) (*rigid.Schedule, error) { return backfill.Schedule(in, backfill.EASY) },
	"conservative": func(in *rigid.Instance) (*rigid.Schedule, error) {
		return backfill.Schedule(in, backfill.Conservative)
	},
}

// draw makes a small instance with many events at the same time. Estimates are right, too long or too short.
func draw(t *rapid.T, widest int) *rigid.Instance {
	nodes := rapid.IntRange(1, 6).Draw(t, "nodes")
	in := &rigid.Instance{Nodes: nodes, Weights: []float64{1, 2, 0.5}}
	for range rapid.IntRange(0, 20).Draw(t, "jobs") {
		runtime := float64(rapid.IntRange(0, 12).Draw(t, "runtime")) / 2
		in.Jobs = append(in.Jobs, rigid.Job{
			Submit:   float64(rapid.IntRange(-3, 15).Draw(t, "submit")),
			Runtime:  runtime,
			Estimate: runtime*rapid.SampledFrom([]float64{1, 1, 1, 2, 5, 0.3}).Draw(t, "factor") + float64(rapid.SampledFrom([]int{0, 0, 1}).Draw(t, "more")),
			Width:    rapid.IntRange(1, min(widest, nodes)).Draw(t, "width"),
			User:     rapid.IntRange(0, 2).Draw(t, "user"),
		})
	}
	return in
}

func forAll(t *testing.T, widest int, property func(t *rapid.T, in *rigid.Instance, schedule scheduler)) {
	for name, schedule := range all {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { property(t, draw(t, widest), schedule) })
		})
	}
}

func run(t interface{ Fatal(...any) }, schedule scheduler, in *rigid.Instance) *rigid.Schedule {
	s, err := schedule(in)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// held returns how many nodes jobs hold at an instant. Jobs with the run time 0 hold none.
func held(in *rigid.Instance, s *rigid.Schedule, at float64) int {
	n := 0
	for i, job := range in.Jobs {
		if s.Start[i] <= at && at < s.Finish[i] {
			n += job.Width
		}
	}
	return n
}

func TestCapacityIsNeverExceeded(t *testing.T) {
	forAll(t, 6, func(t *rapid.T, in *rigid.Instance, schedule scheduler) {
		s := run(t, schedule, in)
		for i, job := range in.Jobs {
			if !(s.Start[i] >= job.Submit) || s.Finish[i] != s.Start[i]+job.Runtime {
				t.Fatalf("job %d runs %v–%v: %+v", i, s.Start[i], s.Finish[i], job)
			}
			if n := held(in, s, s.Start[i]); n > in.Nodes {
				t.Fatalf("%d of %d nodes held at %v: %+v %+v", n, in.Nodes, s.Start[i], in, s)
			}
		}
	})
}

func TestSerialWorkIsConserved(t *testing.T) {
	forAll(t, 1, func(t *rapid.T, in *rigid.Instance, schedule scheduler) {
		s := run(t, schedule, in)
		for i, job := range in.Jobs {
			times := []float64{job.Submit}
			for _, f := range s.Finish {
				if f > job.Submit && f < s.Start[i] {
					times = append(times, f)
				}
			}
			for _, at := range times {
				if at < s.Start[i] && held(in, s, at) < in.Nodes {
					t.Fatalf("job %d waits at %v with only %d of %d nodes held: %+v %+v", i, at, held(in, s, at), in.Nodes, in, s)
				}
			}
		}
	})
}

func TestScaling(t *testing.T) {
	past := func(in *rigid.Instance) (*rigid.Schedule, error) { return fairshare.Schedule(in, 16) }
	forAll(t, 6, func(t *rapid.T, in *rigid.Instance, schedule scheduler) {
		doubled := schedule
		if strings.HasSuffix(t.Name(), "past") {
			doubled = past
		}
		twice := &rigid.Instance{Nodes: in.Nodes, Jobs: slices.Clone(in.Jobs), Weights: in.Weights}
		for i := range twice.Jobs {
			j := &twice.Jobs[i]
			j.Submit, j.Runtime, j.Estimate = 2*j.Submit, 2*j.Runtime, 2*j.Estimate
		}
		a, b := run(t, schedule, in), run(t, doubled, twice)
		for i := range in.Jobs {
			if 2*a.Start[i] != b.Start[i] {
				t.Fatalf("job %d starts at %v and %v: %+v", i, a.Start[i], b.Start[i], in)
			}
		}
	})
}

// If no two jobs are submitted at the same time, the order of the input must not matter.
func TestPermutation(t *testing.T) {
	forAll(t, 6, func(t *rapid.T, in *rigid.Instance, schedule scheduler) {
		for i := range in.Jobs {
			in.Jobs[i].Submit += float64(i) / 64
		}
		order := rapid.Permutation(casetest.Indices(len(in.Jobs))).Draw(t, "order")
		mixed := &rigid.Instance{Nodes: in.Nodes, Weights: in.Weights}
		for _, i := range order {
			mixed.Jobs = append(mixed.Jobs, in.Jobs[i])
		}
		a, b := run(t, schedule, in), run(t, schedule, mixed)
		for at, i := range order {
			if a.Start[i] != b.Start[at] {
				t.Fatalf("job %d starts at %v, and at %v in the order %v: %+v", i, a.Start[i], b.Start[at], order, in)
			}
		}
	})
}

func TestExtremes(t *testing.T) {
	for name, schedule := range all {
		for _, c := range []struct {
			what string
			in   rigid.Instance
			want []float64
		}{
			{"none", rigid.Instance{Nodes: 1}, []float64{}},
			{"one", rigid.Instance{Nodes: 3, Jobs: []rigid.Job{{Submit: -7, Runtime: 2, Estimate: 1, Width: 3}}}, []float64{-7}},
			{"all at once", rigid.Instance{Nodes: 2, Jobs: slices.Repeat([]rigid.Job{{Runtime: 1, Estimate: 1, Width: 2}}, 4)}, []float64{0, 1, 2, 3}},
			{"no time", rigid.Instance{Nodes: 2, Jobs: slices.Repeat([]rigid.Job{{Submit: 5, Width: 2}}, 4)}, []float64{5, 5, 5, 5}},
			{"long and short", rigid.Instance{Nodes: 1, Jobs: []rigid.Job{
				{Runtime: 1e15, Estimate: 1e-300, Width: 1}, {Runtime: 1e-300, Estimate: 1e15, Width: 1}, {Runtime: 1, Estimate: 1, Width: 1}}},
				[]float64{0, 1e15, 1e15}},
		} {
			if s := run(t, schedule, &c.in); !slices.Equal(s.Start, c.want) {
				t.Errorf("%s, %s: starts %v, want %v", name, c.what, s.Start, c.want)
			}
		}
	}
}

// load makes an instance of n jobs for 256 nodes. All jobs arrive before some last arrival. If `rate` is 1, the nodes
// can do the work of all jobs until this last arrival. The work is proportional to `rate`.
func load(n int, rate float64) *rigid.Instance {
	rng := rand.New(rand.NewPCG(11, uint64(n)))
	in, now := &rigid.Instance{Nodes: 256, Jobs: make([]rigid.Job, n), Weights: slices.Repeat([]float64{1}, 50)}, 0.0
	for i := range in.Jobs {
		now += rng.ExpFloat64()
		runtime := 60 * math.Exp(rng.NormFloat64())
		in.Jobs[i] = rigid.Job{Submit: now, Runtime: runtime, Estimate: runtime * (1 + 4*rng.Float64()), Width: 1 << rng.IntN(7), User: rng.IntN(50)}
	}
	work := 0.0
	for _, j := range in.Jobs {
		work += j.Runtime * float64(j.Width)
	}
	stretch := work / (float64(in.Nodes) * rate * now)
	for i := range in.Jobs {
		in.Jobs[i].Submit *= stretch
	}
	return in
}

// The machine gets more work than it can do. It must be busy for more than half of the time.
func TestManyJobs(t *testing.T) {
	in := load(200_000, 1.05)
	for _, name := range []string{"fifo", "easy"} {
		s := run(t, all[name], in)
		if m := in.Measure(s); !(m.Utilisation > 0.5 && m.Utilisation <= 1) {
			t.Errorf("%s: utilisation %v", name, m.Utilisation)
		}
	}
}

func TestBackfillingHelps(t *testing.T) {
	in := load(5000, 0.9)
	flow := map[string]float64{}
	for name, schedule := range all {
		flow[name] = in.Measure(run(t, schedule, in)).MeanFlow
	}
	if !(flow["easy"] < flow["fifo"] && flow["conservative"] < flow["fifo"]) {
		t.Errorf("mean flow %v", flow)
	}
}
