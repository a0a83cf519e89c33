package mailbox

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

func often(c *Config) {
	c.SegmentBytes, c.limits.scrubEvery, c.limits.scrubPause = 64<<10, 20*time.Millisecond, time.Millisecond
}

// rot changes one byte in a file of a running replica. It is the first byte of `text` in the file, or the middle byte
// if `text` is "". The function `mend` restores the byte.
func rot(t *testing.T, path, text string) (mend func()) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := len(bytes.TrimRight(content, "\x00")) / 2
	if text != "" {
		at = bytes.Index(content, []byte(text))
	}
	write := func(b byte) {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err == nil {
			_, err = f.WriteAt([]byte{b}, int64(at))
		}
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	write(content[at] ^ 4)
	return func() { write(content[at]) }
}

// TestLogThatRotsIsHealed changes an entry in the log file of a running replica. It is an old entry that nobody reads
// any more. The replica must still find the damage, and stop. A leader must hand leadership over before it stops. The
// next start must get the log of the other replicas.
func TestLogThatRotsIsHealed(t *testing.T) {
	t.Parallel()
	for _, leads := range []bool{false, true} {
		t.Run(fmt.Sprintf("leader=%t", leads), func(t *testing.T) {
			t.Parallel()
			stuck := make(chan error, 3)
			g := newSecureGroup(t, 3, func(c *Config) {
				often(c)
				c.faults.stuck = func(err error) { stuck <- err }
			})
			g.start(g.ids...)
			for i := range 20 {
				g.propose(fmt.Sprintf("pay 1000.00%02d", i))
			}
			g.settled()
			g.agree(20)
			victim := g.leader().config.ID
			if !leads {
				victim = g.follower().config.ID
			}
			rot(t, glob(t, g.dirs[victim], "wal/*.wal"), "pay 1000.0007")
			var why error
			select {
			case why = <-stuck:
			case <-time.After(patience):
				t.Fatal("the damage is not noticed")
			}
			if !strings.Contains(why.Error(), "entry ") || !strings.Contains(why.Error(), g.dirs[victim]) {
				t.Errorf("stopped with %v", why)
			}
			g.stop(victim)
			g.propose("after")
			g.start(victim)
			g.whole(victim)
			g.agree(21)
			glob(t, g.dirs[victim], "damaged-*")
			eventually(t, "what was put aside is counted", func() bool { return g.running()[victim].scrubber.damages() == 1 })
			select {
			case why := <-stuck:
				t.Errorf("another replica stopped: %v", why)
			default:
			}
		})
	}
}

// TestLogThatRotsAlone changes the log of a replica without peers. The replica must continue, because its memory is
// right. It must log what is wrong and what the operator must do. It must write a snapshot, so that it can start again.
func TestLogThatRotsAlone(t *testing.T) {
	t.Parallel()
	logs, seen := observer.New(zap.ErrorLevel)
	g := newGroup(t, 1, func(c *Config) {
		often(c)
		c.Log = zap.New(logs)
	})
	g.start("r1")
	for i := range 20 {
		g.propose(fmt.Sprintf("pay 1000.00%02d", i))
	}
	box := g.leader()
	rot(t, glob(t, g.dirs["r1"], "wal/*.wal"), "pay 1000.0007")
	eventually(t, "the damage is counted", func() bool { return box.scrubber.damages() == 1 })
	said := fmt.Sprint(seen.TakeAll()[0].ContextMap()["error"])
	for _, want := range []string{g.dirs["r1"], "entry ", "restart the site", "in memory is right"} {
		if !strings.Contains(said, want) {
			t.Errorf("the log does not say %q: %s", want, said)
		}
	}
	g.propose("after")
	g.stop("r1")
	g.start("r1")
	g.propose("again")
	g.agree(22)
}

// A replica must make a new snapshot in place of a damaged one. It must be able to do this without the other replicas.
func TestSnapshotThatRots(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"state.bin", snapshotMeta, snapshotSeal} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			g := newGroup(t, 1, func(c *Config) {
				often(c)
				c.TrailingEntries = 1
			})
			g.start("r1")
			for range 3 {
				g.propose("pay")
				if err := g.leader().raft.Snapshot().Error(); err != nil {
					t.Fatal(err)
				}
			}
			snapshot := glob(t, g.dirs["r1"], "snapshots/*")
			rot(t, filepath.Join(snapshot, file), "")
			eventually(t, "the damaged snapshot is put aside", func() bool {
				aside, _ := filepath.Glob(filepath.Join(g.dirs["r1"], "damaged-*", filepath.Base(snapshot)))
				return len(aside) == 1
			})
			g.stop("r1")
			g.start("r1")
			g.propose("after")
			g.agree(4)
		})
	}
}

// The file of promises holds each part twice. If one of the two copies is damaged, it must be written again from the
// other copy.
func TestPromisesThatRot(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 1, often)
	g.start("r1")
	for range 5 {
		g.propose("pay")
	}
	path := filepath.Join(g.dirs["r1"], promisesFile)
	for _, at := range []int64{20, recordSlot + 20, endsAt + 50, endsAt + endSlot + 50} {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte{0xff, 0xfe}, at); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		p := g.leader().disk.promises
		eventually(t, "the promises are written anew", func() bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			all, err := os.ReadFile(path)
			return err == nil && p.written(0, all[:endsAt], recordSlot) && p.written(1, all[endsAt:], endSlot)
		})
	}
}

// While a replica reads its log to check it, entries are cut from the log. A cut must not count as damage.
func TestScrubMeetsCuts(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 3, func(c *Config) {
		often(c)
		c.limits.scrubEvery, c.TrailingEntries = time.Millisecond, 1
	})
	g.start(g.ids...)
	for i := range 200 {
		g.propose(fmt.Sprintf("%d/%4000d", i, i))
		if i%10 == 0 {
			for _, box := range g.running() {
				_ = box.raft.Snapshot().Error() // a snapshot fails while the group changes
			}
		}
	}
	for id, box := range g.running() {
		if box.scrubber.damages() != 0 || box.scrubber.passes.Load() == 0 {
			t.Errorf("%s: %d readings found %d pieces of damage", id, box.scrubber.passes.Load(), box.scrubber.damages())
		}
	}
}
