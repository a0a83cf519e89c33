package mailbox

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"
)

// sealedLog is a store of the log that seals the entries which this replica adds as
// leader, and checks the seal of every entry that is read. It also keeps the promise of
// where the log ends. The guard watches the writes.
type sealedLog struct {
	raft.LogStore
	guard    *guard
	place    string
	promises *promises
	damaged  func(error)                 // told, once, of damage found while the replica runs
	applied  func() uint64               // the last entry applied
	keep     func() uint64               // entries above it stay, whatever is cut off in front
	restored func() (index, term uint64) // the latest snapshot

	mu   sync.Mutex           // held while the log is written
	last atomic.Pointer[tail] // of the log, as written

	shortened atomic.Bool // entries were cut off at the end, and none was written since
	scanned   []*raft.Log // the first entries of the reigns that begin in the log, after scan
}

// GetLog reads an entry and checks it. Raft panics where it cannot read an entry that it
// must apply, so GetLog returns neither a damaged entry nor an error for one: it calls
// damaged, which stops the replica.
func (s *sealedLog) GetLog(index uint64, l *raft.Log) error {
	err := s.read(index, l)
	if errors.Is(err, raft.ErrLogNotFound) && s.precedes(index, l) {
		return nil
	}
	if err == nil || errors.Is(err, raft.ErrLogNotFound) {
		return err
	}
	s.damaged(err)
	select {} // the process ends, or the replica is cut off
}

// precedes fills in the term of the entry right before the log, where a snapshot ends with that
// entry. A leader whose entries are others than those of this log asks for it: without an answer it
// could never take them away. Raft never sends such an entry: a leader sends the snapshot where it
// has no entry before. An exception would be entry 1, which has none.
func (s *sealedLog) precedes(index uint64, l *raft.Log) bool {
	end, term := s.restored()
	first, err := s.LogStore.FirstIndex()
	if err != nil || index != end || index+1 != first || index <= 1 {
		return false
	}
	*l = raft.Log{Index: index, Term: term, Type: raft.LogNoop}
	return true
}

// read is GetLog, with an error for what is damaged.
func (s *sealedLog) read(index uint64, l *raft.Log) error {
	err := safely(func() error { return s.LogStore.GetLog(index, l) })
	switch {
	case errors.Is(err, raft.ErrLogNotFound):
		return err
	case err != nil:
		return damagedEntry(s.place, index, err)
	case l.Index != index:
		return damagedEntry(s.place, index, fmt.Errorf("it says that it is entry %d", l.Index))
	}
	if err := s.check(l); err != nil {
		return damagedEntry(s.place, index, err)
	}
	return nil
}

// check checks an entry's seal. What this release wrote has one.
func (s *sealedLog) check(l *raft.Log) error {
	if !sealed(l) && s.promises.seals(l.Index) {
		return errUnsealed
	}
	return checkSeal(l)
}

// StoreLog writes one entry.
func (s *sealedLog) StoreLog(l *raft.Log) error { return s.StoreLogs([]*raft.Log{l}) }

// StoreLogs seals entries that have no seal, which are this leader's own, writes all,
// and promises them. After a cut of the end it waits until there is room: Raft, which was told
// that the write failed, would go on as if what was cut off was still there, and take no
// entry any more until the next start.
func (s *sealedLog) StoreLogs(logs []*raft.Log) error {
	for {
		err := s.guard.write("a write of the log", func() error { return s.store(logs) })
		if err == nil {
			s.shortened.Store(false)
		}
		if err == nil || !s.shortened.Load() || !noSpace(err) || !s.guard.rest() {
			return err
		}
	}
}

func (s *sealedLog) store(logs []*raft.Log) error {
	if len(logs) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	last := *s.last.Load()
	var begun []*raft.Log // the first entries of reigns
	for _, l := range logs {
		if !sealed(l) {
			noise(l, s.promises.now().Origin)
			l.Extensions = newSeal(last.nextTo(l).chains(), l)
		} else if err := last.checkChain(l); err != nil {
			err = damagedEntry(s.place, l.Index, err)
			if l.Index > s.settled() { // else the two logs are of two groups, and nothing is damaged
				s.damaged(err)
			}
			return err
		}
		if l.Term != s.termBefore(l.Index, last) {
			begun = append(begun, l)
		}
		last = tailOf(l)
	}
	if err := safely(func() error { return s.LogStore.StoreLogs(logs) }); err != nil {
		return err
	}
	s.last.Store(&last)
	for _, l := range begun {
		s.promises.learn(func(r *record) bool {
			r.begins(l)
			return true
		})
	}
	return s.promises.reached(last.index, last.term)
}

// termBefore is the term of the entry before one, which is the log's last or in a snapshot.
func (s *sealedLog) termBefore(index uint64, last tail) uint64 {
	if index == last.index+1 {
		return last.term
	}
	_, term := s.restored()
	return term
}

// termAt is the term of an entry that the log has, or the latest snapshot ends with.
func (s *sealedLog) termAt(index uint64) (term uint64, has bool) {
	var l raft.Log
	if s.read(index, &l) == nil {
		return l.Term, true
	}
	last, term := s.restored()
	return term, index == last
}

// settled is the last entry that is known to be committed, also from before the start.
func (s *sealedLog) settled() uint64 { return max(s.applied(), s.promises.settled()) }

// nextTo returns t if l is the entry after t; else the position before l, without a sum.
func (t tail) nextTo(l *raft.Log) tail {
	if l.Index == t.index+1 {
		return t
	}
	return tail{}
}

// DeleteRange cuts the log. In front, what the older snapshot needs stays. At the end,
// nothing is cut that was committed and is in no snapshot: no leader can have another entry in its
// place.
func (s *sealedLog) DeleteRange(first, last uint64) error {
	return s.guard.write("a cut of the log", func() error { return s.cut(first, last) })
}

func (s *sealedLog) cut(first, last uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last < s.last.Load().index {
		if last = min(last, s.keep()); last < first {
			return nil
		}
		return safely(func() error { return s.LogStore.DeleteRange(first, last) })
	}
	start, err := s.LogStore.FirstIndex()
	if err != nil {
		return err
	}
	end := tail{}
	end.index, end.term = s.restored()
	keeps := end.index
	if first > start {
		keeps = max(keeps, first-1)
	}
	if settled := s.settled(); keeps < min(settled, last) {
		return fmt.Errorf("mailbox: the leader has other entries from %d on than the log in %s, where those up to %d were acknowledged; nothing was cut", first, s.place, settled)
	}
	if first > start {
		var l raft.Log
		if err := s.read(first-1, &l); err != nil {
			return err
		}
		end = tailOf(&l)
	}
	s.promises.learn(func(r *record) bool {
		r.cut(end.index + 1)
		return true
	})
	if err := s.promises.lowered(end.index, end.term); err != nil {
		return err
	}
	if err := safely(func() error { return s.LogStore.DeleteRange(first, last) }); err != nil {
		return err
	}
	s.last.Store(&end)
	s.shortened.Store(true)
	return nil
}

func (s *sealedLog) end() (index, term uint64) {
	last := s.last.Load()
	return last.index, last.term
}

// IsMonotonic says that the store refuses gaps.
func (s *sealedLog) IsMonotonic() bool { return true }

// safely runs f on files that may be damaged: the store's library panics on some
// broken pages and lengths, and fault where a mapped file is shorter than it says.
func safely(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("its structure is broken: %v", p)
		}
	}()
	return f()
}
