package mailbox

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// TestFullDiskHandsOver fills the disk of a leader. The leader must hand over to a replica whose disk has space, and
// must not lead again while another replica's disk has space. Commands must be refused only when all disks are full.
func TestFullDiskHandsOver(t *testing.T) {
	t.Parallel()
	free := map[string]*atomic.Uint64{}
	g := newGroup(t, 3, func(c *Config) {
		mine := new(atomic.Uint64)
		mine.Store(1 << 30)
		free[c.ID] = mine
		c.MinFreeBytes = 1 << 20
		c.faults.free = func(string) (uint64, error) { return mine.Load(), nil }
	})
	g.start(g.ids...)
	full := map[string]bool{}
	for range 2 {
		old := g.leader()
		g.propose("before")
		full[old.config.ID] = true
		free[old.config.ID].Store(0)
		eventually(t, "another leads that has room", func() bool {
			if _, err := old.Propose(context.Background(), []byte("during")); errors.Is(err, ErrNoSpace) {
				t.Errorf("refused while another replica has room: %v", err)
			}
			_, id := old.raft.LeaderWithID()
			return id != "" && !full[string(id)]
		})
		g.propose("after")
		eventually(t, "the operator is told", func() bool {
			all, err := g.leader().Members()
			i := indexOf(all, old.config.ID)
			return err == nil && i >= 0 && all[i].Weak != ""
		})
	}
	for _, f := range free {
		f.Store(0)
	}
	eventually(t, "commands refused, and queries answered, while no disk has room", func() bool {
		leader := g.leader()
		_, err := leader.Propose(context.Background(), []byte("x"))
		return errors.Is(err, ErrNoSpace) && leader.Verify(context.Background()) == nil
	})
	for _, f := range free {
		f.Store(1 << 30)
	}
	eventually(t, "commands accepted", func() bool {
		_, err := g.leader().Propose(context.Background(), []byte("room"))
		return err == nil
	})
}

// A leader's machine may lack something that it needs to lead, for example a file. Such a leader must hand over to a
// replica whose machine lacks nothing. If each replica's machine lacks something, one of the replicas must still lead.
func TestReluctantLeaderHandsOver(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 3, nil)
	g.start(g.ids...)
	g.propose("before")
	g.settled()
	old := g.leader()
	g.machines[old.config.ID].lacks.Store(true)
	next := g.another(old)
	for _, m := range g.machines {
		m.lacks.Store(true)
	}
	g.propose("all lack something")
	g.stop(next.config.ID)
	g.propose("and one is gone")
}

// The disks of all replicas are full when a group starts. A replica must nevertheless become leader, because queries
// need a leader. Commands must be refused.
func TestAllDisksFullAtTheStart(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 3, func(c *Config) {
		c.MinFreeBytes = 1 << 20
		c.faults.free = func(string) (uint64, error) { return 0, nil }
	})
	g.start(g.ids...)
	eventually(t, "a leader answers a query and refuses a command", func() bool {
		leader := g.leader()
		queried := leader.Verify(context.Background())
		_, commanded := leader.Propose(context.Background(), []byte("x"))
		if commanded == nil || !errors.Is(commanded, ErrNoSpace) && !errors.Is(commanded, ErrNotLeader) {
			t.Fatalf("propose: %v", commanded)
		}
		return queried == nil && errors.Is(commanded, ErrNoSpace)
	})
}

// TestHangingWritesLoseTheLead makes a leader's writes hang. Another replica must soon be elected. When the writes
// return, the old leader must follow, and no answered command may be lost.
func TestHangingWritesLoseTheLead(t *testing.T) {
	t.Parallel()
	logs := map[string]*faultyLog{}
	g := newGroup(t, 3, func(c *Config) {
		id := c.ID
		c.limits.slowAfter, c.limits.stuckAfter = 300*time.Millisecond, time.Minute
		c.faults.stuck = func(err error) { t.Errorf("the process would have ended: %v", err) }
		c.faults.wrap = func(s raft.LogStore) raft.LogStore {
			logs[id] = &faultyLog{LogStore: s}
			return logs[id]
		}
	})
	g.start(g.ids...)
	for i := range 20 {
		g.propose(fmt.Sprint(i))
	}
	old := g.leader()
	gate := make(chan struct{})
	logs[old.config.ID].hang.Store(&gate)
	outcome := make(chan error, 1)
	go func() {
		_, err := old.Propose(context.Background(), []byte("during"))
		outcome <- err
	}()
	next := g.another(old)
	for i := range 20 {
		eventually(t, "another leader answers", func() bool {
			next = g.another(old)
			_, err := next.Propose(context.Background(), []byte(fmt.Sprint(20+i)))
			return err == nil
		})
	}
	logs[old.config.ID].hang.Store(nil)
	close(gate)
	if err := <-outcome; err == nil {
		t.Error("a command of the old leader was answered as committed")
	}
	eventually(t, "the old leader has what was committed since", func() bool { return old.Status().Applied >= next.Status().Applied })
	g.agree(40)
}
