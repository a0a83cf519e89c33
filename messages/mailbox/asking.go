package mailbox

import (
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// asking bounds the questions before an election that wait for the same replica. A question
// may need a connection, and a handshake takes a busy machine longer than an election. If
// each election began new handshakes, they would slow one another down, until none ended in
// time and the group stayed without a leader. So the next election waits for the connection
// of the one before.
type asking struct {
	first time.Duration // how long a question may wait before the next one is asked beside it

	mu    sync.Mutex
	peers map[raft.ServerID]*asked
}

// asked is the latest question to a replica.
type asked struct {
	since    time.Time     // zero: answered, or given up
	patience time.Duration // doubles with each question that is asked beside another
}

// mostPatience bounds the patience, in times of the first: a replica that can be reached again is
// asked so soon.
const mostPatience = 2

// begin reports whether a replica may be asked now; the caller calls end after that.
func (a *asking) begin(id raft.ServerID, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.peers[id]
	switch {
	case p == nil:
		if a.peers == nil {
			a.peers = map[raft.ServerID]*asked{}
		}
		p = &asked{patience: a.first}
		a.peers[id] = p
	case p.since.IsZero():
	case now.Sub(p.since) < p.patience:
		return false
	default:
		p.patience = min(2*p.patience, mostPatience*a.first)
	}
	p.since = now
	return true
}

// end notes that the question that began at a time is over. An answer that came late shortens
// no patience: the machine is slow still.
func (a *asking) end(id raft.ServerID, began time.Time, soon bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.peers[id]
	if p.since.Equal(began) {
		p.since = time.Time{}
	}
	if soon {
		p.patience = a.first
	}
}

// ask asks a replica whether it would vote for this one, unless a question before still waits.
func (g *gate) ask(id raft.ServerID, to raft.ServerAddress, q *raft.RequestPreVoteRequest, p *raft.RequestPreVoteResponse) error {
	began := time.Now()
	if !g.asking.begin(id, began) {
		return fmt.Errorf("mailbox: replica %s was asked before, and has not answered yet", id)
	}
	err := g.below.RequestPreVote(id, to, q, p)
	g.asking.end(id, began, err == nil && time.Since(began) < g.asking.first)
	return err
}
