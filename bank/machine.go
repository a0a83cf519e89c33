package bank

import (
	"io"
	"sync"

	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages/mailbox"
)

// machine is the ledger as the mailbox changes it and queries read it.
type machine struct {
	metrics *metrics
	archive *archive
	broken  func(error) // told when the ledger can do nothing any more

	mu     sync.RWMutex
	ledger *ledger.Ledger
}

var _ mailbox.Machine = (*machine)(nil)

// Apply carries out the commands of one log entry. The results are of type
// ledger.Result.
func (m *machine) Apply(_ uint64, commands [][]byte) []any {
	m.mu.Lock()
	defer m.mu.Unlock()
	results := make([]any, len(commands))
	for i, command := range commands {
		result := m.ledger.Apply(command)
		m.metrics.count(&result)
		results[i] = result
	}
	if err := m.ledger.Err(); err != nil {
		m.broken(err)
	}
	return results
}

// Capture takes an image of the ledger.
func (m *machine) Capture() mailbox.Image {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return &image{m.ledger.Capture(), m.archive}
}

// image is written with what the archive needs beside it.
type image struct {
	*ledger.Image
	archive *archive
}

func (i *image) WriteTo(w io.Writer) (int64, error) {
	n, err := i.Image.WriteTo(w)
	if err != nil {
		return n, err
	}
	return n, i.archive.saveTail(i.Image)
}

// Restore replaces the ledger by an image. Queries meanwhile read the old one.
func (m *machine) Restore(r io.Reader) error {
	fresh := m.archive.ledger()
	if err := fresh.Restore(r); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ledger = fresh
	return nil
}

// read calls f on the ledger while it does not change. f must not keep it.
func (m *machine) read(f func(*ledger.Ledger)) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	f(m.ledger)
}
