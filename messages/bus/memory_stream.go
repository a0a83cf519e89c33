package bus

import (
	"bytes"
	"context"
	"math"
	"slices"
	"sync"

	"github.com/candor-grid/candor/messages"
)

// memoryStream keeps all messages on its subjects, and all ids, as long as the Network exists.
type memoryStream struct {
	mu       sync.Mutex
	subjects index[string]
	kept     []memoryMessage
	ids      map[string]bool
	readers  map[*memorySub]struct{}
}

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
		s = &memoryStream{ids: make(map[string]bool), readers: make(map[*memorySub]struct{})}
		n.streams[name] = s
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.subjects = index[string]{}
	for _, subject := range subjects {
		s.subjects.add(subject, subject)
	}
	return memoryStreamOn{s, b}, nil
}

func (s *memoryStream) has(subject string) bool { return len(s.subjects.find(subject, nil)) > 0 }

func (s *memoryStream) keep(subject, id string, payload []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.has(subject) || s.ids[id] {
		return
	}
	if id != "" {
		s.ids[id] = true
	}
	m := memoryMessage{uint64(len(s.kept)) + 1, subject, payload}
	s.kept = append(s.kept, m)
	for reader := range s.readers {
		reader.push(m)
	}
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
	has := s.has(subject)
	s.mu.Unlock()
	if !has {
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
	reader := newMemorySub(math.MaxInt, func(m memoryMessage) {
		if m.seq > after {
			handle(m.seq, m.subject, m.payload)
		}
	})
	s.mu.Lock()
	reader.pending = slices.Clone(s.kept)
	s.readers[reader] = struct{}{}
	s.mu.Unlock()
	return reader.open(s.bus, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.readers, reader)
	})
}
