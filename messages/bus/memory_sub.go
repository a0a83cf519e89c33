package bus

import "sync"

// maxPending is how many messages may wait for a subscriber; further messages are dropped.
const maxPending = 1 << 16

// memorySub is the queue of a subscription on a Network, or of a reader of a stream. The method deliver empties the
// queue, in a goroutine of its own.
type memorySub struct {
	most   int // maximum number of waiting messages
	handle func(memoryMessage)
	done   chan struct{} // closed when deliver has returned

	mu      sync.Mutex
	wake    *sync.Cond
	pending []memoryMessage
	stopped bool
}

type memoryMessage struct {
	seq     uint64 // position in the stream, from 1
	subject string
	payload []byte
}

func newMemorySub(most int, handle func(memoryMessage)) *memorySub {
	s := &memorySub{most: most, handle: handle, done: make(chan struct{})}
	s.wake = sync.NewCond(&s.mu)
	return s
}

func (s *memorySub) push(m memoryMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopped && len(s.pending) < s.most {
		s.pending = append(s.pending, m)
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
		s.handle(m)
	}
}

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

// open delivers messages until the subscription is stopped. The function leave removes the subscription from the
// network.
func (s *memorySub) open(b *memoryBus, leave func()) (Subscription, error) {
	go s.deliver()
	return b.register(&subscription{&b.subscriptions, func() error {
		leave()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.stopped = true
		s.pending = nil
		s.wake.Signal()
		return nil
	}, s.done})
}
