package runner

import "golang.org/x/sys/unix"

// If an output is above the limit, blocks in the middle of its file are freed while the task continues to write. The
// file then has a hole there. Positions in the output do not change for readers. The hole shows what is missing, also
// after a restart.

// outputs are the files to which an attempt writes. While they are empty they have the lane's
// names; after that they have the attempt's names. The process's lock guards them.
type outputs struct {
	base  string              // common beginning of the paths with the attempt's names
	limit int64               // bytes to keep of each output
	tail  bool                // only the end is kept
	lane  *lane               // nil before the task has a lane, and after it has left it
	named [len(endings)]bool  // by output: its file has the attempt's name
	lost  [len(endings)]int64 // by output: bytes that were dropped
}

// leastBlock is the unit of holes, unless the file system has a larger one.
const leastBlock = 4096

// settle cuts the output so far to the limit. Output that is no longer empty gets the attempt's name.
func (o *outputs) settle() {
	for i := range endings {
		var info unix.Stat_t
		if o.lane == nil || o.measure(i, &info) != nil {
			continue
		}
		if info.Size > leastBlock {
			o.cut(i, &info)
		}
		if info.Size > 0 && !o.named[i] {
			o.named[i] = unix.Rename(o.lane.base+endings[i], o.base+endings[i]) == nil
		}
	}
}

// measure reads the size of output i.
func (o *outputs) measure(i int, info *unix.Stat_t) error {
	if fd := o.lane.files[i]; fd >= 0 {
		return unix.Fstat(fd, info)
	}
	return unix.Lstat(o.path(i), info)
}

// path returns the present path of output i.
func (o *outputs) path(i int) string {
	if o.named[i] || o.lane == nil {
		return o.base + endings[i]
	}
	return o.lane.base + endings[i]
}

// silent reports whether the attempt has written nothing.
func (o *outputs) silent() bool { return !o.named[0] && !o.named[1] }

// keep is how much of an output is kept at its beginning and at its end, in bytes.
type keep struct{ head, tail int64 }

// keeps returns how much of each output is kept. block is the unit of holes, in bytes.
func (o *outputs) keeps(block int64) keep {
	up := func(n int64) int64 { return max(block, (n+block-1)/block*block) }
	if o.tail {
		return keep{0, up(o.limit)}
	}
	return keep{up(o.limit / 2), up(o.limit / 2)}
}

// cut makes a hole in output i if it is above the limit. If the file system has no holes, output beyond the limit is
// dropped.
func (o *outputs) cut(i int, info *unix.Stat_t) {
	block := max(leastBlock, int64(info.Blksize))
	k := o.keeps(block)
	end := (info.Size - k.tail) / block * block
	if end <= k.head {
		return
	}
	fd := o.lane.files[i]
	if fd < 0 {
		opened, err := openFile(o.path(i), unix.O_WRONLY)
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

// punch makes a hole in a file.
func punch(fd int, from, to int64) error {
	return unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, from, to-from)
}

// cutAgain cuts the output of an ended task to the limit: another task that was given the open file may still write
// to it.
func (c *Config) cutAgain(path string) {
	var info unix.Stat_t
	block := int64(leastBlock)
	if unix.Lstat(path, &info) != nil || info.Mode&unix.S_IFMT != unix.S_IFREG || info.Blocks*512 <= c.mostOutput()+4*block {
		return
	}
	o := outputs{limit: c.mostOutput(), tail: c.OutputTail}
	k := o.keeps(max(block, int64(info.Blksize)))
	fd, err := openFile(path, unix.O_WRONLY)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if end := (info.Size - k.tail) / block * block; end > k.head {
		_ = punch(fd, k.head, end)
	}
}
