package ledger

import (
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
	"github.com/candor-grid/candor/messages/proof"
	"github.com/candor-grid/candor/messages/wire"
)

// MaxBatch is the maximum number of transfers in one command.
const MaxBatch = 10_000

// smallestTransfer is the length of an encoded transfer whose fields are all empty, in bytes.
const smallestTransfer = 11

// The first byte of a command is its format. A command in the format `plain` has no proof of who made it. A command in
// the format `proven` carries a signed request, or the marks of a session. The format `within` is only for a command
// that is a part of a clearing command. Any other first byte is refused.
const (
	within = 0
	plain  = 3
	proven = 4
)

// Verb says what a command does.
type Verb uint8

// These are the kinds of commands. New kinds are added at the end, because commands stay in logs.
const (
	Transfers Verb = iota + 1 // carries out Command.Transfers
	Grant                     // issues credits as Command.Grant says
	Member                    // changes the members of an account as Command.Member says
	Expire                    // only sets the time
	Project                   // makes Command.Project a project
	Pay                       // moves credits as Command.Pay says
	Freeze                    // freezes or thaws an account as Command.Freeze says
	Credit                    // sets an account's credit as Command.Credit says
	Withdraw                  // takes credits back as Command.Withdraw says
	Correct                   // reverses a transfer as Command.Correct says
	Keys                      // learns the site's keys from Command.Asked
	Session                   // opens a session as Command.SessionAsked says
	lastVerb  = Session
)

// Command is one change of the ledger. Verb says which of its fields are used.
type Command struct {
	Verb   Verb
	At     messages.Time // the leader's clock when it proposed the command
	By     messages.Name // the caller who asked; "" for Expire
	Rank   Rank          // rank of By
	Within bool          // the command is part of a command of the clearing

	Transfers []money.Transfer
	Grant     money.GrantRequest
	Member    money.MemberRequest
	Project   money.ProjectRequest
	Pay       money.PayRequest // the field From is set
	Freeze    money.FreezeRequest
	Credit    money.CreditRequest
	Withdraw  money.WithdrawRequest
	Correct   money.CorrectRequest

	// Asked is the signed request, or nil. If there is one, the other fields of the command, such as Correct, are
	// decoded from it when the command is applied. They may be empty until then.
	Asked        *messages.SignedRequest
	SessionAsked messages.SessionRequest
	// Proof proves who made the transfers in the field Transfers.
	Proof *messages.TransferProof

	level int      // level of the fields in Asked, once it was read
	texts [][]byte // the encoded bytes of each of Transfers
}

// Encode returns the command's bytes in the form that Apply takes.
func (c *Command) Encode() []byte {
	w := codec{b: make([]byte, 0, 64+(96+proof.MarkSize)*len(c.Transfers))}
	w.b = append(w.b, c.form(), byte(c.Verb))
	number(&w, &c.At)
	w.text(&c.By)
	octet(&w, &c.Rank)
	switch {
	case c.Verb == Transfers:
		w.transfers(c)
	case c.Asked != nil:
		w.signed(c.Asked)
	default:
		w.management(c)
	}
	return w.b
}

func (c *Command) form() byte {
	switch {
	case c.Within:
		return within
	case c.proven():
		return proven
	}
	return plain
}

// transfers encodes or decodes the transfers, each followed by its mark.
func (c *codec) transfers(cmd *Command) {
	if cmd.Proof != nil {
		c.uint(&cmd.Proof.Session)
	}
	c.count(uint64(len(cmd.Transfers)), smallestTransfer)
	for i := range cmd.Transfers {
		c.transfer(&cmd.Transfers[i])
		if cmd.Proof != nil {
			c.raw(cmd.Proof.Marks[i*proof.MarkSize : (i+1)*proof.MarkSize])
		}
	}
}

func (c *codec) signed(r *messages.SignedRequest) {
	c.text(&r.Proof.Token)
	number(c, &r.Proof.At)
	c.bytes(&r.Proof.Signature)
	c.bytes(&r.Payload)
}

// Size returns an upper bound of a transfer's size in a command, in bytes. It is rarely more than twice the real size.
func Size(t *money.Transfer) int {
	const numbersAndLengths = 64
	return numbersAndLengths + len(t.ID) + len(t.Debit) + len(t.Credit) + len(t.Pending) + len(t.Member) + len(t.Reason)
}

// decode decodes a command, whose texts share one copy of `b`. It stores the transfers in `space` if they fit there.
func (c *Command) decode(b []byte, space []money.Transfer) *messages.Error {
	r := decoder(b)
	var form byte
	octet(&r, &form)
	if c.Within = form == within; !c.Within && form != plain && form != proven {
		return messages.Errorf(messages.Invalid, "command of form %d: this bank reads forms %d, %d and %d; run the same release on every replica", form, within, plain, proven)
	}
	octet(&r, &c.Verb)
	number(&r, &c.At)
	r.text(&c.By)
	octet(&r, &c.Rank)
	switch {
	case c.Verb == Transfers:
		if err := c.readTransfers(&r, b, space, form == proven); err != nil {
			return err
		}
	case form == proven:
		c.Asked = new(messages.SignedRequest)
		r.signed(c.Asked)
	default:
		r.management(c)
	}
	if form != proven && c.Verb > Correct || c.Asked != nil && c.Verb == Expire {
		r.fail()
	}
	if c.Rank > Clearing || c.Verb < Transfers || c.Verb > lastVerb {
		r.fail()
	}
	if !r.ok() || c.At < 0 || len(c.By) > maxName {
		return messages.Errorf(messages.Invalid, "a command of %d bytes cannot be read: it was cut or damaged", len(b))
	}
	return c.readAsked()
}

func (c *Command) readAsked() *messages.Error {
	into := [lastVerb + 1]any{
		Grant: &c.Grant, Member: &c.Member, Project: &c.Project, Pay: &c.Pay, Freeze: &c.Freeze, Credit: &c.Credit,
		Withdraw: &c.Withdraw, Correct: &c.Correct, Session: &c.SessionAsked,
	}[c.Verb]
	if c.Asked == nil || into == nil {
		return nil
	}
	level, err := wire.UnmarshalLevel(c.Asked.Payload, wire.Detect(c.Asked.Payload, ""), into)
	if err != nil {
		return messages.AsError("", err)
	}
	c.level = level
	if c.Verb == Pay && c.Pay.From == "" {
		c.Pay.From = c.By
	}
	return nil
}

func (c *Command) readTransfers(r *codec, raw []byte, space []money.Transfer, marked bool) *messages.Error {
	if marked {
		c.Proof = new(messages.TransferProof)
		r.uint(&c.Proof.Session)
	}
	n := r.readUint()
	if n > MaxBatch {
		return messages.Errorf(messages.TooLarge, "%d transfers in one command: send at most %d", n, MaxBatch)
	}
	if n*smallestTransfer > uint64(len(r.s)) {
		r.fail()
		return nil
	}
	if uint64(cap(space)) < n {
		space = make([]money.Transfer, n)
	}
	c.Transfers = space[:n]
	if marked {
		c.Proof.Marks, c.texts = make([]byte, proof.MarkSize*n), make([][]byte, n)
	}
	for i := range c.Transfers {
		from := len(raw) - len(r.s)
		r.transfer(&c.Transfers[i])
		if marked {
			c.texts[i] = raw[from : len(raw)-len(r.s)]
			r.raw(c.Proof.Marks[i*proof.MarkSize : (i+1)*proof.MarkSize])
		}
	}
	return nil
}

func (c *Command) mark(i int) (m proof.Mark) {
	copy(m[:], c.Proof.Marks[i*proof.MarkSize:])
	return m
}

func (c *Command) proven() bool { return c.Asked != nil || c.Proof != nil }
