package mailbox

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/raft"
)

// strict is a transport that checks the sender of each message. The fields Leader and Candidate of a request must have
// the ID of this replica, and an answer must have the ID of the replica that was asked. It also counts the requests for
// votes.
type strict struct {
	below
	t     *testing.T
	id    string
	votes *atomic.Uint64
}

func (s *strict) field(name string, is []byte) {
	if string(is) != s.id {
		s.t.Errorf("replica %s sends %q as %s", s.id, is, name)
	}
}

func (s *strict) AppendEntries(id raft.ServerID, to raft.ServerAddress, q *raft.AppendEntriesRequest, p *raft.AppendEntriesResponse) error {
	//lint:ignore SA1019 replicas with an earlier release of Raft read this field
	s.field("leader", q.Leader)
	err := s.below.AppendEntries(id, to, q, p)
	if err == nil && string(p.Addr) != string(id) {
		s.t.Errorf("replica %s answers as %q", id, p.Addr)
	}
	return err
}

func (s *strict) RequestVote(id raft.ServerID, to raft.ServerAddress, q *raft.RequestVoteRequest, p *raft.RequestVoteResponse) error {
	s.votes.Add(1)
	//lint:ignore SA1019 as above
	s.field("candidate", q.Candidate)
	return s.below.RequestVote(id, to, q, p)
}

// TestRaftsMessagesStayAsTheyAre elects, uses and replaces a leader. Replicas exchange other data on separate
// connections: no field of Raft's messages may contain such data.
func TestRaftsMessagesStayAsTheyAre(t *testing.T) {
	t.Parallel()
	var votes atomic.Uint64
	g := newGroup(t, 3, func(c *Config) {
		quick(c)
		id := c.ID
		c.faults.transport = func(b below) below { return &strict{b, t, id, &votes} }
	})
	g.start(g.ids...)
	g.propose("before")
	g.settled()
	old := g.leader()
	g.stop(old.config.ID)
	g.propose("after")
	g.start(old.config.ID)
	g.agree(2)
	if votes.Load() == 0 {
		t.Error("nobody was asked for a vote")
	}
}

type beating struct {
	below
	beat  func(raft.RPC)
	ended chan struct{} // closed when the heartbeat has ended
	early bool          // whether Close returned before the heartbeat had ended
}

func (b *beating) SetHeartbeatHandler(f func(raft.RPC)) { b.beat = f }

func (b *beating) Close() error {
	select {
	case <-b.ended:
	default:
		b.early = true
	}
	return nil
}

// A heartbeat writes the term to the disk. Close must wait for a heartbeat that is being handled, and later heartbeats
// must be refused.
func TestCloseWaitsForHeartbeats(t *testing.T) {
	b := &beating{ended: make(chan struct{})}
	g := newGate(b)
	g.open.Store(true)
	began, leave := make(chan struct{}), make(chan struct{})
	g.SetHeartbeatHandler(func(r raft.RPC) {
		close(began)
		<-leave
		close(b.ended)
		r.Respond(nil, nil)
	})
	go b.beat(raft.RPC{RespChan: make(chan raft.RPCResponse, 1)})
	<-began
	closed := make(chan error)
	go func() { closed <- g.Close() }()
	<-g.stop
	close(leave)
	if err := <-closed; err != nil || b.early {
		t.Errorf("closed with %v; before the heartbeat had ended: %v", err, b.early)
	}
	late := make(chan raft.RPCResponse, 1)
	b.beat(raft.RPC{RespChan: late})
	if r := <-late; r.Error == nil {
		t.Error("a heartbeat was let through after the close")
	}
}

// On a loaded machine, Raft's goroutines may ask other replicas for votes before NewRaft has returned. The gate must
// refuse these requests.
func TestNobodyIsAskedBeforeRaftIsOpen(t *testing.T) {
	g := newGate(&beating{})
	g.engine = &engine{}
	if err := g.RequestPreVote("b", "b", &raft.RequestPreVoteRequest{}, &raft.RequestPreVoteResponse{}); !errors.Is(err, errNotRunning) {
		t.Errorf("a vote is sounded out: %v", err)
	}
	if err := g.RequestVote("b", "b", &raft.RequestVoteRequest{}, &raft.RequestVoteResponse{}); !errors.Is(err, errNotRunning) {
		t.Errorf("a vote is asked for: %v", err)
	}
	if err := g.AppendEntries("b", "b", &raft.AppendEntriesRequest{}, &raft.AppendEntriesResponse{}); !errors.Is(err, errNotRunning) {
		t.Errorf("entries are sent: %v", err)
	}
}

// A snapshot may arrive late, when the log already has entries that come after the snapshot. The replica must not
// remove these entries, because the leader counts them as acknowledged.
func TestLateSnapshotRemovesNothing(t *testing.T) {
	t.Parallel()
	for name, held := range map[string]bool{"applied": false, "not applied yet": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGroup(t, 3, steady)
			g.start(g.ids...)
			for i := range 5 {
				g.propose(fmt.Sprint("before ", i))
			}
			g.agree(5)
			leader, follower := g.leader(), g.follower()
			release := func() {}
			if held {
				release = g.machines[follower.config.ID].hold()
			}
			defer release()
			g.propose("in the snapshot")
			if err := leader.raft.Snapshot().Error(); err != nil {
				t.Fatal(err)
			}
			g.propose("after the snapshot")
			eventually(t, "the follower's log to end where the leader's does", func() bool {
				return follower.raft.LastIndex() == leader.raft.LastIndex()
			})
			last := follower.raft.LastIndex()

			sendSnapshot(t, leader, follower)
			if now := follower.raft.LastIndex(); now < last {
				t.Errorf("the follower's log ended at entry %d, and ends at entry %d after a late snapshot", last, now)
			}
			if promised := follower.disk.promises.promised(); promised < last {
				t.Errorf("the follower promised %d entries, and promises %d", last, promised)
			}
			release()
			g.agree(7)
		})
	}
}

func sendSnapshot(t *testing.T, from, to *replicated) {
	t.Helper()
	all, err := from.disk.snapshots.List()
	if err != nil || len(all) == 0 {
		t.Fatalf("no snapshot: %v", err)
	}
	meta, state, err := from.disk.snapshots.Open(all[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	defer state.Close()
	q := &raft.InstallSnapshotRequest{RPCHeader: from.gate.header(), SnapshotVersion: meta.Version, Term: from.raft.CurrentTerm(),
		LastLogIndex: meta.Index, LastLogTerm: meta.Term, Size: meta.Size,
		Configuration: raft.EncodeConfiguration(meta.Configuration), ConfigurationIndex: meta.ConfigurationIndex}
	var answer raft.InstallSnapshotResponse
	id := to.config.ID
	if err := from.gate.InstallSnapshot(raft.ServerID(id), raft.ServerAddress(id), q, &answer, state); err != nil || !answer.Success {
		t.Fatalf("the follower answered %+v, %v", answer, err)
	}
}
