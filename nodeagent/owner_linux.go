package nodeagent

import (
	"io/fs"
	"os"
	"syscall"
)

// ownedAlike reports whether a file belongs to the user whose directory it is in.
func ownedAlike(root *os.Root, file fs.FileInfo) bool {
	dir, err := root.Stat(".")
	if err != nil {
		return false
	}
	a, _ := dir.Sys().(*syscall.Stat_t)
	b, _ := file.Sys().(*syscall.Stat_t)
	return a != nil && b != nil && a.Uid == b.Uid
}
