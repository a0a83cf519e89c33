// Package fileutil replaces a package of etcd 3.3, which depends on libraries that nobody maintains. The library of the
// replicas' log, raft-wal, needs one function of that package. When raft-wal no longer needs the package, remove this
// module and its line in go.mod.
package fileutil

import (
	"errors"
	"os"
	"syscall"
)

// Preallocate reserves disk space for the beginning of a file, as many bytes as `size` says. If `extend` is true, a
// smaller file grows to this size. If the file system cannot reserve space, Preallocate returns no error.
func Preallocate(f *os.File, size int64, extend bool) error {
	if size <= 0 {
		return nil
	}
	var keepSize uint32 = 1 // the value of FALLOC_FL_KEEP_SIZE
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

// supported returns err, or nil if the file system does not support the operation.
func supported(err error) error {
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}
