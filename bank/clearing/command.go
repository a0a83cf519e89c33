package clearing

import "github.com/candor-grid/candor/messages"

// Mark is the first byte of every command, by which it is told from those of
// the ledger in one log. The second is the form of the rest: a command of another form,
// or with other rules, is not read.
const (
	Mark = 'c'
	form = 1
)

// Command is one change asked of the clearing. Exactly one of the pointers is
// set; none is the bare passing of time.
type Command struct {
	At messages.Time // the leader's clock
	By messages.Name // the caller on whose request it is made

	Peer         *messages.PeerRequest
	Reserve      *messages.ReserveRequest
	Authorise    *messages.AuthoriseRequest
	Revoke       *messages.RevokeRequest
	Remit        *messages.RemitRequest
	Accept       *messages.AcceptRequest
	Charge       *messages.ChargeRequest
	Instructions *messages.SignedInstructions
	Receipt      *messages.SignedReceipt
	Close        *messages.CloseRequest

	// Asked is the request as it was made, with its proof; nil where it needs none.
	Asked *messages.SignedRequest

	Part   *messages.PartRequest
	Silent messages.Name // a peer that the leader finds to be silent; "": none

	Incarnation uint64        // of a site whose leader finds that a backup was restored; 0: none
	Since       messages.Time // when that backup began
	Compared    messages.Name // a peer whose books the leader finds to agree after that; "": none
	Known       uint64        // the latest incarnation of this site that this peer knows
	Confirm     *messages.ConfirmRequest
	Adopt       *messages.AdoptRequest
}

// from is the site whose bank signed what the command has; "": none did.
func (c *Command) from() messages.Name {
	switch {
	case c.Instructions != nil:
		return c.Instructions.Instructions.From
	case c.Receipt != nil:
		return c.Receipt.Receipt.From
	}
	return ""
}

// Encode returns the command's bytes, as Apply takes them.
func (c *Command) Encode() ([]byte, error) {
	body, err := messages.Marshal(c, messages.Msgpack)
	if err != nil {
		return nil, err
	}
	return append([]byte{Mark, form}, body...), nil
}

// Readable returns an error for a command that Apply could not read.
func Readable(command []byte) error {
	if _, err := decode(command); err != nil {
		return err.Err
	}
	return nil
}

func decode(b []byte) (Command, *Rejected) {
	var c Command
	if len(b) < 2 || b[0] != Mark {
		return c, reject(Malformed, messages.Invalid, "command of %d bytes: is none of the clearing's", len(b))
	}
	if b[1] != form {
		return c, reject(Malformed, messages.Invalid, "command of form %d: this bank reads form %d; run the same release on every replica", b[1], form)
	}
	if err := messages.Unmarshal(b[2:], messages.Msgpack, &c); err != nil {
		return c, malformed(err)
	}
	if c.At < 0 {
		return c, reject(Malformed, messages.Invalid, "command: its time is negative")
	}
	return c, nil
}
