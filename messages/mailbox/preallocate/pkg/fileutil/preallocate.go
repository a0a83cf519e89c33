// Package fileutil stands in the place of a package of etcd 3.3 of which the log of the
// replicas, raft-wal, needs one function. The package brought libraries that nobody mends
// any more. When raft-wal needs it no more, this module and its line in go.mod go.
package fileutil

import (
	"errors"
	"os"
	"syscall"
)

// Preallocate reserves the first bytes of a file. With extend the file has that size
// afterwards, if it was smaller. A file system that cannot reserve is no error.
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

// supported is an error but of what cannot be done here.
func supported(err error) error {
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}
