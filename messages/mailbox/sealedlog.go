package mailbox

import (
	"encoding/hex"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"
)

// sealedLog is a store of the log. It adds checksums (seals) to the entries that this replica adds as leader, and
// checks the seal of every entry that is read. It stores the end of the log in the file of promises. The guard watches
// the writes.
type sealedLog struct {
	raft.LogStore
	guard    *guard
	place    string
	promises *promises
	damaged  func(error)                 // called once, for damage that is found while the replica runs
	applied  func() uint64               // returns the index of the last applied entry
	keep     func() uint64               // entries above its result are kept when the front of the log is cut
	needed   func() uint64               // entries above its result are kept for other replicas; nil: none is needed
	restored func() (index, term uint64) // returns the last entry of the latest snapshot

	mu   sync.Mutex           // held while the log is written
	last atomic.Pointer[tail] // the last entry that was written

	shortened atomic.Bool // the end of the log was cut, and nothing has been written since
	// after scan: the first entry of each reign (the entries of one leader) that begins in the log
	scanned []*raft.Log
}

// GetLog reads an entry and checks it. If the entry is damaged, GetLog stops the replica, and never returns. If it
// returned an error instead, Raft would panic, because it must apply this entry.
func (s *sealedLog) GetLog(index uint64, l *raft.Log) error {
	err := s.read(index, l)
	if errors.Is(err, raft.ErrLogNotFound) && s.precedes(index, l) {
		return nil
	}
	if err == nil || errors.Is(err, raft.ErrLogNotFound) {
		return err
	}
	s.damaged(err)
	select {} // meanwhile the process ends, or the replica is cut off from its group
}

// A replica that was restored from a snapshot has no log entry for the last command in this snapshot. Raft may still
// read that entry: a new leader that wants to replace entries here must know the entry's term. If `index` is the index
// of that entry, precedes stores an entry with the right term and no content in l, and returns true. Raft never needs
// the content, because it sends the snapshot instead.
func (s *sealedLog) precedes(index uint64, l *raft.Log) bool {
	end, term := s.restored()
	first, err := s.LogStore.FirstIndex()
	if err != nil || index != end || index+1 != first || index <= 1 {
		return false
	}
	*l = raft.Log{Index: index, Term: term, Type: raft.LogNoop}
	return true
}

// read does the same as GetLog, and returns an error if the entry is damaged.
func (s *sealedLog) read(index uint64, l *raft.Log) error {
	err := safely(func() error { return s.LogStore.GetLog(index, l) })
	switch {
	case errors.Is(err, raft.ErrLogNotFound):
		return err
	case err != nil:
		return damagedEntry(s.place, index, err)
	case l.Index != index:
		return damagedEntry(s.place, index, fmt.Errorf("the entry has the number %d", l.Index))
	}
	if err := s.check(l); err != nil {
		return damagedEntry(s.place, index, err)
	}
	return nil
}

// check checks the seal of an entry. An entry that a leader of this release wrote must have a seal.
func (s *sealedLog) check(l *raft.Log) error {
	if !sealed(l) && s.promises.seals(l.Index) {
		return errUnsealed
	}
	return checkSeal(l)
}

// StoreLog writes one entry.
func (s *sealedLog) StoreLog(l *raft.Log) error { return s.StoreLogs([]*raft.Log{l}) }

// StoreLogs adds seals to this leader's own entries, and writes all entries. It then records in the file of promises
// that this replica has them. Before it writes new entries, Raft may remove entries from the end of the log. If the
// disk is full after this, StoreLogs waits for room and returns no error. After an error, Raft would believe that the
// removed entries still exist, and would accept no more entries until the next start.
func (s *sealedLog) StoreLogs(logs []*raft.Log) error {
	for {
		err := s.guard.write("a write of the log", func() error { return s.store(logs) })
		if err == nil {
			s.shortened.Store(false)
		}
		if err == nil || !s.shortened.Load() || !noSpace(err) || !s.guard.pauseBeforeRetry() {
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
	var begun []*raft.Log // the first entry of each new reign (the entries of one leader)
	for _, l := range logs {
		if !sealed(l) {
			noise(l, s.promises.now().Origin)
			l.Extensions = newSeal(last.nextTo(l).chains(), l)
		} else if err := last.checkChain(l); err != nil {
			err = damagedEntry(s.place, l.Index, err)
			if l.Index > s.settled() { // otherwise the entries come from another group, and nothing is damaged
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

// termBefore returns the term of the entry at index − 1. That entry is either the last one of the log, or the last one
// of the latest snapshot.
func (s *sealedLog) termBefore(index uint64, last tail) uint64 {
	if index == last.index+1 {
		return last.term
	}
	_, term := s.restored()
	return term
}

// termAt returns the term of an entry in the log, or of the last entry of the latest snapshot.
func (s *sealedLog) termAt(index uint64) (term uint64, has bool) {
	var l raft.Log
	if s.read(index, &l) == nil {
		return l.Term, true
	}
	last, term := s.restored()
	return term, index == last
}

func (s *sealedLog) sumAt(index uint64) (text string, has bool) {
	var l raft.Log
	if s.read(index, &l) != nil || !sealed(&l) {
		return "", false
	}
	_, own := sums(&l)
	return hex.EncodeToString(own[:]), true
}

// settled returns the position of the last entry that is known to be committed. The promises on the disk also store
// such a position. So the result can be above zero before this process has applied anything.
func (s *sealedLog) settled() uint64 { return max(s.applied(), s.promises.settled()) }

// A tail is the end of a log. nextTo returns t if the entry l comes right after this end. Otherwise it returns the zero
// tail, because nothing is known about the entry before l.
func (t tail) nextTo(l *raft.Log) tail {
	if l.Index == t.index+1 {
		return t
	}
	return tail{}
}

// DeleteRange cuts the log. At the front it keeps two kinds of entries: those after the older snapshot, and those after
// a snapshot from which another replica is being restored. At the end it refuses to cut a committed entry that no
// snapshot contains: no leader can have another entry there.
func (s *sealedLog) DeleteRange(first, last uint64) error {
	return s.guard.write("a cut of the log", func() error { return s.cut(first, last) })
}

func (s *sealedLog) cut(first, last uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last < s.last.Load().index {
		if last = min(last, s.keep()); s.needed != nil {
			last = min(last, s.needed())
		}
		if last < first {
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
		return fmt.Errorf("mailbox: from entry %d on, the leader has other entries than the log in %s, but the entries of this log up to %d were acknowledged; this replica removed none of them", first, s.place, settled)
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

// IsMonotonic returns true, which tells Raft that the store accepts no gaps between entries.
func (s *sealedLog) IsMonotonic() bool { return true }

// safely runs f on files that may be damaged, and returns panics as errors. The store's library panics on some broken
// pages and lengths. Reading a mapped file beyond its end causes a memory fault.
func safely(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the structure of the file is broken: %v", p)
		}
	}()
	return f()
}
