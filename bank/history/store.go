package history

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
)

// SegmentBytes is the default size of one file of records, in bytes. Replicas with the same setting write identical
// files.
const SegmentBytes = 4 << 20

// openFiles is the maximum number of files that are kept open for reading.
const openFiles = 64

// Store stores a replica's journal in files. It is as safe for concurrent use as [ledger.Store] requires.
type Store struct {
	files Files
	bytes int
	// fetch returns a file's content from another replica. The function `fetch` is nil if there is no other replica.
	fetch func(ledger.Sum) ([]byte, error)

	syncing chan struct{} // has a token while files are made durable
	healing sync.Mutex    // locked while a file is fetched
	damaged atomic.Uint64 // number of times that a file was found damaged or missing

	mu       sync.Mutex
	unsynced []string
	open     map[string]File
	order    []string           // names of the files in open, the least recently used first
	lost     map[string]*sealed // files that are damaged or missing and could not be fetched
}

// New returns a store that keeps its segments in files. The function `fetch` gets a file's content from another
// replica; it is nil if there are no other replicas. The store checks the content.
func New(files Files, segmentBytes int, fetch func(ledger.Sum) ([]byte, error)) *Store {
	return &Store{files: files, bytes: segmentBytes, fetch: fetch, open: map[string]File{}, lost: map[string]*sealed{}, syncing: make(chan struct{}, 1)}
}

var _ ledger.Store = (*Store)(nil)

// SegmentBytes implements [ledger.Store].
func (s *Store) SegmentBytes() int { return s.bytes }

// Seal writes a segment's file.
func (s *Store) Seal(segment *ledger.Segment) (ledger.Sealed, error) {
	name := nameOf(segment.First)
	parts := encode(segment)
	sum, err := ledger.SumOf(parts[2])
	if err != nil {
		return nil, err
	}
	if err := s.write(name, parts); err != nil {
		return nil, err
	}
	return &sealed{store: s, sum: sum, name: name}, nil
}

func (s *Store) write(name string, parts [][]byte) error {
	if err := s.files.Write(name, parts...); err != nil {
		return fmt.Errorf("history file %s cannot be written: %w; free space on its disk and start the replica again", name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unsynced = append(s.unsynced, name)
	s.forget(name)
	return nil
}

// Open opens a segment's file. If the file is missing or damaged, Open first fetches it, and syncs it at once: a
// durable snapshot already depends on it.
func (s *Store) Open(sum ledger.Sum) (ledger.Sealed, error) {
	found := &sealed{store: s, sum: sum, name: nameOf(sum.First)}
	_, err := healed(found, found.table)
	switch {
	case err == nil:
		_, err = s.Sync()
		return found, err
	case s.fetch == nil || messages.KindOf(err) == messages.Conflict:
		return nil, err
	}
	return nil, messages.Errorf(messages.Unavailable, "%v", err) // the error says to ask again, because another replica may have the file later
}

// healed calls the function `read`, which reads a segment's file. If the file is damaged or missing, healed fetches the
// file from another replica and calls `read` again.
func healed[T any](f *sealed, read func() (T, error)) (T, error) {
	found, err := read()
	if err == nil {
		return found, nil
	}
	s := f.store
	s.healing.Lock()
	defer s.healing.Unlock()
	if found, err = read(); err == nil { // another reader has already fetched the file
		return found, nil
	}
	s.lose(f)
	fetching := errors.New("there is no other replica to fetch the file from")
	if s.fetch != nil {
		if fetching = s.retrieve(f); fetching == nil {
			s.mu.Lock()
			delete(s.lost, f.name)
			s.mu.Unlock()
			return read()
		}
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errOther) {
		err = missing(f.name, fetching)
	} else {
		err = damaged(f.name, err)
	}
	refusal := messages.AsError("", err)
	if refusal.Kind == messages.Internal && messages.KindOf(fetching).Retriable() {
		refusal.Kind = messages.Unavailable // the caller may ask again, because another replica may have the file later
	}
	return found, refusal
}

func (s *Store) lose(f *sealed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.lost[f.name]; !known {
		s.damaged.Add(1)
	}
	s.lost[f.name] = f
}

// Lost returns an error that names a damaged or missing file that could not be fetched, or nil.
func (s *Store) Lost() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.lost) == 0 {
		return nil
	}
	return fmt.Errorf("history file %s of the bank is damaged or gone", slices.Min(slices.Collect(maps.Keys(s.lost))))
}

// Mend tries again to fetch the lost files.
func (s *Store) Mend() {
	s.mu.Lock()
	lost := slices.Collect(maps.Values(s.lost))
	s.mu.Unlock()
	for _, f := range lost {
		if _, err := f.Segment(); err == nil { // the file was restored in the meantime
			s.mu.Lock()
			delete(s.lost, f.name)
			s.mu.Unlock()
		}
	}
}

// Check reads the whole file of a segment. It does not fetch the file.
func (s *Store) Check(sum ledger.Sum) error {
	f := &sealed{store: s, sum: sum, name: nameOf(sum.First)}
	if _, err := f.segment(); err != nil {
		s.lose(f)
		return damaged(f.name, err)
	}
	return nil
}

// Damaged returns how often a file was found damaged or missing.
func (s *Store) Damaged() uint64 { return s.damaged.Load() }

// retrieve fetches a file and makes it durable, because a durable snapshot already depends on
// it.
func (s *Store) retrieve(wanted *sealed) error {
	b, err := s.fetch(wanted.sum)
	if err != nil {
		return err
	}
	segment, err := decode(b)
	if err != nil {
		return fmt.Errorf("the fetched file is damaged: %w", err)
	}
	if got, err := ledger.SumOf(segment.Table()); err != nil || got != wanted.sum {
		return errors.New("the fetched file has other records than the missing file")
	}
	if err := s.write(wanted.name, [][]byte{b}); err != nil {
		return err
	}
	_, err = s.Sync()
	return err
}

// Sync makes the data durable that was written since the last call. If another call is running, Sync waits for it. If
// that call fails, Sync also syncs the files of that call.
func (s *Store) Sync() (bool, error) {
	s.syncing <- struct{}{}
	defer func() { <-s.syncing }()
	s.mu.Lock()
	names := s.unsynced
	s.unsynced = nil
	s.mu.Unlock()
	if err := s.sync(names); err != nil {
		s.mu.Lock()
		s.unsynced = append(names, s.unsynced...)
		s.mu.Unlock()
		return false, err
	}
	return true, nil
}

func (s *Store) sync(names []string) error {
	for _, name := range names {
		if err := s.files.Sync(name); err != nil {
			return err
		}
	}
	if len(names) == 0 {
		return nil
	}
	return s.files.Commit()
}

// SaveTail writes the records after the last full segment, for readers of a stopped replica's
// directory.
func (s *Store) SaveTail(tail *ledger.Segment) error {
	if len(tail.Ends) == 0 {
		return nil
	}
	return s.files.Write(tailName, encode(tail)...)
}

// Close closes the files.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var failed []error
	for _, f := range s.open {
		failed = append(failed, f.Close())
	}
	clear(s.open)
	s.order = nil
	return errors.Join(failed...)
}

// The method `with` opens a file, or uses it again if it is open already. It passes the file to f, and keeps it open
// for the next call.
func (s *Store) with(name string, f func(File) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	opened, ok := s.open[name]
	if !ok {
		var err error
		if opened, err = s.files.Open(name); err != nil {
			return err
		}
		if len(s.order) == openFiles {
			s.forget(s.order[0])
		}
		s.open[name] = opened
		s.order = append(s.order, name)
	}
	return f(opened)
}

// forget closes a file. It was only read, so an error in closing it does not matter.
func (s *Store) forget(name string) {
	opened, ok := s.open[name]
	if !ok {
		return
	}
	_ = opened.Close()
	delete(s.open, name)
	s.order = slices.DeleteFunc(s.order, func(other string) bool { return other == name })
}
