package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// index finds a record by an identifier. It looks up the hash of the identifier, and then compares the identifier in
// the record. An image does not have the index, because the tables of the segments have the hashes.
type index struct {
	numbers map[uint64]uint64      // by hash of an identifier: number of the first record with this hash
	more    map[uint64][]uint64    // by hash: numbers of further records with the same hash; almost always empty
	digest  func(id string) uint64 // the function keyHash; tests replace it

	last     string // the identifier that was hashed last; often the same identifier is hashed again
	lastHash uint64
}

func newIndex() index {
	return index{numbers: map[uint64]uint64{}, more: map[uint64][]uint64{}, digest: keyHash}
}

func (x *index) hash(id string) uint64 {
	if id != x.last || x.lastHash == 0 {
		x.last, x.lastHash = id, x.digest(id)
	}
	return x.lastHash
}

// forget clears the remembered identifier and its hash. The identifier may share the memory of a command.
func (x *index) forget() { x.last, x.lastHash = "", 0 }

// keyHash returns the hash of an identifier as segments store it: the first eight bytes of its SHA-256. It is never 0,
// because 0 means "no identifier".
func keyHash(id string) uint64 {
	var space [MaxID + 16]byte
	sum := sha256.Sum256(append(space[:0], id...))
	return max(1, binary.LittleEndian.Uint64(sum[:]))
}

// add adds the record of an identifier that is not in the index.
func (x *index) add(id string, number uint64) { x.enter(x.hash(id), number) }

func (x *index) enter(hash, number uint64) {
	if _, taken := x.numbers[hash]; taken {
		x.more[hash] = append(x.more[hash], number)
		return
	}
	x.numbers[hash] = number
}

// find returns the number of the record that has a given identifier, or 0 if there is none. The argument `hash` is the
// hash of the identifier. Records with different identifiers can have the same hash. The function `is` gets the number
// of a record, and reports whether this record has the identifier.
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
