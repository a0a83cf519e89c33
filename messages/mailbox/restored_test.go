package mailbox

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// backup is the saved state of a group of replicas.
type backup struct {
	saved Saved
	image []byte
	began time.Time
}

func (g *group) backup(began time.Time) backup {
	g.t.Helper()
	saved, state, err := g.leader().Save(g.t.Context())
	if err != nil {
		g.t.Fatal(err)
	}
	defer state.Close()
	image, err := io.ReadAll(state)
	if err != nil {
		g.t.Fatal(err)
	}
	return backup{saved, image, began}
}

func (g *group) restore(b backup, ids ...string) {
	g.t.Helper()
	g.seen = 0
	for _, id := range ids {
		if err := os.RemoveAll(g.dirs[id]); err != nil {
			g.t.Fatal(err)
		}
		if err := Plant(g.dirs[id], id, b.saved, b.began, bytes.NewReader(b.image)); err != nil {
			g.t.Fatal(err)
		}
	}
}

// proposeAll proposes n commands, and waits until they are acknowledged. Each command begins with the text `what`.
func (g *group) proposeAll(what string, n int) {
	for i := range n {
		g.propose(what + " " + strconv.Itoa(i))
	}
}

// saved returns a group of three replicas, and a backup that was made after the first five commands. After the backup,
// the group committed ten more commands, in a later term.
func saved(t *testing.T) (*group, backup) {
	g := newGroup(t, 3, quick)
	g.start(g.ids...)
	g.proposeAll("before", 5)
	g.agree(5)
	b := g.backup(time.Unix(1, 0))
	for range 3 {
		old := g.leader()
		g.handOver(old.raft.LeadershipTransfer)
		g.another(old)
	}
	g.proposeAll("since", 10)
	g.agree(15)
	g.settled()
	return g, b
}

// A replica must stay out of its group, and keep its log.
func (g *group) staysOut(id string) {
	g.t.Helper()
	eventually(g.t, id+" stays out", func() bool { return g.running()[id].standing.stays() != nil })
	if g.running()[id].scrubber.damages() == 0 {
		g.t.Error("nobody is told")
	}
}

// TestRestoredWhileAHostWasAway restores two hosts of a group from a backup, and keeps the third host's old directory.
// It starts the three in different orders. The two restored hosts must continue. The third must not join the group with
// its old directory, and must keep its data. When this directory is moved away, it must join.
func TestRestoredWhileAHostWasAway(t *testing.T) {
	t.Parallel()
	for _, order := range [][]string{{"r1", "r2", "r3"}, {"r1", "r3", "r2"}, {"r3", "r1", "r2"}} {
		g, b := saved(t)
		g.stop(g.ids...)
		g.restore(b, "r1", "r2")
		g.start(order...)
		g.proposeAll("after", 3)
		g.staysOut("r3")
		g.proposeAll("later", 3)
		third := g.running()["r3"]
		if last := third.raft.LastIndex(); last <= b.saved.Index || g.machines["r3"].count("later 0") > 0 {
			t.Errorf("the third's log ends at entry %d: it followed", last)
		}
		g.stop("r3")
		if err := os.Rename(g.dirs["r3"], filepath.Join(t.TempDir(), "r3")); err != nil {
			t.Fatal(err)
		}
		g.start("r3")
		g.whole("r3")
		g.agree(11)
		if g.machines["r3"].count("since 0") > 0 {
			t.Error("what the backup does not have is back")
		}
		g.stop(g.ids...)
	}
}

// TestRestoredTwice restores a group twice. A host was away at the second restore, so it has the log of the first
// restore. This host must stay out of the group.
func TestRestoredTwice(t *testing.T) {
	t.Parallel()
	g, b := saved(t)
	g.stop(g.ids...)
	g.restore(b, g.ids...)
	g.start(g.ids...)
	g.proposeAll("first", 3)
	g.agree(8)
	g.settled()
	g.stop(g.ids...)
	g.restore(b, "r1", "r2")
	g.start("r1", "r2")
	g.proposeAll("second", 20)
	g.start("r3")
	g.staysOut("r3")
	g.proposeAll("third", 1)
}

// When one of three hosts is restored, this host must stay out of the group, and the other two must continue.
func TestOneHostRestoredByMistake(t *testing.T) {
	t.Parallel()
	g, b := saved(t)
	g.stop(g.ids...)
	g.restore(b, "r1")
	g.start(g.ids...)
	g.proposeAll("after", 3)
	g.staysOut("r1")
	g.stop("r1")
	g.agree(18)
}

// After a restore, two of the three replicas get back directories from before the restore. Only the third replica has
// the entries since the restore, so the group must stop.
func TestPutBackToBeforeARestore(t *testing.T) {
	t.Parallel()
	before, b := saved(t)
	before.stop(before.ids...)
	g, why := stopping(t, quick)
	g.restore(b, g.ids...)
	g.start(g.ids...)
	g.proposeAll("after", 3)
	g.agree(8)
	g.settled()
	g.stop(g.ids...)
	for _, id := range g.ids[:2] {
		if err := os.RemoveAll(g.dirs[id]); err != nil {
			t.Fatal(err)
		}
		copyDir(t, before.dirs[id], g.dirs[id])
	}
	g.start("r1", "r2")
	g.proposeAll("fork", 3)
	g.start("r3")
	endsWith(t, why, "must not lead: mailbox: replica r3 has entries up to ")
	if aside, _ := filepath.Glob(filepath.Join(g.dirs["r3"], "damaged-*")); aside != nil {
		t.Errorf("the third put aside %v", aside)
	}
}

// After a restore, the first leader wrote an entry that was not committed, and stopped. The other replicas continue
// without this entry. When the first leader comes back, the logs of all replicas must agree
// (TestFirstEntryAfterARestoreThatWasNotCommitted).
func TestFirstEntryAfterARestoreThatWasNotCommitted(t *testing.T) {
	t.Parallel()
	g, b := saved(t)
	g.stop(g.ids...)
	g.restore(b, g.ids...)
	g.begin("r1", b.saved.Index+1, b.saved.Term+1)
	g.begin("r2", 0, b.saved.Term+1)
	g.begin("r3", 0, b.saved.Term+1)
	g.start("r2", "r3")
	g.proposeAll("after", 3)
	g.start("r1")
	g.agree(8)
}
