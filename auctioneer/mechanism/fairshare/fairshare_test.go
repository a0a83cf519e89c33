package fairshare

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/auctioneer/mechanism/casefile/casetest"
	"github.com/candor-grid/candor/auctioneer/mechanism/rigid"
)

func TestMain(m *testing.M) { casetest.Main(m, 1000) }

func drawClaims(t *rapid.T) (float64, []claim) {
	var claims []claim
	for range rapid.IntRange(0, 8).Draw(t, "n") {
		claims = append(claims, claim{
			Weight: rapid.SampledFrom([]float64{1, 1, 2, 0.5, 1e-3, 1e3}).Draw(t, "weight"),
			Had:    float64(rapid.IntRange(0, 5).Draw(t, "had")),
			Demand: rapid.SampledFrom([]float64{0, 1, 2, 3, 10, math.Inf(1)}).Draw(t, "demand"),
		})
	}
	return float64(rapid.IntRange(0, 20).Draw(t, "amount")), claims
}

// If a claim gets less than its demand, no claim with a higher level may get anything. What all claims get must add up
// to the amount or, if the amount is larger, to all demands.
func TestMaxMinIsFair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount, claims := drawClaims(t)
		parts := divide(amount, claims, nil)
		sum, wanted := 0.0, 0.0
		for i, c := range claims {
			if !(parts[i] >= 0 && parts[i] <= c.Demand*(1+1e-12)) {
				t.Fatalf("part %d is %v: %+v", i, parts[i], claims)
			}
			sum, wanted = sum+parts[i], wanted+c.Demand
		}
		if want := min(amount, wanted); math.Abs(sum-want) > 1e-9*max(1, want) {
			t.Fatalf("the parts add up to %v, not %v: %v %+v", sum, want, parts, claims)
		}
		for i, c := range claims {
			if parts[i] >= c.Demand*(1-1e-12) {
				continue
			}
			for k, d := range claims {
				mine, theirs := (c.Had+parts[i])/c.Weight, (d.Had+parts[k])/d.Weight
				if parts[k] > 1e-9 && theirs > mine*(1+1e-9)+1e-9 {
					t.Fatalf("claim %d at level %v, %d is given %v at level %v: %v %+v", i, mine, k, parts[k], theirs, parts, claims)
				}
			}
		}
	})
}

// The slow method divides the amount into 2,000 equal parts, one after another. It gives each part to the claim with
// the smallest (amount so far)/weight.
func TestMaxMinIsTheSlowOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount, claims := drawClaims(t)
		parts := divide(amount, claims, nil)
		const drops = 2000
		slow := make([]float64, len(claims))
		for range drops {
			lowest := -1
			for i, c := range claims {
				if slow[i]+amount/drops > c.Demand*(1+1e-9) {
					continue
				}
				if lowest < 0 || (c.Had+slow[i])/c.Weight < (claims[lowest].Had+slow[lowest])/claims[lowest].Weight {
					lowest = i
				}
			}
			if lowest >= 0 {
				slow[lowest] += amount / drops
			}
		}
		for i := range claims {
			if math.Abs(parts[i]-slow[i]) > 10*amount/drops {
				t.Fatalf("%v, drop by drop %v: %v of %+v", parts, slow, amount, claims)
			}
		}
	})
}

func TestMaxMinSymmetries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount, claims := drawClaims(t)
		parts := divide(amount, claims, nil)
		changed := append([]claim{{Weight: 3, Had: 1}}, claims...) // the same claims, and one more claim, which asks for nothing
		slices.Reverse(changed)
		for i := range changed {
			changed[i].Had *= 4
			changed[i].Demand *= 4
			changed[i].Weight *= 1024
		}
		got := divide(4*amount, changed, make([]float64, 0, 3))
		slices.Reverse(got)
		for i, x := range append([]float64{0}, parts...) {
			if math.Abs(got[i]-4*x) > 1e-9*max(1, x) {
				t.Fatalf("%v becomes %v: %+v", parts, got, claims)
			}
		}
	})
}

func TestMaxMinByHand(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		amount float64
		claims []claim
		want   []float64
	}{
		{10, nil, []float64{}},
		{10, []claim{{1, 0, 2}, {1, 0, 8}, {1, 0, 10}}, []float64{2, 4, 4}},
		{10, []claim{{1, 0, inf}, {4, 0, inf}}, []float64{2, 8}},
		{10, []claim{{1, 4, inf}, {1, 0, inf}}, []float64{3, 7}},
		{2, []claim{{1, 4, inf}, {1, 0, inf}}, []float64{0, 2}},
		{10, []claim{{1, 0, 3}, {1, 9, 3}}, []float64{3, 3}},
		{0, []claim{{1, 0, 3}}, []float64{0}},
		{0, []claim{{49, 53, 3}}, []float64{0}}, // rounded, 49·(53/49) is above 53
		{1e12, []claim{{1e-6, 0, inf}, {1e6, 0, 1}}, []float64{1e12 - 1, 1}},
	} {
		got := divide(c.amount, c.claims, nil)
		if !slices.EqualFunc(got, c.want, func(a, b float64) bool { return math.Abs(a-b) <= 1e-12*max(1, b) }) {
			t.Errorf("%v of %v: %v, want %v", c.claims, c.amount, got, c.want)
		}
	}
}

// slow is a slower version of the fair-share policy. It computes each level by the integral that defines the level,
// over all jobs that ever ran.
type slow struct {
	halfLife float64
	weights  []float64
	waiting  []int
	ran      []stay
}

type stay struct {
	job        int
	start, end float64
}

func (s *slow) Arrive(_ *rigid.Machine, job int) { s.waiting = append(s.waiting, job) }

func (s *slow) End(m *rigid.Machine, job int) {
	for i := range s.ran {
		if s.ran[i].job == job {
			s.ran[i].end = m.Now
		}
	}
}

// level returns a user's level: the recent use of slots plus the slots that the user holds now, divided by the user's
// weight. If held(t) is the number of slots at time t, the recent use is the integral ∫ held(t)·2^(−(now−t)/h) dt·ln
// 2/h, where h is the half-life.
func (s *slow) level(m *rigid.Machine, user int) float64 {
	sum := 0.0
	for _, r := range s.ran {
		if m.Jobs[r.job].User != user {
			continue
		}
		if r.end > m.Now || math.IsInf(r.end, 1) {
			sum += float64(m.Jobs[r.job].Width)
		}
		if s.halfLife > 0 {
			until := min(r.end, m.Now)
			sum += float64(m.Jobs[r.job].Width) * (math.Exp2((until-m.Now)/s.halfLife) - math.Exp2((r.start-m.Now)/s.halfLife))
		}
	}
	return sum / s.weights[user]
}

func (s *slow) Decide(m *rigid.Machine) {
	for len(s.waiting) > 0 {
		best := 0
		for i, job := range s.waiting {
			if s.level(m, m.Jobs[job].User) < s.level(m, m.Jobs[s.waiting[best]].User)-1e-9 {
				best = i
			}
		}
		job := s.waiting[best]
		if m.Jobs[job].Width > m.Free {
			return
		}
		m.Start(job)
		s.ran = append(s.ran, stay{job, m.Now, math.Inf(1)})
		s.waiting = slices.Delete(s.waiting, best, best+1)
	}
}

// The schedule orders users by their levels of use. If two levels were almost equal, rounding could decide which is
// smaller, and the slow and the fast schedule could differ. So the test draws weights and run times for which two
// levels are either exactly equal or clearly different.
func TestScheduleIsTheSlowOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := &rigid.Instance{Nodes: rapid.IntRange(1, 6).Draw(t, "nodes"), Weights: []float64{1, 1.37, 0.81}}
		for range rapid.IntRange(0, 18).Draw(t, "jobs") {
			runtime := rapid.Float64Range(0.1, 6).Draw(t, "runtime")
			in.Jobs = append(in.Jobs, rigid.Job{Submit: float64(rapid.IntRange(0, 12).Draw(t, "submit")), Runtime: runtime,
				Estimate: runtime, Width: rapid.IntRange(1, in.Nodes).Draw(t, "width"), User: rapid.IntRange(0, 2).Draw(t, "user")})
		}
		halfLife := rapid.SampledFrom([]float64{0, 1, 7.3}).Draw(t, "half-life")
		got, err := Schedule(in, halfLife)
		if err != nil {
			t.Fatal(err)
		}
		want, err := rigid.Run(in, &slow{halfLife: halfLife, weights: in.Weights})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.Start, want.Start) {
			t.Fatalf("starts %v, want %v: %+v", got.Start, want.Start, in)
		}
	})
}

func TestWithinAUserFirstComeFirstServed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := &rigid.Instance{Nodes: 4, Weights: []float64{1, 2}}
		for range rapid.IntRange(0, 20).Draw(t, "jobs") {
			in.Jobs = append(in.Jobs, rigid.Job{Submit: float64(rapid.IntRange(0, 9).Draw(t, "submit")), Runtime: 2, Estimate: 2,
				Width: rapid.IntRange(1, 4).Draw(t, "width"), User: rapid.IntRange(0, 1).Draw(t, "user")})
		}
		s, err := Schedule(in, 5)
		if err != nil {
			t.Fatal(err)
		}
		last := []float64{math.Inf(-1), math.Inf(-1)}
		for _, i := range in.Arrivals() {
			u := in.Jobs[i].User
			if s.Start[i] < last[u] {
				t.Fatalf("job %d of user %d starts at %v, one ahead at %v: %+v", i, u, s.Start[i], last[u], in)
			}
			last[u] = s.Start[i]
		}
	})
}

// Users with weights 1, 2 and 5 always have waiting jobs. The first user submits all its jobs earlier than the others.
// There are 80 slots. On average, the three users must hold 10, 20 and 50 of them.
func TestSharesOfBusyUsers(t *testing.T) {
	in := &rigid.Instance{Nodes: 80, Weights: []float64{1, 2, 5}}
	for i := range 6000 {
		in.Jobs = append(in.Jobs, rigid.Job{Submit: float64(min(i%3, 1)), Runtime: 1 + float64(i*37%100)/100, Estimate: 2, Width: 1, User: i % 3})
	}
	for _, halfLife := range []float64{0, 3} {
		s, err := Schedule(in, halfLife)
		if err != nil {
			t.Fatal(err)
		}
		held := make([]float64, 3)
		for at := 20.0; at < 40; at += 0.25 {
			for i, job := range in.Jobs {
				if s.Start[i] <= at && at < s.Finish[i] {
					held[job.User] += 1. / 80
				}
			}
		}
		for u, want := range []float64{10, 20, 50} {
			if math.Abs(held[u]-want) > 1 {
				t.Errorf("half-life %v: user %d holds %v slots on average, want %v", halfLife, u, held[u], want)
			}
		}
	}
}

// User 0 has used the whole machine until now. Then both users submit a job, and the job of user 1 goes first. After
// very many half-lives, the past use has become 0. Then the job that was submitted first goes first.
func TestThePastCounts(t *testing.T) {
	for _, c := range []struct {
		halfLife, wait float64
		want           int // the user who goes first
	}{{0, 1, 0}, {10, 1, 1}, {10, 200, 1}, {10, 20_000, 0}} {
		in := &rigid.Instance{Nodes: 1, Weights: []float64{1, 1}}
		at := 50 + c.wait
		for _, j := range []rigid.Job{{Runtime: 50, User: 0}, {Submit: at, Runtime: 1, User: 0}, {Submit: at, Runtime: 1, User: 1}} {
			j.Width, j.Estimate = 1, j.Runtime
			in.Jobs = append(in.Jobs, j)
		}
		s, err := Schedule(in, c.halfLife)
		if err != nil {
			t.Fatal(err)
		}
		if first := 0; (s.Start[2] < s.Start[1]) != (c.want != first) {
			t.Errorf("%+v: starts %v", c, s.Start)
		}
	}
}
