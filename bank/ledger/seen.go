package ledger

import (
	"crypto/sha256"
	"sync"
)

// Seen remembers commands whose marks are valid. So each mark is checked only once for all replicas of a process.
type Seen struct {
	mu    sync.Mutex
	keys  map[seenKey]struct{}
	queue []seenKey // limited in length: a new key replaces the oldest one
	next  int
}

type seenKey [sha256.Size]byte

// NewSeen returns an empty Seen.
func NewSeen() *Seen {
	return &Seen{keys: map[seenKey]struct{}{}, queue: make([]seenKey, 4096)}
}

// key returns a hash of the site's account and the command's bytes. A repeated command has the same key. Other commands
// have other keys, because a command contains the number of its session, and no number is used again.
func (s *Seen) key(root *Root, raw []byte) (k seenKey) {
	if s == nil {
		return k
	}
	h := sha256.New()
	h.Write([]byte(root.Account)) //nolint:errcheck // writing to a hash cannot fail
	h.Write(raw)                  //nolint:errcheck // writing to a hash cannot fail
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
