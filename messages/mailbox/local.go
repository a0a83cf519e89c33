package mailbox

import (
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/candor-grid/candor/messages"
)

// Local connects replicas that run in one process, by pipes in memory. Nothing outside the process can reach a replica.
// Raft has its own transport in memory, but there heartbeats wait behind entries. So a follower with a slow disk would
// get heartbeats too late, and would start elections.
type Local struct {
	mu      sync.Mutex
	streams map[string]*stream // by replica ID
}

var errNotHere = messages.Errorf(messages.Unavailable, "the replica does not run in this process")

// NewLocal returns a network without replicas. Each group needs its own.
func NewLocal() *Local { return &Local{streams: map[string]*stream{}} }

// join makes a replica reachable under its ID.
func (l *Local) join(s *stream) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.streams[s.config.ID] != nil {
		return messages.Errorf(messages.Conflict, "replica %q: runs in this process already", s.config.ID)
	}
	l.streams[s.config.ID] = s
	return nil
}

func (l *Local) leave(s *stream) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.streams[s.config.ID] == s {
		delete(l.streams, s.config.ID)
	}
}

// connect makes a pipe, gives one end to the replica `id`, and returns the other end. If the argument `own` is true,
// the pipe is for questions of this package, and otherwise for Raft.
func (l *Local) connect(from, id string, timeout time.Duration, own bool) (net.Conn, error) {
	l.mu.Lock()
	s := l.streams[id]
	l.mu.Unlock()
	if s == nil {
		return nil, fmt.Errorf("replica %q: %w", id, errNotHere)
	}
	near, far := net.Pipe()
	accepted, err := s.track(far, from)
	if err != nil {
		return nil, err
	}
	if own {
		go s.serveAsked(from, accepted)
		return near, nil
	}
	late := time.NewTimer(timeout)
	defer late.Stop()
	select {
	case s.accepted <- accepted:
		return near, nil
	case <-s.closed:
	case <-late.C:
	}
	_ = accepted.Close()
	return nil, messages.Errorf(messages.Unavailable, "replica %q: does not accept a connection", id)
}
