package mailbox

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
)

type levelled struct {
	*group
	level map[string]int
	why   chan error
}

func newLevelled(t *testing.T, level int, raiseAfter time.Duration) *levelled {
	l := &levelled{level: map[string]int{}, why: make(chan error, 16)}
	l.group = newGroup(t, 3, func(c *Config) {
		c.limits.level, c.limits.raiseAfter = l.level[c.ID], raiseAfter
		c.faults.stuck = func(err error) { l.why <- err }
	})
	for _, id := range l.ids {
		l.level[id] = level
	}
	return l
}

func (l *levelled) upgrade(id string, level int) {
	l.t.Helper()
	l.stop(id)
	l.level[id] = level
	l.start(id)
}

// refuses starts a stopped replica with a program of the given level. (The level is the version of commands and logs
// that a program can read.) Either the start or the running replica must return an error that contains the text
// `sentence`.
func (l *levelled) refuses(id string, level int, sentence string) {
	l.t.Helper()
	l.stop(id)
	l.level[id] = level
	box, err := OpenRaft(l.config(id), newTally())
	if err == nil {
		defer box.Close()
		select {
		case err = <-l.why:
		case <-time.After(patience):
			l.t.Fatalf("release of level %d works", level)
		}
	}
	if !strings.Contains(err.Error(), sentence) {
		l.t.Errorf("release of level %d ended with %q, which does not say %q", level, err, sentence)
	}
	if aside := l.aside(); aside != nil {
		l.t.Errorf("it put aside %v", aside)
	}
}

func (l *levelled) agreed(level int) {
	l.t.Helper()
	eventually(l.t, "agreement on a level", func() bool {
		for _, box := range l.running() {
			if box.agreed() != level {
				return false
			}
		}
		return true
	})
}

func (l *levelled) refused(command, sentence string) {
	l.t.Helper()
	before := l.leader().raft.LastIndex()
	eventually(l.t, "a refusal that says "+sentence, func() bool {
		_, err := l.leader().Propose(l.t.Context(), []byte(command))
		return messages.KindOf(err) == messages.Conflict && strings.Contains(err.Error(), sentence)
	})
	if now := l.leader().raft.LastIndex(); now > before+2 { // a new leader adds a barrier to the log
		l.t.Errorf("%d entries were written for a command that was refused", now-before)
	}
}

// TestAGroupIsUpgradedReplicaByReplica upgrades a group from level 1 to level 2, and goes back once on the way.
// Commands that need level 2 must be refused until all replicas can carry them out. After that, a replica of level 1 or
// 4 cannot join, and a replica of level 3 can.
func TestAGroupIsUpgradedReplicaByReplica(t *testing.T) {
	t.Parallel()
	l := newLevelled(t, 1, 50*time.Millisecond)
	l.start(l.ids...)
	l.propose("before")
	l.upgrade("r1", 2)
	l.upgrade("r2", 2)
	l.upgrade("r1", 1)
	l.propose("back")
	l.upgrade("r1", 2)
	l.agree(2)
	if leader := l.leader(); leader.config.ID == "r3" {
		leader.transferOut()
		l.another(leader)
	}
	l.refused("level 2", "agree on level 1, and this request needs level 2: upgrade r3")
	l.agreed(1)
	l.upgrade("r3", 2)
	l.agreed(2)
	l.propose("level 2")
	l.agree(3)
	l.refused("level 3", "agree on level 2, and this request needs level 3: upgrade")
	eventually(t, "a snapshot of level 2", func() bool { return l.running()["r1"].applier.kept.Load() == 2 })
	l.refuses("r1", 1, "agreed on level 2, and this release works with level 1 at most; start a release of level 2 here")
	l.refuses("r1", 4, "agreed on level 2, and this release works with the levels 3 and 4; first upgrade all hosts to a release of level 3")
	l.level["r1"] = 3
	l.start("r1")
	l.agree(3)
	l.agreed(2)
}

// An operator asks for the new level at once. This must be refused while a replica runs the earlier release or does not
// answer. Afterwards it must succeed.
func TestAnOperatorRaisesTheLevel(t *testing.T) {
	t.Parallel()
	l := newLevelled(t, 1, time.Hour)
	l.level["r1"], l.level["r2"] = 2, 2
	l.start(l.ids...)
	l.propose("one")
	raise := func() (messages.ReplicasReply, error) {
		return Regroup(context.Background(), "bank", l.leader(), &messages.ReplicaRequest{Raise: true})
	}
	if leader := l.leader(); leader.config.ID == "r3" {
		leader.transferOut()
		l.another(leader)
	}
	eventually(t, "a refusal that names r3", func() bool {
		_, err := raise()
		return err != nil && strings.Contains(err.Error(), "replica r3 runs an earlier release, of level 1: upgrade it first")
	})
	l.stop("r3")
	eventually(t, "a refusal while r3 does not answer", func() bool {
		_, err := raise()
		return err != nil && strings.Contains(err.Error(), "replica r3 does not answer")
	})
	l.upgrade("r3", 2)
	eventually(t, "a level of 2", func() bool {
		reply, err := raise()
		if err != nil {
			return false
		}
		for _, r := range reply.Replicas {
			if r.Level != 2 || r.Release == "" {
				t.Errorf("replica %+v", r)
			}
		}
		return reply.Level == 2
	})
	l.agreed(2)
}

// A new group must begin at the lowest level that its replicas support. A level is a version of the commands.
func TestANewGroupBeginsWithItsRelease(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		levels []int
		want   int
	}{"one release": {[]int{3, 3, 3}, 3}, "two releases": {[]int{4, 3, 4}, 3}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLevelled(t, 1, time.Hour)
			for i, id := range l.ids {
				l.level[id] = c.levels[i]
			}
			l.start(l.ids...)
			l.propose("one")
			l.agree(1)
			l.agreed(c.want)
		})
	}
}
