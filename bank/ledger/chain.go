package ledger

import (
	"crypto/sha256"
	"hash"
)

// Head is the hash of a journal. With no records it is 32 zeros; each record makes it the
// SHA-256 of the previous Head and the record's bytes. So it proves all records and their
// order.
type Head [sha256.Size]byte

// chain computes heads without allocating.
type chain struct {
	head   Head
	digest hash.Hash
}

func (c *chain) add(record []byte) {
	if c.digest == nil {
		c.digest = sha256.New()
	}
	c.digest.Reset()
	c.digest.Write(c.head[:]) //nolint:errcheck // a hash takes everything
	c.digest.Write(record)    //nolint:errcheck // a hash takes everything
	c.digest.Sum(c.head[:0])
}
