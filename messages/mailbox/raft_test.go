package mailbox

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/candor-grid/candor/messages"
)

func TestReplicasAgree(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 3, nil)
	g.start(g.ids...)
	const callers, each = 50, 40
	checkResults(t, g, callers, each)
	g.agree(callers * each)
	status := g.leader().Status()
	if status.Commands < callers*each || status.Entries >= status.Commands {
		t.Errorf("%d commands took %d entries", status.Commands, status.Entries)
	}
	if !slices.Equal(slices.Sorted(slices.Values(status.Replicas)), g.ids) || status.Leader != status.ID {
		t.Errorf("status is %+v", status)
	}
}

// checkResults runs callers in parallel. Every result must belong to the caller's command, and each caller's commands
// must be applied in order.
func checkResults(t *testing.T, g *group, callers, each int) {
	g.leader()
	var wg sync.WaitGroup
	for caller := range callers {
		wg.Go(func() {
			last := uint64(0)
			for i := range each {
				command := fmt.Sprintf("%d/%d", caller, i)
				p := g.propose(command)
				if p.command != command || p.at <= last {
					t.Errorf("command %s after place %d: result %+v", command, last, p)
					return
				}
				last = p.at
			}
		})
	}
	wg.Wait()
}

// A patient command is one that may wait for a short time. It must be written in the same log entry as the next
// command. If no command comes in this time, it must get an entry of its own.
func TestPatientCommandsShareAnEntry(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 1, nil)
	g.start(g.ids...)
	g.propose("first")
	leader, before := g.leader(), g.leader().Status()
	const patients = 5
	var wg sync.WaitGroup
	for i := range patients {
		wg.Go(func() {
			command := fmt.Sprintf("patient %d", i)
			result, err := leader.Propose(Patiently(context.Background(), time.Hour), []byte(command))
			if p, is := result.(place); err != nil || !is || p.command != command {
				t.Errorf("%s: %+v, %v", command, result, err)
			}
		})
	}
	queued := func() (n int) {
		leader.queue.mu.Lock()
		defer leader.queue.mu.Unlock()
		for _, b := range leader.queue.batches {
			n += b.commands
		}
		return n
	}
	eventually(t, "all wait", func() bool { return queued() == patients })
	if _, err := leader.Propose(context.Background(), []byte("urgent")); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	if now := leader.Status(); now.Commands-before.Commands != patients+1 || now.Entries-before.Entries != 1 {
		t.Errorf("%d commands took %d entries", now.Commands-before.Commands, now.Entries-before.Entries)
	}
	if _, err := leader.Propose(Patiently(context.Background(), time.Millisecond), []byte("alone")); err != nil || queued() != 0 {
		t.Errorf("a patient command without company: %v", err)
	}
}

// Commands that are proposed together must be applied in order, and a refused command must not prevent the other
// commands.
func TestCommandsInOrder(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 3, steady)
	g.start(g.ids...)
	const callers, each, wrong = 8, 200, 50
	leader := g.leader()
	var wg sync.WaitGroup
	for caller := range callers {
		wg.Go(func() {
			var commands [][]byte
			for i := range each {
				commands = append(commands, fmt.Appendf(nil, "%d/%d", caller, i))
			}
			commands[wrong] = make([]byte, g.configWithDefaults().limits.command+1)
			results, errs := leader.ProposeInOrder(context.Background(), commands)
			last := uint64(0)
			for i := range commands {
				p, _ := results[i].(place)
				switch {
				case i == wrong && messages.KindOf(errs[i]) == messages.TooLarge:
				case i == wrong || errs[i] != nil || p.command != string(commands[i]) || p.at <= last:
					t.Errorf("command %d after place %d: %+v, %v", i, last, results[i], errs[i])
					return
				default:
					last = p.at
				}
			}
		})
	}
	wg.Wait()
	g.agree(callers * (each - 1))
}

func TestFollowerRefuses(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 3, steady)
	g.start(g.ids...)
	f := g.follower()
	if _, err := f.Propose(context.Background(), []byte("x")); !errors.Is(err, ErrNotLeader) {
		t.Errorf("propose at a follower: %v", err)
	}
	if err := f.Verify(context.Background()); !errors.Is(err, ErrNotLeader) {
		t.Errorf("verify at a follower: %v", err)
	}
}

// TestNothingAcknowledgedIsLost closes and restarts one leader after another while callers propose commands. All
// acknowledged commands must be in the final state.
func TestNothingAcknowledgedIsLost(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 3, nil)
	g.start(g.ids...)
	var answered sync.Map
	var count atomic.Uint64
	done := make(chan struct{})
	var wg sync.WaitGroup
	for caller := range 8 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
				}
				id := fmt.Sprintf("%d-%d", caller, i)
				g.propose(id)
				answered.Store(id, true)
				count.Add(1)
			}
		})
	}
	for range 3 {
		before := count.Load()
		leader := g.leader().config.ID
		g.stop(leader)
		eventually(t, "progress without "+leader, func() bool { return count.Load() > before+100 })
		g.start(leader)
	}
	close(done)
	wg.Wait()
	g.agree(count.Load())
	checkAnswered(t, g, &answered)
	g.stop(g.ids...)
	g.start(g.ids...)
	g.agree(count.Load())
	checkAnswered(t, g, &answered)
}

func checkAnswered(t *testing.T, g *group, answered *sync.Map) {
	t.Helper()
	answered.Range(func(id, _ any) bool {
		for replica, m := range g.machines {
			if m.count(id.(string)) == 0 {
				t.Errorf("%s was answered, and is not in the state of %s", id, replica)
			}
		}
		return true
	})
}

func TestStateSurvivesRestart(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 3, nil)
	g.start(g.ids...)
	for i := range 200 {
		g.propose(fmt.Sprint(i))
	}
	before := g.agree(200)
	g.stop(g.ids...)
	g.start(g.ids...)
	if after := g.agree(200); after != before {
		t.Errorf("the state's hash was %x, is %x", before, after)
	}
}

// A replica that needs a snapshot to catch up must get the state from it, without applying most of the commands.
func TestSnapshotReachesWhoLagged(t *testing.T) {
	t.Parallel()
	// The log is removed in whole segments, so the segments are small, and the commands are large. The level of the
	// group stays 1: whenever a group raises its level, each replica writes a snapshot, and such a snapshot would
	// disturb the test.
	g := newGroup(t, 3, func(c *Config) { c.TrailingEntries, c.SegmentBytes, c.limits.level = 1, 64<<10, 1 })
	g.start(g.ids...)
	g.propose("seen by all")
	g.agree(1)
	lagging := g.follower().config.ID
	g.stop(lagging)
	for i := range 100 {
		g.propose(fmt.Sprintf("%4000d", i))
	}
	g.agree(101)
	for id, box := range g.running() {
		if err := box.raft.Snapshot().Error(); err != nil {
			t.Fatalf("snapshot of %s: %v", id, err)
		}
		if first, err := box.disk.logs.FirstIndex(); err != nil || first != 1 {
			t.Fatalf("the log of %s starts at %d, %v, with a single snapshot", id, first, err)
		}
	}
	g.propose("between two snapshots")
	g.agree(102)
	for id, box := range g.running() {
		if err := box.raft.Snapshot().Error(); err != nil {
			t.Fatalf("snapshot of %s: %v", id, err)
		}
		if first, err := box.disk.logs.FirstIndex(); err != nil || first < 50 {
			t.Fatalf("the log of %s still starts at %d, %v", id, first, err)
		}
	}
	g.start(lagging)
	g.propose("after")
	before := g.agree(103)
	box := g.running()[lagging]
	if box.Status().Commands > 50 || box.applier.index.Load() < 103 {
		t.Errorf("the replica that lagged applied %d commands, up to %d", box.Status().Commands, box.Status().Applied)
	}
	g.stop(g.ids...)
	g.start(g.ids...)
	if after := g.agree(103); after != before {
		t.Errorf("from snapshots and logs the state's hash is %x, was %x", after, before)
	}
}

// TestALongRestoreIsAwaited: a replica takes long to restore an image, and its leader writes newer snapshots meanwhile.
// The leader must send the image only once, and keep the entries that follow it.
func TestALongRestoreIsAwaited(t *testing.T) {
	t.Parallel()
	// This test needs a replica without a snapshot. At a level above 1, each replica would write a snapshot when the
	// level is raised, and a replica that starts would restore it. So the level is limited to 1.
	g := newGroup(t, 3, func(c *Config) { c.TrailingEntries, c.SegmentBytes, c.limits.level = 1, 64<<10, 1 })
	g.start(g.ids...)
	g.propose("seen by all")
	g.agree(1)
	leader, lagging := g.leader(), g.follower().config.ID
	g.stop(lagging)
	total := uint64(1)
	snapshots := func() { // the log keeps the entries after the second newest snapshot
		for range 2 {
			for range 50 {
				total++
				g.propose(fmt.Sprintf("%4000d", total))
			}
			if err := leader.raft.Snapshot().Error(); err != nil {
				t.Fatal(err)
			}
		}
	}
	snapshots()
	g.slow = 5 * time.Second // more than twice as long as the leader waits for other answers
	g.start(lagging)
	eventually(t, "an image is sent", func() bool { return leader.transport.needed() < math.MaxUint64 })
	snapshots()
	g.agree(total)
	if n := g.machines[lagging].images.Load(); n != 1 {
		t.Errorf("the replica restored %d images, want 1", n)
	}
}

func TestLogIsCutWhenItHasGrown(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 1, func(c *Config) { c.SnapshotBytes, c.TrailingEntries = 1000, 1 })
	g.start("r1")
	disk := g.running()["r1"].disk
	for written := range uint64(2) {
		for i := range 50 {
			g.propose(fmt.Sprintf("%100d", i))
		}
		eventually(t, "a snapshot", func() bool {
			index, _ := disk.snapshots.newest()
			return index > 20*(written+1)
		})
	}
	eventually(t, "a cut, back to the older snapshot", func() bool {
		first, err := disk.logs.FirstIndex()
		return err == nil && first > 10 && first <= disk.snapshots.oldest()+1
	})
}

// After entries that took long to apply, a snapshot must be written. Without it, the next start would have to apply
// these entries again.
func TestStateIsWrittenAfterLongWork(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 1, nil)
	g.start("r1")
	box := g.running()["r1"]
	g.propose("first")
	release := g.machines["r1"].hold()
	time.AfterFunc(snapshotSpent+100*time.Millisecond, release)
	g.propose("takes long")
	eventually(t, "a snapshot", func() bool {
		index, _ := box.disk.snapshots.newest()
		return index > 0
	})
	if spent := box.applier.spent.Load(); spent >= int64(snapshotSpent) {
		t.Errorf("%v to apply since the snapshot", time.Duration(spent))
	}
}

func TestBadSnapshotIsRefused(t *testing.T) {
	t.Parallel()
	a := newApplier(newTally(), newGroup(t, 1, nil).configWithDefaults().Log)
	for _, image := range []string{"", "candor", "something else of another program, longer than the header"} {
		if err := a.Restore(nopCloser(image)); err == nil {
			t.Errorf("restored from %q", image)
		}
	}
}

func TestCloseEndsEverything(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 3, steady)
	g.start(g.ids...)
	leader := g.leader()
	announced := drain(t, leader.Leadership(), func(l Leadership) bool { return l.Leads })
	started := make(chan struct{})
	ended := make(chan error)
	go func() {
		close(started)
		for {
			if _, err := leader.Propose(context.Background(), []byte("x")); errors.Is(err, ErrClosed) {
				ended <- err
				return
			}
		}
	}()
	<-started
	for range 2 {
		if err := leader.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	<-ended
	if err := leader.Verify(context.Background()); !errors.Is(err, ErrClosed) {
		t.Errorf("verify after close: %v", err)
	}
	lost := drain(t, leader.Leadership(), func(l Leadership) bool { return !l.Leads })
	if lost.Term != announced.Term {
		t.Errorf("gained term %d, lost term %d", announced.Term, lost.Term)
	}
	if next := g.another(leader); next.Status().Term <= announced.Term {
		t.Errorf("the next leader's term is %d, after %d", next.Status().Term, announced.Term)
	}
}

// When all replicas close, as when a site stops, the leader must not wait for closed replicas to take over.
func TestLastToCloseHandsOverToNobody(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(*testing.T, int, func(*Config)) *group{
		"in memory": func(t *testing.T, n int, adjust func(*Config)) *group { return newGroup(t, n, adjust) },
		"over TCP":  newSecureGroup,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			core, logged := observer.New(zap.WarnLevel)
			g := begin(t, 3, func(c *Config) {
				steady(c)
				c.Log = zap.New(core)
			})
			g.start(g.ids...)
			leader := g.leader()
			for _, id := range g.ids {
				if id != leader.config.ID {
					g.stop(id)
				}
			}
			g.stop(leader.config.ID)
			if vain := logged.FilterMessageSnippet("leadership was not handed over"); vain.Len() > 0 {
				t.Errorf("the leader waited: %v", vain.All())
			}
		})
	}
}

func TestCommandsAreBounded(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 1, func(c *Config) { c.limits.command = 1000; c.limits.batchBytes = 100; c.limits.queueBytes = 100 })
	g.start("r1")
	leader := g.leader()
	_, err := leader.Propose(context.Background(), make([]byte, 1001))
	if !errors.Is(err, &messages.Error{Kind: messages.TooLarge}) {
		t.Errorf("1,001 bytes: %v", err)
	}
	if _, err := leader.Propose(context.Background(), make([]byte, 1000)); err != nil {
		t.Errorf("1,000 bytes: %v", err)
	}
	checkResults(t, g, 20, 10) // far more commands than the queue holds
}

func TestCallerMayReuseItsBuffer(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 1, nil)
	g.start("r1")
	leader := g.leader()
	buffer := []byte("????")
	for i := range 100 {
		copy(buffer, fmt.Sprintf("%4d", i))
		result, err := leader.Propose(context.Background(), buffer)
		if err != nil || result.(place).command != fmt.Sprintf("%4d", i) {
			t.Fatalf("command %d: %+v, %v", i, result, err)
		}
	}
}

func TestCancelledBeforeIsCertain(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 1, nil)
	g.start("r1")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := g.leader().Propose(ctx, []byte("x"))
	if !errors.Is(err, ErrNotLeader) || !errors.Is(err, context.Canceled) {
		t.Errorf("propose under a cancelled context: %v", err)
	}
	if err := g.leader().Verify(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("verify under a cancelled context: %v", err)
	}
}

func TestErrorsOfRaftAreMapped(t *testing.T) {
	for err, want := range map[error]error{
		raft.ErrNotLeader:                    ErrNotLeader,
		raft.ErrLeadershipTransferInProgress: ErrNotLeader,
		raft.ErrEnqueueTimeout:               ErrNotLeader,
		raft.ErrLeadershipLost:               ErrUnknown,
		raft.ErrRaftShutdown:                 ErrUnknown,
		raft.ErrAbortedByRestore:             ErrUnknown,
		errGone:                              ErrUnknown,
		errors.New("write failed"):           ErrUnknown,
	} {
		if got := proposeError(err); !errors.Is(got, want) || !errors.Is(got, err) {
			t.Errorf("%v is taken for %v", err, got)
		}
	}
}

func TestMetricsLastAsLongAsTheMailbox(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewPedanticRegistry()
	g := newGroup(t, 2, func(c *Config) { c.Metrics, c.Name = registry, "bank" })
	g.start(g.ids...)
	g.propose("x")
	families, err := registry.Gather()
	if err != nil || len(families) < 8 {
		t.Fatalf("%d families, %v", len(families), err)
	}
	c := g.config("r1")
	c.Dir = t.TempDir()
	if _, err := OpenRaft(c, newTally()); err == nil {
		t.Error("two replicas registered the same metrics")
	}
	g.stop(g.ids...)
	if families, _ := registry.Gather(); len(families) != 0 {
		t.Errorf("%d families outlive the mailboxes", len(families))
	}
	g.start(g.ids...)
}

func TestLeadershipIsAnnouncedAfterTheBarrier(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 3, nil)
	g.start(g.ids...)
	for range 3 {
		for i := range 20 {
			g.propose(fmt.Sprint(i))
		}
		old := g.leader()
		total, _ := g.machines[old.config.ID].state()
		g.handOver(old.raft.LeadershipTransfer)
		next := g.another(old)
		gained := drain(t, next.Leadership(), func(l Leadership) bool { return l.Leads })
		if now, _ := g.machines[next.config.ID].state(); now < total {
			t.Errorf("leads with %d commands applied of %d", now, total)
		}
		if o := next.current.Load(); o == nil || o.term != gained.Term || gained.Term != next.Status().Term {
			t.Errorf("gained term %d, status %+v", gained.Term, next.Status())
		}
		drain(t, old.Leadership(), func(l Leadership) bool { return !l.Leads && l.Term < gained.Term })
	}
}

// An elected replica must not lead until it has applied all entries of earlier terms.
func TestNoLeadershipBeforeTheBarrier(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 3, steady)
	g.start(g.ids...)
	old, next := g.leader(), g.follower()
	machine := g.machines[next.config.ID]
	release := machine.hold()
	defer release()
	g.propose("x")
	id := raft.ServerID(next.config.ID)
	g.handOver(func() raft.Future { return old.raft.LeadershipTransferToServer(id, raft.ServerAddress(id)) })
	eventually(t, "the election", func() bool { return next.raft.State() == raft.Leader })
	if err := next.Verify(context.Background()); !errors.Is(err, ErrNotLeader) || machine.count("x") != 0 {
		t.Errorf("verify before the barrier: %v", err)
	}
	release()
	drain(t, next.Leadership(), func(l Leadership) bool { return l.Leads })
	if machine.count("x") != 1 {
		t.Error("leads without what was committed before")
	}
}

func drain(t *testing.T, ch <-chan Leadership, wanted func(Leadership) bool) Leadership {
	t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case l := <-ch:
			if wanted(l) {
				return l
			}
		case <-deadline:
			t.Fatal("no such word on leadership")
		}
	}
}

// After a planned stop, a replica must start from a snapshot, and apply less than unsavedBytes of entries again.
func TestPlannedStopLeavesLittleToCarryOut(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 1, nil)
	g.start("r1")
	for i := range 40 {
		g.propose(fmt.Sprintf("%*d", unsavedBytes/32, i))
	}
	before := g.agree(40)
	g.stop("r1")
	g.start("r1")
	if after := g.agree(40); after != before {
		t.Errorf("after the stop the state's hash is %x, was %x", after, before)
	}
	// A slow machine may have written a snapshot of only some commands before the stop. Fewer than 32 commands may be
	// applied again.
	if again := g.running()["r1"].Status().Commands; again >= 32 {
		t.Errorf("%d commands were carried out again, of 8 KiB each", again)
	}
}
