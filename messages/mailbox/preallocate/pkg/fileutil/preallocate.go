// Package fileutil replaces a package of etcd 3.3. The log of the replicas, raft-wal, needs one function of it, but
// the original depends on libraries that are no longer maintained. Remove this module and its line in go.mod when
// raft-wal no longer needs it.
package fileutil

import (
	"errors"
	"os"
	"syscall"
)

// Preallocate reserves space for the first bytes of a file. With extend it also makes a smaller file that large. It
// is no error if the file system cannot reserve space.
func Preallocate(f *os.File, size int64, extend bool) error {
	if size <= 0 {
		return nil
	}
	var keepSize uint32 = 1 // FALLOC_FL_KEEP_SIZE
	if extend {
		keepSize = 0
	}
	err := fallocate(f, keepSize, size)
	if !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, syscall.EINTR) || !extend {
		return supported(err)
	}
	info, err := f.Stat()
	if err != nil || info.Size() >= size {
		return err
	}
	return f.Truncate(size)
}

// supported returns nil for an error that says that reserving is not supported, and err otherwise.
func supported(err error) error {
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}
