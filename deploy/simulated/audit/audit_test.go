package audit

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/deploy/simulated/core"
	"github.com/candor-grid/candor/deploy/simulated/rules"
	"github.com/candor-grid/candor/deploy/simulated/workload"
	"github.com/candor-grid/candor/messages"
)

// crowd returns a study with more work than the slots can do. It has n jobs of up to ten minutes. A job arrives each
// half minute. There are four slots.
func crowd(t *testing.T, n int, market string, widest int) *core.Problem {
	t.Helper()
	m, err := rules.Decode("market", []byte(market))
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(3, 4))
	w := &workload.Workload{Nodes: 4, Parallel: workload.Split, Users: []int64{1, 2, 3}, Groups: []int64{1}}
	if rules.Wide(m.Mechanism) {
		w.Parallel = workload.Gang
	}
	for i := range n {
		w.Jobs = append(w.Jobs, workload.Job{Number: int64(i + 1), Line: i + 1, Submit: float64(30 * i), Runtime: float64(60 + rng.IntN(540)), Width: 1 + rng.IntN(widest), User: i % 3})
	}
	return &core.Problem{Market: m, Work: w, Bids: m.Bids.Draw(w, 5), Seed: 5}
}

func gains(t *testing.T, p *core.Problem, jobs int, kinds ...string) map[string]Finding {
	t.Helper()
	r, err := Run(p, Options{Jobs: jobs, Kinds: kinds})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]Finding{}
	for _, f := range r.Kinds {
		out[f.Kind] = f
	}
	return out
}

// The test audits markets in which some lies gain for certain. The audit must find a gain.
func TestControlsThatMustGain(t *testing.T) {
	for name, c := range map[string]struct {
		market string
		widest int
		kind   string
	}{
		"first price":                {"mechanism: highest-bid\nprice: first\n", 1, Value},
		"a few orders priced anew":   {"mechanism: reservation\nT: 20\ngranule: 1m\nsearch: {orders: 5, seed: 1}\npricing: thesis\n", 4, Value},
		"first come, and two halves": {"mechanism: fifo\n", 1, Split},
	} {
		f := gains(t, crowd(t, 120, c.market, c.widest), 60, c.kind)[c.kind]
		if f.Largest <= 0.001 || f.Gainers == 0 || f.Job == 0 {
			t.Errorf("%s: no gain was found: %+v", name, f)
		}
	}
}

// The parameter `slo` of a market allows jobs to declare a minimum utility. The audit must tell lies about this minimum
// only in markets with this parameter.
func TestLiesAboutAMinimum(t *testing.T) {
	for market, want := range map[string]int{"mechanism: proportional\n": 0, "mechanism: proportional\nslo: 0.1\n": 5 * 7} {
		if f := gains(t, crowd(t, 20, market, 1), 5, Minimum)[Minimum]; f.Lies != want {
			t.Errorf("%q: %d lies were told, want %d", market, f.Lies, want)
		}
	}
}

// This test audits the mechanism deadline with the paper's rule at λ = 1. The third job is worth 16.5. If it declares
// this value, it is not completed. If it declares less, it is completed. The audit must find this lie.
func TestWorkDoneThatCountsIsFound(t *testing.T) {
	p := crowd(t, 4, "mechanism: deadline\nslot: 1m\nrule: paper\nlambda: 1\n", 1)
	p.Work.Nodes = 1
	for i, x := range [][4]float64{{2, 7, 3, 6}, {2, 4, 2, 8}, {2, 7, 4, 16.5}, {3, 5, 3, 17}} {
		p.Work.Jobs[i].Submit, p.Work.Jobs[i].Runtime = 60*x[0], 60*x[2]
		p.Bids[i].Deadline, p.Bids[i].Length = 60*(x[1]+1), 60*x[2]
		p.Bids[i].Value = x[3] / (60 * x[2])
		p.Bids[i].Rate = p.Bids[i].Value
	}
	if f := gains(t, p, 4, Value)[Value]; f.Job != 3 || f.Gainers != 1 || f.Largest < 0.4 {
		t.Errorf("%+v", f)
	}
}

// Each mechanism claims that the truth is best for some declarations. TestTruthfulMechanismsShowNone audits the
// mechanisms for lies in these declarations. No lie may gain.
func TestTruthfulMechanismsShowNone(t *testing.T) {
	for name, c := range map[string]struct {
		market string
		widest int
		kinds  []string
	}{
		"deadline":                  {"mechanism: deadline\nslot: 30s\n", 1, []string{Value, Deadline, Arrival, Length}},
		"deadline, results at once": {"mechanism: deadline\nslot: 30s\nhand_over: end\n", 1, []string{Value, Arrival, Length}},
		"deadline, density":         {"mechanism: deadline\nslot: 30s\nrule: paper\nlambda: 0\n", 1, []string{Value, Deadline, Arrival, Length}},
		"highest-bid, pivot":        {"mechanism: highest-bid\nprice: pivot\nhorizon: 100h\n", 1, []string{Value, Arrival, Length}},
		"reservation, search":       {"mechanism: reservation\nT: 20\ngranule: 1m\nsearch: {orders: 5, seed: 1}\n", 3, []string{Value}},
		"first come":                {"mechanism: fifo\n", 3, []string{Value, Deadline, Arrival}},
		"backfilling, the rate":     {"mechanism: backfill\n", 3, []string{Value}},
	} {
		for kind, f := range gains(t, crowd(t, 60, c.market, c.widest), 25, c.kinds...) {
			if f.Largest > Rounding || f.Jobs == 0 {
				t.Errorf("%s: lying about %s gains %v: %+v", name, kind, f.Largest, f)
			}
		}
	}
}

// In this market, results are available as soon as a job ends. A job that declares a later deadline must then gain.
func TestEarlyResults(t *testing.T) {
	if f := gains(t, crowd(t, 60, "mechanism: deadline\nslot: 30s\nhand_over: end\n", 1), 25, Deadline)[Deadline]; f.Gainers == 0 {
		t.Errorf("nobody gains by a later deadline: %+v", f)
	}
}

// A simulation must give the same report on any number of processors.
func TestTheReportIsTheSame(t *testing.T) {
	p := crowd(t, 25, "mechanism: highest-bid\n", 2)
	var was string
	for range 3 {
		r, err := Run(p, Options{Jobs: 6})
		if err != nil {
			t.Fatal(err)
		}
		if is := fmt.Sprint(r); was != "" && is != was {
			t.Fatalf("%s\n%s", was, is)
		}
		was = fmt.Sprint(r)
		if len(r.Kinds) != len(Kinds) || r.Runs == 0 {
			t.Fatalf("%+v", r)
		}
	}
}

// TestWeightsAreTried audits lies about weights in markets of proportional shares. A lie that does not change the
// outcome must not gain on average.
func TestWeightsAreTried(t *testing.T) {
	found := gains(t, crowd(t, 60, "mechanism: proportional\n", 1), 15, Weights, Deadline)
	if f := found[Weights]; f.Jobs != 15 || f.Largest < 0 || f.Largest > 0.2 {
		t.Errorf("%+v", f)
	}
	if f := found[Deadline]; f.Largest > Rounding { // shares do not depend on the deadline
		t.Errorf("%+v", f)
	}
}

// A lie that equals the truth must change nothing.
func TestALieThatIsTheTruthChangesNothing(t *testing.T) {
	p := crowd(t, 40, "mechanism: highest-bid\n", 2)
	for i := range p.Bids {
		p.Bids[i].Rate = p.Bids[i].Value
	}
	want, err := core.Run(p)
	if err != nil {
		t.Fatal(err)
	}
	a := &audit{Problem: p, seeds: []uint64{p.Seed}}
	q, owner, _ := variant(p, []int{7, 9}, a.entries([]int{7, 9}))
	got, err := core.Run(&q)
	if err != nil || fmt.Sprint(got.Jobs) != fmt.Sprint(want.Jobs) {
		t.Errorf("%v: the market is another one", err)
	}
	if owner[7] != 1 || owner[9] != 2 || owner[8] != 0 {
		t.Errorf("jobs 7, 8 and 9 belong to liars %d, %d and %d, not 1, 0 and 2", owner[7], owner[8], owner[9])
	}
}

func TestWhatCannotBeAuditedIsRefused(t *testing.T) {
	p := crowd(t, 3, "mechanism: fifo\n", 1)
	if _, err := Run(p, Options{}); messages.KindOf(err) != messages.Invalid {
		t.Errorf("no jobs: %v", err)
	}
	for i := range p.Work.Jobs {
		p.Work.Jobs[i].Runtime = 0
	}
	if _, err := Run(p, Options{Jobs: 2}); messages.KindOf(err) != messages.Invalid {
		t.Errorf("jobs of no time: %v", err)
	}
}

// TestEndsAreTried audits this lie: when the owner has a job's results, the owner makes the job fail. No job may gain
// by this, even in a market that settles on completion. In a second run, a fault is inserted: the site does not count
// such an end as a completion. With this fault, jobs must gain.
func TestEndsAreTried(t *testing.T) {
	for _, mechanism := range []string{"highest-bid", "proportional", "proportional\nsettle: on-completion", "deadline", "backfill", "fifo"} {
		if f := gains(t, crowd(t, 25, "mechanism: "+mechanism+"\n", 1), 4, Ends)[Ends]; f.Jobs == 0 || f.Lies == 0 || f.Largest > 0.01 {
			t.Errorf("%s: %+v", mechanism, f)
		}
	}
	p := crowd(t, 25, "mechanism: proportional\nsettle: on-completion\n", 1)
	if r, err := Run(p, Options{Jobs: 4, Kinds: []string{Ends}, forgetful: true}); err != nil || r.Kinds[0].Largest < 0.1 {
		t.Errorf("the control gains too little: %v %+v", err, r)
	}
}

// In this test, users announce a fixed multiple of their value. In a market with first prices, at least one such lie
// must gain on average. In a queue with taxes and rebates, none may gain. A control shows that the audit can find a
// gain. It replaces the payment rule by a wrong one, under which a lie gains. In both markets the audit must find the
// gain of the control.
func TestFixedLiesAndTheirControl(t *testing.T) {
	worst := func(market string) Finding {
		r, err := Run(crowd(t, 80, market, 1), Options{Jobs: 20, Kinds: []string{Value}, Redraws: 3})
		if err != nil || r.Jobs != 60 || r.Redraws != 3 {
			t.Fatalf("%v %+v", err, r)
		}
		f := r.Kinds[0]
		if !f.Control.Fired() || len(f.Fixed) < len(sizes) || f.Fixed[0].Jobs != 60 {
			t.Errorf("%s: %+v, control %+v", market, f, f.Control)
		}
		return f
	}
	if f := worst("mechanism: highest-bid\nprice: first\n"); !f.Worst.Fired() || f.Worst.Mean < 0.01 {
		t.Errorf("first price: %+v", f.Worst)
	}
	if f := worst("mechanism: batch-queue\npricing: pivot\n"); f.Worst.Fired() {
		t.Errorf("pivot: %+v", f.Worst)
	}
}

// The report of an audit that is stopped early must have the results so far, and say what is missing.
func TestAnAuditThatIsCutOff(t *testing.T) {
	until, closed := make(chan struct{}), false
	r, err := Run(crowd(t, 40, "mechanism: fifo\n", 1), Options{Jobs: 20, Kinds: []string{Value}, Until: until, Progress: func(done, _ int) {
		if done >= 3 && !closed {
			closed = true
			close(until)
		}
	}})
	if err != nil || r.Kinds[0].Jobs < 3 || r.Kinds[0].Jobs == 20 || len(r.Notes) != 1 || !strings.HasPrefix(r.Notes[0], "interrupted: ") {
		t.Errorf("%v %+v", err, r)
	}
}

// In each of these markets, the given kind of lie must gain.
func TestLiesThatAreKnownToGain(t *testing.T) {
	for name, c := range map[string]struct{ market, kind string }{
		"a share for each name":          {"mechanism: fairshare\n", Names},
		"everything, at first price":     {"mechanism: highest-bid\nprice: first\n", Joint},
		"three together, at first price": {"mechanism: highest-bid\nprice: first\n", Three},
		"weights and form, above α = 0":  {"mechanism: proportional\nalpha: 1\n", Weights},
	} {
		if f := gains(t, crowd(t, 60, c.market, 1), 10, c.kind)[c.kind]; f.Gainers == 0 || f.Largest <= Rounding {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// TestLiesThatGainNothing audits markets with lies that must not gain: false declarations of all fields at once, and
// jobs that are slow on purpose. In batch queues, it audits the kinds Delay, Ghosts and Cancel.
func TestLiesThatGainNothing(t *testing.T) {
	for name, c := range map[string]struct{ market, kind string }{
		"deadline, everything":        {"mechanism: deadline\nslot: 30s\n", Joint},
		"deadline, slow on purpose":   {"mechanism: deadline\nslot: 30s\n", Slow},
		"pivot price, everything":     {"mechanism: highest-bid\nprice: pivot\nhorizon: 100h\n", Joint},
		"first come, slow on purpose": {"mechanism: fifo\n", Slow},
	} {
		if f := gains(t, crowd(t, 40, c.market, 1), 8, c.kind)[c.kind]; f.Jobs == 0 || f.Largest > Rounding {
			t.Errorf("%s: %+v", name, f)
		}
	}
	for _, pricing := range []string{"externality", "pivot"} {
		for kind, f := range gains(t, crowd(t, 40, "mechanism: batch-queue\npricing: "+pricing+"\n", 1), 8, Delay, Ghosts, Cancel) {
			if f.Jobs == 0 || f.Worst.Fired() {
				t.Errorf("%s: a fixed lie of the kind %s gains %+v", pricing, kind, f.Worst)
			}
		}
	}
}

// If an audit tries a hundred lies, one of them may seem to gain by chance. The method Above must return false for such
// a lie, and true for a lie that gains with certainty.
func TestAbove(t *testing.T) {
	f := Finding{Fixed: []Fixed{{Jobs: 50, Mean: 1, CI: [2]float64{0.2, 1.8}}}}
	if !f.Above(0, 1) || f.Above(0, 100) || f.Above(0.5, 1) {
		t.Error("a mean of 1 with half an interval of 0.8")
	}
	f.Fixed[0].CI[0] = 0.9
	if !f.Above(0, 1000) {
		t.Error("a mean of 1 with half an interval of 0.1")
	}
}

// TestTheGridEndsWhereTheGainFalls audits a market with k-th prices. A lie multiplies the value by a factor. In this
// market, the factor of the best lie is larger than all factors in the list, so the audit must try larger ones. Each
// further factor must gain more than the factor before it, except the last, with which the audit stops.
func TestTheGridEndsWhereTheGainFalls(t *testing.T) {
	f := gains(t, crowd(t, 60, "mechanism: highest-bid\n", 1), 20, Value)[Value]
	at := len(sizes) + len(beyond[0])
	var means []float64
	for _, x := range f.Fixed {
		if x.Lie == len(sizes)-1 || x.Lie >= at {
			means = append(means, x.Mean)
		}
	}
	n := len(means)
	if n < 3 || n == 1+len(beyond[1]) || f.StillGrows != 0 || !slices.IsSorted(means[:n-1]) || means[n-1] > means[n-2] {
		t.Errorf("gains from four times the truth on: %v, still grows at %v", means, f.StillGrows)
	}
	if f := gains(t, crowd(t, 60, "mechanism: highest-bid\nprice: pivot\n", 1), 20, Value)[Value]; len(f.Fixed) != len(sizes) {
		t.Errorf("where no lie gains, %d are told, want %d", len(f.Fixed), len(sizes))
	}
}

// Users who know each other's rates form a ring. They all lower their rates, and the order of their jobs stays the
// same. Under pivot prices, they must gain by this.
func TestARingThatKeepsItsRankGains(t *testing.T) {
	for kind, at := range map[string]int{Collusion: 35, Three: 36} {
		f := gains(t, crowd(t, 60, "mechanism: highest-bid\nprice: pivot\nhorizon: 100h\n", 1), 20, kind)[kind]
		if last := f.Fixed[len(f.Fixed)-1]; last.Lie != at || last.Mean < 1e-5 {
			t.Errorf("%s: lie %d, want %d, gains %v", kind, last.Lie, at, last.Mean)
		}
	}
}

// TestWideJobs audits jobs of one task each, with 1 to 8 slots of a node. A job can lie about its
// value or its width. An audit also has controls: markets with a changed payment rule, under which such lies gain. The
// search must find the gains in the controls. Under fifo, a lie about the value must change nothing.
func TestWideJobs(t *testing.T) {
	for _, mechanism := range []string{"fifo", "proportional"} {
		p := crowd(t, 60, "mechanism: "+mechanism+"\n", 1)
		p.Work.Nodes, p.Work.Parallel = 16, workload.Wide
		for i := range p.Work.Jobs {
			p.Work.Jobs[i].Width = 1 << (i % 4)
		}
		p.Bids = p.Market.Bids.Draw(p.Work, 5)
		found := gains(t, p, 12, Value, Nodes, Split)
		if f := found[Value]; f.Jobs != 12 || mechanism == "fifo" && f.Gainers != 0 || !f.Control.Fired() {
			t.Errorf("%s, value: %+v", mechanism, f)
		}
		// A liar can announce 1/4, 1/2, 2 or 4 times the true width. Only widths from 1 to 8 are allowed, so each job
		// can tell two or three of these four lies.
		f := found[Nodes]
		if f.Jobs != 12 || f.Lies < 2*12 || f.Lies > 3*12 || !f.Control.Fired() || f.Bounded.Fired() {
			t.Errorf("%s, nodes: %+v", mechanism, f)
		}
		t.Logf("%s: value %.3f %.3f, control %.3f %.3f; width %.3f %.3f, control %.3f %.3f", mechanism, found[Value].Bounded.Bounded, found[Value].Bounded.BoundedCI,
			found[Value].Control.Bounded, found[Value].Control.BoundedCI, f.Bounded.Bounded, f.Bounded.BoundedCI, f.Control.Bounded, f.Control.BoundedCI)
	}
}
