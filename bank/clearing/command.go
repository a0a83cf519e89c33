package clearing

import (
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/wire"
)

// Mark is the first byte of every command of the clearing. No command of the ledger begins with it. The second byte is
// the format of the bytes after it. A command in another format is refused.
const (
	Mark = 'c'
	form = 1
)

// Command is one change of the clearing. Each pointer is the content of one kind of command, and at most one is set. If
// none is set, the command only moves the clearing's time to At.
type Command struct {
	At messages.Time // the leader's clock
	By messages.Name // the caller who made the request

	Peer         *clearing.PeerRequest
	Reserve      *clearing.ReserveRequest
	Authorise    *clearing.AuthoriseRequest
	Revoke       *clearing.RevokeRequest
	Remit        *clearing.RemitRequest
	Accept       *clearing.AcceptRequest
	Charge       *clearing.ChargeRequest
	Instructions *clearing.SignedInstructions
	Receipt      *clearing.SignedReceipt
	Close        *clearing.CloseRequest

	// Asked is the signed request. It is nil if the command needs no signature.
	Asked *messages.SignedRequest

	Part   *clearing.PartRequest
	Silent messages.Name // a peer that does not answer; "" means none

	Incarnation uint64        // the site's new incarnation after a restored backup; 0 means none
	Since       messages.Time // when the restored backup began
	Compared    messages.Name // a peer whose books agree with ours after the restore; "" means none
	Known       uint64        // the latest incarnation of this site that the peer Compared knows
	Confirm     *clearing.ConfirmRequest
	Adopt       *clearing.AdoptRequest
}

// from returns the site whose bank signed a part of the command, or "" if none did.
func (c *Command) from() messages.Name {
	switch {
	case c.Instructions != nil:
		return c.Instructions.Instructions.From
	case c.Receipt != nil:
		return c.Receipt.Receipt.From
	}
	return ""
}

// Encode returns the command's bytes in the form that Apply takes.
func (c *Command) Encode() ([]byte, error) {
	body, err := wire.Marshal(c, wire.Msgpack)
	if err != nil {
		return nil, err
	}
	return append([]byte{Mark, form}, body...), nil
}

// LevelOf returns the level that a replica needs to read a command; see [messages.Level]. It returns an error for a
// command that this version cannot read.
func LevelOf(command []byte) (level int, err error) {
	_, level, rejected := decodeLevel(command)
	if rejected != nil {
		return 0, rejected.Err
	}
	return level, nil
}

func decode(b []byte) (Command, *Rejected) {
	c, _, rejected := decodeLevel(b)
	return c, rejected
}

func decodeLevel(b []byte) (c Command, level int, _ *Rejected) {
	if len(b) < 2 || b[0] != Mark {
		return c, 0, reject(Malformed, messages.Invalid, "command of %d bytes: it is not a command of the clearing", len(b))
	}
	if b[1] != form {
		return c, 0, reject(Malformed, messages.Invalid, "command of form %d: this bank reads form %d; run the same release on every replica", b[1], form)
	}
	level, err := wire.UnmarshalLevel(b[2:], wire.Msgpack, &c)
	if err != nil {
		return c, 0, malformed(err)
	}
	if c.At < 0 {
		return c, 0, reject(Malformed, messages.Invalid, "command: its time is negative")
	}
	return c, level, nil
}
