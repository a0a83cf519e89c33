//go:build !linux

package fileutil

import (
	"errors"
	"os"
)

func fallocate(*os.File, uint32, int64) error { return errors.ErrUnsupported }
