package mailbox

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
)

// applier passes entries from Raft to the Machine. Raft calls its methods one at a time.
type applier struct {
	machine Machine
	log     *zap.Logger

	index    atomic.Uint64 // index of the last applied entry
	entries  atomic.Uint64 // number of entries applied since the start
	commands atomic.Uint64
	pending  atomic.Uint64 // bytes of entries since the last snapshot
	saved    atomic.Uint64 // index of the last entry in the latest snapshot
	spent    atomic.Int64  // nanoseconds that it took to apply the pending entries
	moved    chan struct{} // gets a token when index grows; sending it never blocks

	hasher    hasher
	mark      atomic.Pointer[mark] // the latest hash of the state
	differing atomic.Uint64        // number of comparisons in which replicas differed
	stopped   atomic.Pointer[error]
	damaged   func(error) // called once, when the state or an entry here is wrong
	unable    func(error) // called once, when this build cannot carry out an entry

	own   int          // level of this release
	level atomic.Int64 // level that the replicas agreed on; 0 means none yet, because there were no commands
	kept  atomic.Int64 // level in the latest snapshot

	former  former
	refused func(error) // called with the reason when a snapshot was not restored
}

var _ raft.BatchingFSM = (*applier)(nil)

func newApplier(m Machine, log *zap.Logger) *applier {
	return &applier{machine: m, log: log, own: messages.Level, moved: make(chan struct{}, 1), damaged: func(error) {}, unable: func(error) {}, refused: func(error) {}}
}

// Apply carries out one entry.
func (a *applier) Apply(l *raft.Log) any { return a.ApplyBatch([]*raft.Log{l})[0] }

// ApplyBatch carries out entries in order. For each entry, the response has the results of the entry's commands, or the
// error that stopped the applier.
func (a *applier) ApplyBatch(logs []*raft.Log) []any {
	began := time.Now()
	defer func() { a.spent.Add(int64(time.Since(began))) }()
	responses := make([]any, len(logs))
	for i, l := range logs {
		if a.stopped.Load() == nil {
			responses[i] = a.applyOne(l)
		}
		if err := a.stopped.Load(); err != nil {
			responses[i] = *err
		}
	}
	if a.stopped.Load() != nil {
		return responses
	}
	a.advance(logs[len(logs)-1].Index)
	return responses
}

func (a *applier) applyOne(l *raft.Log) any {
	if err := checkSeal(l); err != nil {
		a.stop(a.damaged, damagedEntry("this replica", l.Index, err))
		return nil
	}
	switch l.Type {
	case raft.LogCommand:
		results, err := a.applyEntry(l)
		if err != nil {
			a.stop(a.unable, fmt.Errorf("mailbox: entry %d is committed, but this build cannot apply it: %w. This replica ends and keeps its files unchanged: start the release that wrote the entry", l.Index, err))
		}
		return results
	case raft.LogConfiguration:
		a.former.note(raft.DecodeConfiguration(l.Data))
	}
	return nil
}

// stop stops the applier for ever after an entry that it could not apply. If it skipped this entry and went on, the
// replica's state would differ from the state of the other replicas.
func (a *applier) stop(tell func(error), err error) {
	if a.stopped.CompareAndSwap(nil, &err) {
		tell(err)
	}
}

func (a *applier) advance(index uint64) {
	if index > a.index.Load() {
		a.index.Store(index)
	}
	select {
	case a.moved <- struct{}{}:
	default:
	}
}

func (a *applier) applyEntry(l *raft.Log) ([]any, error) {
	a.entries.Add(1)
	a.pending.Add(uint64(len(l.Data)))
	if len(l.Data) > 0 && l.Data[0] == entryMark {
		return []any{}, a.applyMark(l)
	}
	commands, err := decodeEntry(l.Data)
	if err != nil || len(commands) == 0 {
		return []any{}, err
	}
	if a.level.Load() == 0 { // the log began with a release of level 1
		if err := a.agreeOn(1); err != nil {
			return nil, err
		}
	}
	results, err := a.machine.Apply(l.Index, commands)
	if err == nil && len(results) != len(commands) {
		err = fmt.Errorf("the machine gave %d results for %d commands", len(results), len(commands))
	}
	a.commands.Add(uint64(len(commands)))
	return results, err
}

// A snapshot consists of this header and the machine's image. The header has the index of the last entry in the
// snapshot, the level of the format that the replicas agreed on, and the SHA-256 of the program that wrote the
// snapshot.
const (
	snapshotHeader = "candor mailbox 3\n"
	headerBytes    = len(snapshotHeader) + 8 + 2 + sha256.Size
)

var errSnapshotHeader = errors.New("mailbox: this is not a snapshot of a mailbox")

// Snapshot captures the state of the machine between two entries.
func (a *applier) Snapshot() (raft.FSMSnapshot, error) {
	if err := a.stopped.Load(); err != nil {
		return nil, *err
	}
	a.pending.Store(0)
	a.spent.Store(0)
	return &snapshot{index: a.index.Load(), level: a.level.Load(), image: a.machine.Capture(), of: a}, nil
}

// Restore replaces the machine's state.
func (a *applier) Restore(source io.ReadCloser) error {
	err := a.restore(source)
	if err != nil {
		a.refused(err)
	}
	return err
}

func (a *applier) restore(source io.Reader) error {
	r := bufio.NewReaderSize(source, 64<<10)
	header := make([]byte, headerBytes)
	if _, err := io.ReadFull(r, header); err != nil {
		return fmt.Errorf("mailbox: cannot read a snapshot: %w", err)
	}
	if err := messages.CheckFormat("mailbox: the snapshot", string(header[:len(snapshotHeader)]), snapshotHeader); err != nil {
		return err
	}
	if string(header[:len(snapshotHeader)]) != snapshotHeader {
		return errSnapshotHeader
	}
	if err := a.agreeOn(int(binary.BigEndian.Uint16(header[len(snapshotHeader)+8:]))); err != nil {
		return err
	}
	if err := a.machine.Restore(r); err != nil {
		by := hex.EncodeToString(header[headerBytes-sha256.Size:])
		return fmt.Errorf("mailbox: cannot restore a snapshot that build %.12s wrote; this is build %.12s: %w", by, build(), err)
	}
	a.pending.Store(0)
	a.spent.Store(0)
	index := binary.BigEndian.Uint64(header[len(snapshotHeader):])
	a.saved.Store(index)
	a.kept.Store(a.level.Load())
	a.advance(index)
	return nil
}

// snapshot is an image of the machine that has not been written yet.
type snapshot struct {
	index uint64
	level int64 // level that the replicas agreed on
	image Image
	of    *applier // the applier, which records that the image was written
}

// Persist writes the image while further entries are applied.
func (s *snapshot) Persist(sink raft.SnapshotSink) error {
	by := make([]byte, sha256.Size)
	if _, err := hex.Decode(by, []byte(build())); err != nil {
		return err
	}
	header := binary.BigEndian.AppendUint64([]byte(snapshotHeader), s.index)
	header = append(binary.BigEndian.AppendUint16(header, uint16(s.level)), by...)
	if _, err := sink.Write(header); err != nil {
		return err
	}
	if _, err := s.image.WriteTo(sink); err != nil {
		return err
	}
	s.of.saved.Store(s.index)
	s.of.kept.Store(s.level)
	return nil
}

// Release does nothing: an image is only memory.
func (s *snapshot) Release() {}
