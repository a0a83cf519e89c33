package market

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	agentmsg "github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/market"
)

// byBudget is a mechanism that divides the slots of each class in proportion to the jobs' budgets.
type byBudget struct{}

func (*byBudget) Admit(*mechanism.View, *mechanism.Bid) error { return nil }

func (*byBudget) Allocate(v *mechanism.View) *mechanism.Allocation {
	a := &mechanism.Allocation{Weights: make([][]float64, len(v.Jobs)), Prices: make([]float64, len(v.Classes))}
	for i, j := range v.Jobs {
		a.Weights[i] = make([]float64, len(v.Classes))
		for k := range v.Classes {
			if j.Pending[k] > 0 {
				a.Prices[k] += j.Budget.Float()
			}
		}
	}
	for i, j := range v.Jobs {
		for k := range v.Classes {
			if j.Pending[k] > 0 {
				a.Weights[i][k] = j.Budget.Float() / a.Prices[k]
			}
		}
	}
	return a
}

func (*byBudget) Settle(_ *mechanism.View, j *mechanism.Job, _ mechanism.End) []mechanism.Payment {
	return []mechanism.Payment{{From: j.Job, Amount: j.Budget}}
}

func (*byBudget) Explain(*mechanism.View, *mechanism.Job) mechanism.Explanation {
	return mechanism.Explanation{Reason: "Test"}
}

func newMarket() *Market {
	m := New(mechanism.Manner{}, market.Market{Name: "main", Classes: []messages.Name{"cpu"}}, new(byBudget))
	m.SetSlots(0, []int{10}, []int{10})
	return m
}

func put(m *Market, at messages.Time, id messages.JobID, budget messages.Credits, pending, running int) {
	bid := func() *mechanism.Bid {
		return &mechanism.Bid{Job: id, Budget: budget * messages.Credit, Weights: []float64{1}}
	}
	m.Put(at, bid, id, Progress{Pending: []int{pending}, Running: []int{running}})
}

type agent struct {
	seq  uint64
	jobs map[messages.JobID]float32
}

func (a *agent) take(t interface{ Fatalf(string, ...any) }, v agentmsg.Vector) {
	if v.Base == 0 {
		a.jobs = map[messages.JobID]float32{}
	} else if v.Base != a.seq {
		t.Fatalf("vector %d builds on %d, the agent holds %d", v.Seq, v.Base, a.seq)
	}
	a.seq = v.Seq
	for _, j := range v.Classes[0].Jobs {
		a.jobs[j.Job] = j.Weight
		if j.Weight == 0 {
			delete(a.jobs, j.Job)
		}
	}
}

// An agent applies each published change of the weights. Afterwards, the ratio of two of its weights must be the ratio
// of the two jobs' shares. The ratio may have a relative error, because small changes of a weight are not published.
// The error may be at most the size of the smallest published change.
func TestChangesAddUpToTheWhole(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m, rng := newMarket(), rand.New(rand.NewPCG(1, 2))
		p, a := NewPublisher(3, m), &agent{}
		for i := range 40 {
			now := messages.Time(i * 1000)
			id := messages.JobID(rapid.IntRange(1, 12).Draw(rt, "job"))
			if rapid.IntRange(0, 4).Draw(rt, "what") == 0 {
				m.Remove(now, id)
			} else {
				put(m, now, id, messages.Credits(id), rapid.IntRange(0, 3).Draw(rt, "pending"), 0)
			}
			if m.Stale(now) {
				m.Allocate(now)
			}
			if v, ok := p.Next(m, now, rng, rapid.Bool().Draw(rt, "announce")); ok {
				a.take(rt, v)
			}
			bidders := m.bidders(0)
			if len(a.jobs) != len(bidders) {
				rt.Fatalf("agent holds %v, %d jobs bid", a.jobs, len(bidders))
			}
			weights, shares := 0.0, 0.0
			for _, e := range bidders {
				weights, shares = weights+float64(a.jobs[e.job.Job]), shares+e.ledger[0].share
			}
			for _, e := range bidders {
				if w, s := float64(a.jobs[e.job.Job])/weights, e.ledger[0].share/shares; math.Abs(w-s) > 2.2*changeThreshold*s {
					rt.Fatalf("job %d: agent holds %g, in force is %g", e.job.Job, w, s)
				}
			}
		}
	})
}

// When jobs leave, the shares of the other jobs keep their proportions. So the market needs no new decision, and the
// next vector may name only the removed jobs. A job that comes back must have its old weight. A new job must have a
// weight in proportion to the weights of the other jobs.
func TestDeparturesAreNoDecision(t *testing.T) {
	m, rng := newMarket(), rand.New(rand.NewPCG(1, 2))
	p, a := NewPublisher(3, m), &agent{}
	tell := func(now messages.Time) agentmsg.Vector {
		m.Allocate(now)
		v, ok := p.Next(m, now, rng, true)
		if !ok {
			t.Fatal("no vector")
		}
		a.take(t, v)
		return v
	}
	const jobs = 100
	for id := messages.JobID(1); id <= jobs; id++ {
		put(m, 1, id, messages.Credits(id), 1, 0)
	}
	tell(2)
	for id := messages.JobID(jobs); id > 10; id-- {
		m.Remove(messages.Time(id), id)
		if v := tell(messages.Time(1000 - id)).Classes[0]; !v.Same() || len(v.Jobs) != 2 || v.Jobs[1] != (agentmsg.JobWeight{Job: id}) {
			t.Fatalf("job %d left, and the vector has %+v", id, v)
		}
	}
	put(m, 2000, 9, 9, 0, 1)
	put(m, 2000, 8, 8, 0, 1)
	tell(2001)
	put(m, 2002, 9, 9, 1, 0)
	if v := tell(2003).Classes[0]; !v.Same() || len(v.Jobs) != 2 || v.Jobs[1].Job != 9 {
		t.Fatalf("job 9 came back, and the vector has %+v", v)
	}
	m.Remove(2004, 8)
	put(m, 2004, 8, 16, 1, 0)
	if v := tell(2005).Classes[0]; v.Same() || len(v.Jobs) != 1 || v.Jobs[0].Job != 8 {
		t.Fatalf("job 8 came back with twice the budget, and the vector has %+v", v)
	}
	put(m, 2006, 200, 20, 1, 0)
	if v := tell(2007).Classes[0]; v.Same() || len(v.Jobs) != 1 || math.Abs(float64(v.Jobs[0].Weight/a.jobs[10])-2) > 1e-3 {
		t.Fatalf("a job with twice the budget of job 10, which has %v, came, and the vector has %+v", a.jobs[10], v)
	}
}

func TestSharesAreAveragedWhileWorkIsPending(t *testing.T) {
	const second = messages.Time(1e6)
	m := newMarket()
	put(m, 0, 1, 3, 5, 0)
	put(m, 0, 2, 1, 5, 0)
	m.Allocate(0)
	put(m, 1*second, 1, 3, 4, 5) // one second with 0 of 10 slots, and then one second with 5
	put(m, 2*second, 1, 3, 0, 5) // nothing is pending any more, so this second does not count
	m.Allocate(2 * second)
	job, shares := m.Remove(9*second, 1)
	s := shares[0]
	if job.Job != 1 || math.Abs(s.Allocated-0.75) > 1e-9 || math.Abs(s.Received-0.25) > 1e-9 || s.Over.Seconds() != 2 {
		t.Fatalf("shares %+v, want 0.75 allocated and 0.25 received over 2 s", s)
	}
	if job.Lacked != 0 { // nothing counts before the job's first slot
		t.Fatalf("lacked %v", job.Lacked)
	}
}

// A job's Lacked must count only the time after the job's first slot, and only slots that the job could use.
func TestWhatAJobLacks(t *testing.T) {
	const second = messages.Time(1e6)
	m := newMarket()
	put(m, 0, 2, 1, 5, 0)
	bid := func() *mechanism.Bid {
		return &mechanism.Bid{Job: 1, Budget: 3 * messages.Credit, Weights: []float64{1}}
	}
	m.Put(0, bid, 1, Progress{Pending: []int{5}, Running: []int{0}})
	m.Allocate(0)
	m.Put(1*second, bid, 1, Progress{Pending: []int{4}, Running: []int{5}, Started: 1 * second})
	m.Put(2*second, bid, 1, Progress{Pending: []int{1}, Running: []int{1}, Started: 1 * second}) // the job had 5 of 7.5 slots
	m.Put(3*second, bid, 1, Progress{Pending: []int{0}, Running: []int{1}, Started: 1 * second}) // the job could use 2 slots
	if job, _ := m.Remove(9*second, 1); job.Lacked.Seconds() != 3.5 {
		t.Errorf("lacked %v, want 3.5 s", job.Lacked)
	}
}

func TestAllocatesOnlyWhenBiddersOrSlotsChange(t *testing.T) {
	m := newMarket()
	put(m, 0, 1, 3, 5, 0)
	m.Allocate(0)
	put(m, 1, 1, 3, 4, 1)
	if m.Stale(1) {
		t.Fatal("one task fewer of many changes no share")
	}
	put(m, 2, 1, 3, 0, 5)
	if !m.Stale(2) {
		t.Fatal("a job without work pending still bids")
	}
	m.Allocate(2)
	m.SetSlots(3, []int{11}, []int{1})
	if !m.Stale(3) {
		t.Fatal("a new slot was not noticed")
	}
}

// More jobs wait than a vector can have. The expected weight of each job must be its share. The test draws 500 samples
// of 2,000 jobs in 4 groups of budgets. The mean weight of each job must be within five standard deviations of its
// share, and the mean of each group must be its share. The standard deviation is small, because a vector is a
// systematic sample: of n places, a job with share s gets ⌊ns⌋ or ⌈ns⌉. A chi-squared test would expect more scatter,
// and would not find errors.
func TestSampleMatchesShares(t *testing.T) {
	m := newMarket()
	const jobs, draws = 2000, 500
	for i := range jobs {
		put(m, 0, messages.JobID(i+1), messages.Credits(1+i%4), 1, 0)
	}
	m.Allocate(0)
	rng := rand.New(rand.NewPCG(5, 6))
	mean := make([]float64, jobs+1)
	for range draws {
		for _, j := range m.sample(0, rng) {
			mean[j.Job] += float64(j.Weight) / draws
		}
	}
	group := [4]float64{}
	for _, e := range m.bidders(0) {
		places := e.ledger[0].share * MostJobs
		frac := places - math.Floor(places)
		sd := math.Sqrt(frac*(1-frac)/draws) / MostJobs
		if got := mean[e.job.Job]; math.Abs(got-e.ledger[0].share) > 5*sd+1e-6 {
			t.Errorf("job %d: mean weight %g, share %g", e.job.Job, got, e.ledger[0].share)
		}
		group[(e.job.Job-1)%4] += mean[e.job.Job]
	}
	for g, w := range group {
		if want := float64(g+1) / 10; math.Abs(w-want) > 1e-3 {
			t.Errorf("group %d: weight %g, share %g", g, w, want)
		}
	}
}

// TestSubstitutesMatchShares draws 100,000 substitutes. A substitute is a job that is drawn at random by the jobs'
// shares. A chi-squared test compares the draws with the shares.
func TestSubstitutesMatchShares(t *testing.T) {
	m, rng := newMarket(), rand.New(rand.NewPCG(7, 8))
	const jobs, draws = 20, 100_000
	for i := range jobs {
		put(m, 0, messages.JobID(i+1), messages.Credits(i+1), 1, 0)
	}
	m.Allocate(0)
	count := make([]float64, jobs+1)
	for range draws {
		count[m.Substitute(0, rng)]++
	}
	chi := 0.0
	for i := 1; i <= jobs; i++ {
		want := draws * float64(i) / (jobs * (jobs + 1) / 2)
		chi += (count[i] - want) * (count[i] - want) / want
	}
	if p := (distuv.ChiSquared{K: jobs - 1}).Survival(chi); p < 1e-3 || count[0] > 0 {
		t.Fatalf("chi-squared %g, p %g, %g draws of nothing", chi, p, count[0])
	}
	for i := range jobs {
		put(m, 1, messages.JobID(i+1), messages.Credits(i+1), 0, 1)
	}
	if id := m.Substitute(0, rng); id != 0 {
		t.Fatalf("drew job %d, which has nothing pending", id)
	}
}

func TestManyJobsArriveWithoutBeingPublishedEach(t *testing.T) {
	m, rng := newMarket(), rand.New(rand.NewPCG(9, 10))
	for i := range 5000 {
		put(m, 0, messages.JobID(i+1), 1, 1, 0)
	}
	m.Allocate(0)
	p := NewPublisher(1, m)
	v, _ := p.Next(m, 1, rng, false)
	if n := len(v.Classes[0].Jobs); n > MostJobs || n < MostJobs/2 || v.Classes[0].Pending != 5000 {
		t.Fatalf("%d jobs published, %d pending", n, v.Classes[0].Pending)
	}
	put(m, 2, 5001, 1, 1, 0)
	m.Allocate(2)
	if v, ok := p.Next(m, 2, rng, false); ok {
		t.Fatalf("an arrival among thousands was published at once: %d changes", len(v.Classes[0].Jobs))
	}
	if _, ok := p.Next(m, messages.Time(2).Add(ResampleAfter), rng, false); !ok {
		t.Fatal("the sample was never drawn anew")
	}
}
