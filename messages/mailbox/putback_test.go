package mailbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// copies are the directories of a group's three stopped replicas, of two moments.
type copies struct {
	older, newer string
	commands     int      // acknowledged at the newer moment
	last         raft.Log // the last of them, in the log
}

const atFirst, later = 5, 20 // commands

// quick has a group elect soon, on small files.
func quick(c *Config) {
	c.Timeout, c.SegmentBytes = 200*time.Millisecond, 64<<10
}

// twoMoments makes copies. Between the moments there was an election, so the older ones may give the
// votes of its term again.
func twoMoments(t *testing.T) (c copies) {
	g := newGroup(t, 3, quick)
	root := t.TempDir()
	c.older, c.newer, c.commands = filepath.Join(root, "older"), filepath.Join(root, "newer"), atFirst+later
	save := func(to string) {
		g.stop(g.ids...)
		for _, id := range g.ids {
			copyDir(t, g.dirs[id], filepath.Join(to, id))
		}
	}
	g.start(g.ids...)
	for i := range atFirst {
		g.propose(strconv.Itoa(i))
	}
	g.agree(atFirst)
	g.settled()
	save(c.older)
	g.start(g.ids...)
	for i := range later {
		g.propose(strconv.Itoa(atFirst + i))
	}
	g.agree(uint64(c.commands))
	g.settled()
	box := g.leader()
	if err := box.disk.sealed.read(box.raft.CommitIndex(), &c.last); err != nil {
		t.Fatal(err)
	}
	save(c.newer)
	return c
}

// put gives a replica a directory in a state.
func (c *copies) put(g *group, id, state string) {
	from := filepath.Join(c.newer, id)
	switch state {
	case "older":
		from = filepath.Join(c.older, id)
	case "fresh":
		return
	}
	copyDir(g.t.(*testing.T), from, g.dirs[id])
	if state == "damaged" {
		edit(g.t.(*testing.T), glob(g.t.(*testing.T), g.dirs[id], "wal/*.wal"), func(b []byte) []byte {
			b[200] ^= 0xff
			return b
		})
	}
}

// keeps checks that a stopped replica's directory has the last entry that was acknowledged, and put
// nothing aside.
func (c *copies) keeps(g *group, id string) {
	g.t.Helper()
	config := g.config(id)
	d, err := openDisk(config.withDefaults(), newGuard(config.withDefaults(), func(err error) { g.t.Error(err) }))
	if err != nil {
		g.t.Fatal(err)
	}
	defer d.close()
	var l raft.Log
	if err := d.sealed.read(c.last.Index, &l); err != nil || string(l.Extensions) != string(c.last.Extensions) {
		g.t.Errorf("%s does not have the acknowledged entry %d any more: %+v, %v", id, c.last.Index, l, err)
	}
	if aside, _ := filepath.Glob(filepath.Join(g.dirs[id], "damaged-*")); aside != nil {
		g.t.Errorf("%s put aside %v", id, aside)
	}
}

// lacking is a leader whose state lacks something that was acknowledged.
func (c *copies) lacking(g *group) (id string, lacks bool) {
	for id, box := range g.running() {
		if box.current.Load() != nil && box.guard.broken.Load() == nil && g.machines[id].count(strconv.Itoa(c.commands-1)) == 0 {
			return id, true
		}
	}
	return "", false
}

// tells reports whether a replica says why the group stands.
func (g *group) tells() bool {
	for _, box := range g.running() {
		if box.standing.doubts() != nil || box.standing.strange.Load() != 0 || box.gate.refusals.Load() > 0 {
			return true
		}
	}
	return false
}

// TestTheGoodReplicaOfThree: two of three replicas come back in any states, and the third is well. In
// whatever order they start, once the third runs nobody leads that lacks what was acknowledged, the third
// keeps it, and where nobody can lead a replica says why.
func TestTheGoodReplicaOfThree(t *testing.T) {
	t.Parallel()
	c := twoMoments(t)
	states := []string{"older", "fresh", "damaged", "lost", "well"}
	for i, first := range states {
		for _, second := range states[i:] {
			for _, order := range [][]string{{"r1", "r2", "r3"}, {"r1", "r3", "r2"}, {"r2", "r1", "r3"}, {"r2", "r3", "r1"}, {"r3", "r1", "r2"}, {"r3", "r2", "r1"}} {
				t.Run(fmt.Sprint(first, " ", second, " ", strings.Join(order, "")), func(t *testing.T) {
					t.Parallel()
					c.start(t, map[string]string{"r1": first, "r2": second, "r3": "well"}, order)
				})
			}
		}
	}
}

func (c *copies) start(t *testing.T, states map[string]string, order []string) {
	g, why := stopping(t, quick)
	for id, state := range states {
		c.put(g, id, state)
	}
	for _, id := range order {
		if states[id] == "lost" {
			continue
		}
		g.start(id)
		c.leads(g)
	}
	quiet := time.Now()
	eventually(t, "nobody leads that lacks what was acknowledged, and somebody leads or says why", func() bool {
		_, lacks := c.lacking(g)
		if lacks { // two lead that began without the third, which is to end that
			quiet = time.Now()
		}
		leads := false
		for _, box := range g.running() {
			leads = leads || box.current.Load() != nil
		}
		return time.Since(quiet) > time.Second && (leads || g.tells() || len(why) > 0 || states["r1"] == "lost" && states["r2"] == "lost")
	})
	// What is acknowledged from now on is acknowledged by a group that has everything.
	if box := c.leads(g); box != nil {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := box.Propose(ctx, []byte("more")); err == nil && g.machines[box.config.ID].count(strconv.Itoa(c.commands-1)) == 0 {
			t.Errorf("%s acknowledged a command, and lacks those before", box.config.ID)
		}
	}
	g.stop(g.ids...)
	c.keeps(g, "r3")
}

// leads waits for a leader, or until there would be one if there could be.
func (c *copies) leads(g *group) (found *replicated) {
	for late := time.Now().Add(4 * 200 * time.Millisecond); found == nil && time.Now().Before(late); time.Sleep(time.Millisecond) {
		for _, box := range g.running() {
			if box.current.Load() != nil && box.guard.broken.Load() == nil {
				found = box
			}
		}
	}
	return found
}

// TestAForkThatWentOn: two replicas that were put back lead without the third, for longer than their log
// reaches back. The third takes neither their entries nor their snapshot, and they stop once it speaks.
// By the runbook's page the group goes on from the third.
func TestAForkThatWentOn(t *testing.T) {
	t.Parallel()
	c := twoMoments(t)
	for _, trailing := range []uint64{1000, 1} {
		g, why := stopping(t, func(c *Config) {
			quick(c)
			c.TrailingEntries = trailing
		})
		for _, id := range g.ids[:2] {
			c.put(g, id, "older")
		}
		c.put(g, "r3", "well")
		g.start("r1", "r2")
		for i := range 3 * c.commands {
			g.propose("fork " + strconv.Itoa(i))
		}
		for range 3 {
			if err := g.leader().raft.Snapshot().Error(); err != nil {
				t.Fatal(err)
			}
			for i := range 5 {
				g.propose("later " + strconv.Itoa(i))
			}
		}
		g.start("r3")
		endsWith(t, why, "must not lead: mailbox: replica r3 has entries up to "+strconv.Itoa(int(c.last.Index)))
		if g.running()["r3"].standing.doubts() == nil {
			t.Error("the third may lead, and nobody can tell which log is right")
		}
		g.stop(g.ids...)
		c.keeps(g, "r3")
		// The runbook: empty the others; the third and one of them count.
		for _, id := range g.ids[:2] {
			if err := os.Rename(g.dirs[id], filepath.Join(t.TempDir(), id)); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.MkdirAll(g.dirs["r1"], 0o700); err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"r1", "r3"} {
			if err := os.WriteFile(filepath.Join(g.dirs[id], acceptFile), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		g.seen = 0
		g.start("r1", "r3")
		g.propose("after")
		g.start("r2")
		for _, id := range g.ids {
			g.whole(id)
		}
		g.agree(uint64(c.commands + 1))
		for _, id := range g.ids {
			if g.machines[id].count(strconv.Itoa(c.commands-1)) == 0 || g.machines[id].count("fork 0") > 0 {
				t.Errorf("%s does not have what the third had", id)
			}
		}
		g.stop(g.ids...)
	}
}

// TestMissedElections: a replica that was away for more elections than anybody remembers stops
// nobody when it comes back.
func TestMissedElections(t *testing.T) {
	t.Parallel()
	g, why := stopping(t, quick)
	g.start(g.ids...)
	g.propose("before")
	g.agree(1)
	g.stop("r3")
	for i := range mostReigns + 2 {
		if err := g.leader().raft.LeadershipTransfer().Error(); err != nil {
			continue
		}
		g.propose(strconv.Itoa(i))
	}
	g.start("r3")
	eventually(t, "the replica was compared", func() bool {
		return len(why) > 0 || g.running()["r3"].standing.strange.Load() != 0
	})
	if err := g.running()["r3"].standing.doubts(); err != nil {
		t.Error(err)
	}
	g.propose("after")
	g.stop(g.ids...)
	if len(why) > 0 {
		t.Error(<-why)
	}
}
