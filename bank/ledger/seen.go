package ledger

import (
	"crypto/sha256"
	"sync"
)

// Seen remembers commands whose marks are valid, so that the replicas of one process check each
// mark once.
type Seen struct {
	mu    sync.Mutex
	keys  map[seenKey]struct{}
	queue []seenKey // bounded; the oldest is removed for the next
	next  int
}

type seenKey [sha256.Size]byte

// NewSeen returns an empty Seen.
func NewSeen() *Seen {
	return &Seen{keys: map[seenKey]struct{}{}, queue: make([]seenKey, 4096)}
}

// key returns the key of a command. The number of a session is part of the command and never
// reused, so the site and these bytes suffice.
func (s *Seen) key(root *Root, raw []byte) (k seenKey) {
	if s == nil {
		return k
	}
	h := sha256.New()
	h.Write([]byte(root.Account)) //nolint:errcheck // a hash takes everything
	h.Write(raw)                  //nolint:errcheck // a hash takes everything
	h.Sum(k[:0])
	return k
}

func (s *Seen) has(k seenKey) bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.keys[k]
	return ok
}

func (s *Seen) add(k seenKey) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.keys, s.queue[s.next])
	s.queue[s.next] = k
	s.keys[k] = struct{}{}
	s.next = (s.next + 1) % len(s.queue)
}
