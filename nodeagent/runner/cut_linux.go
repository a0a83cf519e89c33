package runner

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
)

// Output beyond the limit is cut out of the middle of its file, while the task writes on:
// the blocks are given back, and the file has a hole there. Positions in the output stay
// what they were, whoever reads, and the file alone says what is missing, after any restart.

// leastBlock is the unit in which a hole is made, but where the file system has a larger one.
const leastBlock = 4096

// keep is how much of an output is kept at its beginning and at its end, in bytes.
type keep struct{ head, tail int64 }

// keeps is the bound of each output of the task.
func (t *process) keeps(block int64) keep {
	c := &t.runner.config
	limit := c.OutputLimit
	if own := c.OutputLimits[t.task.Program.Class]; own > 0 {
		limit = own
	}
	up := func(n int64) int64 { return max(block, (n+block-1)/block*block) }
	if c.OutputTail {
		return keep{0, up(limit)}
	}
	return keep{up(limit / 2), up(limit / 2)}
}

// cut makes the hole in output i that its size asks for. Where the file system makes no
// holes, what is beyond the limit is dropped. t.mu is held.
func (t *process) cut(i int, info *unix.Stat_t) {
	block := max(leastBlock, int64(info.Blksize))
	k := t.keeps(block)
	end := (info.Size - k.tail) / block * block
	if end <= k.head {
		return
	}
	fd := t.lane.files[i]
	if fd < 0 {
		opened, err := openFile(t.output(i), unix.O_WRONLY)
		if err != nil {
			return
		}
		defer unix.Close(opened)
		fd = opened
	}
	err := unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, k.head, end-k.head)
	switch err {
	case nil:
		t.lost[i] = end - k.head
	case unix.EOPNOTSUPP, unix.ENOSYS:
		if limit := k.head + k.tail; unix.Ftruncate(fd, limit) == nil { // else at the next check
			t.lost[i] += info.Size - limit
		}
	}
}

// holeAt is where what is missing of an output at a position ends, and where the next such
// hole begins; the position and the size where nothing is missing.
func holeAt(file *os.File, from, size int64) (data, hole int64) {
	data, hole = from, size
	fd := int(file.Fd())
	if at, err := unix.Seek(fd, from, unix.SEEK_DATA); err == nil && at > from {
		data = min(at, size)
	}
	if at, err := unix.Seek(fd, data, unix.SEEK_HOLE); err == nil && at >= data {
		hole = min(at, size)
	}
	return data, hole
}

// sparse says whether a file may have holes.
func sparse(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Blocks*512 < info.Size() && info.Size() >= leastBlock
}

// readKept reads the kept part of an output from a position on, at most so many bytes.
func readKept(file *os.File, from, size int64, most int, holes bool) (reply messages.LogsReply, err error) {
	began := from
	buffer := make([]byte, min(int64(most), size-from))
	for {
		data, hole := from, size
		if holes {
			data, hole = holeAt(file, from, size)
		}
		n, err := file.ReadAt(buffer[:min(int64(len(buffer)), hole-data)], data)
		if n == 0 && err != nil {
			return messages.LogsReply{Next: data, Missing: data - began}, err
		}
		// What was cut meanwhile was read as zeros.
		if holes {
			now, until := holeAt(file, data, size)
			if now > data {
				from = now
				continue
			}
			n = int(min(int64(n), until-data))
		}
		return messages.LogsReply{Data: buffer[:n], Next: data + int64(n), Missing: data - began}, nil
	}
}
