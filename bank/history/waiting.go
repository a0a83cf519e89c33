package history

import (
	"bytes"
	"errors"
	"slices"
	"sync"
	"syscall"
)

// waiting are files of which those segments that had no room on the disk are in memory, until
// Sync can write them. So a full disk ends no replica: its log keeps the records meanwhile,
// because no snapshot is written before Sync has succeeded.
type waiting struct {
	Files
	mu      sync.Mutex
	content map[string][]byte // by name
}

// Write makes a file, in memory where there is no room.
func (w *waiting) Write(name string, parts ...[]byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.Files.Write(name, parts...)
	delete(w.content, name)
	if IsSegment(name) && (errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)) {
		w.content[name] = slices.Concat(parts...)
		return nil
	}
	return err
}

// Open opens a file, wherever it is.
func (w *waiting) Open(name string) (File, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if content, ok := w.content[name]; ok {
		return inMemory{bytes.NewReader(content)}, nil
	}
	return w.Files.Open(name)
}

// Sync writes a file that waits, and makes it durable.
func (w *waiting) Sync(name string) error {
	if err := w.flush(name); err != nil {
		return err
	}
	return w.Files.Sync(name)
}

func (w *waiting) flush(name string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	content, ok := w.content[name]
	if !ok {
		return nil
	}
	err := w.Files.Write(name, content)
	if err == nil {
		delete(w.content, name)
	}
	return err
}

// inMemory is a file that waits.
type inMemory struct{ *bytes.Reader }

func (f inMemory) Size() (int64, error) { return f.Reader.Size(), nil }
func (inMemory) Close() error           { return nil }
