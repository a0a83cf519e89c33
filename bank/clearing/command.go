package clearing

import "github.com/candor-grid/candor/messages"

// Mark is the first byte of every command, by which it is told from those of
// the ledger in one log.
const Mark = 'c'

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

	// Rules is by which rules it is carried out: those of the release that
	// proposed it, so that a log comes to the same whenever it is read.
	Rules uint64

	// Asked is the request as it was made, with its proof; nil where it needs none.
	Asked *messages.SignedRequest

	Part   *messages.PartRequest
	Silent messages.Name // a peer that the leader finds to be silent; "": none

	Incarnation uint64                  // of a site whose leader finds that a backup was restored; 0: none
	Compared    messages.Name           // a peer whose books the leader finds to agree after that; "": none
	Repair      *messages.RepairRequest // enters what Statements prove
	Statements  *messages.Statements
}

// The rules of releases. Under the first, all peers shared one reserve, a
// dispute changed nothing, and one peer's full outbox stopped the others'. Under the
// second a key that was left out could come back. Under the third no site parted. Under
// the fourth what a peer lost could not be given back to it. Under the fifth the journal did
// not have what peers signed.
const (
	firstRules uint64 = iota
	boundedRules
	retiringRules
	partingRules
	restoringRules
	hearingRules

	currentRules = hearingRules
)

// Encode returns the command's bytes, as Apply takes them, to be carried out by
// the rules of this release.
func (c *Command) Encode() ([]byte, error) { return c.encodeUnder(currentRules) }

func (c *Command) encodeUnder(rules uint64) ([]byte, error) {
	ruled := *c
	ruled.Rules = rules
	body, err := messages.Marshal(&ruled, messages.Msgpack)
	if err != nil {
		return nil, err
	}
	return append([]byte{Mark}, body...), nil
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
	if err := messages.Unmarshal(b[1:], messages.Msgpack, &c); err != nil {
		return c, malformed(err)
	}
	if c.At < 0 || c.Rules > currentRules {
		return c, reject(Malformed, messages.Invalid, "command: its time is negative, or its rules are of a newer release")
	}
	return c, nil
}
