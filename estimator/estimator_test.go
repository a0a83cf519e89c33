package estimator

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/bus"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/wire"
)

const patience = await.Patience

type bed struct {
	*testing.T
	network *bus.Network
	client  bus.Bus
	stream  bus.Stream
	metrics *prometheus.Registry
}

func newBed(t *testing.T) *bed {
	b := &bed{T: t, network: bus.NewMemory(), metrics: prometheus.NewRegistry()}
	b.client = b.network.Connect("$auctioneer")
	stream, err := b.client.Stream(context.Background(), messages.ObservationStream("here"), []string{messages.ObservationSubject("here")})
	if err != nil {
		t.Fatal(err)
	}
	b.stream = stream
	return b
}

func (b *bed) config() Config {
	return Config{
		Site: "here", Bus: b.network.Connect("$estimator"), Operators: []messages.Name{"ops"}, Metrics: b.metrics,
		Markets: []market.Market{{Name: "main", Mechanism: "proportional", Classes: []messages.Name{"map", "reduce"}}},
		Profiles: []jobmsg.Profile{{Name: "due", Class: jobmsg.Hard, Bounds: []jobmsg.ParameterBounds{
			{Parameter: "max", High: 100}, {Parameter: "deadline", High: 1000}}}},
	}
}

func (b *bed) start(change ...func(*Config)) *Estimator {
	b.Helper()
	c := b.config()
	for _, f := range change {
		f(&c)
	}
	e, err := Start(context.Background(), c)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := e.Close(); err != nil {
			b.Error(err)
		}
	})
	return e
}

// run returns the observation of a job that used 60 slot-seconds for maps and 10 slot-seconds for reduces, on a site
// with 10 slots of each class. Each job has other shares, which depend on its number. The job's response time follows
// from its shares.
func run(job messages.JobID, account messages.Name, name string) jobmsg.Observation {
	maps, reduces := 0.3+float64(job%5)/30, 0.3+float64(job*3%5)/30
	first := at(60 / (10 * maps))
	second := first + at(10/(10*reduces))
	begin := messages.Time(job) * at(100)
	span := func(t messages.Time) messages.Duration { return t.Sub(0) }
	return jobmsg.Observation{
		Site: "here", Job: job, Account: account, Name: name, Market: "main", State: jobmsg.Completed,
		Submitted: begin, Started: begin, Ended: begin + second,
		Shares: []jobmsg.ClassShare{{Class: "map", Allocated: maps, Over: span(first)}, {Class: "reduce", Allocated: reduces, Over: span(second - first)}},
		Stages: []jobmsg.StageStatus{
			{Name: "m", Class: "map", Tasks: 6, Done: 6, Started: begin, Ended: begin + first, SlotTime: span(at(60))},
			{Name: "r", Class: "reduce", Tasks: 1, Done: 1, Started: begin + first, Ended: begin + second, SlotTime: span(at(10))},
		},
		Work:      []jobmsg.StageWork{{Stage: "m", Command: "sorts", Runtimes: []messages.Duration{span(at(10))}}, {Stage: "r", Command: "merges"}},
		Valuation: &jobmsg.Valuation{Class: jobmsg.Hard, Max: float64(job % 10), Deadline: 100},
	}
}

// at returns the instant that is a number of seconds after 0.
func at(seconds float64) messages.Time { return messages.Time(seconds * 1e6) }

// publish appends a payload to the stream, with id as the message's identifier.
func (b *bed) publish(id string, payload []byte) {
	b.Helper()
	if err := b.stream.Append(context.Background(), messages.ObservationSubject("here"), id, payload); err != nil {
		b.Fatal(err)
	}
}

func (b *bed) observe(id string, o jobmsg.Observation) {
	b.Helper()
	payload, err := wire.Marshal(o, wire.Msgpack)
	if err != nil {
		b.Fatal(err)
	}
	b.publish(id, payload)
}

// read waits until the estimator has read the given numbers of messages: kept, repeated and malformed ones.
func (b *bed) read(kept, repeated, malformed float64) {
	b.Helper()
	want := fmt.Sprint(kept, repeated, malformed)
	got := func() string { return fmt.Sprint(b.fate("kept"), b.fate("repeated"), b.fate("malformed")) }
	b.await(func() bool { return got() == want }, func() string { return fmt.Sprintf("kept, repeated, malformed are %s, want %s", got(), want) })
}

// await calls the function `so` until it returns true. If this takes longer than patience, the test fails with the text
// that the function `instead` returns.
func (b *bed) await(so func() bool, instead func() string) {
	b.Helper()
	deadline := time.After(patience)
	for !so() {
		select {
		case <-deadline:
			b.Fatal(instead())
		case <-time.After(time.Millisecond):
		}
	}
}

// fate returns how many observations had the given fate: "kept", "repeated" or "malformed".
func (b *bed) fate(fate string) float64 {
	families, err := b.metrics.Gather()
	if err != nil {
		b.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == "candor_estimator_observations_total" && m.GetLabel()[0].GetValue() == fate {
				return m.GetCounter().GetValue()
			}
		}
	}
	return -1
}

func (b *bed) utility(caller messages.Name, r market.UtilityRequest) (market.UtilityReply, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return bus.Call[market.UtilityReply](ctx, b.client, messages.Subject("here", messages.Estimator, messages.VerbUtility, caller), r)
}

func ask[Rep any](b *bed, caller messages.Name, verb string, r any) (Rep, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return bus.Call[Rep](ctx, b.client, messages.Subject("here", messages.Estimator, verb, caller), r)
}

var bothClasses = []messages.Name{"map", "reduce"}

// Observations from before the start must count, and a second estimator must give the same answers.
func TestStreamIsReadFromItsBeginning(t *testing.T) {
	b := newBed(t)
	for job := range messages.JobID(5) {
		b.observe(fmt.Sprint(job), run(job+1, "ada", "sort"))
	}
	first := b.start()
	b.read(5, 0, 0)
	b.observe("6", run(6, "bob", "sort"))
	b.read(6, 0, 0)
	r := market.UtilityRequest{Account: "ada", Name: "sort", Market: "main", Classes: bothClasses}
	one, err := b.utility("ada", r)
	if err != nil || one.Runs != 5 {
		t.Fatalf("%+v, %v", one, err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := b.start()
	b.read(6, 0, 0)
	if other, err := b.utility("ada", r); err != nil || fmt.Sprint(other) != fmt.Sprint(one) {
		t.Errorf("the second answers %+v, %v; the first %+v", other, err, one)
	}
	if first.Seen() != 6 || second.Seen() != 6 || second.Kinds() != 2 {
		t.Errorf("first saw %d, second %d of %d kinds", first.Seen(), second.Seen(), second.Kinds())
	}
}

// Repeated and malformed observations are counted, and change no answer.
func TestRepeatedAndMalformed(t *testing.T) {
	b := newBed(t)
	e := b.start()
	b.observe("a", run(1, "ada", "sort"))
	b.observe("b", run(1, "ada", "sort")) // the stream itself recognises repeated identifiers only for a short time
	elsewhere := run(1, "ada", "sort")
	elsewhere.Site = "there"
	b.observe("c", elsewhere)
	for i, bad := range []jobmsg.Observation{
		{}, run(0, "ada", "x"), run(3, "Not A Name", "x"), run(4, "ada", strings.Repeat("x", jobmsg.MaxTextField+1)),
		{Site: "here", Job: 5, Account: "ada", State: jobmsg.Running},
	} {
		b.observe(fmt.Sprint("bad", i), bad)
	}
	b.publish("cut", []byte{0x9e, 0xa4, 'h'})
	b.publish("json", []byte(`{"site":"here","job":9,"account":"ada","name":"sort","state":"Failed"}`))
	b.read(3, 1, 6)
	got, err := b.utility("ada", market.UtilityRequest{Name: "sort", Market: "main", Classes: bothClasses})
	if e.Seen() != 3 || err != nil || got.Runs != 2 {
		t.Fatalf("seen %d, %+v, %v", e.Seen(), got, err)
	}
}

// Without runs the utility must be the default. After five runs it must show that the jobs have six times as much work
// in maps as in reduces.
func TestUtilityIsLearned(t *testing.T) {
	b := newBed(t)
	b.start()
	r := market.UtilityRequest{Account: "ada", Name: "sort", Market: "main", Classes: []messages.Name{"reduce", "map", "reduce"}}
	got, err := b.utility("$auctioneer", r)
	if err != nil {
		t.Fatal(err)
	}
	want := market.UtilityReply{Default: 1, Utility: jobmsg.Utility{Form: jobmsg.Linear, Weights: jobmsg.Weights{{Class: "map", Weight: 1}, {Class: "reduce", Weight: 1}}}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("%+v, want %+v", got, want)
	}
	for job := messages.JobID(1); job <= 5; job++ {
		b.observe(fmt.Sprint(job), run(job, "ada", "sort"))
	}
	b.read(5, 0, 0)
	if got, err = b.utility("$auctioneer", r); err != nil {
		t.Fatal(err)
	}
	w := got.Utility.Weights
	if ratio := w.Of("map") / w.Of("reduce"); got.Runs != 5 || !got.Determined || !(ratio > 3 && ratio < 9) || !(got.Default < 0.5) {
		t.Errorf("%+v: %s", got, got.Basis())
	}
	for _, part := range []string{"estimated from 5 runs", "map ", " ± ", "the default contributes"} {
		if !strings.Contains(got.Basis(), part) {
			t.Errorf("%q says nothing of %q", got.Basis(), part)
		}
	}
}

// A site has several estimators. Each reads the whole stream, and any of them answers a request. When one of them ends,
// the others must continue.
func TestSeveralShareRequests(t *testing.T) {
	b := newBed(t)
	unmeasured := func(c *Config) { c.Metrics = nil }
	group := []*Estimator{b.start(unmeasured), b.start(unmeasured), b.start(unmeasured)}
	for job := messages.JobID(1); job <= 9; job++ {
		b.observe(fmt.Sprint(job), run(job, "ada", "sort"))
	}
	for _, e := range group {
		b.await(func() bool { return e.Seen() == 9 }, func() string { return fmt.Sprintf("one has seen %d of 9", e.Seen()) })
	}
	for n := range group {
		for range 20 {
			got, err := b.utility("ada", market.UtilityRequest{Name: "sort", Market: "main", Classes: bothClasses})
			if err != nil || got.Runs != 9 {
				t.Fatalf("with %d of them: %+v, %v", len(group)-n, got, err)
			}
		}
		if n < len(group)-1 {
			b.close(group[n])
		}
	}
}

// sortSpec is a job of the same kind as the jobs in the observations that the test function `run` makes.
var sortSpec = jobmsg.JobSpec{Name: "sort", Budget: messages.Credit, Stages: []jobmsg.Stage{
	{Name: "m", Tasks: 6, Command: []string{"sort"}}, {Name: "r", Class: "reduce", After: []messages.Name{"m"}, Command: []string{"merge"}}}}

// Each answer must follow from the observed runs.
func TestEveryVerbAnswers(t *testing.T) {
	b := newBed(t)
	b.start()
	for job := messages.JobID(1); job <= 20; job++ {
		b.observe(fmt.Sprint(job), run(job, "ada", "sort"))
	}
	b.read(20, 0, 0)
	times, err := ask[market.RuntimeReply](b, "ada", market.VerbRuntime, market.RuntimeRequest{Name: "sort", Stages: []jobmsg.StageShape{{Name: "m", Command: "sorts", Tasks: 6}}})
	if err != nil || len(times.Stages) != 1 || times.Stages[0].Spread.Median.Seconds() != 10 {
		t.Errorf("%+v, %v", times, err)
	}
	job, err := ask[market.EstimateReply](b, "ada", market.VerbEstimate, market.EstimateRequest{Spec: sortSpec})
	if err != nil || job.Utility.Runs != 20 || !(job.Completion.Median.Seconds() > 10 && job.Completion.Median.Seconds() < 70) {
		t.Errorf("%+v, %v", job, err)
	}
	for caller, told := range map[messages.Name]int{"ada": 0, "ops": 2} { // users do not get answers that are computed from single types
		classes, err := ask[market.ClassesReply](b, caller, market.VerbClasses, messages.Empty{})
		if err != nil || len(classes.Classes) != 1 || classes.Classes[0].Samples != 20 || len(classes.Classes[0].Bandwidth) != told || len(classes.Classes[0].Mean) != told {
			t.Errorf("%s: %+v, %v", caller, classes, err)
		}
	}
	draws, err := ask[market.SamplesReply](b, "$auctioneer", market.VerbSamples, market.SamplesRequest{Class: "due", Draws: 100, Seed: 7})
	if err != nil || len(draws.Valuations) != 100 || len(draws.Samples) != 200 {
		t.Errorf("%d, %v", len(draws.Valuations), err)
	}
}

// A request must be refused if its caller may not send it, or if it is invalid.
func TestVerbsRefuse(t *testing.T) {
	b := newBed(t)
	b.start()
	elsewhere, foreign := sortSpec, sortSpec
	elsewhere.Market = "night"
	foreign.Stages = []jobmsg.Stage{{Name: "m", Class: "gpu", Command: []string{"sort"}}}
	for name, tc := range map[string]struct {
		verb string
		r    any
		want messages.Kind
	}{
		"another's run times": {market.VerbRuntime, market.RuntimeRequest{Account: "ada", Stages: []jobmsg.StageShape{{}}}, messages.PermissionDenied},
		"another's job":       {market.VerbEstimate, market.EstimateRequest{Account: "ada", Spec: sortSpec}, messages.PermissionDenied},
		"types":               {market.VerbSamples, market.SamplesRequest{Class: "due", Draws: 1}, messages.PermissionDenied},
		"no stage":            {market.VerbRuntime, market.RuntimeRequest{}, messages.Invalid},
		"no job":              {market.VerbEstimate, market.EstimateRequest{}, messages.Invalid},
		"no such market":      {market.VerbEstimate, market.EstimateRequest{Spec: elsewhere}, messages.NotFound},
		"no such class":       {market.VerbEstimate, market.EstimateRequest{Spec: foreign}, messages.NotFound},
	} {
		if _, err := ask[messages.Empty](b, "eve", tc.verb, tc.r); err == nil || messages.KindOf(err) != tc.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, tc := range []struct {
		r    market.SamplesRequest
		want messages.Kind
	}{
		{market.SamplesRequest{Class: "none", Draws: 1}, messages.NotFound},
		{market.SamplesRequest{Class: "due"}, messages.Invalid},
		{market.SamplesRequest{Class: "due", Draws: market.MostDraws + 1}, messages.Invalid},
		{market.SamplesRequest{Class: "Due", Draws: 1}, messages.Invalid},
	} {
		if _, err := ask[market.SamplesReply](b, "ops", market.VerbSamples, tc.r); err == nil || messages.KindOf(err) != tc.want {
			t.Errorf("%+v: %v", tc.r, err)
		}
	}
}

func TestUtilityRefusals(t *testing.T) {
	b := newBed(t)
	b.start()
	classes := []messages.Name{"cpu"}
	for name, tc := range map[string]struct {
		caller  messages.Name
		request market.UtilityRequest
		want    messages.Kind
	}{
		"another's jobs": {"eve", market.UtilityRequest{Account: "ada", Classes: classes}, messages.PermissionDenied},
		"no class":       {"ada", market.UtilityRequest{}, messages.Invalid},
		"bad class":      {"ada", market.UtilityRequest{Classes: []messages.Name{"C PU"}}, messages.Invalid},
		"many classes":   {"ada", market.UtilityRequest{Classes: make([]messages.Name, jobmsg.MaxStages+1)}, messages.Invalid},
	} {
		if _, err := b.utility(tc.caller, tc.request); err == nil || messages.KindOf(err) != tc.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, caller := range []messages.Name{"ada", "ops", "$auctioneer"} {
		if _, err := b.utility(caller, market.UtilityRequest{Account: "ada", Classes: classes}); err != nil {
			t.Errorf("%s: %v", caller, err)
		}
	}
}

// While the stream cannot be opened, the estimator must answer. It must read the stream as soon as it can.
func TestStreamThatOpensLate(t *testing.T) {
	b := newBed(t)
	b.observe("a", run(1, "ada", "sort"))
	allowed, denied := make(chan struct{}), make(chan struct{}, 100)
	b.network.Permit(func(a bus.Access) bool {
		if a.Name != "$estimator" || a.Subject != messages.ObservationSubject("here") {
			return true
		}
		select {
		case <-allowed:
			return true
		default:
			denied <- struct{}{}
			return false
		}
	})
	e := b.start()
	<-denied
	if _, err := b.utility("ada", market.UtilityRequest{Classes: []messages.Name{"cpu"}}); err != nil || e.Seen() != 0 {
		t.Fatalf("%v, seen %d", err, e.Seen())
	}
	close(allowed)
	b.read(1, 0, 0)
}

func TestConfig(t *testing.T) {
	good := Config{Site: "here", Bus: bus.NewMemory().Connect("$estimator")}
	for name, change := range map[string]func(*Config){
		"site":     func(c *Config) { c.Site = "Not A Name" },
		"bus":      func(c *Config) { c.Bus = nil },
		"every":    func(c *Config) { c.Every = -1 },
		"profile":  func(c *Config) { c.Profiles = []jobmsg.Profile{{Name: "x", Class: "square"}} },
		"operator": func(c *Config) { c.Operators = []messages.Name{"$ops"} },
	} {
		c := good
		change(&c)
		if _, err := Start(context.Background(), c); err == nil || !strings.Contains(err.Error(), "estimator: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Seen returns the number of different jobs that the estimator has learned from.
func (e *Estimator) Seen() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.memory.Observed()
}
