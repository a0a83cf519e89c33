package memory

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/estimator/internal/recent"
	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/wire"
)

func span(seconds float64) messages.Duration { return messages.Duration(seconds * 1e9) }

func at(seconds float64) messages.Time { return messages.Time(seconds * 1e6) }

func profiles() []jobmsg.Profile {
	bounds := func(pairs ...any) (out []jobmsg.ParameterBounds) {
		for i := 0; i < len(pairs); i += 2 {
			out = append(out, jobmsg.ParameterBounds{Parameter: pairs[i].(string), High: float64(pairs[i+1].(int))})
		}
		return out
	}
	return []jobmsg.Profile{
		{Name: "due", Class: jobmsg.Hard, Bounds: bounds("max", 100, "deadline", 1000)},
		{Name: "late", Class: jobmsg.Hard, Bounds: bounds("max", 100, "deadline", 100_000)},
		{Name: "smooth", Class: jobmsg.Sigmoidal, Bounds: bounds("max", 100, "mu", 1000, "delta", 1000), Prior: []jobmsg.Sample{{50, 500, 100}}},
		{Name: "again", Class: jobmsg.Recurrent, SecondsPerUnit: 2, Bounds: bounds("max", 100, "workload", 1000)},
		{Name: "down", Class: jobmsg.LinearDecay, Bounds: bounds("max", 100, "mu", 1000, "delta", 1000), Bandwidth: "silverman_diag"},
		{Name: "steps", Class: jobmsg.Custom, Parts: []float64{1, 0.5, 0}, Bounds: bounds("max", 100, "at1", 100, "at2", 200, "at3", 300)},
		{Name: "queue", Class: jobmsg.Queued, Market: "batch", Bounds: bounds("value", 100, "delay", 1, "length", 1000)},
	}
}

func remember(tb rapid.TB) *Memory {
	tb.Helper()
	m, err := New(profiles())
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

func (m *Memory) see(tb testing.TB, o jobmsg.Observation) {
	tb.Helper()
	if fresh, err := m.Observe(&o); err != nil || !fresh {
		tb.Fatalf("job %d: fresh %v, %v", o.Job, fresh, err)
	}
}

// observed returns the observation of a job with 60 s of maps and then 10 s of reduces, with random shares of 10 slots
// of each class.
func observed(r *rand.Rand, job messages.JobID, account messages.Name) jobmsg.Observation {
	maps, reduces := 0.25+0.25*r.Float64(), 0.25+0.25*r.Float64()
	begin := at(float64(job) * 100)
	first := begin.Add(span(6 / maps))
	end := first.Add(span(1 / reduces))
	return jobmsg.Observation{
		Site: "here", Job: job, Account: account, Name: "sort", Market: "main", State: jobmsg.Completed,
		Submitted: begin, Started: begin, Ended: end,
		Shares: []jobmsg.ClassShare{{Class: "map", Allocated: maps, Over: span(1)}, {Class: "reduce", Allocated: reduces, Over: span(1)}},
		Stages: []jobmsg.StageStatus{
			{Name: "m", Class: "map", Tasks: 6, Done: 6, Started: begin, Ended: first, SlotTime: span(60)},
			{Name: "r", Class: "reduce", Tasks: 1, Done: 1, Started: first, Ended: end, SlotTime: span(10)},
		},
		Work:      []jobmsg.StageWork{{Stage: "m", Command: "sorts", TimeLimit: span(100), Runtimes: []messages.Duration{span(9), span(11)}}, {Stage: "r", Command: "merges"}},
		Valuation: &jobmsg.Valuation{Class: jobmsg.Hard, Max: 100 * r.Float64(), Deadline: 2000 * r.Float64()},
	}
}

// ask makes all requests about an account's jobs, and returns the answers. All numbers must be finite.
func (m *Memory) ask(tb rapid.TB, account messages.Name) string {
	u, err := m.Utility(&market.UtilityRequest{Account: account, Name: "sort", Market: "main", Classes: []messages.Name{"reduce", "map"}})
	must(tb, err)
	spec := &jobmsg.JobSpec{Name: "sort", Market: "main", Budget: 1, Stages: []jobmsg.Stage{
		{Name: "m", Class: "map", Tasks: 6, Command: []string{"x"}, TimeLimit: span(100)},
		{Name: "r", Class: "reduce", Command: []string{"y"}, After: []messages.Name{"m"}, TimeLimit: span(100)}}}
	e, err := m.Estimate(account, spec)
	must(tb, err)
	c, err := m.Classes()
	must(tb, err)
	var out []any
	for _, p := range m.classes {
		draw, err := m.Samples(&market.SamplesRequest{Class: p.profile.Name, Draws: 20, Seed: 1})
		must(tb, err)
		s, err := draw()
		must(tb, err)
		out = append(out, s)
	}
	for _, reply := range append(out, u, e, c) {
		if text := fmt.Sprintf("%+v", reply); strings.Contains(text, "NaN") || strings.Contains(text, "+Inf") || strings.Contains(text, "-Inf") {
			tb.Fatalf("an answer is not finite: %s", text)
		}
		if _, err := wire.Marshal(reply, wire.JSON); err != nil {
			tb.Fatalf("an answer cannot be written: %v", err)
		}
	}
	return fmt.Sprintf("%+v %+v %+v %+v", u, e, c, out)
}

func must(tb rapid.TB, err error) {
	if err != nil {
		tb.Fatalf("%v", err)
	}
}

// Without observations, answers must say so, and use the default, the prior and the limits.
func TestNothingSeen(t *testing.T) {
	m := remember(t)
	m.ask(t, "ada")
	u, err := m.Utility(&market.UtilityRequest{Account: "ada", Classes: []messages.Name{"map"}})
	if err != nil || u.Runs != 0 || u.Default != 1 || u.Utility.Weights.Of("map") != 1 {
		t.Errorf("%+v, %v", u, err)
	}
	c, err := m.Classes()
	if err != nil || c.Classes[2].Prior != 1 || c.Classes[2].Samples != 0 {
		t.Errorf("%+v, %v", c, err)
	}
}

// The answers for a user with fifty runs must follow from the runs. Nothing must be learned for another user.
func TestWhatIsLearned(t *testing.T) {
	m, r := remember(t), rand.New(rand.NewPCG(1, 1))
	for job := messages.JobID(1); job <= 50; job++ {
		m.see(t, observed(r, job, "ada"))
	}
	request := &market.UtilityRequest{Account: "ada", Name: "sort", Market: "main", Classes: []messages.Name{"map", "reduce"}}
	u, err := m.Utility(request)
	if ratio := u.Utility.Weights.Of("map") / u.Utility.Weights.Of("reduce"); err != nil || u.Runs != 50 || !u.Determined || !(ratio > 4 && ratio < 8) || u.Default > 0.1 {
		t.Errorf("%+v, %v", u, err)
	}
	for _, other := range []market.UtilityRequest{
		{Account: "bob", Name: "sort", Market: "main", Classes: request.Classes}, {Account: "ada", Name: "other", Market: "main", Classes: request.Classes},
		{Account: "ada", Name: "sort", Market: "night", Classes: request.Classes}, {Account: "ada", Name: "sort", Market: "main", Classes: request.Classes[:1]},
	} {
		if u, err := m.Utility(&other); err != nil || u.Runs != 0 {
			t.Errorf("%+v: %+v, %v", other, u, err)
		}
	}
	times, err := m.Runtime(&market.RuntimeRequest{Account: "ada", Name: "sort", Stages: []jobmsg.StageShape{{Name: "m", Command: "sorts", Tasks: 6, TimeLimit: span(100)}}})
	if s := times.Stages[0]; err != nil || s.Spread.Low != span(9) || s.Spread.High != span(11) || s.Robust > span(20) || len(s.Samples) != jobmsg.MostRuntimes {
		t.Errorf("%+v, %v", times, err)
	}
}

// A type must go to the first class of its shape whose bounds contain it. Types outside of all bounds must be counted.
func TestTypesGoToTheirClass(t *testing.T) {
	m := remember(t)
	for job, v := range []jobmsg.Valuation{
		{Class: jobmsg.Hard, Max: 1, Deadline: 10}, {Class: jobmsg.Hard, Max: 1, Deadline: 5000}, {Class: jobmsg.Hard, Max: 1, Deadline: 1e9},
		{Class: jobmsg.Sigmoidal, Max: 1, Mu: 1, Delta: 1}, {Class: jobmsg.Recurrent, Max: 1, Workload: 1, SecondsPerUnit: 9},
		{Class: jobmsg.LinearDecay, Max: 1e9, Mu: 1, Delta: 1},
		{Class: jobmsg.Custom, Max: 1, Points: []jobmsg.ValuationPoint{{At: 1, Part: 1}, {At: 2, Part: 0.5}, {At: 3}}},
		{Class: jobmsg.Custom, Max: 1, Points: []jobmsg.ValuationPoint{{At: 1, Part: 1}, {At: 2, Part: 0.6}, {At: 3}}},
	} {
		m.see(t, jobmsg.Observation{Site: "here", Job: messages.JobID(job + 1), Account: "ada", State: jobmsg.Cancelled, Valuation: &v})
	}
	for job, market := range map[messages.JobID]messages.Name{11: "batch", 12: "main"} {
		m.see(t, jobmsg.Observation{Site: "here", Job: job, Account: "ada", Market: market, State: jobmsg.Completed, Value: 5 * messages.Credit, Delay: messages.Credit / 2, Length: span(60)})
	}
	m.see(t, jobmsg.Observation{Site: "here", Job: 13, Account: "ada", Market: "batch", State: jobmsg.Completed, Value: 500 * messages.Credit, Length: span(60)})
	reply, err := m.Classes()
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, c := range reply.Classes {
		got += fmt.Sprintf("%s %g %d, ", c.Profile.Name, c.Samples, c.Outside)
	}
	if got != "due 1 1, late 1 0, smooth 1 0, again 1 0, down 0 1, steps 1 0, queue 1 1, " {
		t.Error(got)
	}
}

// Repeated observations and another order must not change the answers, except for rounding.
func TestRepeatedAndOutOfOrder(t *testing.T) {
	var all []jobmsg.Observation
	r := rand.New(rand.NewPCG(2, 2))
	for job := messages.JobID(1); job <= 15; job++ {
		all = append(all, observed(r, job, "ada"))
	}
	straight, shuffled := remember(t), remember(t)
	for _, o := range all {
		straight.see(t, o)
	}
	rand.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
	for _, o := range all {
		shuffled.see(t, o)
		if fresh, err := shuffled.Observe(&o); fresh || err != nil {
			t.Fatalf("a repeated one: %v, %v", fresh, err)
		}
	}
	request := &market.UtilityRequest{Account: "ada", Name: "sort", Market: "main", Classes: []messages.Name{"map", "reduce"}}
	a, err := straight.Utility(request)
	must(t, err)
	b, err := shuffled.Utility(request)
	must(t, err)
	if a.Runs != b.Runs || math.Abs(a.Utility.Weights[0].Weight-b.Utility.Weights[0].Weight) > 1e-9 || straight.Observed() != shuffled.Observed() {
		t.Errorf("%+v, out of order %+v", a, b)
	}
	times := &market.RuntimeRequest{Account: "ada", Name: "sort", Stages: []jobmsg.StageShape{{Name: "m", Command: "sorts", Tasks: 6}}}
	x, err := straight.Runtime(times)
	must(t, err)
	y, err := shuffled.Runtime(times)
	must(t, err)
	if x.Stages[0].Spread.Median != y.Stages[0].Spread.Median {
		t.Errorf("%+v, out of order %+v", x, y)
	}
}

// odd draws numbers that often cause errors in arithmetic.
var odd = rapid.SampledFrom([]float64{0, 1, 0.5, -1, 1e-300, 1e300, math.MaxFloat64, math.NaN(), math.Inf(1), math.Inf(-1)})

// An observation may have any numbers, even NaN or infinite ones. No answer of the estimator may then be NaN or
// infinite.
func TestOddNumbersComeToNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, r := remember(t), rand.New(rand.NewPCG(3, 3))
		instant := rapid.SampledFrom([]messages.Time{0, 1, -1, at(100), math.MaxInt64, math.MinInt64})
		length := rapid.SampledFrom([]messages.Duration{0, 1, -1, span(10), math.MaxInt64, math.MinInt64})
		for job := messages.JobID(1); job <= 6; job++ {
			o := observed(r, job, "ada")
			o.Submitted, o.Started, o.Ended = instant.Draw(t, "submitted"), instant.Draw(t, "started"), instant.Draw(t, "ended")
			o.Shares[0].Allocated, o.Shares[1].Over = odd.Draw(t, "share"), length.Draw(t, "over")
			o.Stages[0].SlotTime, o.Stages[1].Tasks = length.Draw(t, "slot time"), rapid.IntRange(-1, 3).Draw(t, "tasks")
			o.Stages[1].Started, o.Stages[1].Ended = instant.Draw(t, "began"), instant.Draw(t, "finished")
			o.Work[0].Runtimes[0], o.Work[0].TimeLimit = length.Draw(t, "runtime"), length.Draw(t, "limit")
			o.Valuation.Max, o.Valuation.Deadline = odd.Draw(t, "max"), odd.Draw(t, "deadline")
			if rapid.Bool().Draw(t, "short") {
				o.Work = o.Work[:1]
			}
			if _, err := m.Observe(&o); err != nil {
				t.Fatal(err)
			}
		}
		m.ask(t, "ada")
	})
}

func TestRefuses(t *testing.T) {
	m, r := remember(t), rand.New(rand.NewPCG(4, 4))
	before := m.Snapshot()
	for name, change := range map[string]func(*jobmsg.Observation){
		"site": func(o *jobmsg.Observation) { o.Site = "" }, "account": func(o *jobmsg.Observation) { o.Account = "A" },
		"job": func(o *jobmsg.Observation) { o.Job = 0 }, "state": func(o *jobmsg.Observation) { o.State = jobmsg.Running },
		"name":   func(o *jobmsg.Observation) { o.Name = strings.Repeat("x", jobmsg.MaxTextField+1) },
		"stages": func(o *jobmsg.Observation) { o.Stages = make([]jobmsg.StageStatus, jobmsg.MaxStages+1) },
	} {
		o := observed(r, 1, "ada")
		change(&o)
		if _, err := m.Observe(&o); err == nil {
			t.Errorf("%s: was taken", name)
		}
	}
	if !reflect.DeepEqual(m.Snapshot(), before) {
		t.Error("something changed")
	}
	for name, change := range map[string]func([]jobmsg.Profile){
		"profiles[1].":  func(p []jobmsg.Profile) { p[1].Name = "due" },
		"reversed":      func(p []jobmsg.Profile) { p[0].Bounds[1].Low = 2000 },
		"not a number":  func(p []jobmsg.Profile) { p[0].Bounds[1].Low = math.NaN() },
		"prior outside": func(p []jobmsg.Profile) { p[2].Prior[0][0] = -1 },
	} {
		p := profiles()
		change(p)
		if _, err := New(p); messages.KindOf(err) != messages.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := m.Samples(&market.SamplesRequest{Class: "none", Draws: 1}); messages.KindOf(err) != messages.NotFound {
		t.Error(err)
	}
	for _, classes := range [][]messages.Name{nil, {"C PU"}, make([]messages.Name, jobmsg.MaxStages+1)} {
		if _, err := m.Utility(&market.UtilityRequest{Classes: classes}); messages.KindOf(err) != messages.Invalid {
			t.Errorf("%v: %v", classes, err)
		}
	}
}

// A restored memory must answer and learn like the saved one.
func TestSnapshot(t *testing.T) {
	m, r := remember(t), rand.New(rand.NewPCG(5, 5))
	for job := messages.JobID(1); job <= 200; job++ {
		m.see(t, observed(r, job*37, fmt.Sprintf("user%d", job%7)))
	}
	n, err := Restore(profiles(), m.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	for job := messages.JobID(1); job <= 50; job++ {
		o := observed(r, 100_000+job, "user1")
		m.see(t, o)
		n.see(t, o)
	}
	if m.Observed() != n.Observed() || m.Kinds() != n.Kinds() {
		t.Errorf("%d jobs of %d kinds, want %d of %d", n.Observed(), n.Kinds(), m.Observed(), m.Kinds())
	}
	a, b := m.ask(t, "user1"), n.ask(t, "user1")
	// The texts before "Moved:" must be equal. The text after it says how far the estimate has moved, and a snapshot
	// does not contain this.
	if cut := func(s string) string { return s[:strings.Index(s, "Moved:")] }; cut(a) != cut(b) {
		t.Errorf("restored\n%s\nwant\n%s", b, a)
	}
	for _, bad := range []Record{{}, {Class: &ClassRecord{Name: "none"}}, {Times: &TimesRecord{Sort: 9}}, {Kind: &KindRecord{}}} {
		if _, err := Restore(profiles(), []Record{bad}); err == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
}

func TestMemoryIsBounded(t *testing.T) {
	m, r := remember(t), rand.New(rand.NewPCG(6, 6))
	m.kinds = recent.New[kind, *worth](10)
	for job := messages.JobID(1); job <= 5000; job++ {
		o := observed(r, job, "ada")
		o.Name = fmt.Sprint("job", job)
		m.see(t, o)
	}
	if m.Kinds() != 10 || m.Observed() != 5000 {
		t.Errorf("%d kinds", m.Kinds())
	}
}

func TestJobSet(t *testing.T) {
	var s jobSet
	jobs := []messages.JobID{0, 1, 63, 64, 4095, 4096, 1 << 40, 1<<64 - 1}
	for _, job := range jobs {
		if s.has(job) {
			t.Errorf("%d is in the set before it was added", job)
		}
		s.add(job)
	}
	if blocks := s.blocksOf("here"); len(blocks) != 4 || !slices.IsSortedFunc(blocks, func(a, b JobBlock) int { return int(a.Number>>1) - int(b.Number>>1) }) {
		t.Errorf("%d blocks", len(blocks))
	}
	for _, job := range jobs {
		if !s.has(job) {
			t.Errorf("%d was lost", job)
		}
	}
}

// BenchmarkTake measures how long the memory takes to learn from jobs. They come from a site with 200 users. Each job
// has two stages and a declared type.
func BenchmarkTake(b *testing.B) {
	m, r := remember(b), rand.New(rand.NewPCG(7, 7))
	all := make([]jobmsg.Observation, 4096)
	for k := range all {
		all[k] = observed(r, messages.JobID(k+1), fmt.Sprintf("user%d", k%200))
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		o := all[i%4096]
		o.Job = messages.JobID(i + 1)
		if _, err := m.Observe(&o); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkUtility(b *testing.B) {
	m, r := remember(b), rand.New(rand.NewPCG(8, 8))
	for job := messages.JobID(1); job <= 50; job++ {
		m.see(b, observed(r, job, "ada"))
	}
	request := &market.UtilityRequest{Account: "ada", Name: "sort", Market: "main", Classes: []messages.Name{"map", "reduce"}}
	for b.Loop() {
		if _, err := m.Utility(request); err != nil {
			b.Fatal(err)
		}
	}
}

// Two of forty accounts run the same job as the others, five times as often, with misleading shares and run times. The
// weights of the other accounts must be exactly the same as without these two accounts.
func TestLiarsMoveTheirOwnWeightsOnly(t *testing.T) {
	honest, lied := remember(t), remember(t)
	r, job := rand.New(rand.NewPCG(9, 9)), messages.JobID(0)
	for range 10 {
		for user := range 40 {
			job++
			account := fmt.Sprint("user", user)
			o := observed(r, job, account)
			if user < 38 {
				honest.see(t, o)
				lied.see(t, o)
				continue
			}
			for range 5 {
				job++
				o.Job = job
				o.Shares[0].Allocated, o.Shares[1].Allocated = r.Float64()/10, r.Float64()
				o.Ended = o.Submitted.Add(span(100 / o.Shares[1].Allocated))
				lied.see(t, o)
			}
		}
	}
	for user := range 40 {
		request := &market.UtilityRequest{Account: fmt.Sprint("user", user), Name: "sort", Market: "main", Classes: []messages.Name{"map", "reduce"}}
		a, err := honest.Utility(request)
		must(t, err)
		b, err := lied.Utility(request)
		must(t, err)
		if reflect.DeepEqual(a, b) != (user < 38) {
			t.Errorf("user %d: %+v without liars, %+v with them", user, a, b)
		}
	}
}

func BenchmarkJob(b *testing.B) {
	m, r := remember(b), rand.New(rand.NewPCG(8, 8))
	for job := messages.JobID(1); job <= 50; job++ {
		m.see(b, observed(r, job, "ada"))
	}
	spec := &jobmsg.JobSpec{Name: "sort", Market: "main", Budget: 1, Stages: []jobmsg.Stage{
		{Name: "m", Class: "map", Tasks: 6, Command: []string{"x"}}, {Name: "r", Class: "reduce", Command: []string{"y"}, After: []messages.Name{"m"}}}}
	for b.Loop() {
		if _, err := m.Estimate("ada", spec); err != nil {
			b.Fatal(err)
		}
	}
}
