package tree

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// removeWithin bounds the time of a removal. Files that are left after this time stay.
const removeWithin = 5 * time.Minute

// If something is left, a removal goes through the tree again. The constant `passes` is the maximum number of times.
const passes = 100

// Remove removes a file, or a directory and everything below it. A path that does not exist is no
// error.
func Remove(path string) error { return removeUntil(path, time.Now().Add(removeWithin)) }

// RemoveWithin removes like [Remove], but for at most the time `within`.
func RemoveWithin(path string, within time.Duration) error {
	return removeUntil(path, time.Now().Add(within))
}

func removeUntil(path string, until time.Time) error {
	r := &removal{until: until}
	for range passes {
		top, err := r.open(unix.AT_FDCWD, path)
		if err == unix.ENOTDIR || err == unix.ELOOP { // the entry is a file or a link
			err = unix.Unlink(path)
		}
		if err == unix.ENOENT {
			return nil
		}
		if err != nil || top < 0 {
			return wrap(path, err)
		}
		before := r.removed
		w := walk{visitor: r}
		w.run(top)
		err = unix.Rmdir(path)
		if err == nil || err == unix.ENOENT {
			return nil
		}
		if r.removed == before || !r.more() {
			if w.failed.first != nil {
				err = w.failed.err()
			}
			return wrap(path, err)
		}
	}
	return wrap(path, unix.ENOTEMPTY)
}

func wrap(path string, err error) error {
	if err == nil {
		return nil
	}
	return &os.PathError{Op: "remove", Path: path, Err: err}
}

type removal struct {
	until   time.Time
	removed int
}

func (r *removal) more() bool { return time.Now().Before(r.until) }

// open opens a directory and gives its owner all rights. If another user owns it, open first makes this process's user
// the owner: then the other user's programs can make no more files in it.
func (r *removal) open(dir int, name string) (int, error) {
	fd, err := openMended(dir, name)
	if err != nil {
		return -1, err
	}
	var info unix.Stat_t
	if own := os.Geteuid(); unix.Fstat(fd, &info) == nil && (info.Mode&0o777 != unix.S_IRWXU || int(info.Uid) != own) {
		_ = unix.Fchown(fd, own, -1) // if this fails, removing the contents may fail
		_ = unix.Fchmod(fd, unix.S_IRWXU)
	}
	return fd, nil
}

func (r *removal) found(dir int, e entry) (in bool, err error) {
	if isDir(dir, e) {
		return true, nil
	}
	return false, r.count(unix.Unlinkat(dir, e.name, 0))
}

func (r *removal) left(dir int, name string) error {
	return r.count(unix.Unlinkat(dir, name, unix.AT_REMOVEDIR))
}

func (r *removal) count(err error) error {
	if err == nil {
		r.removed++
	}
	return err
}
