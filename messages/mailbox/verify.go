package mailbox

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// round is one check that this replica still leads. All callers that asked before the check began share its result.
type round struct {
	done chan struct{}
	err  error
}

// rounds joins concurrent calls of Verify, so that all calls of a round share one check.
type rounds struct {
	kick chan struct{}

	mu     sync.Mutex
	next   *round // the round that callers join now; it has not begun yet
	closed error
}

func (r *rounds) join() (*round, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed != nil {
		return nil, r.closed
	}
	if r.next == nil {
		r.next = &round{done: make(chan struct{})}
		r.kick <- struct{}{} // sending does not block: the previous round had begun before this one was made
	}
	return r.next, nil
}

// begin returns the next round. From then on, no further caller can join this round.
func (r *rounds) begin() *round {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.next
	r.next = nil
	return n
}

func (r *rounds) close(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = err
	if r.next != nil {
		r.next.err = err
		close(r.next.done)
		r.next = nil
	}
}

// verifier finds out whether this replica leads and has everything that was committed.
type verifier struct {
	*engine
	leadership *leadership
	transport  *transport
	applier    *applier

	rounds   *rounds
	verified atomic.Uint64 // number of rounds so far
}

// Verify checks that this replica leads; see [Mailbox].
func (v *verifier) Verify(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r, err := v.rounds.join()
	if err != nil {
		return err
	}
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// verify runs the rounds, one at a time. Calls that arrive during a round share the next round.
func (v *verifier) verify() {
	for {
		select {
		case <-v.rounds.kick:
		case <-v.gone:
			return
		}
		if r := v.rounds.begin(); r != nil {
			v.verified.Add(1)
			r.err = v.verifyOnce()
			close(r.done)
		}
	}
}

// verifyOnce reads by Raft's read index: it records the commit index, waits for answers of a majority, and then waits
// until all entries up to that index are applied here. The wait is needed because a former leader may have answered
// from entries that are not applied here yet.
func (v *verifier) verifyOnce() error {
	o := v.leadership.current.Load()
	if o == nil {
		return v.orClosed(ErrNotLeader)
	}
	committed := v.raft.CommitIndex()
	mark := v.transport.mark()
	for !v.confirmed(o.term, mark) {
		if err := await(v.raft.VerifyLeader(), o.lost); err != nil {
			return v.orClosed(ErrNotLeader)
		}
	}
	return v.appliedUpTo(committed, o)
}

// confirmed reports whether a majority of the replicas has answered new requests of this leader in its term. A request
// is new if its number is at least `mark`. Raft's own verification is not enough, because it also counts answers to
// older requests. Another leader may have been elected after an older request was sent.
func (v *verifier) confirmed(term, mark uint64) bool {
	voters, votes := v.voters(), 1
	for _, id := range voters {
		if id != v.config.ID && v.transport.heard(id, term, mark) {
			votes++
		}
	}
	return votes > len(voters)/2
}

// appliedUpTo waits until the entry `index` is applied on this replica. The barrier is the first entry of a leader's
// tenure. The barrier and the entries before it need no wait, because a leader begins to answer only after it has
// applied them. The applier sees each entry after the barrier, because these entries are commands or configurations.
func (v *verifier) appliedUpTo(index uint64, o *tenure) error {
	for index > o.barrier && v.applier.index.Load() < index {
		select {
		case <-v.applier.moved:
		case <-o.lost:
			return v.orClosed(ErrNotLeader)
		}
	}
	return nil
}

// transport records which replicas answered which requests.
type transport struct {
	*raft.NetworkTransport
	marks atomic.Uint64

	mu     sync.Mutex
	peers  map[raft.ServerID]*sighting
	images map[raft.ServerID]sentImage
}

// mark returns a new number. Requests that are sent after this call have this number or a larger one.
func (t *transport) mark() uint64 { return t.marks.Add(1) }

// AppendEntries sends a heartbeat, or entries that do not go through a pipeline.
func (t *transport) AppendEntries(id raft.ServerID, to raft.ServerAddress, q *raft.AppendEntriesRequest, p *raft.AppendEntriesResponse) error {
	mark := t.marks.Load()
	err := t.NetworkTransport.AppendEntries(id, to, q, p)
	if err == nil && p.Term == q.Term {
		t.saw(id, p, mark)
	}
	return err
}

func (t *transport) saw(id raft.ServerID, p *raft.AppendEntriesResponse, mark uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.peers[id]
	if s == nil {
		s = new(sighting)
		t.peers[id] = s
	}
	s.at, s.last = time.Now(), p.LastLog
	if p.Success && (p.Term > s.term || p.Term == s.term && mark > s.mark) {
		s.term, s.mark = p.Term, mark
	}
}

// sight returns the last entry of a replica's log, and whether the replica has answered lately.
func (t *transport) sight(id raft.ServerID, lately time.Duration) (last uint64, answers bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.peers[id]
	if s == nil {
		return 0, false
	}
	return s.last, time.Since(s.at) < lately
}

func (t *transport) heard(id string, term, mark uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.peers[raft.ServerID(id)]
	return s != nil && s.term == term && s.mark >= mark
}
