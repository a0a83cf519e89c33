package ledger

import "github.com/candor-grid/candor/messages"

// MaxBatch is the most transfers that one command may carry.
const MaxBatch = 10_000

// smallestTransfer is the length of an encoded transfer with every field empty.
const smallestTransfer = 11

// version begins every command; a command of another version is refused.
const version = 1

// Verb says what a command does.
type Verb uint8

// The verbs of a command. The list is append-only: commands stay in logs.
const (
	Transfers Verb = iota + 1 // carries out Command.Transfers
	Grant                     // issues Command.Grant
	Member                    // changes the members of an account as Command.Member says
	Expire                    // only lets time pass
)

// Command is one change asked of the ledger. Only the field that Verb names
// counts.
type Command struct {
	Verb Verb
	At   messages.Time // the leader's clock
	By   messages.Name // the caller on whose request it is made; "" for Expire

	Transfers []messages.Transfer
	Grant     messages.GrantRequest
	Member    messages.MemberRequest
}

// Encode returns the command's bytes, as Apply takes them.
func (c *Command) Encode() []byte {
	w := writer{b: make([]byte, 0, 64+96*len(c.Transfers))}
	w.byte(version)
	w.byte(byte(c.Verb))
	w.int(int64(c.At))
	w.text(c.By)
	switch c.Verb {
	case Transfers:
		w.uint(uint64(len(c.Transfers)))
		for i := range c.Transfers {
			w.transfer(&c.Transfers[i])
		}
	case Grant:
		w.text(c.Grant.Key)
		w.text(c.Grant.Account)
		w.int(int64(c.Grant.Amount))
		w.text(c.Grant.Reason)
	case Member:
		w.text(c.Member.Account)
		w.text(c.Member.Member)
		w.flag(c.Member.Remove)
	}
	return w.b
}

// Size returns a bound, rarely more than twice too high, on the bytes that a
// transfer takes in a command.
func Size(t *messages.Transfer) int {
	const numbersAndLengths = 64
	return numbersAndLengths + len(t.ID) + len(t.Debit) + len(t.Credit) + len(t.Pending) + len(t.Member) + len(t.Reason)
}

// decode reads a command. Its texts are parts of one copy of the bytes;
// transfers are put into the given space where they fit.
func (c *Command) decode(b []byte, space []messages.Transfer) *messages.Error {
	r := reader{s: string(b)}
	if v := r.byte(); v != version && !r.bad {
		return messages.Errorf(messages.Invalid, "command of version %d: this bank reads version %d; run the same release on every replica", v, version)
	}
	c.Verb = Verb(r.byte())
	c.At = messages.Time(r.int())
	c.By = r.text()
	switch c.Verb {
	case Transfers:
		if err := c.readTransfers(&r, space); err != nil {
			return err
		}
	case Grant:
		c.Grant = messages.GrantRequest{Key: r.text(), Account: r.text(), Amount: messages.Credits(r.int()), Reason: r.text()}
	case Member:
		c.Member = messages.MemberRequest{Account: r.text(), Member: r.text(), Remove: r.flag()}
	case Expire:
	default:
		r.fail()
	}
	if !r.ok() || c.At < 0 || len(c.By) > maxName {
		return messages.Errorf(messages.Invalid, "command of %d bytes: cannot be read; it was cut or damaged", len(b))
	}
	return nil
}

func (c *Command) readTransfers(r *reader, space []messages.Transfer) *messages.Error {
	n := r.uint()
	if n > MaxBatch {
		return messages.Errorf(messages.TooLarge, "%d transfers in one command: send at most %d", n, MaxBatch)
	}
	if n*smallestTransfer > uint64(len(r.s)) {
		r.fail()
		return nil
	}
	if uint64(cap(space)) < n {
		space = make([]messages.Transfer, n)
	}
	c.Transfers = space[:n]
	for i := range c.Transfers {
		r.transfer(&c.Transfers[i])
	}
	return nil
}
