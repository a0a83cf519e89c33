package access

import (
	"path/filepath"
	"slices"
	"strings"
)

// Temporary are the directories of which tasks that are kept apart have their own, in place of
// the machine's.
var Temporary = []string{"/tmp", "/var/tmp"}

// Beneath reports whether a path is a directory or lies below it.
func Beneath(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// Conceals reports whether no task can run in a directory because of another one that tasks are
// not to see: the directory lies below that one; or that one lies below it, and both below a
// directory of Temporary, where a task would see all that is there, or nothing.
func Conceals(dir, hidden string) bool {
	dir, hidden = Real(dir), Real(hidden)
	return Beneath(dir, hidden) || Beneath(hidden, dir) && slices.ContainsFunc(Temporary, func(t string) bool { return Beneath(dir, t) })
}

// Real is a path without links; what is missing at its end stays as it is.
func Real(path string) string {
	path = filepath.Clean(path)
	for at := path; ; at = filepath.Dir(at) {
		if found, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(found, strings.TrimPrefix(path, at))
		}
		if at == filepath.Dir(at) {
			return path
		}
	}
}
