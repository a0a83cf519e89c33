package mailbox

import (
	"testing"

	"github.com/hashicorp/raft"
)

// beating is a transport of which only heartbeats matter.
type beating struct {
	below
	beat  func(raft.RPC)
	ended chan struct{} // the heartbeat
	early bool          // closed before the heartbeat had ended
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

// TestCloseWaitsForHeartbeats: a heartbeat writes the term, so the disk must not be
// closed under it; a later one is refused.
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
