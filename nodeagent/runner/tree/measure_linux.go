package tree

import (
	"cmp"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Usage is the result of a measurement.
type Usage struct {
	Bytes int64
	// Unread is the first error of reading a file, or nil. Bytes does not count this file. The measuring process runs
	// as the owner of the files. But reading fails if the permissions of a directory exclude even its owner. It also
	// fails if the file was moved meanwhile.
	Unread error
}

// Meter adds up the disk space of files.
type Meter struct {
	// Mend makes the meter restore rights that owners removed from their directories, if it cannot read a directory
	// without them.
	Mend bool

	most    int64
	goOn    func() bool
	bytes   int64
	least   int64  // cost of a file without blocks, in bytes
	dev     uint64 // number of the device on which the first tree is
	counted map[file]struct{}
	failed  failures
}

type file struct{ dev, ino uint64 }

// maxLinked bounds the files that a meter remembers: files with several names, without a name, and large ones.
const maxLinked = 1 << 20

const large = 1 << 20

// NewMeter returns a meter. It stops when it has counted more than `most` bytes, or when the function `goOn` returns
// false.
func NewMeter(most int64, goOn func() bool) *Meter {
	return &Meter{most: most, goOn: goOn, counted: map[file]struct{}{}}
}

// Usage returns the measurement so far.
func (m *Meter) Usage() Usage { return Usage{m.bytes, m.failed.err()} }

// Add adds a directory and everything below it.
func (m *Meter) Add(path string) {
	top, err := m.open(unix.AT_FDCWD, path)
	if err != nil {
		m.failed.add(err)
		return
	}
	var info unix.Stat_t
	if err := unix.Fstat(top, &info); err != nil {
		m.failed.add(err)
	}
	m.least = inodeShare(top)
	m.dev = cmp.Or(m.dev, info.Dev)
	m.count(&info)
	w := walk{visitor: m}
	w.run(top)
	m.failed.add(w.failed.err())
}

// AddEntry adds a file, or a directory and everything below it.
func (m *Meter) AddEntry(path string) {
	var info unix.Stat_t
	if err := unix.Lstat(path, &info); err != nil {
		m.failed.add(err)
		return
	}
	if info.Mode&unix.S_IFMT == unix.S_IFDIR {
		m.Add(path)
		return
	}
	if m.least == 0 {
		m.least = leastOf(path)
	}
	m.count(&info)
}

// On adds a file system, the one of the given directory, on which AddOpen counts open files. The directory itself is
// not added.
func (m *Meter) On(path string) {
	var info unix.Stat_t
	if err := unix.Stat(path, &info); err != nil {
		m.failed.add(err)
		return
	}
	m.dev, m.least = info.Dev, leastOf(path)
}

// AddOpen adds the open files of a process that no longer have a name, if they are on the file system of the first
// tree, or of a directory that was given to On. It ignores files that it cannot examine, because the process has ended
// or belongs to another user.
func (m *Meter) AddOpen(process int) {
	dir, err := openDir(unix.AT_FDCWD, "/proc/"+strconv.Itoa(process)+"/fd")
	if err != nil {
		return
	}
	w := walk{visitor: openFiles{m}}
	w.run(dir)
}

// count adds the size of a file. A file that has several names, or no name, is added only once. A large file is also
// added only once, because it may get another name during the measurement.
func (m *Meter) count(info *unix.Stat_t) {
	const block = 512 // st_blocks counts units of 512 bytes on every file system
	cost := max(info.Blocks*block, m.least)
	if isDir := info.Mode&unix.S_IFMT == unix.S_IFDIR; !isDir && (info.Nlink != 1 || cost >= large) {
		f := file{info.Dev, info.Ino}
		if _, before := m.counted[f]; before {
			return
		}
		if len(m.counted) < maxLinked {
			m.counted[f] = struct{}{}
		}
	}
	m.bytes += cost
}

func (m *Meter) open(dir int, name string) (int, error) {
	if m.Mend {
		return openMended(dir, name)
	}
	return openDir(dir, name)
}

func (m *Meter) left(int, string) error { return nil }
func (m *Meter) more() bool             { return m.bytes <= m.most && m.goOn() }

func (m *Meter) found(dir int, e entry) (in bool, err error) {
	var info unix.Stat_t
	if err := unix.Fstatat(dir, e.name, &info, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return false, err
	}
	m.count(&info)
	return info.Mode&unix.S_IFMT == unix.S_IFDIR, nil
}

// openFiles counts the size of the deleted files that a process still has open.
type openFiles struct{ *Meter }

func (o openFiles) found(dir int, e entry) (in bool, err error) {
	var info unix.Stat_t
	if unix.Fstatat(dir, e.name, &info, 0) == nil && info.Nlink == 0 && info.Dev == o.dev && info.Mode&unix.S_IFMT == unix.S_IFREG {
		o.count(&info)
	}
	return false, nil
}

// inodeShare returns the cost of one inode in a directory's file system, in bytes. If the file system makes inodes as
// needed, an inode costs one block. Some file systems report wrong numbers, so inodeShare returns at most mostShare.
func inodeShare(dir int) int64 {
	var fs unix.Statfs_t
	return shareIn(&fs, unix.Fstatfs(dir, &fs))
}

func leastOf(path string) int64 {
	var fs unix.Statfs_t
	return shareIn(&fs, unix.Statfs(path, &fs))
}

func shareIn(fs *unix.Statfs_t, err error) int64 {
	const mostShare = 64 << 10
	if err != nil || fs.Files == 0 {
		return int64(os.Getpagesize())
	}
	return min(int64(fs.Blocks*uint64(fs.Frsize)/fs.Files), mostShare)
}
