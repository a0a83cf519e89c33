package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/candor-grid/candor/messages"
)

// Store stores the full segments of a journal for one ledger. Other goroutines may call Sync and read sealed segments
// at the same time.
type Store interface {
	// SegmentBytes returns the size of the records that fill a segment, in bytes. Equal sizes give equal segments on
	// all replicas.
	SegmentBytes() int
	// Seal stores a segment. The caller must not change it afterwards.
	Seal(s *Segment) (Sealed, error)
	// Open returns a segment that this or another replica sealed. An error says what the operator can do.
	Open(s Sum) (Sealed, error)
	// Sync writes sealed segments to the disk, so that they survive a power loss. It returns false if the store keeps
	// nothing after the process has ended, or cannot sync now. An image must then contain the records of these
	// segments.
	Sync() (durable bool, err error)
}

// Sealed is a segment in a store. Several goroutines may use it at the same time.
type Sealed interface {
	Sum() Sum
	// Record returns a record by its position in the segment, starting at 0. The caller must not change it.
	Record(place int) ([]byte, error)
	// Segment reads the whole segment and checks every byte.
	Segment() (*Segment, error)
	// Keys returns the hash of each record's identifier; see [Segment].
	Keys() ([]uint64, error)
}

// Segment is a run of consecutive records, with the data to find and check each record.
type Segment struct {
	First uint64   // number of the segment's first record
	Data  []byte   // the records
	Ends  []uint32 // for each record: end of the record in Data
	// Keys has, for each record, the hash of the record's identifier. The hash is 0 for a record without an identifier.
	Keys          []uint64
	Before, After Head // head of the chain before and after the records of the segment
}

// Sum identifies a segment and its content.
type Sum struct {
	First  uint64
	Count  int
	Size   int      // size of all records in bytes
	After  Head     // the journal's head after the last record
	Digest [32]byte // digest of the table; After covers the bytes of the records
}

// Table returns the data that a store keeps in addition to the records' bytes. It has the number of the first record,
// the number of records, the number of bytes, and the hash of the journal before the first record and after the last
// one. For each record, it has the position of the record's end, the CRC-32C and the key. All numbers are little
// endian.
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

// These are the lengths in bytes of the head and of each row of a segment's table.
const (
	TableHead = 3*8 + 2*sha256.Size
	TableRow  = 16
)

// SumOf returns the Sum of a segment, which it reads from the segment's table. It returns an error if the table is
// malformed.
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
		return Sum{}, fmt.Errorf("its table of %d bytes is not a table of %d records", len(table), s.Count)
	}
	return s, nil
}

// ReadSegment returns a segment from its table and the records' bytes. It checks each record and the head.
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

// Row returns the end, the checksum and the key of one record in a table.
func Row(table []byte, place int) (end, crc uint32, key uint64) {
	row := table[TableHead+TableRow*place:]
	return binary.LittleEndian.Uint32(row), binary.LittleEndian.Uint32(row[4:]), binary.LittleEndian.Uint64(row[8:])
}

// Checksum returns the CRC-32C of b. It is used for records and tables in files.
func Checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

func (s *Segment) record(place int) []byte {
	start := uint32(0)
	if place > 0 {
		start = s.Ends[place-1]
	}
	end := s.Ends[place]
	return s.Data[start:end:end]
}

type memory struct{}

// memorySegment is the segment size of a store in memory, in bytes. It is small, because one process may have many
// ledgers.
const memorySegment = 1 << 20

func (memory) SegmentBytes() int               { return memorySegment }
func (memory) Seal(s *Segment) (Sealed, error) { return inMemory{s}, nil }
func (memory) Sync() (bool, error)             { return false, nil }

func (memory) Open(s Sum) (Sealed, error) {
	return nil, messages.Errorf(messages.Invalid, "the image does not contain the records from %d on, which are in files of the bank that made the image: restore the image on the host with those files", s.First)
}

type inMemory struct{ segment *Segment }

func (m inMemory) Sum() Sum {
	sum, _ := SumOf(m.segment.Table()) // cannot fail: the table was just made
	return sum
}

func (m inMemory) Record(place int) ([]byte, error) { return m.segment.record(place), nil }
func (m inMemory) Segment() (*Segment, error)       { return m.segment, nil }
func (m inMemory) Keys() ([]uint64, error)          { return m.segment.Keys, nil }
