package ledger

import (
	"crypto/sha256"
	"hash"
)

// Head is the hash of a journal. Without records it is 32 zero bytes. Each record changes it to the SHA-256 of the
// previous Head and the record's bytes. So a Head proves all records and their order.
type Head [sha256.Size]byte

// chain computes the heads of a hash chain, one after each record, without allocating memory. The head after a record
// proves all records so far.
type chain struct {
	head   Head
	digest hash.Hash
}

func (c *chain) add(record []byte) {
	if c.digest == nil {
		c.digest = sha256.New()
	}
	c.digest.Reset()
	c.digest.Write(c.head[:]) //nolint:errcheck // writing to a hash cannot fail
	c.digest.Write(record)    //nolint:errcheck // writing to a hash cannot fail
	c.digest.Sum(c.head[:0])
}
