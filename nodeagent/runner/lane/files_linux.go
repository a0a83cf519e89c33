package lane

import (
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// When an output grows above the limit, blocks in the middle of its file are freed. The task can continue to write,
// because positions in the output do not change. The hole in the file shows which part is missing, also after a
// restart.

// Files are the files of an attempt: its outputs, its own working directory, and its lease file. They are in a lane, a
// set of files that attempts use one after the other. An output file has the lane's name while it is empty, and later
// the attempt's name. The caller's lock guards Files.
type Files struct {
	base  string              // common beginning of the paths with the attempt's names
	limit int64               // bytes to keep of each output
	tail  bool                // only the end of an output is kept
	from  unix.Timespec       // time just before the start, by the clock of files (coarse)
	lane  *lane               // nil before the task has a lane, and after the task has left the lane
	named [len(Endings)]bool  // by output: whether the file of the output has the attempt's name
	lost  [len(Endings)]int64 // by output: number of bytes that were dropped
}

// NewFiles returns the files of an attempt. When the attempt has ended, its files get names with its attempt number;
// the paths of these files all begin with `base`. The argument `limit` is how many bytes are kept of each output. If
// `tail` is true, only the end of an output is kept.
func NewFiles(base string, limit int64, tail bool) Files {
	return Files{base: base, limit: limit, tail: tail}
}

// Enter gives the attempt a lane, which is a set of reusable output files.
func (o *Files) Enter(of *Lanes) { o.lane = of.take() }

// Leave is called when the attempt has ended. It gives the output files the attempt's name, and frees the lane. If the
// attempt has no output, Leave only passes the attempt's name to the function `silent`. The result says whether the
// task left files in its own directory.
func (o *Files) Leave(silent func(name string) error) (left bool) {
	o.Untell()
	o.Settle()
	left = o.lane.keepDir(o.base, o.from)
	o.lane.fresh = false
	if o.silent() {
		_ = silent(filepath.Base(o.base)) // if this fails, the empty output counts as not found
	} else {
		o.lane.close() // files with output belong to the attempt now
	}
	o.lane.of.leave(o.lane)
	o.lane = nil
	return left
}

// Begin notes the time just before the attempt starts.
func (o *Files) Begin() { o.from = coarse() }

// Open opens an output of the attempt for appending, unless it is open.
func (o *Files) Open(i int) (fd int, err error) { return o.lane.open(i) }

// Read opens an output of the attempt for reading, at its present Path. After the attempt has left its lane (Leave),
// other tasks use the lane's files.
func (o *Files) Read(i int) (*os.File, error) { return OpenToRead(o.Path(i)) }

// WorkingDir returns the attempt's own working directory, which is empty and belongs to the user of the task.
func (o *Files) WorkingDir(as *syscall.Credential) (string, error) { return o.lane.workingDir(as) }

// OwnDir returns the attempt's own working directory; "" if it has none now.
func (o *Files) OwnDir() string {
	if o.lane == nil || !o.lane.dir {
		return ""
	}
	return o.lane.base + DirEnding
}

// KeptDir returns the path of the attempt's own working directory after the attempt has ended.
func (o *Files) KeptDir() string { return o.base + DirEnding }

// Dropped returns how many bytes of output were dropped.
func (o *Files) Dropped() int64 { return o.lost[0] + o.lost[1] }

// leastBlock is the smallest block of a file that can be freed to make a hole, in bytes. A file system may have larger
// blocks.
const leastBlock = 4096

// Settle is called when a task has ended. It cuts output that is longer than the limit. An output file has a temporary
// name as long as it is empty. If it is no longer empty, Settle gives it the attempt's name.
func (o *Files) Settle() {
	for i := range Endings {
		var info unix.Stat_t
		if o.lane == nil || o.measure(i, &info) != nil {
			continue
		}
		if info.Size > leastBlock {
			o.cut(i, &info)
		}
		if info.Size > 0 && !o.named[i] {
			o.named[i] = unix.Rename(o.lane.base+Endings[i], o.base+Endings[i]) == nil
		}
	}
}

func (o *Files) measure(i int, info *unix.Stat_t) error {
	if fd := o.lane.files[i]; fd >= 0 {
		return unix.Fstat(fd, info)
	}
	return unix.Lstat(o.Path(i), info)
}

// Path returns the present path of output i.
func (o *Files) Path(i int) string {
	if o.named[i] || o.lane == nil {
		return o.base + Endings[i]
	}
	return o.lane.base + Endings[i]
}

func (o *Files) silent() bool { return !o.named[0] && !o.named[1] }

// keep is how much of an output is kept at its beginning and at its end, in bytes.
type keep struct{ head, tail int64 }

// keeps returns how many bytes of each output are kept at its beginning and at its end. The bytes between them are
// removed as whole blocks of the file. The argument `block` is the size of a block, in bytes.
func (o *Files) keeps(block int64) keep {
	up := func(n int64) int64 { return max(block, (n+block-1)/block*block) }
	if o.tail {
		return keep{0, up(o.limit)}
	}
	return keep{up(o.limit / 2), up(o.limit / 2)}
}

// cut makes a hole in the middle of output i if the output is above its limit: the file keeps its length, and the hole
// takes no disk space. If the file system has no holes, output beyond the limit is dropped.
func (o *Files) cut(i int, info *unix.Stat_t) {
	block := max(leastBlock, int64(info.Blksize))
	k := o.keeps(block)
	end := (info.Size - k.tail) / block * block
	if end <= k.head {
		return
	}
	fd := o.lane.files[i]
	if fd < 0 {
		opened, err := OpenFile(o.Path(i), unix.O_WRONLY)
		if err != nil {
			return
		}
		defer unix.Close(opened)
		fd = opened
	}
	err := punch(fd, k.head, end)
	switch err {
	case nil:
		o.lost[i] = end - k.head
	case unix.EOPNOTSUPP, unix.ENOSYS:
		if limit := k.head + k.tail; unix.Ftruncate(fd, limit) == nil { // if this fails, the next check tries again
			o.lost[i] += info.Size - limit
		}
	}
}

func punch(fd int, from, to int64) error {
	return unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, from, to-from)
}

// CutAgain cuts the output of an ended task to a limit. It is needed if another task still has the file open: this task
// may have written to the file after the first cut.
func CutAgain(path string, limit int64, tail bool) {
	var info unix.Stat_t
	block := int64(leastBlock)
	if unix.Lstat(path, &info) != nil || info.Mode&unix.S_IFMT != unix.S_IFREG || info.Blocks*512 <= limit+4*block {
		return
	}
	o := Files{limit: limit, tail: tail}
	k := o.keeps(max(block, int64(info.Blksize)))
	fd, err := OpenFile(path, unix.O_WRONLY)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if end := (info.Size - k.tail) / block * block; end > k.head {
		_ = punch(fd, k.head, end)
	}
}
