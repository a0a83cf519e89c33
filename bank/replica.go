package bank

import (
	"bytes"
	"crypto/sha256"
	"io"
	"sync"

	"github.com/candor-grid/candor/bank/clearing"
	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/mailbox"
	"github.com/candor-grid/candor/messages/proof"
	"github.com/candor-grid/candor/messages/siteclock"
)

// machine is the replicated state: the ledger and the clearing. The mailbox changes it, and queries read it.
type machine struct {
	site    messages.Name
	metrics *metrics
	archive *archive
	root    *ledger.Root // root of trust for checking signatures; nil if there is none
	time    *siteclock.Steady
	broken  func(error) // called when the ledger's store has failed

	mu       sync.RWMutex
	ledger   *ledger.Ledger
	clearing *clearing.State
}

func newMachine(c *Config, m *metrics, a *archive, root *ledger.Root, time *siteclock.Steady) *machine {
	made := &machine{site: c.Site, metrics: m, archive: a, root: root, broken: c.OnBroken, time: time}
	made.ledger, made.clearing = made.open()
	return made
}

func (m *machine) open() (*ledger.Ledger, *clearing.State) {
	l := m.archive.ledger()
	l.Trust(m.root)
	return l, clearing.New(m.site, l, proof.Verified)
}

// Check implements mailbox.Machine.
func (m *machine) Check(command []byte) (level int, err error) {
	if isClearing(command) {
		return clearing.LevelOf(command)
	}
	return ledger.LevelOf(command)
}

func isClearing(command []byte) bool { return len(command) > 0 && command[0] == clearing.Mark }

// Apply carries out the commands of one log entry. The results are a clearing.Result for the clearing's commands, and
// otherwise a ledger.Result.
func (m *machine) Apply(_ uint64, commands [][]byte) ([]any, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	results := make([]any, len(commands))
	for i, command := range commands {
		var err error
		if results[i], err = m.apply(command); err != nil {
			return nil, err
		}
	}
	m.time.Reached(m.ledger.Now(), false, false)
	if err := m.ledger.Err(); err != nil {
		m.broken(err)
	}
	return results, nil
}

// apply carries out a command. It returns an error if the command cannot be read.
func (m *machine) apply(command []byte) (any, error) {
	if isClearing(command) {
		if _, err := clearing.LevelOf(command); err != nil {
			return nil, err
		}
		m.metrics.settling.Inc()
		return m.clearing.Apply(command), nil
	}
	result := m.ledger.Apply(command)
	if result.Unread {
		return nil, result.Error
	}
	m.metrics.count(&result)
	return result, nil
}

// Capture returns an image of the ledger and the clearing.
func (m *machine) Capture() mailbox.Image {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return &image{m.ledger.Capture(), m.clearing.Capture(), m.archive}
}

// image is an image of the ledger and the clearing, with the archive that must be written before the image.
type image struct {
	*ledger.Image
	clearing *clearing.Image
	archive  *archive
}

// WriteTo writes the image of the clearing, and then the image of the ledger. If this replica has checked all records
// in the images, the archive gets a copy of both. The next start then need not check them again.
func (i *image) WriteTo(w io.Writer) (int64, error) {
	var whole bytes.Buffer
	if i.archive.checked != nil {
		w = io.MultiWriter(w, &whole)
	}
	n, err := i.clearing.WriteTo(w)
	if err != nil {
		return n, err
	}
	m, err := i.Image.WriteTo(w)
	if err != nil {
		return n + m, err
	}
	i.archive.keep(whole.Bytes())
	return n + m, i.archive.saveTail(i.Image)
}

// Digest writes the part of the state that is equal on all replicas, wherever they store their history.
func (i *image) Digest(w io.Writer) error {
	if _, err := i.clearing.WriteTo(w); err != nil {
		return err
	}
	h := i.Hash()
	_, err := w.Write(h[:])
	return err
}

// Weak returns an error while this replica lacks a file of the history that other replicas have.
func (m *machine) Weak() error {
	if m.archive.store == nil {
		return nil
	}
	return m.archive.store.Lost()
}

// hash returns the hash of the ledger's and the clearing's hashes.
func (m *machine) hash() [sha256.Size]byte {
	m.mu.RLock()
	image, settled := m.ledger.Capture(), m.clearing.Hash()
	m.mu.RUnlock()
	books := image.Hash()
	return sha256.Sum256(append(books[:], settled[:]...))
}

// read calls f with the ledger, which does not change meanwhile. f must not keep the ledger.
func (m *machine) read(f func(*ledger.Ledger)) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	f(m.ledger)
}

func read[T any](m *machine, f func(*ledger.Ledger) T) (found T) {
	m.read(func(l *ledger.Ledger) { found = f(l) })
	return found
}

// readClearing calls f with the clearing, which does not change meanwhile.
func (m *machine) readClearing(f func(*clearing.State)) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	f(m.clearing)
}
