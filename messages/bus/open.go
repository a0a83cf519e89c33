package bus

import (
	"errors"
	"sync"
)

// subscriptions has the open subscriptions of a connection. They are stopped when the connection is closed.
type subscriptions struct {
	mu     sync.Mutex
	open   map[Subscription]struct{}
	closed bool
}

type subscription struct {
	of   *subscriptions
	end  func() error
	done <-chan struct{} // closed when the handler has returned for the last time
}

// Stop implements [Subscription].
func (s *subscription) Stop() error {
	s.of.forget(s)
	if err := s.end(); err != nil {
		return err
	}
	return awaitStop(s.done)
}

// Close stops the subscriptions in a list. register adds a subscription to this list. If Close was called already,
// register stops the subscription at once.
func (c *subscriptions) register(s Subscription) (Subscription, error) {
	c.mu.Lock()
	closed := c.closed
	if !closed {
		if c.open == nil {
			c.open = make(map[Subscription]struct{})
		}
		c.open[s] = struct{}{}
	}
	c.mu.Unlock()
	if closed {
		return nil, errors.Join(errClosed(), s.Stop())
	}
	return s, nil
}

func (c *subscriptions) forget(s Subscription) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, s)
}

func (c *subscriptions) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// stop stops all subscriptions in parallel, because each may have to wait for its handlers. The result `again` is true
// if stop was called before.
func (c *subscriptions) stop() (again bool, err error) {
	c.mu.Lock()
	again = c.closed
	c.closed = true
	open := c.open
	c.open = nil
	c.mu.Unlock()
	results := make(chan error, len(open))
	for s := range open {
		go func() { results <- s.Stop() }()
	}
	var errs []error
	for range len(open) {
		errs = append(errs, <-results)
	}
	return again, errors.Join(errs...)
}
