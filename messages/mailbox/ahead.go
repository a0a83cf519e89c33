package mailbox

import (
	"cmp"
	"os"

	"github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/types"
	"golang.org/x/sys/unix"
)

// zerosAhead is how many bytes a file of the log has written after its end.
const zerosAhead = 256 << 10

var zeros [zerosAhead]byte

// aheadFS has the files of the log written with zeros for some way ahead of their end. Room that
// is only reserved becomes written with the first write to it, which the file system notes in a
// journal of its own: a sync then waits for two writes of the disk, and here for one.
type aheadFS struct{ *fs.FS }

// Create makes a file with room for size bytes.
func (a aheadFS) Create(dir, name string, size uint64) (types.WritableFile, error) {
	f, err := a.FS.Create(dir, name, size)
	if err != nil {
		return nil, err
	}
	created := f.(*fs.File)
	return &aheadFile{File: &created.File, first: created.Sync, size: int64(size)}, nil
}

// OpenWriter opens a file to go on with it.
func (a aheadFS) OpenWriter(dir, name string) (types.WritableFile, error) {
	opened, err := a.FS.OpenWriter(dir, name)
	if err != nil {
		return nil, err
	}
	f := opened.(*os.File)
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return &aheadFile{File: f, first: f.Sync, size: info.Size()}, nil
}

// aheadFile is a file of the log that is written from its beginning to its end.
type aheadFile struct {
	*os.File
	first   func() error // syncs the size too, and the directory, nil once that is done
	size    int64
	written int64 // bytes from the beginning, with the zeros
}

// WriteAt writes b, and zeros after it where there were none. Zeros that cannot be written are
// left out: b may have room.
func (f *aheadFile) WriteAt(b []byte, at int64) (int, error) {
	if end := at + int64(len(b)); end > f.written {
		f.written = end
		if n := min(zerosAhead, f.size-end); n > 0 {
			if _, err := f.File.WriteAt(zeros[:n], end); err == nil {
				f.written += n
			}
		}
	}
	return f.File.WriteAt(b, at)
}

// Sync makes what was written durable.
func (f *aheadFile) Sync() error {
	if f.first != nil {
		if err := f.first(); err != nil {
			return err
		}
		f.first = nil
		return nil
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	failed := raw.Control(func(fd uintptr) {
		for err = unix.EINTR; err == unix.EINTR; { // a signal came
			err = unix.Fdatasync(int(fd))
		}
	})
	return cmp.Or(failed, os.NewSyscallError("fdatasync", err))
}
