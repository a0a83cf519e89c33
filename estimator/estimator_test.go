package estimator

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// patience bounds every wait of these tests for something that must happen.
const patience = 20 * time.Second

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

func (b *bed) start(kinds, runs int) *Estimator {
	b.Helper()
	e, err := Start(context.Background(), Config{
		Site: "here", Bus: b.network.Connect("$estimator"), Operators: []messages.Name{"ops"},
		Kinds: kinds, Runs: runs, Metrics: b.metrics,
	})
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

func run(job messages.JobID, account messages.Name, name string) messages.Observation {
	return messages.Observation{Site: "here", Job: job, Account: account, Name: name, State: messages.Completed, Charged: messages.Credits(job)}
}

// publish appends a payload under an identifier that the stream has not seen.
func (b *bed) publish(id string, payload []byte) {
	b.Helper()
	if err := b.stream.Append(context.Background(), messages.ObservationSubject("here"), id, payload); err != nil {
		b.Fatal(err)
	}
}

func (b *bed) observe(id string, o messages.Observation) {
	b.Helper()
	payload, err := messages.Marshal(o, messages.Msgpack)
	if err != nil {
		b.Fatal(err)
	}
	b.publish(id, payload)
}

// read waits until the estimator has read so many messages of each fate.
func (b *bed) read(kept, repeated, malformed float64) {
	b.Helper()
	want := fmt.Sprint(kept, repeated, malformed)
	deadline := time.After(patience)
	for got := ""; got != want; {
		select {
		case <-deadline:
			b.Fatalf("kept, repeated, malformed are %s, want %s", got, want)
		case <-time.After(time.Millisecond):
		}
		got = fmt.Sprint(b.fate("kept"), b.fate("repeated"), b.fate("malformed"))
	}
}

// fate is the count of observations of a fate.
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

func (b *bed) utility(caller messages.Name, r messages.UtilityRequest) (messages.UtilityReply, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return bus.Call[messages.UtilityReply](ctx, b.client, messages.Subject("here", messages.Estimator, messages.VerbUtility, caller), r)
}

// TestStreamIsReadFromItsBeginning: what was left there before the start
// counts, and a second estimator comes to the same.
func TestStreamIsReadFromItsBeginning(t *testing.T) {
	b := newBed(t)
	for job := range messages.JobID(5) {
		b.observe(fmt.Sprint(job), run(job+1, "ada", "sort"))
	}
	first := b.start(0, 0)
	b.read(5, 0, 0)
	b.observe("6", run(6, "bob", "sort"))
	b.read(6, 0, 0)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := b.start(0, 0)
	b.read(6, 0, 0)
	if first.Seen() != 6 || second.Seen() != 6 || second.Held() != 6 || len(second.Runs("ada", "sort")) != 5 || second.Runs("bob", "sort")[0].Job != 6 {
		t.Fatalf("first saw %d, second %d and holds %d", first.Seen(), second.Seen(), second.Held())
	}
}

// TestRepeatedAndMalformed observations are counted and change nothing.
func TestRepeatedAndMalformed(t *testing.T) {
	b := newBed(t)
	e := b.start(0, 0)
	b.observe("a", run(1, "ada", "sort"))
	b.observe("b", run(1, "ada", "sort")) // the stream's own memory of ids is short
	elsewhere := run(1, "ada", "sort")
	elsewhere.Site = "there"
	b.observe("c", elsewhere)
	for i, bad := range []messages.Observation{
		{}, run(0, "ada", "x"), run(3, "Not A Name", "x"), run(4, "ada", strings.Repeat("x", messages.MaxTextField+1)),
		{Site: "here", Job: 5, Account: "ada", State: messages.Running},
	} {
		b.observe(fmt.Sprint("bad", i), bad)
	}
	b.publish("cut", []byte{0x9e, 0xa4, 'h'})
	b.publish("json", []byte(`{"site":"here","job":9,"account":"ada","name":"sort","state":"Failed"}`))
	b.read(3, 1, 6)
	if e.Seen() != 3 || len(e.Runs("ada", "sort")) != 3 {
		t.Fatalf("seen %d, runs %+v", e.Seen(), e.Runs("ada", "sort"))
	}
}

// TestMemoryIsBounded in the runs of a kind and in the kinds.
func TestMemoryIsBounded(t *testing.T) {
	b := newBed(t)
	e := b.start(3, 4)
	for job := messages.JobID(1); job <= 100; job++ {
		b.observe(fmt.Sprint(job), run(job, "ada", "often"))
		b.observe(fmt.Sprint(job, "once"), run(job+1000, "ada", fmt.Sprint("once", job)))
	}
	b.read(200, 0, 0)
	if e.Seen() != 200 || e.Held() != 4+2 {
		t.Fatalf("seen %d, holds %d", e.Seen(), e.Held())
	}
	var jobs []messages.JobID
	for _, o := range e.Runs("ada", "often") {
		jobs = append(jobs, o.Job)
	}
	if !slices.Equal(jobs, []messages.JobID{97, 98, 99, 100}) || e.Runs("ada", "once1") != nil || len(e.Runs("ada", "once100")) != 1 {
		t.Fatalf("kept %v", jobs)
	}
}

// TestUtilityIsTheDefault, which rests on no run, however many were seen.
func TestUtilityIsTheDefault(t *testing.T) {
	b := newBed(t)
	b.observe("a", run(1, "ada", "sort"))
	b.start(0, 0)
	b.read(1, 0, 0)
	got, err := b.utility("$auctioneer", messages.UtilityRequest{Account: "ada", Name: "sort", Classes: []messages.Name{"reduce", "map", "reduce"}})
	if err != nil {
		t.Fatal(err)
	}
	want := messages.UtilityReply{Utility: messages.Utility{Form: messages.Linear, Weights: messages.Weights{{Class: "map", Weight: 1}, {Class: "reduce", Weight: 1}}}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("%+v, want %+v", got, want)
	}
}

func TestUtilityRefusals(t *testing.T) {
	b := newBed(t)
	b.start(0, 0)
	classes := []messages.Name{"cpu"}
	for name, tc := range map[string]struct {
		caller  messages.Name
		request messages.UtilityRequest
		want    messages.Kind
	}{
		"another's jobs": {"eve", messages.UtilityRequest{Account: "ada", Classes: classes}, messages.PermissionDenied},
		"no class":       {"ada", messages.UtilityRequest{}, messages.Invalid},
		"bad class":      {"ada", messages.UtilityRequest{Classes: []messages.Name{"CPU"}}, messages.Invalid},
		"many classes":   {"ada", messages.UtilityRequest{Classes: make([]messages.Name, messages.MaxStages+1)}, messages.Invalid},
	} {
		if _, err := b.utility(tc.caller, tc.request); err == nil || messages.KindOf(err) != tc.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, caller := range []messages.Name{"ada", "ops", "$auctioneer"} {
		if _, err := b.utility(caller, messages.UtilityRequest{Account: "ada", Classes: classes}); err != nil {
			t.Errorf("%s: %v", caller, err)
		}
	}
}

// TestStreamThatOpensLate: the estimator answers meanwhile, and reads as soon
// as it may.
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
	e := b.start(0, 0)
	<-denied
	if _, err := b.utility("ada", messages.UtilityRequest{Classes: []messages.Name{"cpu"}}); err != nil || e.Seen() != 0 {
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
		"kinds":    func(c *Config) { c.Kinds = -1 },
		"runs":     func(c *Config) { c.Runs = -1 },
		"operator": func(c *Config) { c.Operators = []messages.Name{"$ops"} },
	} {
		c := good
		change(&c)
		if _, err := Start(context.Background(), c); err == nil || !strings.Contains(err.Error(), "estimator: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestJobSet(t *testing.T) {
	var s jobSet
	jobs := []messages.JobID{0, 1, 63, 64, 4095, 4096, 1 << 40, 1<<64 - 1}
	for _, job := range jobs {
		if !s.add(job) {
			t.Errorf("%d is in the set before it was added", job)
		}
	}
	for _, job := range jobs {
		if s.add(job) {
			t.Errorf("%d was lost", job)
		}
	}
}
