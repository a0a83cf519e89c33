//go:build !linux

package nodeagent

import (
	"io/fs"
	"os"
)

// ownedAlike is not asked where there are no real tasks.
func ownedAlike(*os.Root, fs.FileInfo) bool { return true }
