package lane

import (
	"bytes"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
)

// holeAt looks for a hole in an output. It returns the position of the first data at or after `from`, and the position
// of the next hole. Without holes, it returns `from` and `size`.
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

func sparse(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Blocks*512 < info.Size() && info.Size() >= leastBlock
}

// readKept reads at most `most` bytes of an output, starting at a position. Parts that were cut away are holes in the
// file, and readKept skips them. If `holes` is true, it looks for holes before it reads.
func readKept(file *os.File, from, size int64, most int, holes bool) (reply agent.LogsReply, err error) {
	began := from
	buffer := make([]byte, min(int64(most), size-from))
	for {
		data, hole := from, size
		if holes {
			data, hole = holeAt(file, from, size)
		}
		n, err := file.ReadAt(buffer[:min(int64(len(buffer)), hole-data)], data)
		if n == 0 && err != nil {
			return agent.LogsReply{Next: data, Missing: data - began}, err
		}
		// After the search for holes, a part of the file may be cut, and is then read as zeros. So if the bytes have a
		// zero, holes are searched again.
		if holes = holes || bytes.IndexByte(buffer[:n], 0) >= 0; holes {
			now, until := holeAt(file, data, size)
			if now > data {
				from = now
				continue
			}
			n = int(min(int64(n), until-data))
		}
		return agent.LogsReply{Data: buffer[:n], Next: data + int64(n), Missing: data - began}, nil
	}
}

// maxLogPiece bounds one read of a log, in bytes.
const maxLogPiece = 256 << 10

// ReadPiece reads one piece of a file. It sets End in the reply if nothing follows the piece.
func ReadPiece(file *os.File, r *agent.LogsRequest) (reply agent.LogsReply, err error) {
	info, err := file.Stat()
	if err != nil {
		return reply, messages.Errorf(messages.Unavailable, "output: %v", err)
	}
	size := info.Size()
	from := r.Offset
	if from < 0 {
		from = max(0, size+from)
	}
	from = min(from, size)
	piece := r.Limit
	if piece <= 0 || piece > maxLogPiece {
		piece = maxLogPiece
	}
	reply, err = readKept(file, from, size, piece, sparse(info))
	if err != nil && err != io.EOF {
		return reply, messages.Errorf(messages.Unavailable, "output: %v", err)
	}
	reply.End = reply.Next >= size
	return reply, nil
}
