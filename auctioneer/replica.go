package auctioneer

import (
	"io"
	"sync"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages/mailbox"
	"github.com/candor-grid/candor/messages/siteclock"
)

// replica guards the book: the mailbox applies commands to it while the leader
// reads.
type replica struct {
	mu   sync.RWMutex
	book *book.Book
	time *siteclock.Steady
	kick chan struct{} // something was applied
}

func newReplica() *replica {
	return &replica{book: book.New(), kick: make(chan struct{}, 1)}
}

// Apply implements mailbox.Machine.
func (r *replica) Apply(_ uint64, commands [][]byte) []any {
	decoded := make([]*book.Command, len(commands))
	results := make([]any, len(commands))
	for i, data := range commands {
		var err error
		if decoded[i], err = book.Decode(data); err != nil {
			results[i], decoded[i] = err, nil
		}
	}
	r.mu.Lock()
	for i, c := range decoded {
		if c != nil {
			results[i] = r.book.Apply(c)
		}
	}
	r.time.Reached(r.book.Now())
	r.mu.Unlock()
	r.wake()
	return results
}

// Capture implements mailbox.Machine.
func (r *replica) Capture() mailbox.Image {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.book.Capture()
}

// Restore implements mailbox.Machine.
func (r *replica) Restore(from io.Reader) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.wake()
	err := r.book.Restore(from)
	r.time.Reached(r.book.Now())
	return err
}

// read calls f with the book, which f must not change or keep.
func (r *replica) read(f func(*book.Book)) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	f(r.book)
}

func (r *replica) watch(on bool) {
	r.mu.Lock()
	r.book.Watch(on)
	r.mu.Unlock()
	r.wake()
}

func (r *replica) wake() {
	select {
	case r.kick <- struct{}{}:
	default:
	}
}
