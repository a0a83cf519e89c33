package mailbox

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// copies are the directories of a group's three replicas. The replicas were stopped and copied twice, at an older and
// at a newer moment.
type copies struct {
	older, newer string
	commands     int      // number of commands acknowledged at the newer moment
	last         raft.Log // the log entry of the last of these commands
}

const atFirst, later = 5, 20 // numbers of commands at the two moments

// quick sets a short timeout, so that a group elects soon, and a small size of files.
func quick(c *Config) {
	c.Timeout, c.SegmentBytes = 200*time.Millisecond, 64<<10
}

// twoMoments copies the directories of all replicas at two moments. Between the two moments there is an election. If a
// replica votes in this election and then gets its older copy back, it has forgotten its vote and may vote again in the
// same term.
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

// The directory of a stopped replica must have the last acknowledged entry, and nothing may be moved aside.
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

func (c *copies) lacks(g *group, id string) bool {
	return g.machines[id].count(strconv.Itoa(c.commands-1)) == 0
}

// leads returns a replica that leads and has not ended, or nil.
func (g *group) leads() (found *replicated) {
	for _, box := range g.running() {
		if box.current.Load() != nil && box.guard.broken.Load() == nil {
			found = box
		}
	}
	return found
}

// stuck reports whether the running replicas cannot elect a leader. Two replicas of the three are a majority. They can
// elect a leader if both still have their logs (standing "whole"), or if both began with an empty disk (standing
// "new").
func (g *group) stuck() bool {
	count := map[string]int{}
	for _, box := range g.running() {
		if box.guard.broken.Load() == nil && box.standing.stays() == nil {
			count[box.disk.promises.now().Standing]++
		}
	}
	return count[standingWhole] < 2 && count[standingNew] < 2
}

// In TestTheGoodReplicaOfThree, the third of three replicas is good. Each of the others has an older copy, an empty
// disk, a damaged log or a good copy, or does not come back. The test tries every combination of these states, and
// every order in which the replicas start. In the end, either a replica that has all acknowledged commands leads, or no
// replica can be elected. The third replica must keep these commands.
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
	c.begin(t, states, order, func(g *group) {
		eventually(t, "a leader, or too few", func() bool { return g.leads() != nil || g.stuck() || !elects(g, states) })
	})
}

func (c *copies) begin(t *testing.T, states map[string]string, order []string, between func(*group)) {
	g, _ := stopping(t, quick)
	for id, state := range states {
		c.put(g, id, state)
	}
	for _, id := range order {
		if states[id] == "lost" {
			continue
		}
		g.start(id)
		between(g)
	}
	eventually(t, "a leader that has everything acknowledges a command, or nobody can lead", func() bool {
		leader := g.leads()
		if leader == nil || c.lacks(g, leader.config.ID) {
			return leader == nil && g.stuck()
		}
		_, err := leader.Propose(t.Context(), []byte("more"))
		return err == nil
	})
	for id, box := range g.running() { // commands that are acknowledged from now on come after everything else
		if box.guard.broken.Load() == nil && g.machines[id].count("more") > 0 && c.lacks(g, id) {
			t.Errorf("%s has a command that was acknowledged now, and lacks those before", id)
		}
	}
	g.stop(g.ids...)
	c.keeps(g, "r3")
}

// TestTheGoodReplicaBySeeds is [TestTheGoodReplicaOfThree] with random cases. After a replica has started, and before
// the next one starts, one of three things may happen: the group elects a leader, a command is proposed, or a replica
// is restarted.
func TestTheGoodReplicaBySeeds(t *testing.T) {
	t.Parallel()
	c := twoMoments(t)
	for seed := range seeds(20) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(uint64(seed), 45))
			any := func(of ...string) string { return of[r.IntN(len(of))] }
			states := map[string]string{"r3": "well"}
			for _, id := range []string{"r1", "r2"} {
				states[id] = any("older", "older", "fresh", "damaged", "lost", "well")
			}
			order := []string{"r1", "r2", "r3"}
			r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
			c.begin(t, states, order, func(g *group) {
				switch r.IntN(4) {
				case 0: // start the next one at once
				case 1:
					time.Sleep(time.Duration(r.IntN(int(400 * time.Millisecond)))) // the time of the next start is random
				case 2:
					eventually(t, "a leader, or too few", func() bool { return g.leads() != nil || g.stuck() || !elects(g, states) })
					if box := g.leads(); box != nil {
						box.Propose(t.Context(), []byte("between")) // ignore the result
					}
				case 3:
					ids := slices.Sorted(maps.Keys(g.running()))
					id := any(ids...)
					g.stop(id)
					g.start(id)
				}
			})
		})
	}
}

// elects reports whether two of the running replicas can elect one of them as the leader. They can if both came back
// with a log, or if both came back with an empty disk.
func elects(g *group, states map[string]string) bool {
	logs, fresh := 0, 0
	for id := range g.running() {
		switch states[id] {
		case "older", "well":
			logs++
		case "fresh":
			fresh++
		}
	}
	return logs > 1 || fresh > 1
}

// Two of three replicas get back older disks, and lead without the third. Up to some entry, their logs are the same as
// the third replica's log. The two replicas continue for so long that this entry is cut from their logs. The third must
// accept neither their entries nor their snapshot. When it answers, the two must stop. After the steps in the runbook,
// the group must continue from the third.
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
		endsWith(t, why, "must not lead: mailbox: replica r3 has entries up to ")
		if g.running()["r3"].standing.doubts() == nil {
			t.Error("the third may lead, and nobody can tell which log is right")
		}
		g.stop(g.ids...)
		c.keeps(g, "r3")
		// As in the runbook, the directories of r1 and r2 are emptied. Then r3 and one of the two are a majority.
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

// While a replica is stopped, the others hold so many elections that they forget the oldest elections. When the replica
// comes back, it must not stop the group.
func TestMissedElections(t *testing.T) {
	t.Parallel()
	g, why := stopping(t, quick)
	g.start(g.ids...)
	g.propose("before")
	g.agree(1)
	last := g.running()["r3"].raft.LastIndex()
	g.stop("r3")
	forgotten := func() bool {
		_, known := reignAt(g.leader().disk.promises.now().Reigns, last)
		return !known
	}
	for !forgotten() {
		old := g.leader()
		g.handOver(old.raft.LeadershipTransfer)
		g.another(old)
		g.propose("between")
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

// A reign is the time in which one leader writes entries. Each leader has a list of reigns. The list may lack a reign,
// for example after a loss of power, although the log has this reign's entries. A replica that starts again must still
// follow this leader.
func TestALeaderThatForgotAReignHasTheLogAllTheSame(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 3, func(*Config) {})
	g.start(g.ids...)
	g.propose("in the first reign")
	old := g.leader()
	g.handOver(old.raft.LeadershipTransfer)
	g.another(old)
	g.propose("in the second reign")
	g.settled()
	leader, follower := g.leader(), g.follower()
	id := follower.config.ID
	g.stop(id)
	leader.disk.promises.learn(func(r *record) bool {
		r.Reigns = r.Reigns[:len(r.Reigns)-1]
		return true
	})
	g.start(id)
	g.propose("to all three")
	g.agree(3)
	if err := g.running()[id].standing.doubts(); err != nil {
		t.Error(err)
	}
}
