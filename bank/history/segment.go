package history

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
)

// Each file begins with this line. After it come the records, and then a table. The file ends with the length of the
// table and the CRC-32C of the table, in four bytes each, little endian.
const magic = "candor-journal-1"

const (
	suffix     = ".segment"
	tailName   = "tail"
	trailerLen = 8
)

func nameOf(first uint64) string { return fmt.Sprintf("%020d%s", first, suffix) }

// IsSegment reports whether a file with this name has a full segment, and so never changes.
func IsSegment(name string) bool { return strings.HasSuffix(name, suffix) }

func encode(s *ledger.Segment) [][]byte {
	table := s.Table()
	trailer := binary.LittleEndian.AppendUint32(nil, uint32(len(table)))
	trailer = binary.LittleEndian.AppendUint32(trailer, ledger.Checksum(table))
	return [][]byte{[]byte(magic), s.Data, table, trailer}
}

// decode reads a whole file and checks every byte.
func decode(b []byte) (*ledger.Segment, error) {
	table, err := split(b)
	if err != nil {
		return nil, err
	}
	return ledger.ReadSegment(table, b[len(magic):len(b)-trailerLen-len(table)])
}

func split(b []byte) (table []byte, err error) {
	if len(b) < len(magic)+trailerLen || string(b[:len(magic)]) != magic {
		if err := messages.CheckFormat("it", string(b[:min(len(b), len(magic))]), magic); err != nil {
			return nil, err
		}
		return nil, errors.New("the file does not begin as a history file does")
	}
	trailer := b[len(b)-trailerLen:]
	n := int64(binary.LittleEndian.Uint32(trailer))
	if n > int64(len(b)-len(magic)-trailerLen) {
		return nil, errors.New("the file is cut off, or its end is damaged")
	}
	table = b[int64(len(b)-trailerLen)-n : len(b)-trailerLen]
	if ledger.Checksum(table) != binary.LittleEndian.Uint32(trailer[4:]) {
		return nil, errors.New("the file is cut off, or its table is damaged")
	}
	return table, nil
}

// damaged returns the error for a damaged file, which says what to do.
func damaged(name string, err error) error {
	if messages.KindOf(err) == messages.Conflict { // a newer version of the program wrote the file
		return messages.Errorf(messages.Conflict, "history file %s: %v", name, err)
	}
	return messages.Errorf(messages.Internal,
		"history file %s: %v. Stop the replica, remove this file, and start the replica while the other replicas run: the replica then fetches the file from them; if there is no other replica, restore the file from a backup", name, err)
}

// missing returns the error for a missing file. The error says what to do.
func missing(name string, cause error) error {
	return messages.Errorf(messages.Internal,
		"history file %s is missing, and was not fetched (%v): start the replica while other replicas run, or restore the file from a backup", name, cause)
}

func load(files Files, name string) ([]byte, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	b := make([]byte, size)
	return b, readFull(f, b, 0)
}

// Walk reads the directory of a stopped replica. It checks each file, and calls f for each record of the file, in
// order. It returns the number of records, and the journal's head after the last record.
func Walk(files Files, f func(number uint64, record []byte) error) (count uint64, head ledger.Head, err error) {
	names, err := files.List()
	if err != nil {
		return 0, head, fmt.Errorf("the bank's history: %w", err)
	}
	for _, name := range names {
		if !strings.HasSuffix(name, suffix) {
			continue
		}
		if count, head, err = walkFile(files, name, count, head, f); err != nil {
			return count, head, err
		}
	}
	count, head, err = walkFile(files, tailName, count, head, f)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errEarlier) {
		return count, head, nil // there is no tail, or it is older than the last file
	}
	return count, head, err
}

// errEarlier is the error for a tail file (the records after the last full segment) that is older than the files next
// to it.
var errEarlier = errors.New("the file is older than the other history files")

func walkFile(files Files, name string, count uint64, head ledger.Head, f func(uint64, []byte) error) (uint64, ledger.Head, error) {
	b, err := load(files, name)
	if err != nil {
		return count, head, fmt.Errorf("the bank's history: %w", err)
	}
	s, err := decode(b)
	switch {
	case err != nil:
		return count, head, damaged(name, err)
	case name == tailName && s.First <= count:
		return count, head, errEarlier
	case name == tailName && s.First != count+1:
		return count, head, messages.Errorf(messages.Unavailable, "the bank's history: the replica was killed before it wrote the files before record %d: start the replica, then stop it", s.First)
	case s.First != count+1:
		return count, head, messages.Errorf(messages.Internal, "the bank's history: no file has records %d to %d: restore file %s and all later files from a backup or from another replica", count+1, s.First-1, nameOf(count+1))
	case s.Before != head:
		return count, head, damaged(name, errors.New("the file does not continue the previous history file"))
	}
	if err := s.Each(s.First, f); err != nil {
		return count, head, err
	}
	return count + uint64(len(s.Ends)), s.After, nil
}
