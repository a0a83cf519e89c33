package money

import (
	"fmt"

	"github.com/candor-grid/candor/messages"
)

// These are the bank's verbs for its whole journal. Operators and services of the site may use them.
const (
	VerbJournal     = "journal"     // JournalRequest → JournalReply
	VerbCheckpoints = "checkpoints" // CheckpointsRequest → CheckpointsReply
	VerbSegment     = "segment"     // SegmentRequest → SegmentReply; replicas of the bank
)

// JournalRequest asks for a page of the bank's journal, in order.
type JournalRequest struct {
	After uint64 `json:"after,omitempty"` // only records with a larger number; for the next page
	Limit int    `json:"limit,omitempty"` // default and maximum: as many as fit into a reply
	// Standings asks for the balance of every account after the last record.
	Standings bool `json:"standings,omitempty"`
}

// JournalReply is a page of the journal. Each record is in its canonical bytes. The records form a hash chain: the hash
// after a record is the SHA-256 of the hash before it and the record. (Here a hash is 64 hexadecimal digits; in the
// chain it is 32 bytes.)
type JournalReply struct {
	Records   []JournalRecord `json:"records"`
	Before    string          `json:"before"` // the hash before the first record of the page; zeros before record 1
	Count     uint64          `json:"count"`  // number of records in the journal
	Head      string          `json:"head"`   // the hash after the last record
	More      bool            `json:"more"`
	Standings []Standing      `json:"standings,omitempty"` // by name, after record Count
}

// JournalRecord is one record in its canonical bytes.
type JournalRecord struct {
	Number uint64 `json:"number"`
	Data   []byte `json:"data"`
}

// Standing says how many credits an account has, and how many of them are set aside.
type Standing struct {
	Account  messages.Name    `json:"account"`
	Balance  messages.Credits `json:"balance"`
	Reserved messages.Credits `json:"reserved"`
}

// CheckpointsRequest asks for signed checkpoints, oldest first.
type CheckpointsRequest struct {
	After uint64 `json:"after,omitempty"` // only checkpoints after this number of records; for the next page
	Limit int    `json:"limit,omitempty"` // default and maximum: 1000
	Sign  bool   `json:"sign,omitempty"`  // first sign a checkpoint of the present journal
	// Seen is a checkpoint that a replica of the bank has. The leader compares Seen with the leader's own books. If the
	// site has signed other books than these, the leader returns the error Conflict.
	Seen    *Checkpoint `json:"seen,omitempty"`
	Replica string      `json:"replica,omitempty"` // the replica that has Seen
}

// BankStopped begins the text of an error of kind Unavailable. A bank returns this error for each transfer if the
// records that the site has signed differ from the bank's records.
const BankStopped = "the bank moves no credits until an operator has looked"

// CheckpointsReply lists signed checkpoints.
type CheckpointsReply struct {
	Checkpoints []Checkpoint `json:"checkpoints"`
	More        bool         `json:"more"`
}

// Checkpoint is the site's signed statement of the hash of its journal after a number of records. The signature covers
// the text that Signed returns.
type Checkpoint struct {
	Site      messages.Name `json:"site"`
	Records   uint64        `json:"records"`
	Head      string        `json:"head"` // 64 hexadecimal digits
	At        messages.Time `json:"at"`   // the ledger's time
	Key       string        `json:"key"`  // public key (nkeys): the site's account key, or a key that it endorses
	Signature []byte        `json:"signature"`
	// Endorsement is the signature of the site's account for the text of EndorsedKey. It is empty if Key is the
	// account's own key.
	Endorsement []byte `json:"endorsement,omitempty"`
	// Succession is a chain of keys of the site's account. It leads from the account's first key to the key that
	// endorses Key.
	Succession []messages.Succession `json:"succession,omitempty"`
}

// EndorsedKey returns the text that a site's account signs to endorse a key, which may then sign for the site.
func EndorsedKey(site messages.Name, key string) []byte {
	return fmt.Appendf(nil, "candor key 1\nsite %s\nkey %s\n", site, key)
}

// SegmentRequest asks for a part of a closed segment of the journal.
type SegmentRequest struct {
	First  uint64 `json:"first"` // number of the segment's first record
	Offset int64  `json:"offset,omitempty"`
}

// SegmentReply is as many bytes of a segment as fit into a reply.
type SegmentReply struct {
	Data []byte `json:"data"`
	Size int64  `json:"size"` // size of the whole segment in bytes
}

// Signed returns the text that a checkpoint's signature covers.
func (c *Checkpoint) Signed() []byte {
	return fmt.Appendf(nil, "candor checkpoint 1\nsite %s\nrecords %d\nhead %s\nat %d\n", c.Site, c.Records, c.Head, int64(c.At))
}

// Validate returns an error for the first fault of a request for a page.
func (r *JournalRequest) Validate() error { return checkPage(r.Limit) }

// Validate returns an error for the first fault of a request for a page.
func (r *CheckpointsRequest) Validate() error { return checkPage(r.Limit) }

func checkPage(limit int) error {
	if limit < 0 {
		return messages.Errorf(messages.Invalid, "limit %d is negative: give the largest number of results, or leave the field limit out", limit)
	}
	return nil
}

// Validate returns an error for the first fault of the request.
func (r *SegmentRequest) Validate() error {
	switch {
	case r.First == 0:
		return messages.Errorf(messages.Invalid, "first is 0: give the number of a segment's first record")
	case r.Offset < 0:
		return messages.Errorf(messages.Invalid, "offset %d is negative: begin with 0", r.Offset)
	}
	return nil
}
