package attack

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/money"
	"github.com/candor-grid/candor/messages/schema"
)

// fuzzed is the number of requests that the fuzzer sends. CANDOR_REQUESTS sets another number.
const fuzzed = 8000

const atOnce = 32

// mostResident is how much memory, in MiB, the site's process may have while the fuzzer runs. Requests leave jobs and
// records in memory. So each million requests allows the process perMillion MiB more.
const (
	mostResident = 600
	perMillion   = 1500
)

// fuzzer is one caller that sends mutated requests.
type fuzzer struct {
	who    string
	bus    bus.Bus
	name   messages.Name
	verbs  []schema.Verb // the verbs whose requests the fuzzer's credentials allow
	counts *counts
}

// counts has the number of answers of each kind. It also has examples of faulty answers: no caller may ever get such an
// answer.
type counts struct {
	mu     sync.Mutex
	kinds  map[string]int
	faults map[string]string // by verb: one example
}

func (c *counts) note(v schema.Verb, kind string, fault string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kinds[kind]++
	if at := v.Actor + " " + v.Verb; fault != "" && c.faults[at] == "" {
		c.faults[at] = fault
	}
}

// TestFuzzedRequests sends mutated requests of every verb to a running site, as a user, an operator, a node and a peer.
// Each answer must be a reply, or an error whose kind says what is wrong. The site must log no panic and use limited
// memory, and its books must balance.
func TestFuzzedRequests(t *testing.T) {
	requests := int64(fuzzed)
	if n, err := strconv.ParseInt(os.Getenv("CANDOR_REQUESTS"), 10, 64); err == nil {
		requests = n
	}
	seed, err := strconv.ParseUint(os.Getenv("CANDOR_FIRST_SEED"), 10, 64)
	if err != nil {
		seed = 1
	}
	s := up(t, "--sites", "west,east")
	c := &counts{kinds: map[string]int{}, faults: map[string]string{}}
	callers := []*fuzzer{
		{who: "user", name: "bob", bus: s.client("bob")}, {who: "operator", name: "operator", bus: s.client("operator")},
		{who: "peer", name: "$east", bus: s.connected("$east", s.issued(identity.Peer, "$east"))},
		{who: "node", name: "node9", bus: s.connected("node9", s.issued(identity.Node, "node9"))},
	}
	began, before := time.Now(), s.resident()
	var left atomic.Int64
	left.Store(requests)
	var workers sync.WaitGroup
	for i, f := range callers {
		f.counts = c
		f.verbs = s.passable(f)
		t.Logf("%s: %d verbs", f.who, len(f.verbs))
		for k := range atOnce {
			r := rand.New(rand.NewPCG(seed, uint64(i*atOnce+k)))
			workers.Go(func() {
				for left.Add(-1) >= 0 && t.Context().Err() == nil && !s.gone() {
					f.one(t, s.name, r)
				}
			})
		}
	}
	workers.Wait()
	took := time.Since(began)
	s.sound()
	if s.gone() {
		return
	}
	after := s.resident()
	t.Logf("%d requests in %v, %.0f a second; memory %d MiB before and %d after; answers %v", requests, took.Round(time.Second), float64(requests)/took.Seconds(), before, after, c.kinds)
	for _, at := range slices.Sorted(maps.Keys(c.faults)) {
		t.Errorf("%s: %s", at, c.faults[at])
	}
	if most := mostResident + int(requests*perMillion/1_000_000); after > most {
		t.Errorf("the site's process has %d MiB after %d requests, more than %d", after, requests, most)
	}
	if books := ask[money.BooksReply](s, "operator", messages.Bank, messages.VerbBooks, money.BooksRequest{Full: true}); !books.Balanced {
		t.Errorf("the books: %s", books.Message)
	}
}

func (s *site) connected(name messages.Name, creds string) bus.Bus {
	s.Helper()
	b, err := bus.Connect(bus.Config{URL: s.url, Name: name, CredsFile: creds})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = b.Close() })
	return b
}

// passable finds out which verbs a caller can use: the NATS server lets the request pass, and some service answers it.
func (s *site) passable(f *fuzzer) (passed []schema.Verb) {
	for _, v := range schema.Verbs() {
		ctx, cancel := context.WithTimeout(s.Context(), patience)
		_, err := f.bus.Request(ctx, f.subject(s.name, v), []byte{0xc1})
		cancel()
		if text := fmt.Sprint(err); !strings.Contains(text, "these credentials may not send") && !strings.Contains(text, "nobody serves") {
			passed = append(passed, v)
		}
	}
	return passed
}

func (f *fuzzer) subject(site messages.Name, v schema.Verb) string {
	switch {
	case v.Verb == messages.VerbStream:
		return agent.StreamSubject(site, "node1", f.name)
	case v.Actor == messages.NodeAgent:
		return messages.LogsSubject(site, "node1", f.name)
	}
	return messages.Subject(site, v.Actor, v.Verb, f.name)
}

// one sends a single request and judges the answer.
func (f *fuzzer) one(t *testing.T, site messages.Name, r *rand.Rand) {
	v := f.verbs[r.IntN(len(f.verbs))]
	payload := mutated(t, r, v.Request)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := f.bus.Request(ctx, f.subject(site, v), payload)
	if err == nil {
		f.counts.note(v, "a reply", "")
		return
	}
	kind, fault := messages.KindOf(err), ""
	if kind == messages.Internal || ctx.Err() != nil {
		fault = fmt.Sprintf("%s of %.300q", line(err.Error()), payload)
	}
	f.counts.note(v, kind.String(), fault)
}
