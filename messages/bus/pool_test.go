package bus

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
)

// crowd is a pool with one worker. A job blocks this worker, so all further jobs must wait. crowd also records which
// jobs ran and which were refused.
type crowd struct {
	*pool
	gate chan struct{}

	mu      sync.Mutex
	ran     []string
	refused chan string
	all     sync.WaitGroup
}

func newCrowd(room int) *crowd {
	c := &crowd{pool: newPool(1, room), gate: make(chan struct{}), refused: make(chan string, 10_000)}
	c.all.Add(1)
	c.submit(job{run: func() { <-c.gate; c.all.Done() }})
	return c
}

func (c *crowd) ask(caller messages.Name, what string) fate {
	c.all.Add(1)
	f := c.submit(job{caller: caller,
		run: func() {
			c.mu.Lock()
			c.ran = append(c.ran, what)
			c.mu.Unlock()
			c.all.Done()
		},
		refuse: func() { c.refused <- what; c.all.Done() }})
	if f != accepted {
		c.all.Done()
	}
	return f
}

// TestFloodWaitsForItself fills the pool with requests of one caller (the flood). A request of another caller must wait
// for only one request of the flood. If the pool is full, a request of the flood must be dropped to make room. The test
// counts requests and measures no time.
func TestFloodWaitsForItself(t *testing.T) {
	const room, flood = 1000, 5000
	c := newCrowd(room)
	turnedAway := 0
	for i := range flood {
		if c.ask("mallory", fmt.Sprint("flood ", i)) == full {
			turnedAway++
		}
	}
	if turnedAway != flood-room {
		t.Errorf("%d requests of the flood were turned away, want %d", turnedAway, flood-room)
	}
	for _, who := range []string{"alice", "bob", "carol"} {
		for i := range 3 {
			if f := c.ask(who, fmt.Sprint(who, " ", i)); f != accepted {
				t.Errorf("%s was turned away", who)
			}
		}
	}
	close(c.gate)
	c.all.Wait()
	want := []string{"flood 0", "alice 0", "bob 0", "carol 0", "flood 1", "alice 1", "bob 1", "carol 1", "flood 2", "alice 2", "bob 2", "carol 2", "flood 3"}
	if got := c.ran[:len(want)]; !slices.Equal(got, want) {
		t.Errorf("the order was %q", got)
	}
	if len(c.refused) != 9 || len(c.ran) != room {
		t.Errorf("%d gave way to 9, and %d of %d ran", len(c.refused), len(c.ran), room)
	}
	if len(c.queues) != 0 || len(c.turns) != 0 || c.waiting != 0 {
		t.Errorf("left behind: %d queues, %d turns, %d waiting", len(c.queues), len(c.turns), c.waiting)
	}
}

// The jobs of one caller must run in order. A full pool may refuse a waiting job to accept a new one, but only if the
// caller of the waiting job has more waiting jobs. Here alice and bob have two waiting jobs each. So a third job of
// alice must be refused, and a first job of carol must be accepted.
func TestCallersOrderIsKept(t *testing.T) {
	c := newCrowd(4)
	for i := range 2 {
		c.ask("alice", fmt.Sprint("alice ", i))
		c.ask("bob", fmt.Sprint("bob ", i))
	}
	if c.ask("alice", "more") != full || c.ask("carol", "carol 0") != accepted {
		t.Error("with two each of alice and bob waiting, carol goes before a third of alice")
	}
	close(c.gate)
	c.all.Wait()
	if got := len(c.ran) + len(c.refused); got != 5 || len(c.refused) != 1 {
		t.Errorf("%d ran, %d gave way", len(c.ran), len(c.refused))
	}
	last := map[string]string{}
	for _, what := range c.ran {
		who, _, _ := cut(what)
		if last[who] > what {
			t.Errorf("%q after %q", what, last[who])
		}
		last[who] = what
	}
}

func cut(what string) (who, number string, ok bool) {
	var n int
	_, err := fmt.Sscanf(what, "%s %d", &who, &n)
	return who, fmt.Sprint(n), err == nil
}

// A pool runs a limited number of jobs at the same time: it has that many places. One caller floods the pool with jobs
// that wait for a long time, as requests for new output do. Nevertheless the jobs of other callers must start at once.
// The flood must use at most half of the places, or a third if a second caller floods too.
func TestLongRequestsOfOneCallerDelayNobody(t *testing.T) {
	const limit = 12
	p := newPool(limit, 1000)
	started, end := make(chan messages.Name, 1000), make(chan struct{})
	flood := func(caller messages.Name) {
		for range 100 {
			p.submit(job{caller: caller, run: func() { started <- caller; <-end }})
		}
	}
	running := func() int {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.running
	}
	flood("mallory")
	if n := running(); n != limit/2 {
		t.Errorf("one caller has %d of %d places", n, limit)
	}
	flood("eve@west")
	flood("trudy@west") // the same site gets no further place
	if n := running(); n != limit*3/4 {
		t.Errorf("a second caller brings %d of %d places in use", n, limit)
	}
	bob := make(chan struct{})
	p.submit(job{caller: "bob", run: func() { close(bob) }})
	select {
	case <-bob:
	case <-time.After(stopTimeout):
		t.Error("a job of bob waits for those of the flood")
	}
	close(end)
	if p.close(); !waitFor(p.idle, stopTimeout) {
		t.Fatal("jobs do not end")
	}
	if len(started) != 300 || p.running != 0 || len(p.turns) != 0 {
		t.Errorf("%d jobs of 300 ran; left: %d running, %d callers", len(started), p.running, len(p.turns))
	}
}

// Large requests that run or wait must take bounded memory. The requests of one caller must take at most half of it.
// Refused and ended requests must take no memory.
func TestRequestsInAServiceTakeBoundedMemory(t *testing.T) {
	p := newPool(4, 100)
	p.memory, p.small = 1000, 0
	end := make(chan struct{})
	flood := func(caller messages.Name, size int) (accepts int) {
		for range 300 {
			if p.submit(job{caller: caller, size: size, run: func() { <-end }, refuse: func() {}}) == accepted {
				accepts++
			}
		}
		return accepts
	}
	if n := flood("mallory", 100); n != 5 {
		t.Errorf("one caller has %d requests of 100 bytes in 1000", n)
	}
	if n := flood("eve", 10); n < 10 || n > 25 {
		t.Errorf("a second caller has %d requests of 10 bytes in the other 500", n)
	}
	flood("trudy", 1) // many small messages: some are refused to make room for others
	if p.submit(job{caller: "bob", size: 100, run: func() {}, refuse: func() {}}) != accepted {
		t.Error("bob is turned away")
	}
	p.mu.Lock()
	if p.held > p.memory {
		t.Errorf("%d bytes are held", p.held)
	}
	p.mu.Unlock()
	close(end)
	if p.close(); !waitFor(p.idle, stopTimeout) {
		t.Fatal("jobs do not end")
	}
	if p.held != 0 || len(p.heldBy) != 0 {
		t.Errorf("after the end %d bytes are held: %v", p.held, p.heldBy)
	}
}

// TestHeavyRequestsAreAskedAgain fills the memory of a service with requests of one caller, as accounts with tasks on one
// node can. A large request of this caller must be refused with a kind that callers repeat, and a small one accepted.
func TestHeavyRequestsAreAskedAgain(t *testing.T) {
	end, answers := make(chan struct{}), make(chan *messages.Error, 2)
	s := newServer(Service{Concurrency: 4, Endpoints: []Endpoint{{Handle: func(context.Context, Request) ([]byte, error) { <-end; return nil, nil }}}}, zap.NewNop())
	if most := newServer(Service{Concurrency: 4096}, zap.NewNop()).pool.small; most < 1<<10 {
		t.Errorf("in a large service, only requests of %d bytes are small", most)
	}
	s.pool.memory = 1 << 20
	ask := func(size int) {
		s.endpoints[0].answer(Request{Caller: "node1", Payload: make([]byte, size)}, func(_ []byte, refusal *messages.Error) { answers <- refusal })
	}
	ask(512 << 10)
	ask(512 << 10)
	if refusal := <-answers; messages.KindOf(refusal) != messages.NotLeader {
		t.Errorf("a large request gets %v", refusal)
	}
	ask(300)
	close(end)
	for range 2 {
		if refusal := <-answers; refusal != nil {
			t.Errorf("a request gets %v", refusal)
		}
	}
}
