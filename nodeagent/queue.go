package nodeagent

import (
	"sync"

	"github.com/candor-grid/candor/messages"
)

// event is a function that tells the state about one event.
type event func(now messages.Time)

// queue passes events from many goroutines to the one goroutine of the agent.
type queue struct {
	mu     sync.Mutex
	room   sync.Cond // wakes callers that wait in offer
	events []event
	ready  chan struct{} // holds a token while there are events
	closed bool
}

// maxOffered bounds the number of waiting events that come from outside the agent.
const maxOffered = 256

func newQueue() *queue {
	q := &queue{ready: make(chan struct{}, 1)}
	q.room.L = &q.mu
	return q
}

// post adds an event that comes from the agent itself. The number of such events in the queue is always small.
func (q *queue) post(e event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.add(e)
}

// offer adds an event from outside of the agent. It waits while maxOffered events wait.
func (q *queue) offer(e event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.events) >= maxOffered && !q.closed {
		q.room.Wait()
	}
	q.add(e)
}

func (q *queue) add(e event) {
	if q.closed {
		return
	}
	q.events = append(q.events, e)
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// take removes and returns all events. The queue uses the memory of the list `into` for later events.
func (q *queue) take(into []event) []event {
	q.mu.Lock()
	defer q.mu.Unlock()
	events := q.events
	clear(into)
	q.events = into[:0]
	q.room.Broadcast()
	return events
}

// close drops all events, and all events that are added later.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed, q.events = true, nil
	q.room.Broadcast()
}
