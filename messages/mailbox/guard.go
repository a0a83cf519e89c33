package mailbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/raft"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages/beat"
)

// guard watches a replica's disk: it times each write, measures the free space, and reports the first failure.
type guard struct {
	config   *Config
	failed   func(error) // called once, in a goroutine of its own
	damaged  func(error)
	applied  func() uint64
	stopping <-chan struct{}
	once     sync.Once
	broken   atomic.Pointer[error] // the failure; nothing is written after it
	low      atomic.Bool           // free space is below MinFreeBytes, or a write had no room
	turned   chan struct{}         // gets a token when low becomes true; sending it never blocks
	since    atomic.Int64          // when low became true, in nanoseconds
	refused  atomic.Bool           // a write had no room, and no room was found since then
	free     atomic.Uint64         // free bytes when last measured
	looked   atomic.Int64          // time of the last measurement, in nanoseconds
	look     chan struct{}         // gets a token when the space must be measured again; sending it never blocks

	mu   sync.Mutex
	ops  map[uint64]operation // writes that have begun and not ended
	next uint64
}

type operation struct {
	name  string
	start time.Time
}

func newGuard(c *Config, failed func(error)) *guard {
	return &guard{config: c, failed: failed, ops: map[uint64]operation{}, turned: make(chan struct{}, 1), look: make(chan struct{}, 1)}
}

// begin records that a write began. It returns the function `end`, which the caller must call when the write has
// returned.
func (g *guard) begin(name string) (end func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	id := g.next
	g.next++
	g.ops[id] = operation{name, time.Now()}
	return func() {
		g.mu.Lock()
		delete(g.ops, id)
		g.mu.Unlock()
	}
}

func (g *guard) overdue(now time.Time, most time.Duration) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, op := range g.ops {
		if took := now.Sub(op.start); took > most {
			return fmt.Errorf("mailbox: %s in %s has not returned for %s", op.name, g.config.Dir, took.Round(time.Millisecond))
		}
	}
	return nil
}

// write calls a function that writes to the log, and measures its time. If the function fails because the disk is full,
// nothing was written. Then write notes that the disk has no room, and later writes are tried again. After any other
// error, nobody knows what the disk contains, so write permits no more writes.
func (g *guard) write(name string, f func() error) error {
	if err := g.broken.Load(); err != nil {
		return *err
	}
	end := g.begin(name)
	err := f()
	end()
	g.lookAgain()
	switch {
	case err == nil:
		return nil
	case noSpace(err):
		g.refused.Store(true)
		g.setLow(true)
	default:
		g.fail(fmt.Errorf("mailbox: %s in %s failed: %w", name, g.config.Dir, err))
	}
	return err
}

// restFor is the pause before a write to a full disk is tried again.
const restFor = 20 * time.Millisecond

// pauseBeforeRetry waits for restFor, and returns true. If the replica stops meanwhile, it returns false.
func (g *guard) pauseBeforeRetry() bool {
	select {
	case <-g.stopping:
		return false
	case <-time.After(restFor):
		return true
	}
}

func noSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

func (g *guard) fail(err error) {
	g.once.Do(func() {
		g.broken.Store(&err)
		go g.failed(err)
	})
}

// watch looks for overdue writes from time to time. It does no I/O, so it cannot hang with the disk.
func (g *guard) watch(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case now := <-time.After(beat.Until(g.config.limits.stuckAfter / 4)):
			if err := g.overdue(now, g.config.limits.stuckAfter); err != nil {
				g.fail(err)
				return
			}
		}
	}
}

// These are the times between two measurements of the free space. While the log is written, the time is spaceEvery. It
// is so short that even a fast log cannot use up MinFreeBytes between two measurements. Without writes, the time is
// spaceRest.
const (
	spaceEvery = 250 * time.Millisecond
	spaceRest  = time.Second
)

// lookAgain asks for a measurement if the last measurement is older than spaceEvery.
func (g *guard) lookAgain() {
	if time.Now().UnixNano()-g.looked.Load() < int64(spaceEvery) {
		return
	}
	select {
	case g.look <- struct{}{}:
	default:
	}
}

// probe measures the free space, and writes and syncs a small file, again and again. In this way it notices a disk that
// hangs even if no command is proposed.
func (g *guard) probe(stop <-chan struct{}) {
	often, seldom := min(spaceRest, g.config.limits.stuckAfter/4), g.config.limits.stuckAfter/4
	space, write := time.NewTicker(beat.Until(often)), time.NewTicker(beat.Until(seldom))
	defer space.Stop()
	defer write.Stop()
	for {
		select {
		case <-stop:
			return
		case <-space.C:
			space.Reset(beat.Until(often))
			g.lookAtSpace()
		case <-g.look:
			g.lookAtSpace()
		case <-write.C:
			write.Reset(beat.Until(seldom))
			g.probeOnce()
		}
	}
}

// lookAtSpace measures the free space of the log's disk, and decides whether the space is low. Proposals are refused
// while it is low. The space becomes low below MinFreeBytes, and stops being low at nine eighths of MinFreeBytes. A
// quota can be full although the system reports free space. So if a write found no room, the space stays low until a
// new file of the log can be written.
func (g *guard) lookAtSpace() {
	g.looked.Store(time.Now().UnixNano())
	end := g.begin("statfs")
	free, err := g.config.faults.free(g.config.Dir)
	end()
	if err != nil {
		g.config.Log.Error("cannot measure the free space on the log's disk", zap.Error(err))
		return
	}
	g.free.Store(free)
	limit, was := g.config.MinFreeBytes, g.low.Load()
	low := free < limit || (was && free < limit+limit/8) || g.refused.Load() && !g.hasRoom()
	g.setLow(low)
	if low != was {
		g.config.Log.Warn("the free space on the log's disk crossed the limit", zap.Bool("refusing proposals", low), zap.Uint64("bytes free", free))
	}
}

// setLow records whether the free space is low. When the space becomes low, setLow wakes the yielder, which may hand
// leadership over.
func (g *guard) setLow(low bool) {
	if low && !g.low.Load() {
		g.since.Store(time.Now().UnixNano())
	}
	if g.low.Swap(low) || !low {
		return
	}
	select {
	case g.turned <- struct{}{}:
	default:
	}
}

func (g *guard) lowFor() time.Duration { return time.Since(time.Unix(0, g.since.Load())) }

// hasRoom reports whether the disk again has room for a file of the log. It is called after a write for which there was
// no room.
func (g *guard) hasRoom() bool {
	end := g.begin("a try for room")
	err := g.config.faults.room(g.config.Dir, int64(g.config.SegmentBytes))
	end()
	if err == nil {
		g.refused.Store(false)
	}
	return err == nil
}

// tryRoom reserves room for a file, and frees it again.
func tryRoom(dir string, bytes int64) error {
	path := filepath.Join(dir, "room")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	err = unix.Fallocate(int(f.Fd()), 0, 0, bytes)
	if errors.Is(err, unix.EOPNOTSUPP) {
		err = nil // the file system cannot reserve space; the next write will show whether there is room
	}
	return errors.Join(err, f.Close(), os.Remove(path))
}

func (g *guard) probeOnce() {
	path := filepath.Join(g.config.Dir, "probe")
	err := g.write("probe", func() error { return writeSynced(path, []byte("probe")) })
	if err != nil {
		g.config.Log.Error("cannot write a probe file into the log's directory", zap.Error(err))
	}
}

func writeSynced(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}

// guardedStable is a store of votes whose writes are watched by the guard.
type guardedStable struct {
	raft.StableStore
	guard    *guard
	promises *promises
}

// Set writes a value to the store and to the promises, and syncs both.
func (s *guardedStable) Set(key, value []byte) error {
	return s.guarded(func() error { return s.StableStore.Set(key, value) }, func(r *record) {
		if string(key) == string(keyVotedFor) {
			r.VotedFor = value
		}
	})
}

// SetUint64 writes a number to the store and to the promises, and syncs both. When Raft votes, it writes first the term
// of the vote and then the candidate. The promises record the vote only when both are known.
func (s *guardedStable) SetUint64(key []byte, value uint64) error {
	return s.guarded(func() error { return s.StableStore.SetUint64(key, value) }, func(r *record) {
		switch string(key) {
		case string(keyTerm):
			r.Term = value
		case string(keyVotedTerm):
			r.VotedTerm, r.VotedFor = value, nil
			r.begin()
		}
	})
}

// guarded calls a function that writes the vote, and watches how long it takes. It calls the function even if an
// earlier write failed: if the vote cannot be stored, Raft itself ends the process. (guard.write does not write after
// an error.)
func (s *guardedStable) guarded(f func() error, promised func(*record)) error {
	end := s.guard.begin("a write of the vote")
	defer end()
	if err := safely(f); err != nil {
		return err
	}
	return s.promises.change(promised)
}
