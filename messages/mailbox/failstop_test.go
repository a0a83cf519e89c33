package mailbox

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
)

// stopping returns a group. When a replica of the group ends because of a fault, the replica sends the reason to the
// channel `why`.
func stopping(t *testing.T, adjust func(*Config)) (g *group, why chan error) {
	why = make(chan error, 16)
	g = newGroup(t, 3, func(c *Config) {
		c.faults.stuck = func(err error) { why <- err }
		if adjust != nil {
			adjust(c)
		}
	})
	return g, why
}

func endsWith(t *testing.T, why <-chan error, sentence string) {
	t.Helper()
	select {
	case err := <-why:
		if !strings.Contains(err.Error(), sentence) {
			t.Errorf("it ended with %q, which does not say %q", err, sentence)
		}
	case <-time.After(patience):
		t.Fatal("no replica has ended")
	}
}

// aside returns the files and directories that replicas moved aside as damaged.
func (g *group) aside() (all []string) {
	for _, dir := range g.dirs {
		found, err := filepath.Glob(filepath.Join(dir, "damaged-*"))
		if err != nil {
			g.t.Fatal(err)
		}
		all = append(all, found...)
	}
	return all
}

// A malformed proposal must not reach the log, and no replica may stop.
func TestUnreadableCommandIsRefusedBeforeTheLog(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 3, steady)
	g.start(g.ids...)
	g.propose("before")
	before := g.leader().raft.LastIndex()
	if _, err := g.leader().Propose(t.Context(), []byte(laterRules)); messages.KindOf(err) != messages.Conflict {
		t.Errorf("proposed with %v", err)
	}
	if _, errs := g.leader().ProposeInOrder(t.Context(), [][]byte{[]byte("good"), []byte(laterRules)}); errs[0] != nil || messages.KindOf(errs[1]) != messages.Conflict {
		t.Errorf("proposed with %v", errs)
	}
	if now := g.leader().raft.LastIndex(); now != before+1 {
		t.Errorf("%d entries were written, for one command", now-before)
	}
	g.agree(2)
	m := NewMemory(newTally())
	if _, err := m.Propose(t.Context(), []byte(laterRules)); messages.KindOf(err) != messages.Conflict || m.Status().Applied != 0 {
		t.Errorf("in memory: proposed with %v", err)
	}
}

// TestReplicaOfAnOlderBuildEnds runs two replicas of a newer build, and one replica of an older build. The older
// replica must end at the first entry that it cannot read, at each start, and keep its files. With the newer build, it
// must work like the other replicas.
func TestReplicaOfAnOlderBuildEnds(t *testing.T) {
	t.Parallel()
	g, why := stopping(t, steady)
	g.start(g.ids...)
	g.propose("before")
	g.agree(1)
	old := g.follower().config.ID
	for id, m := range g.machines {
		m.newer.Store(id != old)
	}
	g.propose(laterRules + "command")
	endsWith(t, why, "a command is of later rules")
	for range 2 {
		g.stop(old)
		g.propose("meanwhile")
		g.start(old)
		endsWith(t, why, "but this build cannot apply it")
	}
	if total, _ := g.machines[old].state(); total > 1 {
		t.Errorf("it carried out %d commands", total)
	}
	if aside := g.aside(); aside != nil {
		t.Errorf("it put aside %v", aside)
	}
	g.stop(old)
	g.newer = true
	g.start(old)
	g.agree(4)
}

// An entry of the log may be of an unknown kind, or incomplete. Either must end the replicas.
func TestUnreadableEntryEndsReplicas(t *testing.T) {
	t.Parallel()
	for name, entry := range map[string][]byte{"unknown kind": {9, 1, 'a'}, "cut": {entryVersion, 5, 'a'}, "cut mark": {entryMark, '{'}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, why := stopping(t, nil)
			g.start(g.ids...)
			g.propose("before")
			f := g.leader().raft.Apply(entry, 0)
			for range 2 { // without the other replicas, the third one does not learn that the entry is committed
				endsWith(t, why, "but this build cannot apply it")
			}
			if await(f, t.Context().Done()) == nil {
				if err, bad := f.Response().(error); !bad {
					t.Errorf("its proposer was answered %v", err)
				}
			}
			for id, m := range g.machines {
				if total, _ := m.state(); total != 1 {
					t.Errorf("%s carried out %d commands", id, total)
				}
			}
			if aside := g.aside(); aside != nil {
				t.Errorf("put aside: %v", aside)
			}
		})
	}
}

// The state of one replica is changed by the test, so it differs from the states of the others. When the next snapshot
// is made, the replicas must find this difference. They must not wait until many entries have been written.
func TestSnapshotHasReplicasCompared(t *testing.T) {
	t.Parallel()
	g, why := stopping(t, nil)
	g.start(g.ids...)
	g.settled()
	g.propose("one")
	g.agree(1)
	victim := g.follower().config.ID
	m := g.machines[victim]
	m.mu.Lock()
	m.counts["one"] = 1000
	m.mu.Unlock()
	if err := g.leader().raft.Snapshot().Error(); err != nil {
		t.Fatal(err)
	}
	endsWith(t, why, "the state after entry")
	g.stop(victim)
	g.start(victim)
	g.whole(victim)
	g.agree(1)
}
