package deadlineaware

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/candor-grid/candor/auctioneer/mechanism/valuation"
	"github.com/candor-grid/candor/messages/job"
)

// judge returns the utility of job i. It assumes that, at time t, the slots have done the work of job i and of all jobs
// before it. Utilities that differ by at most DefaultResolution count as equal. judge does not use the code under test.
func judge(p *Problem, i int, t float64) float64 {
	job := &p.Jobs[i]
	each := job.Demand / float64(job.Tasks)
	rounds := math.Ceil(float64(job.Tasks) / float64(p.Slots))
	at := func(t float64) float64 {
		return job.Valuation.At((job.Elapsed + t + rounds*each - job.Demand/float64(p.Slots)) * (1 - 1e-12))
	}
	u, best := at(t), at(job.Demand/float64(p.Slots))
	if u < DefaultResolution {
		return 0
	}
	if u >= best-DefaultResolution {
		return best
	}
	return u
}

// judged computes the utility of each job if the jobs run in the given order. It returns the utilities in ascending
// order.
func judged(p *Problem, order []int) []float64 {
	utilities, work := make([]float64, len(order)), 0.0
	for k, i := range order {
		work += p.Jobs[i].Demand
		// If work is added up in another order, the sums differ in the last digits. So the utility is rounded.
		utilities[k] = math.Round(judge(p, i, work/float64(p.Slots))*1e8) / 1e8
	}
	slices.Sort(utilities)
	return utilities
}

// permutations calls f with each order of n numbers.
func permutations(n int, f func([]int)) {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	var from func(int)
	from = func(k int) {
		if k == n {
			f(order)
			return
		}
		for i := k; i < n; i++ {
			order[k], order[i] = order[i], order[k]
			from(k + 1)
			order[k], order[i] = order[i], order[k]
		}
	}
	from(0)
}

func lexicographic(p *Problem) []float64 {
	var best []float64
	permutations(len(p.Jobs), func(order []int) {
		if u := judged(p, order); best == nil || slices.Compare(u, best) > 0 {
			best = u
		}
	})
	return best
}

func same(a, b []float64, part float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return near(x, y, part) })
}

// If valuations fall strictly and no job is given up, no other order of the jobs may give better utilities. Orders are
// compared by the lowest utility first, then by the next one, and so on.
func TestLexicographicallyOptimal(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	tried := 0
	for range 3000 {
		p := randomProblem(t, r, 1+r.IntN(6), falling)
		s := schedule(t, p)
		if slices.Contains(s.GivenUp, true) {
			continue
		}
		tried++
		if got, want := judged(p, s.Order), lexicographic(p); !same(got, want, 1e-6) {
			t.Fatalf("%+v: utilities %v, best are %v", p, got, want)
		}
	}
	if tried < 1000 {
		t.Errorf("only %d instances gave nobody up", tried)
	}
}

// The valuations are random curves of all kinds. As few jobs as possible may get no utility, and the lowest utility
// must be as high as possible.
func TestLowestIsHighest(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		p := randomProblem(t, r, 1+r.IntN(6), anyValuation)
		s := schedule(t, p)
		got, want := judged(p, s.Order), lexicographic(p)
		lost := func(u float64) int { return boolToInt(u == 0) }
		if a, b := sum(got, lost), sum(want, lost); a != b {
			t.Fatalf("%+v: %d get nothing, %d must", p, a, b)
		}
		if !near(got[0], want[0], 1e-6) {
			t.Fatalf("%+v: the lowest utility is %v, could be %v", p, got[0], want[0])
		}
	}
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func sum(list []float64, f func(float64) int) (n int) {
	for _, x := range list {
		n += f(x)
	}
	return n
}

// All jobs have hard deadlines. The schedule must give up as few jobs as possible. Several schedules may give up
// equally few jobs. Of these schedules, the solver must choose one in which the smallest value of a served job is as
// large as possible.
func TestOfHardDeadlinesTheDearestAreMet(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	for range 1000 {
		p := randomProblem(t, r, 1+r.IntN(6), func(r *rand.Rand, horizon float64) job.Valuation {
			return job.Valuation{Class: job.Hard, Max: 1 + r.Float64(), Deadline: horizon * r.Float64()}
		})
		got, want := judged(p, schedule(t, p).Order), lexicographic(p)
		positive := func(u float64) bool { return u > 0 }
		a, b := slices.IndexFunc(got, positive), slices.IndexFunc(want, positive)
		if a != b || a >= 0 && got[a] != want[a] {
			t.Fatalf("%+v: %v, best is %v", p, got, want)
		}
	}
}

// peelByBisection is the usual method for a max-min optimum. It raises the levels of all jobs together, until a higher
// level would make it impossible to meet all deadlines. Then at least one job prevents a higher level. It fixes the
// level of this job, and continues with the other jobs.
func peelByBisection(p *Problem) []float64 {
	n := len(p.Jobs)
	deadlines, level := make([]float64, n), make([]float64, n)
	for i := range level {
		level[i] = math.NaN() // NaN means that the level is not fixed
	}
	for range n {
		low, high := 0.0, 1e3
		for range 100 {
			if middle := (low + high) / 2; meets(p, level, middle, -1, deadlines) {
				low = middle
			} else {
				high = middle
			}
		}
		// The common level of all jobs cannot rise further, because one job limits it: if only this job's deadline were
		// a little later, all deadlines could be met. This loop finds such a job.
		for i := range n {
			if math.IsNaN(level[i]) && meets(p, level, high, i, deadlines) {
				level[i] = low
				break
			}
		}
	}
	slices.Sort(level)
	return level
}

// meets reports whether all jobs can meet their deadlines. The deadline of a job is the latest completion time at which
// its value is at least a level. For some jobs this level is given in `fixed`. For the other jobs the level is `l`. The
// job `except` gets a deadline that is a little later.
func meets(p *Problem, fixed []float64, l float64, except int, deadlines []float64) bool {
	order := make([]int, len(p.Jobs))
	for i := range p.Jobs {
		order[i] = i
		job := &p.Jobs[i]
		level := fixed[i]
		if math.IsNaN(level) {
			level = l
		}
		seconds, ever := job.Valuation.Latest(level)
		slack := 1e-8
		switch {
		case i == except:
			slack = 1e-6
		case level == fixed[i]: // with more slack than when it was fixed, so that rounding changes nothing
			slack = 2e-8
		}
		seconds += slack * (1 + seconds)
		if !ever {
			return false
		}
		rounds := float64((job.Tasks + p.Slots - 1) / p.Slots)
		deadlines[i] = seconds - job.Elapsed - rounds*job.Demand/float64(job.Tasks) + job.Demand/float64(p.Slots)
	}
	slices.SortFunc(order, func(a, b int) int { return compare(deadlines[a], deadlines[b]) })
	work := 0.0
	for _, i := range order {
		work += p.Jobs[i].Demand
		if work/float64(p.Slots) > deadlines[i] {
			return false
		}
	}
	return true
}

func compare(a, b float64) int { return boolToInt(a > b) - boolToInt(a < b) }

func TestPeelingByBisectionAgrees(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 4))
	tried := 0
	for range 300 {
		p := randomProblem(t, r, 1+r.IntN(12), func(r *rand.Rand, horizon float64) job.Valuation {
			v := falling(r, horizon) // falls slowly, so that levels can be told apart at all times
			v.Class, v.Mu, v.Delta = job.Sigmoidal, horizon/2+v.Mu/4, v.Delta+horizon
			return v
		})
		s := schedule(t, p)
		if slices.Contains(s.GivenUp, true) {
			continue
		}
		tried++
		got := slices.Sorted(slices.Values(s.Level))
		if want := peelByBisection(p); !same(got, want, 1e-4) {
			t.Fatalf("%d slots, levels\n%v, by bisection\n%v", p.Slots, got, want)
		}
	}
	if tried < 100 {
		t.Errorf("only %d instances gave nobody up", tried)
	}
}

// The schedule gives each job a level of utility. The test takes the lowest of these levels. At a given level, each job
// has a deadline: the latest completion with at least this utility. At the lowest level, all jobs can meet their
// deadlines. At a slightly higher level, they cannot all meet them. There is one exception: the job with the lowest
// level may already have its best utility.
func TestLevelIsTight(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 5))
	for range 300 {
		p := randomProblem(t, r, 40, falling)
		s := schedule(t, p)
		lowest := slices.Min(s.Level)
		if lowest < DefaultResolution {
			continue
		}
		free := slices.Repeat([]float64{math.NaN()}, len(p.Jobs))
		deadlines := make([]float64, len(p.Jobs))
		if !meets(p, free, lowest*(1-1e-9), -1, deadlines) {
			t.Fatalf("level %v cannot be met", lowest)
		}
		who := slices.Index(s.Level, lowest)
		best := judge(p, who, p.Jobs[who].Demand/float64(p.Slots))
		if lowest < best-2*DefaultResolution && meets(p, free, lowest*(1+1e-6)+1e-9, -1, deadlines) {
			t.Fatalf("a level above %v can be met", lowest)
		}
	}
}

func TestOrdersOfEqualJobs(t *testing.T) {
	p := &Problem{Slots: 2}
	for _, demand := range []float64{8, 2, 4, 4} { // with equal valuations: the shortest job first, ties in the order of the input
		p.Jobs = append(p.Jobs, Job{Tasks: 2, Demand: demand, Valuation: curveOf(t, job.Valuation{Class: job.Sigmoidal, Max: 9, Mu: 1, Delta: 20})})
	}
	s := schedule(t, p)
	if !slices.Equal(s.Order, []int{1, 2, 3, 0}) || !slices.Equal(s.Target, []float64{9, 1, 3, 5}) || !slices.Equal(s.Completion, s.Target) {
		t.Errorf("%+v", s)
	}
}

func TestHopelessJobsWait(t *testing.T) {
	p := &Problem{Slots: 1, Jobs: []Job{
		{Tasks: 1, Demand: 10, Valuation: hard(t, 1000, 9)},
		{Tasks: 1, Demand: 5, Elapsed: 1e6, Valuation: curveOf(t, job.Valuation{Class: job.Sigmoidal, Max: 1e6, Mu: 10, Delta: 10})},
		{Tasks: 1, Demand: 7, Valuation: curveOf(t, job.Valuation{Class: job.LinearDecay, Max: 2, Mu: 5, Delta: 5})},
		{Tasks: 1, Demand: 1, Valuation: valuation.Curve{}},
	}}
	s := schedule(t, p)
	if !slices.Equal(s.Order, []int{2, 3, 1, 0}) || !slices.Equal(s.GivenUp, []bool{true, true, false, true}) || !near(s.Level[2], 1.2, 1e-9) {
		t.Errorf("%+v", s)
	}
}
