package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/candor-grid/candor/messages"
)

// Store keeps the full segments of a journal. One ledger uses it at a time; other goroutines
// may call Sync and read sealed segments meanwhile.
type Store interface {
	// SegmentBytes returns the number of bytes of records that fill a segment. Replicas with the
	// same number make the same segments.
	SegmentBytes() int
	// Seal keeps a segment. The caller must not change it afterwards.
	Seal(s *Segment) (Sealed, error)
	// Open returns a segment that this or another replica sealed. Its error says what to do.
	Open(s Sum) (Sealed, error)
	// Sync makes sealed segments survive a loss of power and reports whether it could. If not,
	// images have to contain the records.
	Sync() (durable bool, err error)
}

// Sealed is a segment in a store. Several goroutines may use it.
type Sealed interface {
	Sum() Sum
	// Record returns a record by its place, from 0 on. The caller must not change it.
	Record(place int) ([]byte, error)
	// Segment reads the whole segment and checks every byte.
	Segment() (*Segment, error)
	// Keys returns the hash of each record's identifier; see [Segment].
	Keys() ([]uint64, error)
}

// Segment is a run of consecutive records, with what is needed to find and check each.
type Segment struct {
	First uint64   // number of the first record
	Data  []byte   // the records
	Ends  []uint32 // end of each record in Data
	// Keys has, for each record, the hash of its identifier, 0 for none.
	Keys          []uint64
	Before, After Head // head of the chain before and after the records
}

// Sum identifies a segment.
type Sum struct {
	First  uint64
	Count  int
	Size   int      // bytes of all records
	After  Head     // the journal's head after the last record
	Digest [32]byte // digest of the table; After covers the bytes of the records
}

// Table returns what a store keeps in addition to the records' bytes: the number of the first
// record, the numbers of records and of bytes, the heads before and after, and for each record
// its end, its CRC-32C and its key. All numbers are little endian.
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

// SumOf returns the sum of a segment's table, or an error if the table is malformed.
func SumOf(table []byte) (Sum, error) {
	if len(table) < TableHead {
		return Sum{}, fmt.Errorf("its table has %d bytes, fewer than the minimum", len(table))
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

// ReadSegment makes a segment from its table and the records' bytes. It checks each record and
// the head.
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
		return nil, fmt.Errorf("records %d to %d do not match the hash in the table", s.First, s.First+uint64(sum.Count)-1)
	}
	return s, nil
}

// Row returns the end, the checksum and the key of one record.
func Row(table []byte, place int) (end, crc uint32, key uint64) {
	row := table[TableHead+TableRow*place:]
	return binary.LittleEndian.Uint32(row), binary.LittleEndian.Uint32(row[4:]), binary.LittleEndian.Uint64(row[8:])
}

// Checksum returns the CRC-32C of b, with which records and tables in files are checked.
func Checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

func (s *Segment) record(place int) []byte {
	start := uint32(0)
	if place > 0 {
		start = s.Ends[place-1]
	}
	end := s.Ends[place]
	return s.Data[start:end:end]
}

// memory is a store that keeps segments in memory.
type memory struct{}

// memorySegment is small, because one process may have many ledgers.
const memorySegment = 1 << 20

func (memory) SegmentBytes() int               { return memorySegment }
func (memory) Seal(s *Segment) (Sealed, error) { return inMemory{s}, nil }
func (memory) Sync() (bool, error)             { return false, nil }

func (memory) Open(s Sum) (Sealed, error) {
	return nil, messages.Errorf(messages.Invalid, "records from %d on are in the files of another bank and not in the image: restore it where those files are", s.First)
}

type inMemory struct{ segment *Segment }

func (m inMemory) Sum() Sum {
	sum, _ := SumOf(m.segment.Table()) // the table is well-formed: it was just made
	return sum
}

func (m inMemory) Record(place int) ([]byte, error) { return m.segment.record(place), nil }
func (m inMemory) Segment() (*Segment, error)       { return m.segment, nil }
func (m inMemory) Keys() ([]uint64, error)          { return m.segment.Keys, nil }
