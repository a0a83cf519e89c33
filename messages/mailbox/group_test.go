package mailbox

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/candor-grid/candor/messages"
	waiting "github.com/candor-grid/candor/messages/await"
)

// tally is a machine that counts how often each command was applied, and keeps a hash over all commands in order. The
// result of a command is its position in this order.
type tally struct {
	mu     sync.Mutex
	counts map[string]int
	total  uint64
	hash   uint64
	gate   atomic.Pointer[chan struct{}] // if set, Apply waits until the channel is closed
	most   atomic.Uint64                 // if not 0, Restore refuses states with more commands than this
	lacks  atomic.Bool                   // the machine lacks something that replicas get from the leader
	newer  atomic.Bool                   // the machine can read commands of later rules
	slow   time.Duration                 // how long Restore takes
	images atomic.Int64                  // number of images that the machine restored
}

const laterRules = "later:"

func (t *tally) Check(command []byte) (int, error) {
	if !t.newer.Load() && bytes.HasPrefix(command, []byte(laterRules)) {
		return 0, messages.Errorf(messages.Conflict, "a command is of later rules")
	}
	level := 1
	_, _ = fmt.Sscanf(string(command), "level %d", &level)
	return level, nil
}

type tallyImage struct {
	Counts      map[string]int
	Total, Hash uint64
}

func newTally() *tally { return &tally{counts: map[string]int{}} }

func (t *tally) Apply(index uint64, commands [][]byte) ([]any, error) {
	if gate := t.gate.Load(); gate != nil {
		<-*gate
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	results := make([]any, len(commands))
	for i, c := range commands {
		if _, err := t.Check(c); err != nil {
			return nil, err
		}
		t.total++
		t.counts[string(c)]++
		h := fnv.New64a()
		_ = binary.Write(h, binary.BigEndian, []uint64{t.hash, index, uint64(len(c))})
		_, _ = h.Write(c)
		t.hash = h.Sum64()
		results[i] = place{string(c), t.total}
	}
	return results, nil
}

// place is a command and its position in the order of all applied commands, from 1.
type place struct {
	command string
	at      uint64
}

func (t *tally) Weak() error {
	if t.lacks.Load() {
		return errors.New("something is lost here")
	}
	return nil
}

func (t *tally) Capture() Image {
	t.mu.Lock()
	defer t.mu.Unlock()
	return tallyImage{maps.Clone(t.counts), t.total, t.hash}
}

func (i tallyImage) WriteTo(w io.Writer) (int64, error) { return 0, i.Digest(w) }

func (i tallyImage) Digest(w io.Writer) error { return json.NewEncoder(w).Encode(i) }

func (t *tally) Restore(r io.Reader) error {
	var i tallyImage
	if err := json.NewDecoder(r).Decode(&i); err != nil {
		return err
	}
	if most := t.most.Load(); most > 0 && i.Total > most {
		return fmt.Errorf("the state after %d commands is refused", i.Total)
	}
	time.Sleep(t.slow)
	t.images.Add(1)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts, t.total, t.hash = i.Counts, i.Total, i.Hash
	if t.counts == nil {
		t.counts = map[string]int{}
	}
	return nil
}

func (t *tally) state() (total, hash uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.total, t.hash
}

func (t *tally) count(command string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts[command]
}

// hold makes Apply wait until release is called.
func (t *tally) hold() (release func()) {
	gate := make(chan struct{})
	t.gate.Store(&gate)
	return sync.OnceFunc(func() {
		t.gate.Store(nil)
		close(gate)
	})
}

// group is a set of replicas in one process. They are connected in memory or, with an authority, over TCP.
type group struct {
	t      testing.TB
	local  *Local
	issuer *authority // nil means connected in memory
	ids    []string
	dirs   map[string]string
	adjust func(*Config)
	most   uint64        // limit of each machine, see tally.most
	newer  bool          // replicas that start from now on know the later rules
	slow   time.Duration // how long replicas that start from now on take to restore an image
	seen   uint64        // number of commands at the last call of agree

	mu        sync.Mutex
	addresses map[string]string
	boxes     map[string]*replicated
	machines  map[string]*tally
}

const patience = 60 * time.Second // how long a test waits before it fails

func newGroup(t testing.TB, n int, adjust func(*Config)) *group {
	g := &group{t: t, local: NewLocal(), adjust: adjust, dirs: map[string]string{}, addresses: map[string]string{},
		boxes: map[string]*replicated{}, machines: map[string]*tally{}}
	root := t.TempDir()
	for i := range n {
		id := fmt.Sprintf("r%d", i+1)
		g.ids = append(g.ids, id)
		g.dirs[id] = filepath.Join(root, id)
	}
	t.Cleanup(func() { g.stop(g.ids...) })
	return g
}

// steady sets a long timeout, for tests in which one replica must lead all the time, even on a machine that stops for a
// moment. Followers learn of the last commit after some seconds.
func steady(c *Config) { c.Timeout = 6 * time.Second }

// impatient gives a short timeout to each replica that is started after the call. Such a replica soon starts an
// election if the leader is silent.
func (g *group) impatient() {
	before := g.adjust
	g.adjust = func(c *Config) {
		before(c)
		c.Timeout = 100 * time.Millisecond
	}
}

func newSecureGroup(t *testing.T, n int, adjust func(*Config)) *group {
	g := newGroup(t, n, adjust)
	g.issuer = newAuthority(t)
	return g
}

func (g *group) resolve(id string) (string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, known := range g.ids {
		if id == known && g.addresses[id] != "" {
			return g.addresses[id], nil
		}
	}
	return "", fmt.Errorf("no replica %q", id)
}

func (g *group) config(id string) Config {
	c := Config{ID: id, Dir: g.dirs[id], Local: g.local, Bootstrap: g.ids,
		Timeout: time.Second, SegmentBytes: 4 << 20, MinFreeBytes: 1,
		faults: faults{stuck: func(err error) { g.t.Errorf("replica %s: %v", id, err) }}}
	if g.issuer != nil {
		g.listen(&c)
	}
	if g.adjust != nil {
		g.adjust(&c)
	}
	return c
}

func (g *group) listen(c *Config) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		g.t.Fatal(err)
	}
	g.mu.Lock()
	g.addresses[c.ID] = l.Addr().String()
	g.mu.Unlock()
	c.Local, c.faults.listener, c.Resolve, c.Group, c.TLS = nil, l, g.resolve, testGroup, g.issuer.issue(c.ID+"."+testGroup)
}

const testGroup = "bank.west"

// start opens replicas, each with an empty machine.
func (g *group) start(ids ...string) {
	g.t.Helper()
	for _, id := range ids {
		m := newTally()
		m.most.Store(g.most)
		m.newer.Store(g.newer)
		m.slow = g.slow
		box, err := OpenRaft(g.config(id), m)
		if err != nil {
			g.t.Fatal(err)
		}
		g.mu.Lock()
		g.boxes[id], g.machines[id] = box.(*replicated), m
		g.mu.Unlock()
	}
}

func (g *group) stop(ids ...string) {
	for _, id := range ids {
		g.mu.Lock()
		box := g.boxes[id]
		delete(g.boxes, id)
		g.mu.Unlock()
		if box != nil {
			if err := box.Close(); err != nil && box.guard.broken.Load() == nil {
				g.t.Errorf("close %s: %v", id, err)
			}
		}
	}
}

func (g *group) running() map[string]*replicated {
	g.mu.Lock()
	defer g.mu.Unlock()
	return maps.Clone(g.boxes)
}

var eventually = waiting.Until

// leader waits for a replica that leads, and that has applied all entries of earlier terms (the barrier).
func (g *group) leader() *replicated {
	g.t.Helper()
	var found *replicated
	eventually(g.t, "a leader", func() bool {
		for _, box := range g.running() {
			if box.current.Load() != nil {
				found = box
				return true
			}
		}
		return false
	})
	return found
}

func (g *group) follower() *replicated {
	g.t.Helper()
	leader := g.leader()
	for _, id := range g.ids {
		if box := g.running()[id]; box != nil && box != leader {
			return box
		}
	}
	g.t.Fatal("no follower runs")
	return nil
}

// propose sends a command to the leader, and repeats this until it gets an answer. If the outcome of a try is unknown,
// the repetition may apply the command a second time.
func (g *group) propose(command string) place {
	for {
		for _, box := range g.running() {
			result, err := box.Propose(context.Background(), []byte(command))
			if err == nil {
				return result.(place)
			}
			if !errors.Is(err, ErrNotLeader) && !errors.Is(err, ErrUnknown) && !errors.Is(err, ErrClosed) {
				g.t.Errorf("propose: %v", err)
				return place{}
			}
		}
		g.leader()
	}
}

// agree waits until all running replicas have the same state, and returns its hash. This state must have at least
// `atLeast` applied commands, and not fewer than at the last call. A replica that starts goes through all earlier
// states, and agree must not take such a state for the result.
func (g *group) agree(atLeast uint64) uint64 {
	g.t.Helper()
	var hash, most uint64
	atLeast = max(atLeast, g.seen)
	eventually(g.t, fmt.Sprintf("agreement on %d commands", atLeast), func() bool {
		states := map[[2]uint64]bool{}
		most = 0
		for id := range g.running() {
			total, h := g.machines[id].state()
			if total < atLeast {
				return false
			}
			hash, most = h, max(most, total)
			states[[2]uint64{total, h}] = true
		}
		return len(states) == 1
	})
	g.seen = most
	return hash
}

// handOver makes a leader hand its leadership to another replica. A failed transfer is repeated. After a transfer that
// timed out, the replica may already have lost the lead, which counts as success.
func (g *group) handOver(transfer func() raft.Future) {
	g.t.Helper()
	eventually(g.t, "leadership handed over", func() bool {
		err := transfer().Error()
		return err == nil || errors.Is(err, raft.ErrNotLeader)
	})
}

func (g *group) another(old *replicated) *replicated {
	g.t.Helper()
	var found *replicated
	eventually(g.t, "another leader", func() bool {
		for _, box := range g.running() {
			if box != old && box.current.Load() != nil {
				found = box
			}
		}
		return found != nil
	})
	return found
}

func (g *group) configWithDefaults() *Config {
	c := g.config(g.ids[0])
	return c.withDefaults()
}

func nopCloser(s string) io.ReadCloser { return io.NopCloser(strings.NewReader(s)) }
