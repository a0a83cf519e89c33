package history

import (
	"bytes"
	"errors"
	"slices"
	"sync"
	"syscall"
)

// waiting keeps segments in memory while the disk is full, until Sync can write them. So a full disk does not stop a
// replica. No record can be lost: they also stay in the log until Sync has succeeded and a snapshot is written.
type waiting struct {
	Files
	mu      sync.Mutex
	content map[string][]byte // contents of files, by name
}

// Write creates a file. If the disk is too full for a segment, Write keeps the segment in memory.
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

// Open opens a file, on disk or in memory.
func (w *waiting) Open(name string) (File, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if content, ok := w.content[name]; ok {
		return inMemory{bytes.NewReader(content)}, nil
	}
	return w.Files.Open(name)
}

// Sync makes a file durable. If the file is only in memory, because the disk was full, Sync writes it to the disk
// first.
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

type inMemory struct{ *bytes.Reader }

func (f inMemory) Size() (int64, error) { return f.Reader.Size(), nil }
func (inMemory) Close() error           { return nil }
