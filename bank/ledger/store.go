package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/candor-grid/candor/messages"
)

// Store keeps the segments of a journal that are full. One ledger uses it at a
// time; Sync may be called, and what was sealed be read, while it does.
type Store interface {
	// SegmentBytes is how many bytes of records go into a segment. Replicas
	// with the same value make the same segments.
	SegmentBytes() int
	// Seal keeps a segment, which must not be changed any more.
	Seal(s *Segment) (Sealed, error)
	// Open returns a segment that was sealed here, or in another replica. An
	// error says what to do about it.
	Open(s Sum) (Sealed, error)
	// Sync makes what was sealed survive a loss of power. It reports whether it
	// did: where it did not, images have to carry the records themselves.
	Sync() (durable bool, err error)
}

// Sealed is a segment in its store. It may be used by several goroutines.
type Sealed interface {
	Sum() Sum
	// Record returns the record at a place from 0 on; it must not be changed.
	Record(place int) ([]byte, error)
	// Segment reads all of it and checks every byte.
	Segment() (*Segment, error)
	// Keys returns the hash of the identifier of each record; see [Segment].
	Keys() ([]uint64, error)
}

// Segment is a run of consecutive records, and what is known of each.
type Segment struct {
	First uint64   // number of the first record
	Data  []byte   // the records
	Ends  []uint32 // where in Data each record ends
	// Keys has for each record the hash by which its identifier is found, 0
	// for none.
	Keys          []uint64
	Before, After Head // of the chain
}

// Sum is what tells a segment from every other.
type Sum struct {
	First  uint64
	Count  int
	Size   int      // of the records, in bytes
	After  Head     // of the chain, after the last record
	Digest [32]byte // of everything but the records' bytes, for which After stands
}

// Table returns what is kept beside the records' bytes: the numbers of the
// first record, of records and of bytes, the chain before and after, and for
// each record where it ends, its CRC-32C and its key. All are little endian.
func (s *Segment) Table() []byte {
	b := make([]byte, 0, TableHead+TableRow*len(s.Ends))
	b = binary.LittleEndian.AppendUint64(b, s.First)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(s.Ends)))
	b = binary.LittleEndian.AppendUint64(b, uint64(len(s.Data)))
	b = append(b, s.Before[:]...)
	b = append(b, s.After[:]...)
	start := uint32(0)
	for i, end := range s.Ends {
		b = binary.LittleEndian.AppendUint32(b, end)
		b = binary.LittleEndian.AppendUint32(b, Checksum(s.Data[start:end]))
		b = binary.LittleEndian.AppendUint64(b, s.Keys[i])
		start = end
	}
	return b
}

// Sizes of the parts of a table.
const (
	TableHead = 3*8 + 2*sha256.Size
	TableRow  = 16
)

// SumOf returns the sum of the segment with a table; an error if it can be none.
func SumOf(table []byte) (Sum, error) {
	if len(table) < TableHead {
		return Sum{}, fmt.Errorf("its table has %d bytes, fewer than any", len(table))
	}
	s := Sum{
		First: binary.LittleEndian.Uint64(table), Count: int(binary.LittleEndian.Uint64(table[8:])),
		Size: int(binary.LittleEndian.Uint64(table[16:])), After: Head(table[TableHead-sha256.Size : TableHead]),
		Digest: sha256.Sum256(table),
	}
	if s.Count <= 0 || s.Count != (len(table)-TableHead)/TableRow || (len(table)-TableHead)%TableRow != 0 {
		return Sum{}, fmt.Errorf("its table of %d bytes is not one of %d records", len(table), s.Count)
	}
	return s, nil
}

// ReadSegment puts a segment together from its table and the records' bytes,
// and checks each record and the chain.
func ReadSegment(table, data []byte) (*Segment, error) {
	sum, err := SumOf(table)
	if err != nil {
		return nil, err
	}
	s := &Segment{
		First: sum.First, Data: data, Before: Head(table[24 : 24+sha256.Size]), After: sum.After,
		Ends: make([]uint32, sum.Count), Keys: make([]uint64, sum.Count),
	}
	c := chain{head: s.Before}
	start := uint32(0)
	for i := range s.Ends {
		end, crc, key := Row(table, i)
		if end < start || int(end) > len(data) || Checksum(data[start:end]) != crc {
			return nil, fmt.Errorf("record %d does not match its checksum", s.First+uint64(i))
		}
		s.Ends[i], s.Keys[i] = end, key
		c.add(data[start:end])
		start = end
	}
	if int(start) != len(data) || c.head != s.After {
		return nil, fmt.Errorf("records %d to %d do not come to the hash written behind them", s.First, s.First+uint64(sum.Count)-1)
	}
	return s, nil
}

// Row returns where a record ends, its checksum and its key.
func Row(table []byte, place int) (end, crc uint32, key uint64) {
	row := table[TableHead+TableRow*place:]
	return binary.LittleEndian.Uint32(row), binary.LittleEndian.Uint32(row[4:]), binary.LittleEndian.Uint64(row[8:])
}

// Checksum is the CRC-32C by which records, and tables in files, are checked.
func Checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

func (s *Segment) record(place int) []byte {
	start := uint32(0)
	if place > 0 {
		start = s.Ends[place-1]
	}
	end := s.Ends[place]
	return s.Data[start:end:end]
}

// memory is the store that keeps segments as they are.
type memory struct{}

// memorySegment is small, for many ledgers may live in one process.
const memorySegment = 1 << 20

func (memory) SegmentBytes() int               { return memorySegment }
func (memory) Seal(s *Segment) (Sealed, error) { return inMemory{s}, nil }
func (memory) Sync() (bool, error)             { return false, nil }

func (memory) Open(s Sum) (Sealed, error) {
	return nil, messages.Errorf(messages.Invalid, "records from %d on are not in the image but in the files of another bank: restore it where they are", s.First)
}

type inMemory struct{ segment *Segment }

func (m inMemory) Sum() Sum {
	sum, _ := SumOf(m.segment.Table()) // a table that was just made
	return sum
}

func (m inMemory) Record(place int) ([]byte, error) { return m.segment.record(place), nil }
func (m inMemory) Segment() (*Segment, error)       { return m.segment, nil }
func (m inMemory) Keys() ([]uint64, error)          { return m.segment.Keys, nil }
