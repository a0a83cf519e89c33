package fileutil

import (
	"os"
	"syscall"
)

func fallocate(f *os.File, mode uint32, size int64) error {
	return syscall.Fallocate(int(f.Fd()), mode, 0, size)
}
