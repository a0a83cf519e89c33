package highestbid

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

const second = messages.Time(1_000_000)

const credit = messages.Credit

func live(t interface {
	Helper()
	Fatal(...any)
}, rule Rule, classes ...messages.Name) *Mechanism {
	t.Helper()
	c, err := New(market.Market{Name: "spot", Classes: classes, Algorithm: string(rule.Algorithm), Price: string(rule.Price), Capped: rule.Capped, Reserve: new(messages.Price(credit))})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// task returns a job of one class with the given numbers of pending, running and suspended tasks.
func task(id messages.JobID, rate messages.Credits, pending, running, suspended int) *mechanism.Job {
	return &mechanism.Job{Bid: &mechanism.Bid{Job: id, Arrived: messages.Time(id), Rate: rate, Budget: 1000 * credit, Length: 1e9},
		Pending: []int{pending}, Running: []int{running}, Suspended: []int{suspended}}
}

func view(slots int, jobs ...*mechanism.Job) *mechanism.View {
	return &mechanism.View{Now: 5 * second, Classes: []mechanism.Class{{Name: "cpu", Slots: slots}}, Jobs: jobs}
}

func TestAllocate(t *testing.T) {
	hb, np := Rule{HB, Kth, false}, Rule{NPHB, Kth, false}
	at := func(rate messages.Credits) mechanism.Tariff {
		return mechanism.Tariff{Basis: mechanism.AtLevel, Rate: rate}
	}
	order := func(id messages.JobID, a mechanism.Action, n int) mechanism.Directive {
		return mechanism.Directive{Job: id, Action: a, Slots: n}
	}
	for name, c := range map[string]struct {
		rule   Rule
		view   *mechanism.View
		want   []mechanism.Directive
		weight []float64
		tariff mechanism.Tariff
		price  float64
	}{
		"an empty market": {rule: hb, view: view(2), price: 1},
		"free slots are for the best, by what they want": {hb, view(3, task(1, 2*credit, 5, 0, 0), task(2, 3*credit, 1, 0, 0)),
			[]mechanism.Directive{order(2, mechanism.Start, 1), order(1, mechanism.Start, 2)}, []float64{2. / 3, 1. / 3}, at(2 * credit), 2},
		"a better bid takes slots of the worst": {hb, view(2, task(1, 2*credit, 0, 2, 0), task(2, 3*credit, 1, 0, 0)),
			[]mechanism.Directive{order(1, mechanism.Suspend, 1), order(2, mechanism.Start, 1)}, []float64{0, 1}, at(2 * credit), 2},
		"not without preemption": {np, view(2, task(1, 2*credit, 0, 2, 0), task(2, 3*credit, 1, 0, 0)), nil, []float64{0, 1}, at(3 * credit), 3},
		"what was suspended resumes first": {hb, view(2, task(1, 2*credit, 1, 0, 1)),
			[]mechanism.Directive{order(1, mechanism.Resume, 1), order(1, mechanism.Start, 1)}, []float64{1}, mechanism.Tariff{}, 1},
		"a node that goes takes the worst": {hb, view(1, task(1, 2*credit, 0, 1, 0), task(2, 3*credit, 0, 1, 0)),
			[]mechanism.Directive{order(1, mechanism.Suspend, 1)}, []float64{0, 0}, at(2 * credit), 2},
		"ties go to the earlier": {hb, view(1, task(1, 2*credit, 1, 0, 0), task(2, 2*credit, 0, 1, 0)),
			[]mechanism.Directive{order(2, mechanism.Suspend, 1), order(1, mechanism.Start, 1)}, []float64{1, 0}, at(2 * credit), 2},
		"the first price is the lowest that runs": {Rule{HB, First, false}, view(2, task(1, 2*credit, 0, 1, 0), task(2, 3*credit, 0, 1, 0)),
			nil, []float64{0, 0}, mechanism.Tariff{Basis: mechanism.OwnBid}, 2},
	} {
		m := live(t, c.rule, "cpu")
		a := m.Allocate(c.view)
		if !sameDirectives(a.Directives, c.want) || a.Tariffs[0] != c.tariff || a.Prices[0] != c.price {
			t.Errorf("%s: %+v, tariff %+v, price %v; want %+v, %+v, %v", name, a.Directives, a.Tariffs[0], a.Prices[0], c.want, c.tariff, c.price)
		}
		for i, w := range c.weight {
			if a.Weights[i][0] != w {
				t.Errorf("%s: weights %v, want %v", name, a.Weights, c.weight)
			}
		}
		if again := live(t, c.rule, "cpu").Allocate(c.view); !reflect.DeepEqual(a, again) {
			t.Errorf("%s: a mechanism made anew decides %+v, not %+v", name, again, a)
		}
	}
}

func sameDirectives(a, b []mechanism.Directive) bool {
	return slices.Equal(a, b) || len(a) == 0 && len(b) == 0
}

// After the directives, the jobs must have the slots that one auction among all tasks gives them. No other directives
// may be given.
func TestAllocateComesToTheSameAsOneDecision(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := Rule{HB, Kth, false}
		v, left := view(rapid.IntRange(0, 6).Draw(t, "slots")), 0
		left = v.Classes[0].Slots
		m := newAuction(rule, v.Classes[0].Slots)
		for id := range messages.JobID(rapid.IntRange(0, 6).Draw(t, "jobs")) {
			n := func(what string, most int) int { return rapid.IntRange(0, most).Draw(t, what) }
			job := task(id+1, messages.Credits(n("rate", 4)+1)*credit, n("pending", 3), n("running", min(left, 3)), n("suspended", 2))
			left -= job.Running[0]
			v.Jobs = append(v.Jobs, job)
			m.arrive(int32(id), float64(job.Rate), 1, job.Pending[0]+job.Running[0]+job.Suspended[0], 1)
		}
		m.decide()
		c := live(t, rule, "cpu")
		a := c.Allocate(v)
		if got := a.Tariffs[0]; got.Basis != m.basis(rule) || got.Basis == mechanism.AtLevel && float64(got.Rate) != m.level() {
			t.Fatalf("tariff %+v, by the auction %v of %v", got, m.basis(rule), m.level())
		}
		for _, d := range a.Directives {
			obey(v.Jobs[d.Job-1], d)
		}
		for _, job := range v.Jobs {
			if has := int(m.bidders[job.Job-1].running); job.Running[0] != has || job.Pending[0] < 0 || job.Suspended[0] < 0 {
				t.Fatalf("job %d has %+v, by the auction %d", job.Job, job, has)
			}
		}
		if a := c.Allocate(v); len(a.Directives) > 0 {
			t.Fatalf("not content: %+v", a.Directives)
		}
	})
}

func obey(job *mechanism.Job, d mechanism.Directive) {
	switch d.Action {
	case mechanism.Suspend:
		job.Running[0], job.Suspended[0] = job.Running[0]-d.Slots, job.Suspended[0]+d.Slots
	case mechanism.Resume:
		job.Running[0], job.Suspended[0] = job.Running[0]+d.Slots, job.Suspended[0]-d.Slots
	case mechanism.Start:
		job.Running[0], job.Pending[0] = job.Running[0]+d.Slots, job.Pending[0]-d.Slots
	}
}

func TestABudgetThatIsSpentEndsAJob(t *testing.T) {
	rich, poor := task(1, 3*credit, 0, 1, 0), task(2, 2*credit, 1, 1, 0)
	poor.Budget, poor.Accrued = 10*credit, 4*credit
	v, c := view(2, rich, poor), live(t, Rule{HB, Kth, false}, "cpu")
	if a := c.Allocate(v); a.Wake != v.Now+3*second+1 || len(a.Directives) != 0 {
		t.Errorf("at a price of 2 with 6 left: wake at %v, %+v", a.Wake, a.Directives)
	}
	poor.Accrued = 10 * credit
	a := c.Allocate(v)
	if !slices.Equal(a.Directives, []mechanism.Directive{{Job: 2, Action: mechanism.Discard}}) || a.Tariffs[0].Basis != mechanism.AtReserve {
		t.Errorf("spent: %+v", a)
	}
	if e := c.Explain(v, poor); e.Reason != mechanism.BudgetSpent {
		t.Errorf("%+v", e)
	}
	poor.Accrued++
	for state, says := range map[job.State]string{job.Completed: "completed: its slots cost its whole budget", job.Failed: "failed: its slots cost its whole budget", job.Cancelled: "cancelled: its slots cost its whole budget"} {
		if p := c.Settle(v, poor, mechanism.End{State: state}); len(p) != 1 || p[0].Amount != poor.Budget || p[0].From != 2 || p[0].To != 0 || !strings.HasPrefix(p[0].Reason, says) {
			t.Errorf("%v: %+v, want %v from job 2 to the site, because %q", state, p, poor.Budget, says)
		}
	}
	rich.Accrued = 7
	if p := c.Settle(v, rich, mechanism.End{State: job.Completed}); p[0].Amount != 7 {
		t.Errorf("%+v", p)
	}
}

func TestAdmit(t *testing.T) {
	good := func() *mechanism.Bid {
		return &mechanism.Bid{Job: 1, Rate: credit, Budget: credit, Length: 1e9, Width: 1}
	}
	c := live(t, Rule{WSEPT, Kth, true}, "cpu")
	if err := c.Admit(view(1), good()); err != nil {
		t.Fatal(err)
	}
	for says, change := range map[string]func(*mechanism.Bid){
		"rate: market spot needs a bid for an hour of a slot: add --rate 3600/h or more":                                            func(b *mechanism.Bid) { b.Rate = 0 },
		"rate: 3599.9964 credits an hour is too low: the reserve of market spot is 3600 credits an hour; bid --rate 3600/h or more": func(b *mechanism.Bid) { b.Rate = credit - 1 },
		"rate: 9007199254.740993 is too high: the limit is 9007199254.740992 credits for a slot-second":                             func(b *mechanism.Bid) { b.Rate = MostRate + 1 },
		"budget: must be above 0": func(b *mechanism.Bid) { b.Budget = 0 },
		"length: ":                func(b *mechanism.Bid) { b.Length = 0 },
	} {
		b := good()
		change(b)
		if err := c.Admit(view(1), b); messages.KindOf(err) != messages.Invalid || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}

func TestConfig(t *testing.T) {
	m, err := New(market.Market{Name: "spot", Classes: []messages.Name{"cpu"}})
	if err != nil || m.rule != (Rule{HB, Kth, false}) || m.reserve != messages.HourlyCredit {
		t.Fatalf("%+v, %v", m, err)
	}
	reserve := messages.Price(MostRate + 1)
	if _, err := New(market.Market{Name: "spot", Reserve: &reserve}); messages.KindOf(err) != messages.Invalid || !strings.Contains(err.Error(), "reserve: must be") {
		t.Error(err)
	}
}

func TestExplain(t *testing.T) {
	runs, waits, later := task(1, 3*credit, 0, 1, 0), task(2, 2*credit, 1, 0, 0), task(3, 2*credit, 1, 0, 0)
	blocked := task(4, 9*credit, 0, 0, 0)
	v, c := view(1, runs, waits, later, blocked), live(t, Rule{HB, Kth, false}, "cpu")
	for _, want := range []struct {
		job               *mechanism.Job
		reason, says, too string
	}{
		{runs, mechanism.Running, "with its bid of 10800 credits an hour the job has 1 slot of cpu; the price is 7200 an hour now", ""},
		{waits, Outbid, "this job is the next", "a bid of 10800.0036 credits an hour or more would win a slot now"},
		{later, Outbid, "1 task with a higher or an equal earlier bid waits", "2 free slots of cpu"},
		{blocked, mechanism.WaitingForStage, "earlier stage", "earlier stages"},
	} {
		e := c.Explain(v, want.job)
		if e.Reason != want.reason || !strings.Contains(e.Message, want.says) || !strings.Contains(strings.Join(e.Change, ";"), want.too) {
			t.Errorf("job %d: %+v, want %+v", want.job.Job, e, want)
		}
	}
	runs.Account = "rival"
	if e := c.Explain(v, waits); strings.Contains(strings.Join(e.Change, ";"), "credits") {
		t.Errorf("tells the bid of the only rival: %+v", e)
	}
	np := live(t, Rule{WSEPT, Kth, false}, "cpu")
	runs.Account = waits.Account
	if e := np.Explain(v, later); !strings.Contains(strings.Join(e.Change, ";"), "a bid of 7200.0036 credits an hour or more would win the next free slot") {
		t.Errorf("%+v", e)
	}
	if e := c.Explain(view(0, waits), waits); e.Reason != WaitingForNode {
		t.Errorf("%+v", e)
	}
	if e := c.Explain(v, task(9, credit, 1, 0, 0)); e.Reason != Outbid {
		t.Errorf("%+v", e)
	}
}
