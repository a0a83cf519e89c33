package bus

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"github.com/candor-grid/candor/messages"
)

// memoryStream keeps every message on its subjects, and every id, for as long
// as the Network exists.
type memoryStream struct {
	subjects []string

	mu   sync.Mutex
	more *sync.Cond
	kept []memoryMessage // message i has sequence number i+1
	ids  map[string]bool
}

// memoryStreamOn is a stream as one connection holds it.
type memoryStreamOn struct {
	*memoryStream
	bus *memoryBus
}

// Stream implements [Bus].
func (b *memoryBus) Stream(ctx context.Context, name string, subjects []string) (Stream, error) {
	if err := checkStream(name, subjects); err != nil {
		return nil, err
	}
	for _, subject := range subjects {
		if err := b.allowed(true, subject); err != nil {
			return nil, err
		}
	}
	n := b.network
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.streams[name]
	if s == nil {
		s = &memoryStream{ids: make(map[string]bool)}
		s.more = sync.NewCond(&s.mu)
		n.streams[name] = s
	}
	s.mu.Lock()
	s.subjects = slices.Clone(subjects)
	s.mu.Unlock()
	return memoryStreamOn{s, b}, nil
}

// keep appends a message that is on one of the stream's subjects.
func (s *memoryStream) keep(subject, id string, payload []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	on := func(pattern string) bool { return matches(pattern, subject) }
	if !slices.ContainsFunc(s.subjects, on) || s.ids[id] {
		return
	}
	if id != "" {
		s.ids[id] = true
	}
	s.kept = append(s.kept, memoryMessage{subject, payload})
	s.more.Broadcast()
}

// Append implements [Stream].
func (s memoryStreamOn) Append(ctx context.Context, subject, id string, payload []byte) error {
	if err := checkSubject(subject); err != nil {
		return err
	}
	if err := s.bus.allowed(false, subject); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return noAnswer(ctx, subject)
	}
	s.mu.Lock()
	on := slices.ContainsFunc(s.subjects, func(pattern string) bool { return matches(pattern, subject) })
	s.mu.Unlock()
	if !on {
		return nobody(subject)
	}
	s.bus.network.publish(subject, id, bytes.Clone(payload))
	return nil
}

// Consume implements [Stream].
func (s memoryStreamOn) Consume(ctx context.Context, after uint64, handle func(uint64, string, []byte)) (Subscription, error) {
	if ctx.Err() != nil {
		return nil, messages.Errorf(messages.Unavailable, "the stream could not be opened: %v", ctx.Err())
	}
	c := &memoryConsumer{memoryStreamOn: s, done: make(chan struct{})}
	go c.run(after, handle)
	return s.bus.register(c)
}

// memoryConsumer is a reader of a stream.
type memoryConsumer struct {
	memoryStreamOn
	stopped bool // guarded by the stream's mu
	done    chan struct{}
}

func (c *memoryConsumer) run(after uint64, handle func(uint64, string, []byte)) {
	defer close(c.done)
	for seq := after + 1; ; seq++ {
		m, ok := c.message(seq)
		if !ok {
			return
		}
		handle(seq, m.subject, m.payload)
	}
}

// message waits for the message of a sequence number, or for Stop.
func (c *memoryConsumer) message(seq uint64) (memoryMessage, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for uint64(len(c.kept)) < seq && !c.stopped {
		c.more.Wait()
	}
	if c.stopped {
		return memoryMessage{}, false
	}
	return c.kept[seq-1], true
}

// Stop implements [Subscription].
func (c *memoryConsumer) Stop() error {
	c.bus.forget(c)
	c.mu.Lock()
	c.stopped = true
	c.more.Broadcast()
	c.mu.Unlock()
	return awaitStop(c.done)
}
