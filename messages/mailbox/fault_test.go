package mailbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// faultyLog is a log store whose writes a test can make fail or hang.
type faultyLog struct {
	raft.LogStore
	err    atomic.Pointer[error]
	hang   atomic.Pointer[chan struct{}] // writes wait until this channel is closed
	writes atomic.Uint64                 // number of writes that were carried out
}

func (f *faultyLog) StoreLogs(logs []*raft.Log) error {
	if gate := f.hang.Load(); gate != nil {
		<-*gate
	}
	if err := f.err.Load(); err != nil {
		return *err
	}
	f.writes.Add(1)
	return f.LogStore.StoreLogs(logs)
}

func (f *faultyLog) fail(err error) {
	if err == nil {
		f.err.Store(nil)
		return
	}
	f.err.Store(&err)
}

// faultyGroup returns a group whose logs can be made to fail. If a write of a replica hangs for two seconds, or fails,
// the replica sends an error to the channel `stuck`, instead of ending the process.
func faultyGroup(t *testing.T, n int) (g *group, logs map[string]*faultyLog, stuck chan error) {
	logs, stuck = map[string]*faultyLog{}, make(chan error, n)
	g = newGroup(t, n, func(c *Config) {
		id := c.ID
		c.limits.stuckAfter = 2 * time.Second
		c.faults.stuck = func(err error) { stuck <- err }
		c.faults.wrap = func(s raft.LogStore) raft.LogStore {
			logs[id] = &faultyLog{LogStore: s}
			return logs[id]
		}
	})
	return g, logs, stuck
}

func TestHangingDiskLosesTheLeadership(t *testing.T) {
	t.Parallel()
	g, logs, stuck := faultyGroup(t, 3)
	g.start(g.ids...)
	for i := range 50 {
		g.propose(fmt.Sprint(i))
	}
	old := g.leader()
	gate := make(chan struct{})
	t.Cleanup(func() { // this runs before the group's own clean-up, because clean-ups run in reverse order
		close(gate)
		_ = old.halt().Error() // waits for the old leader, which still writes although it was closed
	})
	logs[old.config.ID].hang.Store(&gate)
	outcome := make(chan error, 1)
	go func() {
		_, err := old.Propose(context.Background(), []byte("during"))
		outcome <- err
	}()
	if err := <-stuck; err == nil {
		t.Error("stuck without an error")
	}
	next := g.another(old)
	g.propose("after")
	if _, err := old.Propose(context.Background(), []byte("late")); !errors.Is(err, ErrClosed) {
		t.Errorf("propose at the replica whose disk hangs: %v", err)
	}
	if err := old.Close(); err == nil {
		t.Error("closed while its disk hangs")
	}
	if err := <-outcome; !errors.Is(err, ErrUnknown) {
		t.Errorf("the command on the hanging disk: %v", err)
	}
	for i := range 50 {
		if g.machines[next.config.ID].count(fmt.Sprint(i)) == 0 {
			t.Errorf("command %d was lost", i)
		}
	}
}

// TestDecidedWaitsForWhatNobodyWaitsFor proposes a command whose caller stops waiting for the outcome, and then calls
// Decided. When Decided returns, the command must be in the state, and Decided must have added nothing to the log.
func TestDecidedWaitsForWhatNobodyWaitsFor(t *testing.T) {
	t.Parallel()
	g, logs, _ := faultyGroup(t, 1)
	g.start("r1")
	leader := g.leader()
	if err := leader.Decided(context.Background()); err != nil {
		t.Errorf("with nothing on its way: %v", err)
	}
	g.propose("before")
	entries, gate := leader.Status().Entries, make(chan struct{})
	logs["r1"].hang.Store(&gate)
	soon, giveUp := context.WithCancel(context.Background())
	outcome := make(chan error, 1)
	go func() {
		_, err := leader.Propose(soon, []byte("given up"))
		outcome <- err
	}()
	eventually(t, "the command is on its way", func() bool { return len(leader.slots) > 0 })
	giveUp()
	if err := <-outcome; !errors.Is(err, ErrUnknown) {
		t.Errorf("a proposer that gave up: %v", err)
	}
	if err := leader.Decided(soon); !errors.Is(err, context.Canceled) {
		t.Errorf("before the disk goes on: %v", err)
	}
	logs["r1"].hang.Store(nil)
	close(gate)
	if err := leader.Decided(context.Background()); err != nil || g.machines["r1"].count("given up") != 1 {
		t.Errorf("then %v, and the command is applied %d times", err, g.machines["r1"].count("given up"))
	}
	if now := leader.Status().Entries; now != entries+1 {
		t.Errorf("%d entries, for one command", now-entries)
	}
	g.stop("r1")
	if err := leader.Decided(context.Background()); !errors.Is(err, ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

// A probe of the disk writes a file into the replica's directory. Somebody may remove this directory after Close. So
// Close must wait for the probe. If the probe hangs, Close must fail after a while.
func TestProbeEndsBeforeTheClose(t *testing.T) {
	t.Parallel()
	var hangs atomic.Bool
	gate, looks := make(chan struct{}), make(chan struct{}, 1)
	g := newGroup(t, 1, func(c *Config) {
		c.limits.stuckAfter, c.faults.stuck = 2*time.Second, func(error) {}
		c.faults.free = func(string) (uint64, error) {
			if hangs.CompareAndSwap(true, false) {
				looks <- struct{}{}
				<-gate
			}
			return 1 << 30, nil
		}
	})
	box, err := OpenRaft(g.config("r1"), newTally())
	if err != nil {
		t.Fatal(err)
	}
	hangs.Store(true)
	<-looks
	if err := box.Close(); err == nil {
		t.Error("closed while something is about to write")
	}
	close(gate)
	<-box.(*replicated).probing
}

func TestFailedWriteIsTheLast(t *testing.T) {
	t.Parallel()
	g, logs, stuck := faultyGroup(t, 1)
	g.start("r1")
	leader, log := g.leader(), logs["r1"]
	for i := range 20 {
		g.propose(fmt.Sprint(i))
	}
	log.fail(syscall.EIO)
	if _, err := leader.Propose(context.Background(), []byte("doubtful")); !errors.Is(err, ErrUnknown) {
		t.Errorf("a write that failed: %v", err)
	}
	if err := <-stuck; !errors.Is(err, syscall.EIO) {
		t.Errorf("stuck with %v", err)
	}
	log.fail(nil)
	before := log.writes.Load()
	if err := leader.disk.logs.StoreLog(&raft.Log{Index: 1000}); err == nil {
		t.Error("a write after a failed one was carried out")
	}
	// After the failed write, Raft may have stepped down although the replica is not closed yet. So the error may be
	// ErrNotLeader or ErrClosed.
	if _, err := leader.Propose(context.Background(), []byte("late")); !errors.Is(err, ErrClosed) && !errors.Is(err, ErrNotLeader) {
		t.Errorf("propose after a failed write: %v", err)
	}
	if log.writes.Load() != before {
		t.Error("something was written after a failed write")
	}
	g.stop("r1")
	g.start("r1")
	g.agree(20)
}

func TestFullDiskIsWaitedOut(t *testing.T) {
	t.Parallel()
	g, logs, stuck := faultyGroup(t, 1)
	g.start("r1")
	leader := g.leader()
	g.propose("before")
	logs["r1"].fail(syscall.ENOSPC)
	if _, err := leader.Propose(context.Background(), []byte("doubtful")); !errors.Is(err, ErrUnknown) {
		t.Errorf("a write to a full disk: %v", err)
	}
	logs["r1"].fail(nil)
	eventually(t, "proposals accepted again", func() bool {
		_, err := leader.Propose(context.Background(), []byte("after"))
		return err == nil
	})
	if len(stuck) > 0 {
		t.Errorf("a full disk was taken for a broken one: %v", <-stuck)
	}
}

// TestFullDiskAfterACutIsWaitedOut: a follower has cut entries from its log, because another leader's entries replace
// them, and the disk has no room for the new entries. The follower must wait until the disk has room, and return no
// error: after an error, Raft would wait for the cut entries for ever.
func TestFullDiskAfterACutIsWaitedOut(t *testing.T) {
	t.Parallel()
	c := newGroup(t, 1, nil).configWithDefaults()
	log := new(faultyLog)
	c.faults.wrap = func(s raft.LogStore) raft.LogStore {
		log.LogStore = s
		return log
	}
	stopping := make(chan struct{})
	guard := newGuard(c, func(err error) { t.Error(err) })
	guard.applied, guard.stopping = func() uint64 { return 0 }, stopping
	d, err := openDisk(c, guard)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.close() })
	entry := func(index, term uint64) *raft.Log { return &raft.Log{Index: index, Term: term, Data: []byte("x")} }
	shorten := func(term uint64) chan error {
		if err := d.sealed.StoreLogs([]*raft.Log{entry(2, term), entry(3, term)}); err != nil {
			t.Fatal(err)
		}
		if err := d.sealed.DeleteRange(2, 3); err != nil {
			t.Fatal(err)
		}
		log.fail(syscall.ENOSPC)
		written := make(chan error, 1)
		go func() { written <- d.sealed.StoreLogs([]*raft.Log{entry(2, term+1)}) }()
		eventually(t, "the write had no room", guard.refused.Load)
		return written
	}
	if err := d.sealed.StoreLogs([]*raft.Log{entry(1, 1)}); err != nil {
		t.Fatal(err)
	}
	written := shorten(1)
	log.fail(nil)
	if err := <-written; err != nil {
		t.Errorf("with room again: %v", err)
	}
	if last, err := d.sealed.LastIndex(); err != nil || last != 2 {
		t.Errorf("the log ends at %d, %v", last, err)
	}
	if err := d.sealed.DeleteRange(2, 2); err != nil {
		t.Fatal(err)
	}
	guard.refused.Store(false)
	written = shorten(3)
	close(stopping)
	if err := <-written; !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a replica that stops meanwhile: %v", err)
	}
}

// TestAcknowledgedEntriesAreNotCutAfterAStart starts a replica. A file on its disk has the number of the last entry
// that the replica has acknowledged. If a leader sends another entry in place of an acknowledged entry, the replica must
// stop. It may remove later entries from its log.
func TestAcknowledgedEntriesAreNotCutAfterAStart(t *testing.T) {
	t.Parallel()
	c := newGroup(t, 1, nil).configWithDefaults()
	stops := make(chan error, 9)
	open := func() *disk {
		guard := newGuard(c, func(err error) { stops <- err })
		guard.applied, guard.stopping = func() uint64 { return 0 }, make(chan struct{})
		d, err := openDisk(c, guard)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	d := open()
	for i := uint64(1); i <= 5; i++ {
		if err := d.sealed.StoreLogs([]*raft.Log{{Index: i, Term: 1, Type: raft.LogNoop}}); err != nil {
			t.Fatal(err)
		}
	}
	d.promises.learn(func(r *record) bool {
		r.Committed, r.Settled = 4, 4
		return true
	})
	if err := d.close(); err != nil {
		t.Fatal(err)
	}
	d = open()
	t.Cleanup(func() { _ = d.close() })
	cut := func(first uint64) error {
		err := d.sealed.DeleteRange(first, 5)
		if last, failed := d.sealed.LastIndex(); failed != nil || last != 4 {
			t.Errorf("the log ends at %d after a cut from %d on, %v", last, first, failed)
		}
		return err
	}
	if err := cut(5); err != nil {
		t.Errorf("an entry that nobody acknowledged stays: %v", err)
	}
	if err := cut(3); err == nil || !strings.Contains(err.Error(), "up to 4 were acknowledged") {
		t.Errorf("entries 3 and 4 were cut: %v", err)
	}
	eventually(t, "the replica stops", func() bool { return len(stops) == 1 })
}

func TestLowSpaceRefusesProposals(t *testing.T) {
	t.Parallel()
	var free atomic.Uint64
	free.Store(1 << 30)
	g := newGroup(t, 1, func(c *Config) {
		c.MinFreeBytes = 1 << 20
		c.faults.free = func(string) (uint64, error) { return free.Load(), nil }
	})
	g.start("r1")
	leader := g.leader()
	refused := func() bool {
		_, err := leader.Propose(context.Background(), []byte("x"))
		return errors.Is(err, ErrNoSpace)
	}
	for range 2 {
		free.Store(1<<20 - 1)
		eventually(t, "proposals refused", refused)
		if err := leader.Verify(context.Background()); err != nil {
			t.Errorf("verify with little space: %v", err)
		}
		free.Store(1 << 30)
		eventually(t, "proposals accepted", func() bool { return !refused() })
	}
}

// A write must make the guard measure the free space if the last measurement is old, and not otherwise.
func TestWritesHaveTheSpaceLookedAt(t *testing.T) {
	c := &Config{Dir: t.TempDir(), Log: zap.NewNop()}
	c.faults.free = func(string) (uint64, error) { return 1, nil }
	guard := newGuard(c, nil)
	write := func() bool {
		if err := guard.write("test", func() error { return nil }); err != nil {
			t.Fatal(err)
		}
		return len(guard.look) > 0
	}
	if !write() {
		t.Error("nothing looks at the space though nobody has yet")
	}
	<-guard.look
	guard.looked.Store(time.Now().Add(time.Hour).UnixNano())
	if write() {
		t.Error("each write looks at the space")
	}
}

// Proposals must be refused when the free space is below the limit. They must be accepted again only when the free
// space is an eighth above the limit.
func TestSpaceMarkDoesNotFlicker(t *testing.T) {
	t.Parallel()
	c := newGroup(t, 1, nil).configWithDefaults()
	c.MinFreeBytes = 800
	var free uint64
	c.faults.free = func(string) (uint64, error) { return free, nil }
	guard := newGuard(c, nil)
	for _, step := range []struct {
		free uint64
		low  bool
	}{{801, false}, {800, false}, {799, true}, {801, true}, {899, true}, {900, false}, {801, false}, {0, true}} {
		free = step.free
		guard.lookAtSpace()
		if guard.low.Load() != step.low {
			t.Errorf("with %d bytes free, low is %v", step.free, !step.low)
		}
	}
	c.faults.free = func(string) (uint64, error) { return 0, syscall.EIO }
	if guard.lookAtSpace(); !guard.low.Load() {
		t.Error("a look that failed changed the mark")
	}
}

// After a write failed because the disk was full, proposals must be refused until a file can be written again. The free
// space that the system reports is not enough to know this: it stays the same if a quota is full.
func TestRefusedWriteWaitsForRoom(t *testing.T) {
	t.Parallel()
	c := newGroup(t, 1, nil).configWithDefaults()
	c.faults.free = func(string) (uint64, error) { return 1 << 40, nil }
	full := error(syscall.EDQUOT)
	c.faults.room = func(string, int64) error { return full }
	guard := newGuard(c, nil)
	if err := guard.write("a write", func() error { return syscall.EDQUOT }); err == nil {
		t.Fatal("a write without room did not fail")
	}
	for range 3 {
		if guard.lookAtSpace(); !guard.low.Load() {
			t.Fatal("proposals are taken though nothing has room")
		}
	}
	full = nil
	if guard.lookAtSpace(); guard.low.Load() {
		t.Error("proposals are refused though there is room again")
	}
}

// On a disk with free space, tryRoom must leave no file. The test calls the real function, not a replacement.
func TestTryForRoomLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	if err := tryRoom(dir, 1<<20); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestHangingProbeIsOverdue(t *testing.T) {
	guard := newGuard(&Config{limits: limits{stuckAfter: time.Minute}}, nil)
	end := guard.begin("probe")
	now := time.Now()
	if err := guard.overdue(now.Add(time.Minute/2), time.Minute); err != nil {
		t.Errorf("too early: %v", err)
	}
	if err := guard.overdue(now.Add(2*time.Minute), time.Minute); err == nil {
		t.Error("not overdue after two minutes of one")
	}
	end()
	if err := guard.overdue(now.Add(2*time.Minute), time.Minute); err != nil {
		t.Errorf("overdue although it returned: %v", err)
	}
}

type exit chan struct{}

func (e exit) OnWrite(*zapcore.CheckedEntry, []zapcore.Field) { close(e) }

func TestStuckEndsTheProcessByDefault(t *testing.T) {
	core, logged := observer.New(zap.ErrorLevel)
	ended := make(exit)
	c := Config{Log: zap.New(core, zap.WithFatalHook(ended))}
	c.withDefaults().faults.stuck(syscall.EIO)
	<-ended
	if last := logged.All()[logged.Len()-1]; last.Level != zap.FatalLevel {
		t.Errorf("logged at %v", last.Level)
	}
}
