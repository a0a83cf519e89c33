package bus

import "sync"

// maxPending is how many messages may wait for a subscriber; a slower one
// loses those above.
const maxPending = 1 << 16

// memorySub is a subscription on a Network: a bounded queue and the goroutine
// that empties it.
type memorySub struct {
	bus     *memoryBus
	pattern string
	handle  func(string, []byte)
	done    chan struct{} // closed when deliver has returned

	mu      sync.Mutex
	wake    *sync.Cond
	pending []memoryMessage
	stopped bool
}

type memoryMessage struct {
	subject string
	payload []byte
}

func newMemorySub(b *memoryBus, pattern string, handle func(string, []byte)) *memorySub {
	s := &memorySub{bus: b, pattern: pattern, handle: handle, done: make(chan struct{})}
	s.wake = sync.NewCond(&s.mu)
	return s
}

func (s *memorySub) push(subject string, payload []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopped && len(s.pending) < maxPending {
		s.pending = append(s.pending, memoryMessage{subject, payload})
		s.wake.Signal()
	}
}

func (s *memorySub) deliver() {
	defer close(s.done)
	for {
		m, ok := s.next()
		if !ok {
			return
		}
		s.handle(m.subject, m.payload)
	}
}

// next waits for a message; it reports false once the subscription is stopped.
func (s *memorySub) next() (memoryMessage, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.pending) == 0 && !s.stopped {
		s.wake.Wait()
	}
	if s.stopped {
		return memoryMessage{}, false
	}
	m := s.pending[0]
	s.pending[0] = memoryMessage{}
	s.pending = s.pending[1:]
	return m, true
}

// Stop implements [Subscription].
func (s *memorySub) Stop() error {
	n := s.bus.network
	n.mu.Lock()
	n.subs.remove(s.pattern, s)
	n.mu.Unlock()
	s.bus.forget(s)
	s.mu.Lock()
	s.stopped = true
	s.pending = nil
	s.wake.Signal()
	s.mu.Unlock()
	return awaitStop(s.done)
}
