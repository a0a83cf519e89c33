package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
)

// index finds the record of an identifier. It is a table of 16 bytes for each
// entry, open-addressed and at most three quarters full: a hash of the
// identifier and the record's number. The identifier itself stands in the
// record, which is read only where the hash is that of one sought. The index
// is no part of the image: the hashes stand in the tables of the segments.
type index struct {
	// seed makes places differ from process to process, so that nobody can
	// choose identifiers that crowd one place.
	seed   uint64
	shards [shards]shard
	digest func(id string) uint64 // keyHash, but in a test

	last     string // the identifier hashed last: the same is often asked twice
	lastHash uint64
}

// shards keep the growth of the table in small steps.
const shards = 256

// shard is a part of the table.
type shard struct {
	slots []slot // a power of two of them; number 0 is free
	used  int
	bits  int // log2(len(slots))
}

type slot struct{ hash, number uint64 }

func newIndex() index { return index{seed: rand.Uint64(), digest: keyHash} }

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

// place returns the shard of a hash, and bits of which the first say where in
// it to begin.
func (x *index) place(hash uint64) (*shard, uint64) {
	mixed := (hash ^ x.seed) * 0x9e3779b97f4a7c15
	return &x.shards[mixed>>56], mixed << 8
}

// add enters the record of an identifier that is not in the index.
func (x *index) add(id string, number uint64) { x.enter(x.hash(id), number) }

func (x *index) enter(hash, number uint64) {
	s, place := x.place(hash)
	if 4*(s.used+1) > 3*len(s.slots) {
		x.grow(s)
	}
	s.insert(place, slot{hash, number})
	s.used++
}

func (s *shard) insert(place uint64, entry slot) {
	mask := uint64(len(s.slots) - 1)
	i := place >> (64 - s.bits)
	for s.slots[i].number != 0 {
		i = (i + 1) & mask
	}
	s.slots[i] = entry
}

// grow doubles a shard.
func (x *index) grow(s *shard) {
	old := s.slots
	s.bits = max(3, s.bits+1)
	s.slots = make([]slot, 1<<s.bits)
	for _, entry := range old {
		if entry.number != 0 {
			_, place := x.place(entry.hash)
			s.insert(place, entry)
		}
	}
}

// find returns the record of an identifier of some hash, 0 if there is none;
// is tells whether a record is of the right one.
func (x *index) find(hash uint64, is func(number uint64) bool) uint64 {
	s, place := x.place(hash)
	if len(s.slots) == 0 {
		return 0
	}
	mask := uint64(len(s.slots) - 1)
	for i := place >> (64 - s.bits); s.slots[i].number != 0; i = (i + 1) & mask {
		if s.slots[i].hash == hash && is(s.slots[i].number) {
			return s.slots[i].number
		}
	}
	return 0
}
