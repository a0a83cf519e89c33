package mailbox

import (
	"sync/atomic"

	"github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
)

// segments makes the files of the log. When a file is full, the library raft-wal makes the next file in the background,
// and cannot continue if this fails. So if the disk is too full for the next file, each write tries again to make it.
type segments struct {
	*segment.Filer
	config *Config
}

func newSegments(c *Config, dir string) *segments {
	return &segments{segment.NewFiler(dir, fs.New()), c}
}

// Create makes the file of a segment. If the disk has no space, the file is made later, by the first write that finds
// space.
func (s *segments) Create(info types.SegmentInfo) (types.SegmentWriter, error) {
	w, err := s.create(info)
	if noSpace(err) {
		return &lateSegment{segments: s, info: info}, nil
	}
	return w, err
}

func (s *segments) create(info types.SegmentInfo) (types.SegmentWriter, error) {
	if s.config.faults.segment != nil {
		if err := s.config.faults.segment(); err != nil {
			return nil, err
		}
	}
	w, err := s.Filer.Create(info)
	if noSpace(err) {
		_ = s.Delete(info.BaseIndex, info.ID) // the file may exist although its space is not reserved
	}
	return w, err
}

// lateSegment is a file of the log that may not exist yet. As long as it does not exist, it has no entries.
type lateSegment struct {
	segments *segments
	info     types.SegmentInfo
	made     atomic.Pointer[types.SegmentWriter]
}

func (l *lateSegment) make() (types.SegmentWriter, error) {
	if w := l.made.Load(); w != nil {
		return *w, nil
	}
	w, err := l.segments.create(l.info)
	if err == nil {
		l.made.Store(&w)
	}
	return w, err
}

// Append adds entries.
func (l *lateSegment) Append(entries []types.LogEntry) error {
	w, err := l.make()
	if err != nil {
		return err
	}
	return w.Append(entries)
}

// ForceSeal closes the segment for further records. If the file does not exist yet, it is made first.
func (l *lateSegment) ForceSeal() (uint64, error) {
	w, err := l.make()
	if err != nil {
		return 0, err
	}
	return w.ForceSeal()
}

// Sealed reports whether the file is complete.
func (l *lateSegment) Sealed() (bool, uint64, error) {
	if w := l.made.Load(); w != nil {
		return (*w).Sealed()
	}
	return false, 0, nil
}

// LastIndex returns the index of the last entry. It returns 0 if there is no entry.
func (l *lateSegment) LastIndex() uint64 {
	if w := l.made.Load(); w != nil {
		return (*w).LastIndex()
	}
	return 0
}

// GetLog reads an entry.
func (l *lateSegment) GetLog(index uint64) (*types.PooledBuffer, error) {
	if w := l.made.Load(); w != nil {
		return (*w).GetLog(index)
	}
	return nil, types.ErrNotFound
}

// Close closes the file.
func (l *lateSegment) Close() error {
	if w := l.made.Load(); w != nil {
		return (*w).Close()
	}
	return nil
}
