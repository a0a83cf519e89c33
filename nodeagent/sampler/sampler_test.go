package sampler_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/nodeagent/sampler"
)

// scan is the slow, obvious sampler: it walks a list of jobs from the start.
type scan []agent.JobWeight

func (s *scan) update(changes []agent.JobWeight) {
	for _, c := range changes {
		*s = slices.DeleteFunc(*s, func(j agent.JobWeight) bool { return j.Job == c.Job })
		if c.Weight > 0 {
			*s = append(*s, c)
		}
	}
	slices.SortFunc(*s, func(a, b agent.JobWeight) int { return int(a.Job) - int(b.Job) })
}

func (s scan) total() (sum float64) {
	for _, j := range s {
		sum += float64(j.Weight)
	}
	return sum
}

func (s scan) sample(u float64) messages.JobID {
	x := u * s.total()
	for _, j := range s {
		if x < float64(j.Weight) {
			return j.Job
		}
		x -= float64(j.Weight)
	}
	return s[len(s)-1].Job
}

func ascending(t *rapid.T, label string, most int) []agent.JobWeight {
	ids := rapid.SliceOfNDistinct(rapid.Uint64Range(1, 300), 0, most, rapid.ID).Draw(t, label)
	slices.Sort(ids)
	var jobs []agent.JobWeight
	for _, id := range ids {
		// The weights are whole numbers, which add up without rounding. So the sampler under test and the simple linear
		// scan must draw the same job each time.
		w := rapid.IntRange(0, 4).Draw(t, "weight")
		jobs = append(jobs, agent.JobWeight{Job: messages.JobID(id), Weight: float32(w)})
	}
	return jobs
}

func TestAgreesWithLinearScan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var fast sampler.Sampler
		var slow scan
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			jobs := ascending(t, "jobs", 200)
			var err error
			if rapid.IntRange(0, 5).Draw(t, "whole") == 0 {
				slow = nil
				err = fast.Replace(jobs)
			} else {
				err = fast.Update(jobs)
			}
			slow.update(jobs)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, &fast, slow)
		}
	})
}

func compare(t *rapid.T, fast *sampler.Sampler, slow scan) {
	if fast.Len() != len(slow) || fast.Total() != slow.total() {
		t.Fatalf("%d jobs of weight %v, want %d of %v", fast.Len(), fast.Total(), len(slow), slow.total())
	}
	if len(slow) == 0 {
		if got := fast.Sample(0.5); got != 0 {
			t.Fatalf("sampled %v from nothing", got)
		}
		return
	}
	us := append(rapid.SliceOfN(rapid.Float64Range(0, 1), 20, 20).Draw(t, "u"), 0, math.Nextafter(1, 0))
	for _, u := range us {
		if u = min(u, math.Nextafter(1, 0)); fast.Sample(u) != slow.sample(u) {
			t.Fatalf("u = %v: sampled %v, want %v", u, fast.Sample(u), slow.sample(u))
		}
	}
	for _, j := range slow {
		if fast.Weight(j.Job) != j.Weight {
			t.Fatalf("weight of %v is %v, want %v", j.Job, fast.Weight(j.Job), j.Weight)
		}
	}
}

// TestFrequencies draws 100,000 times. It compares how often each job was drawn with the job's weight. With random
// seeds, a correct sampler would fail each case with a probability of one in a thousand. The seeds are fixed, and with
// these seeds a correct sampler passes.
func TestFrequencies(t *testing.T) {
	for _, n := range []int{2, 10, 33, 1000} {
		t.Run(fmt.Sprintf("%d jobs", n), func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, uint64(n)))
			var s sampler.Sampler
			var slow scan
			jobs := randomJobs(r, n, 1)
			if err := s.Replace(jobs); err != nil {
				t.Fatal(err)
			}
			slow.update(jobs)
			chiSquared(t, &s, slow, r)
			for range 2000 { // draw again after many updates
				c := []agent.JobWeight{{Job: messages.JobID(2 + r.IntN(2*n)), Weight: float32(r.IntN(3)) * r.Float32()}}
				if err := s.Update(c); err != nil {
					t.Fatal(err)
				}
				slow.update(c)
			}
			chiSquared(t, &s, slow, r)
		})
	}
}

func randomJobs(r *rand.Rand, n, step int) []agent.JobWeight {
	jobs := make([]agent.JobWeight, n)
	for i := range jobs {
		jobs[i] = agent.JobWeight{Job: messages.JobID(1 + i*step), Weight: 0.1 + r.Float32()}
	}
	return jobs
}

func chiSquared(t *testing.T, s *sampler.Sampler, want scan, r *rand.Rand) {
	t.Helper()
	const draws = 100_000
	counts := map[messages.JobID]float64{}
	for range draws {
		counts[s.Sample(r.Float64())]++
	}
	var observed, expected []float64
	for _, j := range want {
		observed = append(observed, counts[j.Job])
		expected = append(expected, draws*float64(j.Weight)/want.total())
		delete(counts, j.Job)
	}
	if len(counts) > 0 {
		t.Fatalf("sampled jobs that are not there: %v", counts)
	}
	if len(want) < 2 {
		return
	}
	statistic := stat.ChiSquare(observed, expected)
	limit := distuv.ChiSquared{K: float64(len(want) - 1)}.Quantile(0.999)
	if statistic > limit {
		t.Errorf("chi-squared of %d jobs is %.1f, above %.1f", len(want), statistic, limit)
	}
}

// TestFarApartWeights adds a huge weight to tiny weights and removes it again. If the sampler only added and subtracted
// weights from its sums, the rounding error of the huge weight would stay in the sums for ever.
func TestFarApartWeights(t *testing.T) {
	var s sampler.Sampler
	if err := s.Replace(randomJobs(rand.New(rand.NewPCG(7, 7)), 500, 2)); err != nil {
		t.Fatal(err)
	}
	before := s.Total()
	for range 1000 {
		s.Update([]agent.JobWeight{{Job: 500, Weight: 1e30}})
		if got := s.Sample(0.3); got != 500 {
			t.Fatalf("sampled %v beside a weight of 1e30", got)
		}
		s.Update([]agent.JobWeight{{Job: 500, Weight: 0}})
	}
	if got := s.Total(); math.Abs(got-before) > 1e-12*before {
		t.Errorf("total is %v, was %v", got, before)
	}
	if got := s.Sample(math.Nextafter(1, 0)); got != 999 {
		t.Errorf("the last stretch is job %v's, want 999's", got)
	}
}

func TestRefusals(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	cases := map[string][]agent.JobWeight{
		"negative":     {{Job: 1, Weight: 1}, {Job: 2, Weight: -1}},
		"not a number": {{Job: 1, Weight: 1}, {Job: 2, Weight: nan}},
		"infinite":     {{Job: 1, Weight: inf}},
		"twice":        {{Job: 1, Weight: 1}, {Job: 1, Weight: 2}},
		"descending":   {{Job: 2, Weight: 1}, {Job: 1, Weight: 2}},
	}
	for name, jobs := range cases {
		t.Run(name, func(t *testing.T) {
			var s sampler.Sampler
			s.Replace([]agent.JobWeight{{Job: 1, Weight: 3}, {Job: 9, Weight: 5}})
			for what, f := range map[string]func([]agent.JobWeight) error{"Replace": s.Replace, "Update": s.Update} {
				if err := f(jobs); messages.KindOf(err) != messages.Invalid {
					t.Errorf("%s gave %v, want an Invalid error", what, err)
				}
				if s.Len() != 2 || s.Total() != 8 || s.Weight(1) != 3 {
					t.Errorf("%s changed something", what)
				}
			}
		})
	}
}

func BenchmarkSample(b *testing.B) {
	var s sampler.Sampler
	r := rand.New(rand.NewPCG(1, 1))
	s.Replace(randomJobs(r, 4000, 1))
	for b.Loop() {
		s.Sample(r.Float64())
	}
}

func BenchmarkUpdate(b *testing.B) {
	var s sampler.Sampler
	r := rand.New(rand.NewPCG(1, 1))
	s.Replace(randomJobs(r, 4000, 1))
	change := make([]agent.JobWeight, 1)
	for b.Loop() {
		change[0] = agent.JobWeight{Job: messages.JobID(1 + r.IntN(4000)), Weight: r.Float32()}
		s.Update(change)
	}
}

func TestReplaceAfterGrowth(t *testing.T) {
	jobs := func(first, n int) (list []agent.JobWeight) {
		for i := range n {
			list = append(list, agent.JobWeight{Job: messages.JobID(first + i), Weight: 1})
		}
		return list
	}
	for merged := range 40 {
		for n := range 120 {
			var s sampler.Sampler
			err := errors.Join(s.Replace(jobs(1000, 1)), s.Update(jobs(1, merged)), s.Update(jobs(1001, 2)), s.Replace(jobs(1, n)))
			if err != nil || s.Len() != n {
				t.Fatalf("%d jobs, want %d: %v", s.Len(), n, err)
			}
		}
	}
}
