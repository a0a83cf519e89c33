package messages

import "fmt"

// Verbs of the bank about its whole history. Operators and services of the
// site may ask.
const (
	VerbJournal     = "journal"     // JournalRequest → JournalReply
	VerbCheckpoints = "checkpoints" // CheckpointsRequest → CheckpointsReply
	VerbSegment     = "segment"     // SegmentRequest → SegmentReply; replicas of the bank
)

// JournalRequest asks for a page of the bank's journal, in order.
type JournalRequest struct {
	After uint64 `json:"after,omitempty"` // only records with a larger number, for the next page
	Limit int    `json:"limit,omitempty"` // default and most: what fits into a reply
	// Standings asks for the balance of every account as of the last record.
	Standings bool `json:"standings,omitempty"`
}

// JournalReply is a page of the journal. Each record is in its canonical
// bytes, over which the chain runs: the hash after a record is SHA-256 of the
// hash before it (64 hexadecimal digits here, 32 bytes there) and the record.
type JournalReply struct {
	Records   []JournalRecord `json:"records"`
	Before    string          `json:"before"` // the hash before the first record of the page: zeros before record 1
	Count     uint64          `json:"count"`  // records there are
	Head      string          `json:"head"`   // the hash after the last of them
	More      bool            `json:"more"`
	Standings []Standing      `json:"standings,omitempty"` // by name; after record Count
}

// JournalRecord is one record in its canonical bytes.
type JournalRecord struct {
	Number uint64 `json:"number"`
	Data   []byte `json:"data"`
}

// Standing is the credits of an account, and how much of them is set aside.
type Standing struct {
	Account  Name    `json:"account"`
	Balance  Credits `json:"balance"`
	Reserved Credits `json:"reserved"`
}

// CheckpointsRequest asks for signed checkpoints, oldest first.
type CheckpointsRequest struct {
	After uint64 `json:"after,omitempty"` // only checkpoints after this number of records, for the next page
	Limit int    `json:"limit,omitempty"` // default and most 1000
	Sign  bool   `json:"sign,omitempty"`  // first sign a checkpoint of the journal as it is now
	// Seen is a checkpoint that a replica of the bank has, which the leader compares with
	// its books: Conflict, if the site signed other books.
	Seen    *Checkpoint `json:"seen,omitempty"`
	Replica string      `json:"replica,omitempty"` // the replica that has it
}

// BankStopped begins the error, of kind Unavailable, with which a bank refuses to move
// credits when the site has signed other books than the bank's.
const BankStopped = "the bank moves no credits until an operator has looked"

// CheckpointsReply lists signed checkpoints.
type CheckpointsReply struct {
	Checkpoints []Checkpoint `json:"checkpoints"`
	More        bool         `json:"more"`
}

// Checkpoint is the site's signed statement that its journal had a hash after a number of records. The
// signature is over the text that Signed returns.
type Checkpoint struct {
	Site      Name   `json:"site"`
	Records   uint64 `json:"records"`
	Head      string `json:"head"` // 64 hexadecimal digits
	At        Time   `json:"at"`   // the ledger's time
	Key       string `json:"key"`  // public key (nkeys): of the site's account, or one that it endorses
	Signature []byte `json:"signature"`
	// Endorsement is the signature of the site's account under EndorsedKey, where
	// Key is not the account's own.
	Endorsement []byte `json:"endorsement,omitempty"`
	// Succession leads from the account's first key to the key that endorses.
	Succession []Succession `json:"succession,omitempty"`
}

// EndorsedKey returns the text that a site's account signs to endorse a key that signs for the
// site.
func EndorsedKey(site Name, key string) []byte {
	return fmt.Appendf(nil, "candor key 1\nsite %s\nkey %s\n", site, key)
}

// SegmentRequest asks for a part of a closed segment of the journal.
type SegmentRequest struct {
	First  uint64 `json:"first"` // number of the segment's first record
	Offset int64  `json:"offset,omitempty"`
}

// SegmentReply is as much of a segment as fits into a reply.
type SegmentReply struct {
	Data []byte `json:"data"`
	Size int64  `json:"size"` // bytes of the whole segment
}

// Signed returns the text that a checkpoint's signature covers.
func (c *Checkpoint) Signed() []byte {
	return fmt.Appendf(nil, "candor checkpoint 1\nsite %s\nrecords %d\nhead %s\nat %d\n", c.Site, c.Records, c.Head, int64(c.At))
}

// Validate reports the first thing that is wrong with a request for a page.
func (r *JournalRequest) Validate() error { return checkPage(r.Limit) }

// Validate reports the first thing that is wrong with a request for a page.
func (r *CheckpointsRequest) Validate() error { return checkPage(r.Limit) }

func checkPage(limit int) error {
	if limit < 0 {
		return Errorf(Invalid, "limit %d is negative: leave it out, or give how many are wanted", limit)
	}
	return nil
}

// Validate reports the first thing that is wrong with the request.
func (r *SegmentRequest) Validate() error {
	switch {
	case r.First == 0:
		return Errorf(Invalid, "first is 0: give the number of a segment's first record")
	case r.Offset < 0:
		return Errorf(Invalid, "offset %d is negative: begin with 0", r.Offset)
	}
	return nil
}
