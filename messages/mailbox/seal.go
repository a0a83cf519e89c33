package mailbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/cespare/xxhash/v2"
	"github.com/hashicorp/raft"
)

// A seal is a checksum of an entry. The leader makes it, and it is stored in the entry's Extensions on every disk. It
// has one byte for the version, and two sums. The first is the sum of the entry before; it is zero if that entry has no
// seal. The second is the sum of the entry itself: it covers the first sum, and the entry's index, term, type and data.
// So if two logs have equal sums at an index, all sealed entries up to this index are equal.
const (
	sealVersion = 1
	sealBytes   = 1 + 2*sumBytes
	sumBytes    = 16
)

// sum is a checksum that covers an entry and all entries before it; zero means none.
type sum [sumBytes]byte

var (
	errUnsealed = errors.New("the entry has no checksum")
	errSeal     = errors.New("the checksum of the entry does not match its content")
	errChain    = errors.New("the checksum of the entry does not continue the checksum of the previous entry")
)

// newSeal returns the seal of an entry. The argument `before` is the sum of the previous entry.
func newSeal(before sum, l *raft.Log) []byte {
	own := sumOf(before, l)
	s := append(make([]byte, 0, sealBytes), sealVersion)
	return append(append(s, before[:]...), own[:]...)
}

// sumOf computes two checksums of the data, 96 bits together. Both are fast to compute, because an entry is checked
// several times. The checksums detect damage, but not forgery.
func sumOf(before sum, l *raft.Log) (s sum) {
	head := make([]byte, 0, 64)
	head = append(head, before[:]...)
	head = binary.BigEndian.AppendUint64(head, l.Index)
	head = binary.BigEndian.AppendUint64(head, l.Term)
	head = binary.BigEndian.AppendUint64(append(head, byte(l.Type)), uint64(len(l.Data)))
	head = binary.BigEndian.AppendUint64(head, xxhash.Sum64(l.Data))
	head = binary.BigEndian.AppendUint32(head, crc32.Checksum(l.Data, castagnoli))
	digest := sha256.Sum256(head)
	copy(s[:], digest[:])
	return s
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func sealed(l *raft.Log) bool {
	return len(l.Extensions) == sealBytes && l.Extensions[0] == sealVersion
}

// sums returns two checksums that are in an entry's seal: the checksum of the previous entry, and the checksum of the
// entry itself.
func sums(l *raft.Log) (before, own sum) {
	if sealed(l) {
		copy(before[:], l.Extensions[1:])
		copy(own[:], l.Extensions[1+sumBytes:])
	}
	return before, own
}

// checkSeal returns an error if an entry does not match its seal. Entries without a seal pass.
func checkSeal(l *raft.Log) error {
	if !sealed(l) {
		return nil
	}
	before, own := sums(l)
	if sumOf(before, l) != own {
		return errSeal
	}
	return nil
}

// tail describes the last entry of a log.
type tail struct {
	index, term uint64
	sum         sum
}

func tailOf(l *raft.Log) tail {
	_, own := sums(l)
	return tail{l.Index, l.Term, own}
}

// The seal of an entry contains the checksum in the seal of the previous entry. t is the last entry of a log, and
// chains returns its checksum for the next entry. Each replica writes the first entry of a group by itself, so the
// first entries differ. For the second entry, chains therefore returns zero.
func (t tail) chains() sum {
	if t.index <= 1 {
		return sum{}
	}
	return t.sum
}

// checkChain returns an error if an entry's seal shows that it does not follow the last entry of the tail t. If one of
// the two entries has no seal, this cannot be known, and checkChain returns nil.
func (t tail) checkChain(l *raft.Log) error {
	before, _ := sums(l)
	follows := t.chains()
	if l.Index != t.index+1 || before == (sum{}) || follows == (sum{}) || bytes.Equal(before[:], follows[:]) {
		return nil
	}
	return errChain
}

func damagedEntry(place string, index uint64, cause error) error {
	return fmt.Errorf("mailbox: entry %d of the log in %s is damaged: %w", index, place, cause)
}
