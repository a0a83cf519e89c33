package tree

import "golang.org/x/sys/unix"

// Give makes a user and a group the owners of a directory and everything below it.
func Give(path string, uid, gid int) error {
	top, err := openDir(unix.AT_FDCWD, path)
	if err != nil {
		return err
	}
	w := walk{visitor: gift{uid, gid}}
	w.failed.add(unix.Fchown(top, uid, gid))
	w.run(top)
	return w.failed.err()
}

type gift struct{ uid, gid int }

func (g gift) open(dir int, name string) (int, error) { return openDir(dir, name) }
func (g gift) left(int, string) error                 { return nil }
func (g gift) more() bool                             { return true }

func (g gift) found(dir int, e entry) (in bool, err error) {
	return isDir(dir, e), unix.Fchownat(dir, e.name, g.uid, g.gid, unix.AT_SYMLINK_NOFOLLOW)
}
