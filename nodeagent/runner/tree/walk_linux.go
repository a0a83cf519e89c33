package tree

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"

	"golang.org/x/sys/unix"
)

// window is how many directories a walk holds open. (For a moment it can be one more.) If the walk goes deeper than
// this, it closes the upper directories, and opens them again when it comes back. This is rare.
const window = 16

// visitor decides what a walk does with each entry. A walk visits all entries in a directory and in the directories
// below it.
type visitor interface {
	// open opens an entry that is a directory, and returns its descriptor.
	open(dir int, name string) (fd int, err error)
	// found is called for each entry of a directory. It returns true if the walk must enter this entry, which is then a
	// directory.
	found(dir int, e entry) (in bool, err error)
	// left is called after the walk has visited everything in a directory.
	left(dir int, name string) error
	// more reports whether the walk continues. It is called once for each piece of a listing.
	more() bool
}

type entry struct {
	name string
	kind byte // a value such as unix.DT_DIR
	ino  uint64
}

type walk struct {
	visitor
	path     []place    // directories from the top to the current one
	listings []*listing // listings of the last directories of the path
	spare    []*listing
	failed   failures
}

// place is a directory on the path of the walk. The walk has entered one entry of this directory. While the directory
// is closed, the fields `begin` and `end` have the positions of this entry's beginning and end in the directory's
// listing.
type place struct {
	dev, ino   uint64
	begin, end int64
}

// failures collects errors at single files. A missing file is not an error: a program may remove its files at any time.
type failures struct {
	first error
	count int
}

func (f *failures) add(err error) {
	if err == nil || errors.Is(err, unix.ENOENT) {
		return
	}
	if f.count++; f.first == nil {
		f.first = err
	}
}

func (f *failures) err() error {
	if f.count > 1 {
		return fmt.Errorf("%w (the first of %d errors)", f.first, f.count)
	}
	return f.first
}

var errMoved = errors.New("a directory was moved in the meantime")

// run walks through everything below a directory, and closes the directory.
func (w *walk) run(top int) {
	w.push(top)
	for len(w.path) > 0 && w.step() {
	}
	for _, l := range w.listings {
		_ = unix.Close(l.fd)
	}
}

// step handles the next entry. It returns false if the walk must end early.
func (w *walk) step() bool {
	l := w.listings[len(w.listings)-1]
	if len(l.rest) == 0 && !w.more() {
		return false
	}
	e, err := l.next()
	if err != nil {
		if err != io.EOF {
			w.failed.add(err)
		}
		return w.leave()
	}
	in, err := w.found(l.fd, e)
	w.failed.add(err)
	if !in {
		return true
	}
	fd, err := w.open(l.fd, e.name)
	if err != nil {
		w.failed.add(err)
		return true
	}
	w.push(fd)
	return true
}

func (w *walk) push(fd int) {
	var info unix.Stat_t
	if err := unix.Fstat(fd, &info); err != nil {
		_ = unix.Close(fd)
		w.failed.add(err)
		return
	}
	if len(w.listings) == window {
		oldest := w.listings[0]
		p := &w.path[len(w.path)-window]
		p.begin, p.end = oldest.begin, oldest.end
		w.close(oldest)
		w.listings = append(w.listings[:0], w.listings[1:]...)
	}
	w.path = append(w.path, place{dev: info.Dev, ino: info.Ino})
	w.listings = append(w.listings, w.listing(fd))
}

// leave leaves a directory. It returns false if the parent directory cannot be opened again.
func (w *walk) leave() bool {
	last, from := len(w.path)-1, w.listings[len(w.listings)-1]
	child := w.path[last]
	w.path, w.listings = w.path[:last], w.listings[:len(w.listings)-1]
	defer w.close(from)
	if last == 0 {
		return true
	}
	if len(w.listings) == 0 {
		l, err := w.reopen(from.fd, w.path[last-1], child.ino)
		if err != nil {
			w.failed.add(err)
			return false
		}
		w.listings = append(w.listings, l)
	}
	if l := w.listings[len(w.listings)-1]; l.name != "" {
		w.failed.add(w.left(l.fd, l.name))
	}
	return true
}

// reopen opens the parent of the directory `below`, which the walk has left, again. It continues after the entry of
// this directory. If the parent no longer has this entry, the returned listing has no name.
func (w *walk) reopen(below int, p place, child uint64) (*listing, error) {
	fd, err := openDir(below, "..")
	if err != nil {
		return nil, errors.Join(errMoved, err)
	}
	l := w.listing(fd)
	var info unix.Stat_t
	if err := unix.Fstat(fd, &info); err != nil || info.Dev != p.dev || info.Ino != p.ino {
		w.close(l)
		return nil, errMoved
	}
	if err := l.seek(p.begin); err != nil {
		w.close(l)
		return nil, err
	}
	if e, err := l.next(); err == nil && e.ino == child {
		return l, nil
	}
	if err := l.seek(p.end); err != nil {
		w.close(l)
		return nil, err
	}
	return l, nil
}

func (w *walk) listing(fd int) *listing {
	l := new(listing)
	if n := len(w.spare); n > 0 {
		l, w.spare = w.spare[n-1], w.spare[:n-1]
	}
	l.fd, l.rest, l.name, l.begin, l.end = fd, nil, "", 0, 0
	return l
}

func (w *walk) close(l *listing) {
	_ = unix.Close(l.fd)
	w.spare = append(w.spare, l)
}

type listing struct {
	fd         int
	buffer     [8 << 10]byte
	rest       []byte // the part of the buffer that was not returned yet
	name       string // name of the last returned entry
	begin, end int64  // positions where this entry begins and ends in the directory
}

// next returns the next entry. After the last entry it returns io.EOF.
func (l *listing) next() (entry, error) {
	for {
		if len(l.rest) == 0 {
			n, err := again(func() (int, error) { return unix.ReadDirent(l.fd, l.buffer[:]) })
			if err != nil {
				return entry{}, err
			}
			if n <= 0 {
				return entry{}, io.EOF
			}
			l.rest = l.buffer[:n]
		}
		if e := l.take(); e.name != "." && e.name != ".." {
			l.name = e.name
			return e, nil
		}
	}
}

// take takes one entry from the buffer. The kernel puts only whole entries into the buffer. An entry has the inode
// number, the position of the next entry, the length, the kind, and the name with a zero byte after it.
func (l *listing) take() entry {
	const endAt, lengthAt, kindAt, nameAt = 8, 16, 18, 19
	record := l.rest[:binary.NativeEndian.Uint16(l.rest[lengthAt:])]
	l.rest = l.rest[len(record):]
	l.begin, l.end = l.end, int64(binary.NativeEndian.Uint64(record[endAt:]))
	return entry{unix.ByteSliceToString(record[nameAt:]), record[kindAt], binary.NativeEndian.Uint64(record)}
}

// seek moves the listing. The next entry that is read then begins at the position `to` of the directory.
func (l *listing) seek(to int64) error {
	_, err := unix.Seek(l.fd, to, unix.SEEK_SET)
	l.rest, l.name, l.end = nil, "", to
	return err
}

// openDir opens a directory for reading. It does not follow a link to a directory.
func openDir(dir int, name string) (int, error) {
	return again(func() (int, error) {
		return unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
}

// openMended opens a directory like [openDir]. If the right to read it is missing, it gives the owner all rights
// first.
func openMended(dir int, name string) (int, error) {
	fd, err := openDir(dir, name)
	if err == unix.EACCES {
		permit(dir, name)
		return openDir(dir, name)
	}
	var info unix.Stat_t
	if err == nil && unix.Fstat(fd, &info) == nil && info.Mode&unix.S_IXUSR == 0 {
		_ = unix.Fchmod(fd, unix.S_IRWXU)
	}
	return fd, err
}

// permit gives the owner of a directory all rights on it. It opens the directory with O_PATH, which needs no rights on
// the directory, and does not follow a link. Then it changes the mode of the open directory.
func permit(dir int, name string) {
	fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	_ = unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), unix.S_IRWXU)
}

// again repeats a system call as long as signals interrupt it.
func again(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if err != unix.EINTR {
			return n, err
		}
	}
}

// isDir reports whether an entry is a directory. Some file systems do not tell this in the listing.
func isDir(dir int, e entry) bool {
	if e.kind != unix.DT_UNKNOWN {
		return e.kind == unix.DT_DIR
	}
	var info unix.Stat_t
	return unix.Fstatat(dir, e.name, &info, unix.AT_SYMLINK_NOFOLLOW) == nil && info.Mode&unix.S_IFMT == unix.S_IFDIR
}
