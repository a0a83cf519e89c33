package mailbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/raft"
)

func TestVerifyIsShared(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 3, steady)
	g.start(g.ids...)
	leader := g.leader()
	const callers = 10_000
	before := leader.verified.Load()
	start := make(chan struct{})
	var wg sync.WaitGroup
	var failed atomic.Uint64
	for range callers {
		wg.Go(func() {
			<-start
			if leader.Verify(context.Background()) != nil {
				failed.Add(1)
			}
		})
	}
	close(start)
	wg.Wait()
	if rounds := leader.verified.Load() - before; rounds > callers/10 || failed.Load() > 0 {
		t.Errorf("%d callers took %d rounds, %d failed", callers, rounds, failed.Load())
	}
}

func TestVerifyFailsWithoutMajority(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 3, nil)
	g.start(g.ids...)
	var leader *replicated
	eventually(t, "a leader verifies with a majority", func() bool {
		leader = g.leader()
		return leader.Verify(context.Background()) == nil
	})
	if err := leader.stream.Close(); err != nil { // cuts the leader off
		t.Fatal(err)
	}
	// The old leader still believes that it leads: it gives up only when its followers have not answered for some time.
	if err := leader.Verify(context.Background()); !errors.Is(err, ErrNotLeader) {
		t.Errorf("verify while cut off: %v", err)
	}
	eventually(t, "the next leader verifies", func() bool { return g.another(leader).Verify(context.Background()) == nil })
}

// A leader sets a mark to verify that it still leads. An answer must not count if its request was sent before the mark,
// or in another term.
func TestOldAnswersDoNotVerify(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 3, steady)
	g.start(g.ids...)
	m := g.leader()
	term := m.current.Load().term
	tr := &transport{peers: map[raft.ServerID]*sighting{}}
	cases := []struct {
		name       string
		term, mark uint64
		heard      bool
	}{
		{"sent before the mark", term, 4, false},
		{"of an earlier term", term - 1, 9, false},
		{"sent at the mark", term, 5, true},
		{"an older one, overtaken", term, 3, true},
		{"of a later term", term + 1, 5, false},
	}
	for _, c := range cases {
		tr.saw("r", &raft.AppendEntriesResponse{Term: c.term, Success: true}, c.mark)
		if tr.heard("r", term, 5) != c.heard {
			t.Errorf("%s: heard is %v", c.name, !c.heard)
		}
	}
	if m.confirmed(term, m.transport.marks.Load()+1) {
		t.Error("confirmed by requests that have not been sent")
	}
}

// Verify must wait until the leader has applied all committed entries. Otherwise the leader could show an older state
// than a follower has already shown.
func TestVerifyWaitsForWhatIsCommitted(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 3, steady)
	g.start(g.ids...)
	leader, follower := g.leader(), g.follower()
	machine := g.machines[leader.config.ID]
	release := machine.hold()
	defer release()
	go func() { _, _ = leader.Propose(context.Background(), []byte("x")) }()
	eventually(t, "the follower applies", func() bool { return g.machines[follower.config.ID].count("x") == 1 })
	shown := make(chan int, 1)
	mark := leader.transport.marks.Load()
	go func() {
		if err := leader.Verify(context.Background()); err != nil {
			t.Errorf("verify: %v", err)
		}
		shown <- machine.count("x")
	}()
	eventually(t, "a majority's answer", func() bool {
		return leader.transport.marks.Load() > mark && leader.confirmed(leader.current.Load().term, mark+1)
	})
	release()
	if <-shown != 1 {
		t.Error("a verified read misses what a follower had shown")
	}
}

// TestVerifiedReadsAreLinearizable reads at every replica while leadership moves from replica to replica. The state is
// a number that only grows. A client may have seen a number before a read begins, in the answer to a command or in an
// earlier read. The read must show at least the largest number that any client has seen.
func TestVerifiedReadsAreLinearizable(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 3, nil)
	g.start(g.ids...)
	var known, reads atomic.Uint64 // known is a lower bound on the total
	done := make(chan struct{})
	var wg sync.WaitGroup
	for caller := range 4 {
		wg.Go(func() {
			for i := 0; !ended(done); i++ {
				raise(&known, g.propose(fmt.Sprintf("%d-%d", caller, i)).at)
			}
		})
	}
	for id, box := range g.running() {
		wg.Go(func() {
			for !ended(done) {
				atLeast := known.Load()
				if box.Verify(context.Background()) != nil {
					continue
				}
				total, _ := g.machines[id].state()
				if total < atLeast {
					t.Errorf("%s shows %d commands, %d were known", id, total, atLeast)
				}
				raise(&known, total)
				reads.Add(1)
			}
		})
	}
	for range 5 {
		leader, before := g.leader(), reads.Load()
		eventually(t, "reads", func() bool { return reads.Load() > before+50 })
		g.handOver(leader.raft.LeadershipTransfer)
	}
	close(done)
	wg.Wait()
}

func ended(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

func raise(v *atomic.Uint64, n uint64) {
	for old := v.Load(); n > old && !v.CompareAndSwap(old, n); old = v.Load() {
	}
}
