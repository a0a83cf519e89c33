package auctioneer

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/durable"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/wire"
)

// The file with the histories has a first line, and then frames. A frame has the length of its body, the CRC-32C of the
// body, and the body: a [market.PastReply]. The first frames are the complete history; new frames are appended. When
// the new frames are longer than the complete history, the whole file is written again.
const (
	pastMagic   = "candor-past-1\n"
	pastHeader  = 8
	saveEvery   = 10 * time.Second
	leastWhole  = 1 << 20 // in bytes
	mostPast    = 1 << 28 // maximum number of bytes that are read from a file
	mostPastOne = wire.MaxPayload
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// pastFile is the file in which a replica keeps its price histories.
type pastFile struct {
	path     string
	whole    int64         // size of the file when the whole file was last written, in bytes
	added    int64         // bytes that were appended since the whole file was written
	saved    messages.Time // the file has all samples up to this time
	rewrites bool          // do not append: the next save writes the whole file
	failing  bool
}

func readPast(path string) ([]byte, error) {
	about, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if about.Size() > mostPast {
		return nil, fmt.Errorf("the file has %d bytes, above the limit of %d", about.Size(), mostPast)
	}
	return os.ReadFile(path)
}

func nextPast(data []byte, one *market.PastReply) (rest []byte, err error) {
	if len(data) < pastHeader {
		return nil, errors.New("the file ends in the middle of a record")
	}
	n := int(binary.LittleEndian.Uint32(data))
	if n > mostPastOne || n > len(data)-pastHeader {
		return nil, errors.New("the file ends in the middle of a record")
	}
	body := data[pastHeader : pastHeader+n]
	if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(data[4:]) {
		return nil, errors.New("the checksum of a record does not match")
	}
	return data[pastHeader+n:], wire.Unmarshal(body, wire.Msgpack, one)
}

// save appends new samples to the file, or writes the whole file again.
func (f *pastFile) save(p *histories) error {
	whole := f.rewrites || f.added > max(leastWhole, f.whole)
	path, flags, from := f.path, os.O_WRONLY|os.O_APPEND, f.saved
	if whole {
		path, flags, from = f.path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0
	}
	f.rewrites = true // set to false only after success
	file, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return err
	}
	n, now, err := write(file, p, from, whole)
	if err == nil && whole {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	if f.added += n; whole {
		if err := durable.Rename(path, f.path); err != nil {
			return err
		}
		f.whole, f.added = n, 0
	}
	f.saved, f.rewrites = now, false
	return nil
}

// write writes the samples since the time `from` to a file, as frames. If `whole` is true, it writes the text
// pastMagic, and then all samples.
func write(file *os.File, p *histories, from messages.Time, whole bool) (n int64, now messages.Time, err error) {
	out := bufio.NewWriter(file)
	if whole {
		written, _ := out.WriteString(pastMagic) // Flush returns the error
		n += int64(written)
	}
	for after := ""; ; {
		part := p.part(from, after)
		if after == "" {
			now = part.Now
		}
		if part.Since != 0 {
			body, err := wire.Marshal(&part, wire.Msgpack)
			if err != nil {
				return n, now, err
			}
			frame := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, uint32(len(body))), crc32.Checksum(body, castagnoli))
			written, _ := out.Write(append(frame, body...)) // Flush returns the error
			n += int64(written)
		}
		if after = part.Next; after == "" {
			return n, now, out.Flush()
		}
	}
}
