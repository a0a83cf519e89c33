package ledger

import (
	"crypto/sha256"
	"hash"
)

// Head is the hash of a journal: after no record 32 zeros, after each further
// record SHA-256 of the Head before it followed by the record's bytes. It
// stands for every record up to it, in their order.
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
