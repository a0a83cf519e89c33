package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// index finds the record of an identifier by a hash of it. The identifier itself
// stands in the record, which is read only where the hash is that of one sought. The
// index is no part of the image: the hashes stand in the tables of the segments.
type index struct {
	numbers map[uint64]uint64      // of the records, by hash
	more    map[uint64][]uint64    // of further records of a hash; almost always empty
	digest  func(id string) uint64 // keyHash, but in a test

	last     string // the identifier hashed last: the same is often asked twice
	lastHash uint64
}

func newIndex() index {
	return index{numbers: map[uint64]uint64{}, more: map[uint64][]uint64{}, digest: keyHash}
}

// hash is the digest of an identifier, remembered.
func (x *index) hash(id string) uint64 {
	if id != x.last || x.lastHash == 0 {
		x.last, x.lastHash = id, x.digest(id)
	}
	return x.lastHash
}

// forget drops the memory of the identifier, which may be part of a command.
func (x *index) forget() { x.last, x.lastHash = "", 0 }

// keyHash is the hash of an identifier as it stands in segments: the first
// eight bytes of SHA-256, but never 0, which stands for no identifier.
func keyHash(id string) uint64 {
	var space [MaxID + 16]byte
	sum := sha256.Sum256(append(space[:0], id...))
	return max(1, binary.LittleEndian.Uint64(sum[:]))
}

// add enters the record of an identifier that is not in the index.
func (x *index) add(id string, number uint64) { x.enter(x.hash(id), number) }

func (x *index) enter(hash, number uint64) {
	if _, taken := x.numbers[hash]; taken {
		x.more[hash] = append(x.more[hash], number)
		return
	}
	x.numbers[hash] = number
}

// find returns the record of an identifier of some hash, 0 if there is none;
// is tells whether a record is of the right one.
func (x *index) find(hash uint64, is func(number uint64) bool) uint64 {
	number := x.numbers[hash]
	if number == 0 || is(number) {
		return number
	}
	if i := slices.IndexFunc(x.more[hash], is); i >= 0 {
		return x.more[hash][i]
	}
	return 0
}
