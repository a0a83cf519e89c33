package deadlineaware

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/candor-grid/candor/messages/job"
)

// When one more job comes, the lowest utility among the other jobs must not rise.
func TestOneMoreNeverHelps(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 1))
	for range 500 {
		p := randomProblem(t, r, 2+r.IntN(30), anyValuation)
		fewer := *p
		fewer.Jobs = p.Jobs[1:]
		with, without := judged(p, schedule(t, p).Order), judged(&fewer, schedule(t, &fewer).Order)
		own := judgedJob(p, 0)
		at := slices.Index(with, own)
		if at < 0 {
			t.Fatalf("the job's own utility %v is not in %v", own, with)
		}
		if others := slices.Delete(with, at, at+1); others[0] > without[0]+1e-6 {
			t.Fatalf("%+v: the lowest was %v, with one more job %v", p, without[0], others[0])
		}
	}
}

func judgedJob(p *Problem, job int) float64 {
	s, _ := New(p)
	work := 0.0
	for _, i := range s.Order {
		work += p.Jobs[i].Demand
		if i == job {
			break
		}
	}
	return math.Round(judge(p, job, work/float64(p.Slots))*1e8) / 1e8
}

// One problem has all times multiplied by 1,024. With a power of two, nothing is rounded, so the schedule must stay the
// same.
func TestUnitOfTime(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 2))
	for range 200 {
		seed := r.Uint64()
		const unit = 1 << 10
		p := randomProblem(t, rand.New(rand.NewPCG(seed, 0)), 20, anyValuation)
		q := randomProblem(t, rand.New(rand.NewPCG(seed, 0)), 20, func(r *rand.Rand, horizon float64) job.Valuation {
			v := anyValuation(r, horizon)
			v.Mu, v.Delta, v.Deadline, v.Workload = unit*v.Mu, unit*v.Delta, unit*v.Deadline, unit*v.Workload
			for k := range v.Points {
				v.Points[k].At *= unit
			}
			return v
		})
		for i := range q.Jobs {
			q.Jobs[i].Demand, q.Jobs[i].Elapsed = unit*q.Jobs[i].Demand, unit*q.Jobs[i].Elapsed
		}
		a, b := schedule(t, p), schedule(t, q)
		for i := range p.Jobs {
			a.Start[i], a.Target[i], a.Completion[i] = unit*a.Start[i], unit*a.Target[i], unit*a.Completion[i]
		}
		if !reflect.DeepEqual(a, b) {
			t.Fatalf("%+v in another unit is\n%+v", a, b)
		}
	}
}

func TestOrderOfTheInput(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 3))
	for range 200 {
		p := randomProblem(t, r, 20, falling)
		moved := *p
		moved.Jobs = make([]Job, len(p.Jobs))
		to := r.Perm(len(p.Jobs))
		for i, k := range to {
			moved.Jobs[k] = p.Jobs[i]
		}
		a, b := schedule(t, p), schedule(t, &moved)
		for i, k := range to {
			if a.Target[i] != b.Target[k] || a.Completion[i] != b.Completion[k] || a.GivenUp[i] != b.GivenUp[k] {
				t.Fatalf("job %d: target %v, elsewhere in the input %v", i, a.Target[i], b.Target[k])
			}
		}
	}
}

func TestExtremes(t *testing.T) {
	if s := schedule(t, &Problem{Slots: 1}); len(s.Order) != 0 {
		t.Errorf("nothing to do: %+v", s)
	}
	for name, c := range map[string]struct {
		job          Job
		completion   float64
		lost, wanted bool
	}{
		"alone":             {Job{Tasks: 5, Demand: 50, Valuation: hard(t, 1, 20)}, 20, false, true},
		"a moment too late": {Job{Tasks: 5, Demand: 50, Valuation: hard(t, 1, 19.999)}, 20, true, false},
		"no demand":         {Job{Tasks: 3, Valuation: hard(t, 1, 0)}, 0, false, true},
		"no tasks":          {Job{Valuation: hard(t, 1, 0)}, 0, false, true},
		"always worth it": {Job{Tasks: 1, Demand: 1e9, Valuation: curveOf(t, job.Valuation{Class: job.Custom, Max: 1,
			Points: []job.ValuationPoint{{At: 0, Part: 1}}})}, 1e9, false, true},
		"worth nothing":   {Job{Tasks: 1, Demand: 1, Valuation: hard(t, 0, 10)}, 1, true, false},
		"smallest demand": {Job{Tasks: 1, Demand: math.SmallestNonzeroFloat64, Valuation: hard(t, 1, 10)}, math.SmallestNonzeroFloat64, false, true},
		"largest":         {Job{Tasks: MostTasks, Demand: Largest, Elapsed: Largest, Valuation: hard(t, 1, 10)}, Largest / 4, true, false},
	} {
		p := &Problem{Slots: 4, Jobs: []Job{c.job}}
		s := schedule(t, p)
		if !near(s.Completion[0], c.completion, 1e-9) || s.GivenUp[0] != c.lost || (s.Utility[0] == 1) != c.wanted {
			t.Errorf("%s: %+v", name, s)
		}
		h, err := Hypotheses(p, 0, nil)
		if err != nil || len(h) != 0 {
			t.Errorf("%s: %v, %v", name, h, err)
		}
	}
}

func TestProblemsAreRefused(t *testing.T) {
	for says, change := range map[string]func(*Problem){
		"slots":           func(p *Problem) { p.Slots = 0 },
		"resolution":      func(p *Problem) { p.Resolution = math.NaN() },
		"jobs[0].demand":  func(p *Problem) { p.Jobs[0].Demand = math.Inf(1) },
		"jobs[0].tasks":   func(p *Problem) { p.Jobs[0].Tasks = 0 },
		"jobs[0].elapsed": func(p *Problem) { p.Jobs[0].Elapsed = -1 },
		"jobs:":           func(p *Problem) { p.Jobs = make([]Job, MostJobs+1) },
	} {
		p := &Problem{Slots: 1, Jobs: []Job{{Tasks: 1, Demand: 1}}}
		change(p)
		_, err := New(p)
		if !refused(err, says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
	p := &Problem{Slots: 1, Jobs: []Job{{Tasks: 1, Demand: 1}}}
	for _, job := range []int{-1, 1} {
		if _, err := CompletionTimes(p, job, nil); !refused(err, "job:") {
			t.Errorf("job %d: %v", job, err)
		}
	}
}
