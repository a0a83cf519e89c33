package mailbox

import (
	"bytes"
	"io"
	"os"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// begin changes the log of a stopped replica so that it begins right after the replica's snapshot. It also stores the
// given term. If the argument `index` is not 0, the log also gets an entry at this index that no other replica has.
func (g *group) begin(id string, index, term uint64) {
	g.t.Helper()
	c := g.config(id)
	guard := newGuard(c.withDefaults(), func(err error) { g.t.Error(err) })
	guard.applied, guard.damaged = func() uint64 { return index - 1 }, func(err error) { g.t.Error(err) }
	d, err := openDisk(c.withDefaults(), guard)
	if err != nil {
		g.t.Fatal(err)
	}
	if index > 0 {
		if err := d.sealed.StoreLog(&raft.Log{Index: index, Term: term, Type: raft.LogNoop}); err != nil {
			g.t.Error(err)
		}
	}
	if err := d.stable.SetUint64([]byte("CurrentTerm"), term); err != nil {
		g.t.Error(err)
	}
	if err := d.close(); err != nil {
		g.t.Error(err)
	}
}

// TestLogsThatBeginAfterTheSnapshot restores a group, so that each replica has a snapshot and no entry. The first
// leader may write an entry that the next leader lacks. The next leader must be able to replace this entry.
func TestLogsThatBeginAfterTheSnapshot(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 3, nil)
	g.start(g.ids...)
	g.propose("before")
	g.agree(1)
	saved, state, err := g.leader().Save(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	image, err := io.ReadAll(state)
	if err != nil {
		t.Fatal(err)
	}
	g.stop(g.ids...)
	for _, id := range g.ids {
		if err := os.RemoveAll(g.dirs[id]); err != nil {
			t.Fatal(err)
		}
		if err := Plant(g.dirs[id], id, saved, time.Unix(1, 0), bytes.NewReader(image)); err != nil {
			t.Fatal(err)
		}
	}
	g.begin("r1", saved.Index+1, saved.Term+1)
	g.begin("r2", saved.Index+1, saved.Term+2)
	g.start("r1", "r2")
	g.propose("after")
	g.agree(2)
}
