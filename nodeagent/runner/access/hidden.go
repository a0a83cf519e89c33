package access

import (
	"path/filepath"
	"slices"
	"strings"
)

// Temporary lists the temporary directories. On a node with AbilityApart, each task has its own copies of them.
var Temporary = []string{"/tmp", "/var/tmp"}

// Beneath reports whether a path is a directory or lies below it.
func Beneath(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// Conceals reports whether tasks cannot run in `dir`, because the directory `hidden` is concealed from them. There are
// two cases. First, `dir` is `hidden`, or lies below it. Second, `dir` is in a temporary directory and contains
// `hidden`: a task sees a directory inside a temporary directory completely, or not at all.
func Conceals(dir, hidden string) bool {
	dir, hidden = Real(dir), Real(hidden)
	return Beneath(dir, hidden) || Beneath(hidden, dir) && slices.ContainsFunc(Temporary, func(t string) bool { return Beneath(dir, t) })
}

// Real returns a path without symbolic links. If the last part of the path does not exist, this part stays unchanged.
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
