package history

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/candor-grid/candor/bank/ledger"
)

type sealed struct {
	store *Store
	sum   ledger.Sum
	name  string
}

var _ ledger.Sealed = (*sealed)(nil)

// errOther is the error for an undamaged file whose records are not the expected ones.
var errOther = errors.New("the file has other records than expected")

func (s *sealed) Sum() ledger.Sum { return s.sum }

// The methods below return positions and sizes of the parts of the file, in bytes.
func (s *sealed) tableAt() int64 { return int64(len(magic) + s.sum.Size) }
func (s *sealed) tableLen() int  { return ledger.TableHead + ledger.TableRow*s.sum.Count }
func (s *sealed) fileLen() int64 { return s.tableAt() + int64(s.tableLen()) + trailerLen }
func (s *sealed) rowAt(i int) int64 {
	return s.tableAt() + ledger.TableHead + int64(ledger.TableRow*i)
}

// table reads the table of the file. The length of the file and the table must agree with s.sum. table does not check
// the records.
func (s *sealed) table() ([]byte, error) {
	table := make([]byte, s.tableLen())
	err := s.store.with(s.name, func(f File) error {
		size, err := f.Size()
		if err != nil {
			return err
		}
		if size == s.fileLen() {
			if err := readFull(f, table, s.tableAt()); err != nil {
				return err
			}
			if is, err := ledger.SumOf(table); err == nil && is == s.sum {
				return nil
			}
		}
		return s.otherwise(f, size)
	})
	return table, err
}

// otherwise returns the reason why a file is not the expected one: it is damaged, or a program with another segment
// size wrote it.
func (s *sealed) otherwise(f File, size int64) error {
	whole := make([]byte, size)
	if err := readFull(f, whole, 0); err != nil {
		return err
	}
	if _, err := decode(whole); err != nil {
		return err
	}
	return errOther
}

func readFull(f File, b []byte, at int64) error {
	n, err := f.ReadAt(b, at)
	if n == len(b) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		return errors.New("it is cut")
	}
	return err
}

// Record reads one record.
func (s *sealed) Record(place int) ([]byte, error) {
	return healed(s, func() ([]byte, error) { return s.record(place) })
}

func (s *sealed) record(place int) ([]byte, error) {
	var record []byte
	err := s.store.with(s.name, func(f File) error {
		// rows has two rows of the table: the row of the record before this one, and the row of this record. Each row
		// says where its record ends. This record begins where the record before it ends. For the first record, the
		// table has a hash in place of the row before it, so the start is set to 0.
		var rows [2 * ledger.TableRow]byte
		if err := readFull(f, rows[:], s.rowAt(place-1)); err != nil {
			return err
		}
		start := binary.LittleEndian.Uint32(rows[:])
		if place == 0 {
			start = 0
		}
		end, crc := binary.LittleEndian.Uint32(rows[ledger.TableRow:]), binary.LittleEndian.Uint32(rows[ledger.TableRow+4:])
		if start >= end || int(end) > s.sum.Size {
			return fmt.Errorf("the table's row of record %d is damaged", s.sum.First+uint64(place))
		}
		record = make([]byte, end-start)
		if err := readFull(f, record, int64(len(magic))+int64(start)); err != nil {
			return err
		}
		if ledger.Checksum(record) != crc {
			return fmt.Errorf("record %d does not match its checksum", s.sum.First+uint64(place))
		}
		return nil
	})
	return record, err
}

// Segment reads the whole file. If the file is damaged, Segment fetches it from another replica first.
func (s *sealed) Segment() (*ledger.Segment, error) { return healed(s, s.segment) }

func (s *sealed) segment() (*ledger.Segment, error) {
	b, err := load(s.store.files, s.name)
	if err != nil {
		return nil, err
	}
	segment, err := decode(b)
	if err != nil {
		return nil, err
	}
	if is, err := ledger.SumOf(segment.Table()); err != nil || is != s.sum {
		return nil, errOther
	}
	return segment, nil
}

// Keys returns a hash for each record: the hash of the record's identifier. It reads the hashes from the file's table.
func (s *sealed) Keys() ([]uint64, error) {
	table, err := healed(s, s.table)
	if err != nil {
		return nil, err
	}
	keys := make([]uint64, s.sum.Count)
	for i := range keys {
		_, _, keys[i] = ledger.Row(table, i)
	}
	return keys, nil
}
