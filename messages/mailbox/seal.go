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

// A seal is the checksum that an entry of the log carries in its Extensions, from the
// leader that made it to every disk: one byte of version, the sum of the entry before
// (zero where that has no seal), and the entry's own sum, over the sum before and the
// entry's index, term, type and data. So equal sums at one index mean equal logs, back
// to where seals begin. Raft and older releases pass Extensions on as they are.
const (
	sealVersion = 1
	sealBytes   = 1 + 2*sumBytes
	sumBytes    = 16
)

// sum is the checksum of an entry and of all before it; zero is none.
type sum [sumBytes]byte

var (
	errUnsealed = errors.New("it has no checksum")
	errSeal     = errors.New("its checksum does not match its content")
	errChain    = errors.New("it does not follow the entry before it: their checksums differ")
)

// newSeal returns the seal of an entry that follows one whose sum is before.
func newSeal(before sum, l *raft.Log) []byte {
	own := sumOf(before, l)
	s := append(make([]byte, 0, sealBytes), sealVersion)
	return append(append(s, before[:]...), own[:]...)
}

// sumOf digests the data by two fast checksums, 96 bits together, because an entry is
// checked several times on its way. The checksums find damage, not forgery: a forger
// could write a new seal as well.
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

// sums returns the two sums of a seal: of the entry before, and of the entry.
func sums(l *raft.Log) (before, own sum) {
	if sealed(l) {
		copy(before[:], l.Extensions[1:])
		copy(own[:], l.Extensions[1+sumBytes:])
	}
	return before, own
}

// checkSeal returns an error for an entry whose content does not match its seal.
// Entries of older releases have none, and pass.
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

// tail is the last entry of a log.
type tail struct {
	index, term uint64
	sum         sum
}

func tailOf(l *raft.Log) tail {
	_, own := sums(l)
	return tail{l.Index, l.Term, own}
}

// chains returns the sum from which the next entry's seal starts. Each replica writes the
// first entry of a group by itself, so the chain begins behind that entry.
func (t tail) chains() sum {
	if t.index <= 1 {
		return sum{}
	}
	return t.sum
}

// checkChain returns an error for a sealed entry that does not follow t, as far as
// both can tell.
func (t tail) checkChain(l *raft.Log) error {
	before, _ := sums(l)
	follows := t.chains()
	if l.Index != t.index+1 || before == (sum{}) || follows == (sum{}) || bytes.Equal(before[:], follows[:]) {
		return nil
	}
	return errChain
}

// damagedEntry is the error for a damaged entry of a log.
func damagedEntry(place string, index uint64, cause error) error {
	return fmt.Errorf("mailbox: entry %d of the log in %s is damaged: %w", index, place, cause)
}
