package runner

import "golang.org/x/sys/unix"

// Output beyond the limit is cut out of the middle of its file, while the task writes on:
// the blocks are given back, and the file has a hole there. Positions in the output stay
// what they were, whoever reads, and the file alone says what is missing, after any restart.

// outputs are the files to which an attempt writes: those of its lane, until something is in
// them, and of the attempt's own names from then on. The process's lock guards them.
type outputs struct {
	base  string              // where the paths of the attempt's files begin
	limit int64               // bytes that are kept of each output
	tail  bool                // what is kept is the end alone
	lane  *lane               // nil before and after the task has one
	named [len(endings)]bool  // which outputs have the attempt's own name
	lost  [len(endings)]int64 // bytes that are not kept
}

// leastBlock is the unit in which a hole is made, but where the file system has a larger one.
const leastBlock = 4096

// settle bounds what the task has written so far, and gives output that is no
// longer empty the attempt's own name.
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

// measure looks at output i.
func (o *outputs) measure(i int, info *unix.Stat_t) error {
	if fd := o.lane.files[i]; fd >= 0 {
		return unix.Fstat(fd, info)
	}
	return unix.Lstat(o.path(i), info)
}

// path returns where output i is at the moment.
func (o *outputs) path(i int) string {
	if o.named[i] || o.lane == nil {
		return o.base + endings[i]
	}
	return o.lane.base + endings[i]
}

// silent says whether nothing was written.
func (o *outputs) silent() bool { return !o.named[0] && !o.named[1] }

// keep is how much of an output is kept at its beginning and at its end, in bytes.
type keep struct{ head, tail int64 }

// keeps is the bound of each output.
func (o *outputs) keeps(block int64) keep {
	up := func(n int64) int64 { return max(block, (n+block-1)/block*block) }
	if o.tail {
		return keep{0, up(o.limit)}
	}
	return keep{up(o.limit / 2), up(o.limit / 2)}
}

// cut makes the hole in output i that its size asks for. Where the file system makes no
// holes, what is beyond the limit is dropped.
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
		if limit := k.head + k.tail; unix.Ftruncate(fd, limit) == nil { // else at the next check
			o.lost[i] += info.Size - limit
		}
	}
}

// punch makes a hole in a file.
func punch(fd int, from, to int64) error {
	return unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, from, to-from)
}

// cutAgain bounds the output of a task that has ended, to which a task may write that was given the open file.
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
