package ledger

import (
	"hash/maphash"
	"strings"
)

// index finds the record of an identifier. It keeps numbers only, so that the
// garbage collector need not look at it: the identifiers themselves stand in
// the records. It is no part of the replicated state, which is why the hash
// may be another one in each process.
type index struct {
	hash  func(string) uint64
	first map[uint64]uint64 // hash of an identifier to its record
	more  map[string]uint64 // those whose hash another identifier had before
}

func newIndex() index {
	seed := maphash.MakeSeed()
	return index{
		hash:  func(s string) uint64 { return maphash.String(seed, s) },
		first: map[uint64]uint64{}, more: map[string]uint64{},
	}
}

// add enters an identifier that is not in the index.
func (x *index) add(id string, number uint64) {
	h := x.hash(id)
	if _, taken := x.first[h]; taken {
		x.more[strings.Clone(id)] = number
		return
	}
	x.first[h] = number
}

// find returns the record of an identifier in the journal, 0 if there is none.
func (x *index) find(id string, j *journal) uint64 {
	number, ok := x.first[x.hash(id)]
	if !ok {
		return 0
	}
	if rec, _ := decodeRecord(j.at(number)); rec.asked.ID == id {
		return number
	}
	return x.more[id]
}

// recorded returns the number of the record that answered an identifier, 0 if
// none did.
func (l *Ledger) recorded(id string) uint64 { return l.known.find(id, &l.journal) }
