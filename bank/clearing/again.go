package clearing

import (
	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/proof"
	"github.com/candor-grid/candor/messages/wire"
)

// These are the verbs of journal records that no request caused. Such a record has one of three causes: a peer sent a
// receipt, time passed, or the leader itself found something.
const (
	verbReceipt = "receipt"
	verbPass    = "pass"
	verbFound   = "found"
)

// Again returns a function that creates the clearing of a site, on the ledger of a replay.
func Again(site messages.Name) func(*ledger.Ledger) ledger.Settler {
	return func(l *ledger.Ledger) ledger.Settler { return New(site, l, proof.Verified) }
}

func (c *Command) bare() bool {
	verb, _ := c.request()
	found := c.found()
	return verb == "" && c.Instructions == nil && c.Receipt == nil && found == Command{}
}

// found returns only those fields of a command that the leader computed itself, and that no peer or operator has
// signed.
func (c *Command) found() Command {
	return Command{Silent: c.Silent, Incarnation: c.Incarnation, Since: c.Since, Compared: c.Compared, Known: c.Known}
}

// hear writes the cause of a command to the journal. It reports whether a peer has signed the command.
func (s *State) hear(c *Command) (signed bool) {
	var from messages.Name
	var verb string
	var statement any
	switch found := c.found(); {
	case c.Instructions != nil:
		from, verb, statement, signed = messages.ServiceIdentity(c.Instructions.Instructions.From), clearing.VerbInstruct, c.Instructions, true
	case c.Receipt != nil:
		from, verb, statement, signed = messages.ServiceIdentity(c.Receipt.Receipt.From), verbReceipt, c.Receipt, true
	case found != Command{}:
		verb, statement = verbFound, &found
	default:
		return false
	}
	body, err := wire.Marshal(statement, wire.Msgpack)
	if err != nil {
		return false // cannot happen: the command was decoded before
	}
	s.money.books.Hear(from, verb, body)
	return signed
}

// Again implements [ledger.Settler].
func (s *State) Again(cause *ledger.Cause) *messages.Error {
	c := Command{At: cause.At, By: cause.By}
	into := c.place(cause.Verb)
	payload := cause.Request.Payload
	switch {
	case !cause.Said:
		c.Asked = &cause.Request
		if into == nil {
			return messages.Errorf(messages.Unproven, "%q is no request that a bank carries out", clip(cause.Verb))
		}
	case cause.Verb == verbPass && cause.By == "" && len(payload) == 0:
		c.By = ""
		return s.again(&c)
	case cause.Verb == clearing.VerbInstruct:
		c.Instructions = new(clearing.SignedInstructions)
		into, c.By = c.Instructions, ""
	case cause.Verb == verbReceipt:
		c.Receipt = new(clearing.SignedReceipt)
		into, c.By = c.Receipt, ""
	case cause.Verb == verbFound && cause.By == "":
		var found Command
		if err := read(payload, &found); err != nil {
			return messages.AsError("", err)
		}
		c.Silent, c.Incarnation, c.Since, c.Compared, c.Known, into = found.Silent, found.Incarnation, found.Since, found.Compared, found.Known, nil
	default:
		return messages.Errorf(messages.Unproven, "nobody says %q", clip(cause.Verb))
	}
	if into != nil {
		if err := read(payload, into); err != nil {
			return messages.AsError("", err)
		}
	}
	return s.again(&c)
}

func (s *State) again(c *Command) *messages.Error {
	data, err := c.Encode()
	if err != nil {
		return messages.AsError("", err)
	}
	return s.Apply(data).Error
}

func read(payload []byte, into any) error {
	return wire.Unmarshal(payload, wire.Detect(payload, ""), into)
}

// Differs returns an error if two states differ. It does not compare the counts of refusals, because the journal does
// not record them.
func (s *State) Differs(from *State) error {
	mine, theirs := s.Capture(), from.Capture()
	mine.head.Refused, theirs.head.Refused = nil, nil
	if mine.sum() != theirs.sum() {
		return messages.Errorf(messages.Internal, "the image of settlements with other sites differs from the sum of the records")
	}
	return nil
}
