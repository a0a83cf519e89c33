package batchqueue

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/candor-grid/candor/auctioneer/mechanism/casefile/casetest"
	"github.com/candor-grid/candor/messages"
)

// large draws a queue of n jobs whose numbers are decimals.
func large(r *rand.Rand, n int) (*Queue, *Expectation) {
	q, e := &Queue{}, &Expectation{Mode: Priority}
	for i := range n {
		job := Job{Length: 100 * r.Float64()}
		p := Prior{}
		for range 3 {
			p.Points = append(p.Points, Point{Job{Length: 100 * r.Float64()}, 1. / 3})
		}
		for _, t := range []*Job{&job, &p.Points[0].Type, &p.Points[1].Type, &p.Points[2].Type} {
			if i == 0 {
				t.Value = 200 * float64(n) * r.Float64()
			} else {
				t.Delay = 5 * r.Float64()
			}
		}
		q.Jobs, e.Priors = append(q.Jobs, job), append(e.Priors, p)
	}
	return q, e
}

// The payments of all jobs must sum to exactly zero, in any order of the sum, and for any number of draws.
func TestPaymentsSumToZero(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for k := range 400 {
		q, e := large(r, 1+r.IntN(200))
		e.Draws, e.Seed = 1+r.IntN(60), uint64(k)
		e.Mode = []Mode{Priority, Full}[k%2]
		p, err := Pay(q, e)
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			sum := 0.0
			for _, i := range r.Perm(len(p.Net)) {
				sum += p.Net[i]
			}
			if sum != 0 {
				t.Fatalf("%d: payments of %d jobs sum to %g", k, len(p.Net), sum)
			}
		}
		checkUnrounded(t, p)
		checkMicrocredits(t, p.Net)
	}
}

// checkUnrounded checks that each payment equals its formula, up to rounding errors.
func checkUnrounded(t *testing.T, p *Payments) {
	t.Helper()
	if len(p.Net) == 1 {
		return
	}
	raw, all := make([]float64, len(p.Net)), 0.0
	transfer(raw, p.Externality)
	for _, x := range raw {
		all += math.Abs(x)
	}
	for i, x := range raw {
		if d := math.Abs(p.Net[i] - x); d > 1e-15*all && (i > 0 || d > 1e-12*all) {
			t.Fatalf("payment %d is %v, want %v", i, p.Net[i], x)
		}
	}
}

func checkMicrocredits(t *testing.T, net []float64) {
	t.Helper()
	micro, err := Microcredits(net)
	if err != nil {
		t.Fatal(err)
	}
	var sum messages.Credits
	for i, c := range micro {
		sum += c
		if want, _ := messages.RoundCredits(net[i]); i > 0 && c != want {
			t.Fatalf("payment %d is %v, want %v", i, c, want)
		}
	}
	if sum != 0 {
		t.Fatalf("%d microcredits are left over", sum)
	}
}

func TestMicrocreditsRefuse(t *testing.T) {
	for _, x := range []float64{math.NaN(), math.Inf(1), 1e13} {
		if _, err := Microcredits([]float64{0, x}); messages.KindOf(err) != messages.TooLarge {
			t.Errorf("%v: %v", x, err)
		}
	}
}

// payoff returns the expected payoff of job i, over the other jobs' types, if the job announces `report` and not its
// true type. The payoff is the sum of two values of the decision: its value to the job, and its value to the other
// jobs. The second value is the only part of the job's payment that the announcement can change.
func payoff(q *Queue, e *Expectation, i int, report Job, decide func(*Queue, []Job) bool) (sum float64) {
	truth := q.Jobs[i]
	fixed := func(l int) bool { return l == i }
	profiles(q, e, fixed, func(jobs []Job, p float64) {
		jobs = slices.Clone(jobs)
		jobs[i] = report
		if !decide(q, jobs) {
			return
		}
		delays := delaysSlowly(q, jobs)
		for l := range jobs {
			switch {
			case l == i && i == 0:
				sum += p * truth.Value
			case l == i:
				sum -= p * truth.Delay * delays[i]
			case l == 0:
				sum += p * jobs[0].Value
			default:
				sum -= p * jobs[l].Delay * delays[l]
			}
		}
	})
	return sum
}

func reaches(q *Queue, jobs []Job) bool {
	threshold, delays := 0.0, delaysSlowly(q, jobs)
	for i := 1; i < len(jobs); i++ {
		threshold += jobs[i].Delay * delays[i]
	}
	return jobs[0].Value >= threshold
}

// One job declares another value or another cost of delay than the true one. All others declare the truth, and the
// expectations are computed exactly. The job must not gain.
func TestHonestyIsBest(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for k := range 600 {
		q, e := small(r, 4)
		i := r.IntN(len(q.Jobs))
		honest := payoff(q, e, i, q.Jobs[i], reaches)
		for range 6 {
			lie := q.Jobs[i]
			other := anyType(r, q, i)
			lie.Value, lie.Delay = other.Value, other.Delay
			if x := payoff(q, e, i, lie, reaches); x > honest+1e-9 {
				t.Fatalf("%d: job %d gains %g by reporting %+v: %+v %+v", k, i, x-honest, lie, q, e)
			}
		}
	}
}

// The thesis prints equation 4.2 with a sum of d_j·r_j (see the package documentation). Here d_j is the delay cost of
// job j and r_j is its own length. But what delays job j is the length of the front job. With the printed equation, a
// waiting job of true cost 1 and length 10 gains by reporting the cost 0: then the front job runs.
func TestEquation42AsPrintedRewardsLies(t *testing.T) {
	q := &Queue{Jobs: []Job{{Value: 5, Length: 1}, {Delay: 1, Length: 10}}}
	e := &Expectation{Mode: Priority, Priors: []Prior{{Points: []Point{{Job{Value: 5}, 1}}}, {Points: []Point{{Job{Delay: 1}, 1}}}}}
	printed := func(_ *Queue, jobs []Job) bool { return jobs[0].Value >= jobs[1].Delay*jobs[1].Length }
	lie := Job{Delay: 0, Length: 10}
	honest, lying := payoff(q, e, 1, q.Jobs[1], printed), payoff(q, e, 1, lie, printed)
	if honest != 0 || lying != 4 {
		t.Errorf("honest %v, lying %v; want 0 and 4", honest, lying)
	}
	if d, err := Decide(q); err != nil || !d.Runs || d.Threshold != 1 {
		t.Errorf("%+v, %v", d, err)
	}
}

// The mechanism does not use equation 4.2 as the paper prints it. In at least one sample case, the printed equation
// must lead to another decision than the mechanism's.
func TestEquation42OfTheSamples(t *testing.T) {
	differ := 0
	for _, c := range casetest.Cases[golden](t, "batch-queue.json") {
		if *c.Expect.RunsAsRead != ask(t, &c, map[string]any{"expectation": "exact"}).Runs {
			differ++
		}
	}
	if differ == 0 {
		t.Error("no sample tells the threshold from the one printed")
	}
}

// If all amounts are given in another unit of money, each payment must be the same amount in this unit. If all times,
// also in the costs of delay, are given in another unit of time, no payment may change.
func TestScaling(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for k := range 300 {
		q, e := small(r, 5)
		p, err := Pay(q, e)
		if err != nil {
			t.Fatal(err)
		}
		money, time := scaled(q, e, 4, 1), scaled(q, e, 1, 8)
		for i := range p.Net {
			if money.Net[i] != 4*p.Net[i] || time.Net[i] != p.Net[i] {
				t.Fatalf("%d: payment %v; money ×4: %v; time ×8: %v", k, p.Net[i], money.Net[i], time.Net[i])
			}
		}
	}
}

func scaled(q *Queue, e *Expectation, money, time float64) *Payments {
	scale := func(job Job) Job {
		return Job{Value: job.Value * money, Delay: job.Delay * money / time, Length: job.Length * time, Width: job.Width}
	}
	q2, e2 := &Queue{Nodes: q.Nodes}, *e
	e2.Priors = nil
	for _, hold := range q.Running {
		q2.Running = append(q2.Running, Hold{hold.Width, hold.Remaining * time})
	}
	for i, job := range q.Jobs {
		q2.Jobs = append(q2.Jobs, scale(job))
		var prior Prior
		for _, p := range e.Priors[i].Points {
			prior.Points = append(prior.Points, Point{scale(p.Type), p.P})
		}
		e2.Priors = append(e2.Priors, prior)
	}
	p, err := Pay(q2, &e2)
	if err != nil {
		panic(err)
	}
	return p
}

// If each job takes the whole machine, the payments must not depend on the order of the waiting jobs.
func TestPermutation(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	for range 300 {
		q, e := small(r, 6)
		q.Nodes, q.Running = 0, nil
		for i := range q.Jobs {
			q.Jobs[i].Width = 0
			for k := range e.Priors[i].Points {
				e.Priors[i].Points[k].Type.Width = 0
			}
		}
		p, err := Pay(q, e)
		if err != nil {
			t.Fatal(err)
		}
		q2, e2 := &Queue{Jobs: slices.Clone(q.Jobs)}, *e
		e2.Priors = slices.Clone(e.Priors)
		order := append([]int{0}, addOne(r.Perm(len(q.Jobs)-1))...)
		for i, from := range order {
			q2.Jobs[i], e2.Priors[i] = q.Jobs[from], e.Priors[from]
		}
		p2, err := Pay(q2, &e2)
		if err != nil {
			t.Fatal(err)
		}
		for i, from := range order {
			if math.Abs(p2.Net[i]-p.Net[from]) > 1e-10 {
				t.Fatalf("payments %v, permuted by %v %v", p.Net, order, p2.Net)
			}
		}
	}
}

func addOne(x []int) []int {
	for i := range x {
		x[i]++
	}
	return x
}

// The front job has the value 0.3. It delays two jobs with the costs 0.1 and 0.2. As binary numbers, 0.1 + 0.2 is more
// than 0.3. The front job must still run, because in decimal numbers its value equals this sum, the threshold.
func TestDecimalsTie(t *testing.T) {
	q := &Queue{Jobs: []Job{{Value: 0.3, Length: 1}, {Delay: 0.1}, {Delay: 0.2}}}
	d, err := Decide(q)
	if err != nil || !d.Runs || !(d.Threshold > 0.3) {
		t.Errorf("%+v, %v", d, err)
	}
}

// A prior can be a list of points with probabilities, or a function that samples the same distribution. Both must give
// the same payments.
func TestSamplersAreLikeDistributions(t *testing.T) {
	q, e := large(rand.New(rand.NewPCG(7, 7)), 20)
	e.Draws = 500
	want, err := Pay(q, e)
	if err != nil {
		t.Fatal(err)
	}
	for i := range e.Priors {
		in := invert(e.Priors[i])
		e.Priors[i] = Prior{Sample: func(u float64) Job { return *in.at(u) }}
	}
	got, err := Pay(q, e)
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	e.Priors[3].Sample = func(u float64) Job { return Job{Delay: 0.5 - u} }
	if _, err := Pay(q, e); messages.KindOf(err) != messages.Invalid {
		t.Errorf("a negative cost of delay was sampled: %v", err)
	}
}

// TestStratifiedNeedsFewerDraws compares two ways to compute a payment with the same number of draws. In the first way,
// one run makes all draws with one seed, so the draws can be stratified. In the second way, each draw is a run of its
// own, with its own seed, so the draws are independent. The variance in the first way must be less than half of the
// variance in the second way.
func TestStratifiedNeedsFewerDraws(t *testing.T) {
	const draws = 256
	q, e := large(rand.New(rand.NewPCG(8, 8)), 32)
	variance := func(of, seeds int) float64 {
		e.Draws = of
		var mean, square float64
		for seed := range seeds {
			e.Seed = uint64(seed)
			p, err := Pay(q, e)
			if err != nil {
				t.Fatal(err)
			}
			mean += p.Net[0] / float64(seeds)
			square += p.Net[0] * p.Net[0] / float64(seeds)
		}
		return square - mean*mean
	}
	stratified, independent := variance(draws, 200), variance(1, 5000)/draws
	t.Logf("variance %.4g, independent %.4g", stratified, independent)
	if stratified > independent/2 {
		t.Errorf("variance %.4g of stratified draws, %.4g of independent ones", stratified, independent)
	}
}
