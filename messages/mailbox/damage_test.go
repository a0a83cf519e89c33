package mailbox

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

func files(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && e.Name() != "lock" && e.Name() != "probe" {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func edit(t *testing.T, path string, change func([]byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, change(b), 0o600); err != nil {
		t.Fatal(err)
	}
}

func glob(t *testing.T, dir, pattern string) string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(all) == 0 {
		t.Fatalf("%s in %s: %q, %v", pattern, dir, all, err)
	}
	return all[len(all)-1]
}

func copyDir(t *testing.T, from, to string) {
	t.Helper()
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

// whole waits until a replica has its vote again. It waits until both the replica itself and the leader report this.
func (g *group) whole(id string) {
	g.t.Helper()
	eventually(g.t, id+" votes again", func() bool {
		all, err := g.leader().Members()
		i := indexOf(all, id)
		box := g.running()[id]
		return err == nil && i >= 0 && all[i].Votes && box != nil && box.disk.promises.now().Standing == standingWhole
	})
}

func (g *group) settled() {
	g.t.Helper()
	eventually(g.t, "replicas know one another", func() bool {
		for _, box := range g.running() {
			r := box.disk.promises.now()
			for id, peer := range g.running() {
				theirs := peer.disk.promises.now()
				if known, _ := r.known(id); peer != box && known.Disk != theirs.Disk || theirs.Standing != standingWhole {
					return false
				}
			}
		}
		return true
	})
}

func demote(m *replicated, id string) error {
	if err := m.raft.DemoteVoter(raft.ServerID(id), 0, time.Second).Error(); err != nil {
		return proposeError(err)
	}
	return nil
}

// A replica does not know why it has no vote: a leader removed its vote, and then its disk failed before it stored the
// reason, or the leader ended before it returned the vote. The replica must get its vote again.
func TestVoteThatWasTakenAwayComesBack(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 3, nil)
	g.start(g.ids...)
	g.propose("before")
	g.settled()
	id := g.follower().config.ID
	g.stop(id)
	if err := g.led(func(m *replicated) error {
		if m.config.ID == id {
			return ErrNotLeader
		}
		return demote(m, id)
	}); err != nil {
		t.Fatal(err)
	}
	g.propose("without it")
	g.start(id)
	g.whole(id)
	g.agree(2)
}

// A replica must notice at its start that an amount in its log was changed, and get the right log from its peers.
func TestFlippedEntryIsNotServed(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 3, func(c *Config) { c.SegmentBytes = 64 << 10 })
	g.start(g.ids...)
	for i := range 20 {
		g.propose(fmt.Sprintf("pay 1000.00%02d", i))
	}
	g.settled()
	g.agree(20)
	victim := g.follower().config.ID
	g.stop(victim)
	for _, path := range files(t, g.dirs[victim]) {
		edit(t, path, func(b []byte) []byte {
			return bytes.ReplaceAll(b, []byte("pay 1000.0007"), []byte("pay 9000.0007"))
		})
	}
	g.start(victim)
	g.whole(victim)
	g.agree(20)
	if g.machines[victim].count("pay 9000.0007") != 0 {
		t.Error("the replica applied what was never said")
	}
	glob(t, g.dirs[victim], "damaged-*")
}

// TestDamagedReplicaOfTwo damages one of two replicas. Nobody may lead, because one replica of two is no majority. The
// damaged replica must tell the operator.
func TestDamagedReplicaOfTwo(t *testing.T) {
	t.Parallel()
	seen, logs := observer.New(zap.ErrorLevel)
	g := newGroup(t, 2, func(c *Config) { c.SegmentBytes, c.Log = 64<<10, zap.New(seen) })
	g.start(g.ids...)
	for range 20 {
		g.propose("pay 1000")
	}
	g.settled()
	g.agree(20)
	victim := g.follower().config.ID
	g.stop(g.ids...)
	for _, path := range files(t, g.dirs[victim]) {
		edit(t, path, func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("pay 1000"), []byte("pay 9000")) })
	}
	logs.TakeAll()
	g.impatient()
	g.start(g.ids...)
	glob(t, g.dirs[victim], "damaged-*")
	eventually(t, "the damaged replica says that nobody leads", func() bool {
		return logs.FilterMessageSnippet("this replica has no leader that could bring it up to date").Len() > 0
	})
	for id, box := range g.running() {
		if box.leadership.leads() != 0 || g.machines[id].count("pay 9000") != 0 {
			t.Errorf("%s leads, or applied what was never said", id)
		}
	}
}

// A replica without peers whose log has a changed entry must not start, because nothing can repair it.
func TestFlippedEntryOfOneReplicaIsRefused(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 1, func(c *Config) { c.SegmentBytes = 64 << 10 })
	g.start("r1")
	for i := range 20 {
		g.propose(fmt.Sprintf("pay 1000.00%02d", i))
	}
	g.stop("r1")
	for _, path := range files(t, g.dirs["r1"]) {
		edit(t, path, func(b []byte) []byte {
			return bytes.ReplaceAll(b, []byte("pay 1000.0007"), []byte("pay 9000.0007"))
		})
	}
	_, err := OpenRaft(g.config("r1"), newTally())
	if err == nil || !strings.Contains(err.Error(), "entry ") || !strings.Contains(err.Error(), g.dirs["r1"]) {
		t.Errorf("opened a log with a changed amount: %v", err)
	}
}

// TestDamageBelowTheSnapshotIsMended damages the log of a replica without peers. If the damaged entries are in the
// snapshot, the replica must start, because it does not need them. If later entries are damaged, it must not start.
func TestDamageBelowTheSnapshotIsMended(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(dir string){
		"entry": func(dir string) {
			edit(t, glob(t, dir, "wal/*.wal"), func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("pay 1000.0007"), []byte("pay 9000.0007")) })
		},
		"log": func(dir string) { _ = os.RemoveAll(filepath.Join(dir, walDir)) },
	} {
		g := newGroup(t, 1, func(c *Config) { c.SegmentBytes = 64 << 10 })
		g.start("r1")
		for i := range 20 {
			g.propose(fmt.Sprintf("pay 1000.00%02d", i))
		}
		if err := g.leader().raft.Snapshot().Error(); err != nil {
			t.Fatal(err)
		}
		after := 0
		if name == "entry" {
			after = 10
		}
		for i := range after {
			g.propose(fmt.Sprintf("pay 2000.00%02d", i))
		}
		g.stop("r1")
		spoil(g.dirs["r1"])
		g.start("r1")
		g.propose("more")
		g.agree(uint64(21 + after))
		glob(t, g.dirs["r1"], "damaged-*/wal")
		g.stop("r1")
		edit(t, glob(t, g.dirs["r1"], "wal/*.wal"), func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("more"), []byte("less")) })
		_, err := OpenRaft(g.config("r1"), newTally())
		if err == nil || !strings.Contains(err.Error(), "entry ") || !strings.Contains(err.Error(), g.dirs["r1"]) {
			t.Errorf("%s: opened a log with another command after the snapshot: %v", name, err)
		}
	}
}

// When the logs of all replicas are damaged in entries that their snapshots contain, no replica may lose its vote.
func TestDamageBelowTheSnapshotStopsNoGroup(t *testing.T) {
	t.Parallel()
	seen, logs := observer.New(zap.WarnLevel)
	g := newGroup(t, 3, func(c *Config) { c.SegmentBytes, c.Log = 64<<10, zap.New(seen) })
	g.start(g.ids...)
	for i := range 20 {
		g.propose(fmt.Sprintf("pay 1000.00%02d", i))
	}
	g.settled()
	for _, m := range g.running() {
		if err := m.raft.Snapshot().Error(); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 10 {
		g.propose(fmt.Sprintf("pay 2000.00%02d", i))
	}
	g.settled()
	g.stop(g.ids...)
	for _, id := range g.ids {
		edit(t, glob(t, g.dirs[id], "wal/*.wal"), func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("pay 1000.0007"), []byte("pay 9000.0007")) })
	}
	g.start(g.ids...)
	g.propose("more")
	g.agree(31)
	for _, id := range g.ids {
		glob(t, g.dirs[id], "damaged-*/wal")
	}
	if n := logs.FilterMessageSnippet("neither votes").Len() + logs.FilterMessageSnippet("before it votes").Len(); n > 0 {
		t.Errorf("replicas lost their votes: %v", logs.All())
	}
}

// losses are ways in which a replica loses entries that it promised.
var losses = []struct {
	name string
	lose func(t *testing.T, dir, older string)
}{
	{"emptied directory", func(t *testing.T, dir, _ string) {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}},
	{"older copy", func(t *testing.T, dir, older string) { copyDir(t, older, dir) }},
	{"deleted log", func(t *testing.T, dir, _ string) {
		if err := os.RemoveAll(filepath.Join(dir, walDir)); err != nil {
			t.Fatal(err)
		}
	}},
	{"zeroed page", func(t *testing.T, dir, _ string) {
		edit(t, glob(t, dir, "wal/*.wal"), func(b []byte) []byte {
			copy(b[:4096], make([]byte, 4096))
			return b
		})
	}},
	{"deleted votes", func(t *testing.T, dir, _ string) {
		if err := os.Remove(filepath.Join(dir, walDir, "wal-meta.db")); err != nil {
			t.Fatal(err)
		}
	}},
	{"votes of zero bytes", func(t *testing.T, dir, _ string) {
		edit(t, filepath.Join(dir, walDir, "wal-meta.db"), func([]byte) []byte { return nil })
	}},
}

// TestReplicaThatLostItsLogDoesNotVote: two of three replicas acknowledged commands. Then the first of these two
// replicas loses its log, and the second is down. The third replica, which lacks the commands, must not be elected.
// When the second replica is back, all three must get the commands.
func TestReplicaThatLostItsLogDoesNotVote(t *testing.T) {
	t.Parallel()
	for _, loss := range losses {
		t.Run(loss.name, func(t *testing.T) {
			t.Parallel()
			g := newGroup(t, 3, func(c *Config) { c.SegmentBytes = 64 << 10 })
			g.start(g.ids...)
			g.propose("seen by all")
			g.agree(1)
			g.settled()
			lagging := g.follower().config.ID
			g.stop(lagging)
			var victim string
			for id, box := range g.running() {
				if box != g.leader() {
					victim = id
				}
			}
			g.stop(victim)
			older := filepath.Join(t.TempDir(), "older")
			copyDir(t, g.dirs[victim], older)
			g.start(victim)
			for i := range 50 {
				g.propose(fmt.Sprintf("acknowledged %d", i))
			}
			g.agree(51)
			holder := g.leader().config.ID
			if holder == victim {
				for id := range g.running() {
					if id != victim {
						holder = id
					}
				}
			}
			index := g.leader().raft.CommitIndex()
			g.stop(g.ids...)
			heardOf(t, g.dirs[lagging], index)
			loss.lose(t, g.dirs[victim], older)
			g.start(victim, lagging)
			eventually(t, "an election is refused", func() bool {
				return g.running()[victim].gate.refusals.Load()+g.running()[lagging].gate.refusals.Load() > 3
			})
			for id, box := range g.running() {
				if box.current.Load() != nil {
					t.Errorf("%s leads without what was acknowledged", id)
				}
			}
			g.start(holder)
			g.propose("after")
			g.agree(52)
			g.whole(victim)
			for id, m := range g.machines {
				for i := range 50 {
					if m.count(fmt.Sprintf("acknowledged %d", i)) == 0 {
						t.Fatalf("acknowledged %d is not at %s", i, id)
					}
				}
			}
		})
	}
}

// When the logs of all replicas are damaged, none has a vote, and each must log the steps for the operator.
func TestAllReplicasAreDamaged(t *testing.T) {
	t.Parallel()
	core, logged := observer.New(zap.ErrorLevel)
	g := newGroup(t, 3, func(c *Config) { c.SegmentBytes, c.Log = 64<<10, zap.New(core) })
	g.start(g.ids...)
	g.propose("acknowledged")
	g.agree(1)
	g.stop(g.ids...)
	for _, id := range g.ids {
		edit(t, glob(t, g.dirs[id], "wal/*.wal"), func(b []byte) []byte { clear(b[:4096]); return b })
	}
	logged.TakeAll()
	g.impatient()
	g.start(g.ids...)
	eventually(t, "each says so", func() bool { return logged.FilterMessageSnippet("this replica has no leader").Len() >= len(g.ids) })
}

// heardOf changes the files of a stopped replica. According to the changed files, a heartbeat said that the entries up
// to an index are committed, but the replica does not have these entries.
func heardOf(t *testing.T, dir string, index uint64) {
	t.Helper()
	p, err := openPromises(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.change(func(r *record) { r.Committed = index }); err != nil {
		t.Fatal(err)
	}
	if err := p.close(); err != nil {
		t.Fatal(err)
	}
}

// TestUnreadableSnapshot makes snapshots unreadable. A replica without peers must survive the loss of the newest
// snapshot, because the log reaches back to the older snapshot. A replica with peers must survive the loss of both
// snapshots.
func TestUnreadableSnapshot(t *testing.T) {
	t.Parallel()
	break1 := func(t *testing.T, dir, file string) {
		edit(t, filepath.Join(dir, file), func(b []byte) []byte { b[len(b)/2] ^= 4; return b })
	}
	prepare := func(t *testing.T, n int) (*group, string) {
		g := newGroup(t, n, func(c *Config) { c.TrailingEntries, c.SegmentBytes = 1, 64<<10 })
		g.start(g.ids...)
		if n > 1 {
			g.settled()
		}
		for i := range 3 {
			for j := range 30 {
				g.propose(fmt.Sprintf("%d/%4000d", i, j))
			}
			g.agree(uint64(30 * (i + 1)))
			for _, box := range g.running() {
				if err := box.raft.Snapshot().Error(); err != nil {
					t.Fatal(err)
				}
			}
		}
		g.propose("last")
		g.agree(91)
		victim := "r1"
		if n > 1 {
			victim = g.follower().config.ID
		}
		if first, err := g.running()[victim].disk.logs.FirstIndex(); err != nil || first < 20 {
			t.Fatalf("the log begins at %d, %v", first, err)
		}
		g.stop(victim)
		return g, victim
	}
	for _, file := range []string{"state.bin", snapshotMeta} {
		t.Run("the newest "+file, func(t *testing.T) {
			t.Parallel()
			g, id := prepare(t, 1)
			break1(t, glob(t, g.dirs[id], "snapshots/*"), file)
			g.start(id)
			g.propose("after")
			g.agree(92)
		})
		t.Run("all "+file, func(t *testing.T) {
			t.Parallel()
			g, id := prepare(t, 1)
			dirs, _ := filepath.Glob(filepath.Join(g.dirs[id], "snapshots/*"))
			for _, dir := range dirs {
				break1(t, dir, file)
			}
			_, err := OpenRaft(g.config(id), newTally())
			if err == nil || !strings.Contains(err.Error(), "snapshot") || !strings.Contains(err.Error(), g.dirs[id]) {
				t.Errorf("opened without a snapshot that can be read: %v", err)
			}
		})
	}
	t.Run("all, with peers", func(t *testing.T) {
		t.Parallel()
		g, id := prepare(t, 3)
		dirs, _ := filepath.Glob(filepath.Join(g.dirs[id], "snapshots/*"))
		for _, dir := range dirs {
			break1(t, dir, "state.bin")
		}
		g.start(id)
		g.whole(id)
		g.agree(91)
	})
}

// refuse adds `later` snapshots to the files of a stopped replica. The new snapshots are newer than the replica's own
// snapshots, and the replica's machine refuses the new snapshots. The replica keeps only its last two snapshots.
func refuse(t *testing.T, dir string, later int) {
	t.Helper()
	files, err := raft.NewFileSnapshotStoreWithLogger(dir, retainedSnapshots, newRaftLog(zap.NewNop()))
	if err != nil {
		t.Fatal(err)
	}
	s := &sealedSnapshots{SnapshotStore: files, dir: filepath.Join(dir, snapshotsDir)}
	all, err := s.List()
	if err != nil || len(all) == 0 {
		t.Fatalf("%d snapshots, %v", len(all), err)
	}
	old := all[0]
	_, peers := raft.NewInmemTransport("")
	for i := range later {
		sink, err := s.Create(old.Version, old.Index+1+uint64(i), old.Term, old.Configuration, old.ConfigurationIndex, peers)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := sink.Write([]byte(snapshotHeader + "12345678\x00\x01and the program's checksum, which is long; no state")); err != nil {
			t.Fatal(err)
		}
		if err := sink.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A machine may refuse the latest snapshots. Then the replica must continue from the latest snapshot that the machine
// accepts. If the machine accepts no snapshot, the replica must get the state from its peers.
func TestRefusedSnapshot(t *testing.T) {
	t.Parallel()
	begin := func(t *testing.T, n int) (*group, string, <-chan error) {
		ended := make(chan error, 16)
		g := newGroup(t, n, func(c *Config) {
			c.TrailingEntries, c.SegmentBytes, c.faults.stuck = 1, 64<<10, func(err error) { ended <- err }
		})
		g.start(g.ids...)
		if n > 1 {
			g.settled()
		}
		for i := range 30 {
			g.propose(strconv.Itoa(i))
			if i != 10 && i != 20 {
				continue
			}
			g.agree(uint64(i + 1))
			for _, box := range g.running() {
				if err := box.raft.Snapshot().Error(); err != nil {
					t.Fatal(err)
				}
			}
		}
		g.agree(30)
		victim := "r1"
		if n > 1 {
			victim = g.follower().config.ID
		}
		g.stop(victim)
		return g, victim, ended
	}
	t.Run("the newest", func(t *testing.T) {
		t.Parallel()
		g, id, _ := begin(t, 1)
		refuse(t, g.dirs[id], 1)
		for range 2 {
			g.start(id)
			g.agree(30)
			g.stop(id)
			glob(t, g.dirs[id], refusedDir+"/*/"+snapshotMeta)
		}
	})
	t.Run("all", func(t *testing.T) {
		t.Parallel()
		g, id, _ := begin(t, 1)
		refuse(t, g.dirs[id], 2)
		_, err := OpenRaft(g.config(id), newTally())
		if err == nil || !strings.Contains(err.Error(), "no other replica has the data") || !strings.Contains(err.Error(), g.dirs[id]) {
			t.Errorf("opened without a snapshot that can be restored: %v", err)
		}
	})
	t.Run("all, with peers", func(t *testing.T) {
		t.Parallel()
		g, id, _ := begin(t, 3)
		refuse(t, g.dirs[id], 2)
		if _, err := OpenRaft(g.config(id), newTally()); err == nil || !strings.Contains(err.Error(), "the next start") {
			t.Errorf("opened without a snapshot that can be restored: %v", err)
		}
		g.start(id)
		g.whole(id)
		g.agree(30)
	})
	t.Run("of the leader", func(t *testing.T) {
		t.Parallel()
		g, id, ended := begin(t, 3)
		for i := range 3 * recentEntries {
			g.propose(fmt.Sprintf("later %4000d", i))
			if i%recentEntries > 0 {
				continue
			}
			if err := g.leader().raft.Snapshot().Error(); err != nil {
				t.Fatal(err)
			}
		}
		before, _ := filepath.Glob(filepath.Join(g.dirs[id], snapshotsDir, "*"))
		g.most = 30
		g.start(id)
		endsWith(t, ended, "the leader sent a snapshot that this replica cannot read: mailbox: cannot restore a snapshot that build "+build()[:12])
		g.stop(id)
		glob(t, g.dirs[id], refusedDir+"/*/"+snapshotMeta)
		if left, _ := filepath.Glob(filepath.Join(g.dirs[id], snapshotsDir, "*")); !slices.Contains(left, before[len(before)-1]) {
			t.Errorf("of the snapshots %q are left %q", before, left)
		}
		g.most = 0
		g.start(id)
		g.agree(30 + 3*recentEntries)
	})
}

// The memory of one replica is changed. The replica must notice this at the next mark (an entry at which replicas
// compare their states), and stop with a clear error. After a restart it must have the right state.
func TestReplicaThatDiffersStops(t *testing.T) {
	t.Parallel()
	stuck := make(chan error, 3)
	g := newGroup(t, 3, func(c *Config) {
		c.limits.markEntries, c.faults.stuck = 8, func(err error) { stuck <- err }
	})
	g.start(g.ids...)
	g.settled()
	for i := range 10 {
		g.propose(fmt.Sprint(i))
	}
	g.agree(10)
	victim := g.follower().config.ID
	m := g.machines[victim]
	m.mu.Lock()
	m.counts["3"] = 1000
	m.mu.Unlock()
	n := 10
	var why error
	eventually(t, "the replica that differs stops", func() bool {
		g.propose(fmt.Sprint(n))
		n++
		select {
		case why = <-stuck:
			return true
		default:
			return false
		}
	})
	if !strings.Contains(why.Error(), "the state after entry") {
		t.Errorf("stopped with %v", why)
	}
	g.stop(victim)
	g.start(victim)
	g.whole(victim)
	g.agree(uint64(n))
	if g.machines[victim].count("3") >= 1000 {
		t.Error("it still differs")
	}
}

func TestJudgement(t *testing.T) {
	of := func(hash, build string) mark { return mark{7, hash, build} }
	told := map[string]mark{"r1": of("a", "x"), "r2": of("a", "x"), "r3": of("b", "x")}
	for name, c := range map[string]struct {
		own  mark
		told map[string]mark
		bad  bool
	}{
		"with the majority":      {of("a", "x"), told, false},
		"against it":             {of("b", "x"), told, true},
		"another build":          {of("b", "y"), map[string]mark{"r1": of("a", "x"), "r2": of("a", "x"), "r3": of("b", "y")}, true},
		"another index":          {mark{8, "b", "x"}, told, false},
		"one against one":        {of("b", "x"), map[string]mark{"r1": of("a", "x"), "r3": of("b", "x")}, true},
		"one against another's":  {of("b", "x"), map[string]mark{"r1": of("a", "y"), "r3": of("b", "x")}, true},
		"nobody else":            {of("b", "x"), map[string]mark{"r3": of("b", "x")}, false},
		"each another":           {of("b", "x"), map[string]mark{"r1": of("a", "y"), "r2": of("c", "z"), "r3": of("b", "x")}, true},
		"alike, of three builds": {of("b", "x"), map[string]mark{"r1": of("b", "y"), "r2": of("b", "z"), "r3": of("b", "x")}, false},
	} {
		if err := judge(c.own, c.told); (err != nil) != c.bad {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A directory of an earlier release has no promises and no seals in its log. The replica must have all commands, and
// accept new ones.
func TestEntriesWithoutSealsAreRead(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 1, func(c *Config) { c.SegmentBytes = 64 << 10 })
	c := g.configWithDefaults()
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	store, err := openStore(c)
	if err != nil {
		t.Fatal(err)
	}
	group := raft.Configuration{Servers: []raft.Server{{ID: "r1", Address: "r1"}}}
	logs := []*raft.Log{{Index: 1, Term: 1, Type: raft.LogConfiguration, Data: raft.EncodeConfiguration(group)}}
	for i := range 20 {
		logs = append(logs, &raft.Log{Index: uint64(i + 2), Term: 2, Type: raft.LogCommand, Data: appendCommand(newEntry(8), fmt.Append(nil, i))})
	}
	if err := store.StoreLogs(logs); err != nil {
		t.Fatal(err)
	}
	if err := store.SetUint64(keyTerm, 2); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	g.start("r1")
	g.propose("sealed")
	g.agree(21)
	g.stop("r1")
	g.start("r1")
	g.agree(21)
}

// seeds returns how many random cases to try: the number in CANDOR_SEEDS, or else the argument.
func seeds(usual int) int {
	if n, err := strconv.Atoi(os.Getenv("CANDOR_SEEDS")); err == nil && n > 0 {
		return n
	}
	return usual
}

// harm damages one file at random, and returns a description of the damage.
func harm(t *testing.T, r *rand.Rand, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// The log reserves its segments in advance and fills them with zeros. So the end of the used bytes is before the
	// final zeros.
	used := len(bytes.TrimRight(b, "\x00"))
	from := r.IntN(max(used, 1))
	to := min(from+1+r.IntN(4096), len(b))
	switch kind := r.IntN(5); {
	case kind == 0:
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		return "deleted"
	case kind == 1:
		b = b[:from]
	case kind == 2 && len(b) > 0:
		clear(b[from:to])
	case kind == 3:
		b = nil
	case len(b) > 0:
		b[from] ^= 1 << r.IntN(8)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("bytes %d to %d of %d", from, to, used)
}

// TestDamagedFiles damages files at random, of one replica or of all replicas. The replica must be repaired, or refuse
// to start with an error that names its directory. A replica that serves must have the right state.
func TestDamagedFiles(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 3, func(c *Config) {
		c.SegmentBytes, c.TrailingEntries, c.faults.stuck = 64<<10, 1, func(error) {}
	})
	g.start(g.ids...)
	g.settled()
	for i := range 60 {
		g.propose(fmt.Sprintf("%d/%2000d", i, i))
		if i%20 == 19 {
			g.agree(uint64(i + 1))
			for _, box := range g.running() {
				if err := box.raft.Snapshot().Error(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	g.agree(60)
	var want tallied // it has more than 60 commands if one was applied twice
	want.total, want.hash = g.machines[g.ids[0]].state()
	g.stop(g.ids...)
	for seed := range seeds(4) {
		t.Run(fmt.Sprintf("one/%d", seed), func(t *testing.T) { t.Parallel(); damageOne(t, g, uint64(seed), want) })
		t.Run(fmt.Sprintf("all/%d", seed), func(t *testing.T) { t.Parallel(); damageAll(t, g, uint64(seed), want) })
	}
}

type tallied struct{ total, hash uint64 }

func copied(t *testing.T, of *group) *group {
	g := newGroup(t, len(of.ids), of.adjust)
	for _, id := range g.ids {
		copyDir(t, of.dirs[id], g.dirs[id])
	}
	return g
}

func damageOne(t *testing.T, of *group, seed uint64, want tallied) {
	g := copied(t, of)
	r := rand.New(rand.NewPCG(seed, 1))
	victim := g.ids[r.IntN(len(g.ids))]
	var done []string
	for range 1 + r.IntN(2) {
		all := files(t, g.dirs[victim])
		path := all[r.IntN(len(all))]
		done = append(done, path[len(g.dirs[victim]):]+": "+harm(t, r, path))
	}
	t.Logf("%s: %q", victim, done)
	g.start(g.ids...)
	eventually(t, "a supervisor has all run", func() bool {
		for id, box := range g.running() {
			if box.guard.broken.Load() != nil {
				t.Logf("%s stopped: %v", id, *box.guard.broken.Load())
				g.stop(id)
				g.start(id)
			}
		}
		total, _ := g.machines[victim].state()
		return total == want.total && g.running()[victim].disk.promises.now().Standing == standingWhole
	})
	g.agree(want.total)
	g.whole(victim)
	if got := g.agree(want.total); got != want.hash {
		t.Errorf("the state is %x, was %x", got, want.hash)
	}
}

func damageAll(t *testing.T, of *group, seed uint64, want tallied) {
	g := copied(t, of)
	r := rand.New(rand.NewPCG(seed, 2))
	for _, id := range g.ids {
		all := files(t, g.dirs[id])
		path := all[r.IntN(len(all))]
		t.Logf("%s%s: %s", id, path[len(g.dirs[id]):], harm(t, r, path))
	}
	for _, id := range g.ids {
		m := newTally()
		box, err := OpenRaft(g.config(id), m)
		if err != nil {
			if !strings.Contains(err.Error(), g.dirs[id]) {
				t.Errorf("%s refuses without naming a file: %v", id, err)
			}
			continue
		}
		g.mu.Lock()
		g.boxes[id], g.machines[id] = box.(*replicated), m
		g.mu.Unlock()
	}
	// If a majority of the replicas has all log entries, one of these replicas must become leader. Otherwise no replica
	// may lead.
	deadline, tick := time.After(3*time.Second), time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	for led := false; !led; {
		select {
		case <-tick.C:
		case <-deadline:
			led = true
		}
		for _, box := range g.running() {
			led = led || box.current.Load() != nil
		}
	}
	for id, box := range g.running() {
		if total, hash := g.machines[id].state(); box.current.Load() != nil && (tallied{total, hash} != want) {
			t.Errorf("%s leads with %d commands", id, total)
		}
	}
}
