package ledger

import "github.com/candor-grid/candor/messages"

// MaxBatch is the most transfers that one command may carry.
const MaxBatch = 10_000

// smallestTransfer is the length of an encoded transfer with every field empty.
const smallestTransfer = 11

// version begins every command; one of a later version is refused. Version 1
// had no rank, and less in Grant and Member; versions 1 and 2 are carried out
// under the rules of their releases, see rules. A command within another one,
// which has its own version in the log, is of version 0.
const (
	version = 3
	within  = 0
)

// Verb says what a command does.
type Verb uint8

// The verbs of a command. The list is append-only: commands stay in logs.
const (
	Transfers Verb = iota + 1 // carries out Command.Transfers
	Grant                     // issues Command.Grant
	Member                    // changes the members of an account as Command.Member says
	Expire                    // only lets time pass
	Project                   // makes Command.Project a project
	Pay                       // moves credits as Command.Pay says
	Freeze                    // freezes or thaws an account as Command.Freeze says
	Credit                    // sets an account's credit as Command.Credit says
	Withdraw                  // takes credits back as Command.Withdraw says
	Correct                   // takes a transfer back as Command.Correct says
	lastVerb  = Correct
)

// Command is one change asked of the ledger. Only the field that Verb names
// counts.
type Command struct {
	Verb Verb
	At   messages.Time // the leader's clock
	By   messages.Name // the caller on whose request it is made; "" for Expire
	Rank Rank          // of By
	// Within says that the command is a part of another one: it is carried out
	// under the rules that the ledger is under, and changes no rules.
	Within bool

	version byte // of the encoding that it was read from; 0: the latest

	Transfers []messages.Transfer
	Grant     messages.GrantRequest
	Member    messages.MemberRequest
	Project   messages.ProjectRequest
	Pay       messages.PayRequest // From is given
	Freeze    messages.FreezeRequest
	Credit    messages.CreditRequest
	Withdraw  messages.WithdrawRequest
	Correct   messages.CorrectRequest
}

// Encode returns the command's bytes, as Apply takes them.
func (c *Command) Encode() []byte {
	w := writer{b: make([]byte, 0, 64+96*len(c.Transfers))}
	w.byte(c.encoding())
	w.byte(byte(c.Verb))
	w.int(int64(c.At))
	w.text(c.By)
	w.byte(byte(c.Rank))
	if c.Verb == Transfers {
		w.uint(uint64(len(c.Transfers)))
		for i := range c.Transfers {
			w.transfer(&c.Transfers[i])
		}
	} else {
		w.management(c)
	}
	return w.b
}

// encoding is the version that the command is written in.
func (c *Command) encoding() byte {
	switch {
	case c.Within:
		return within
	case c.version != 0:
		return c.version
	}
	return version
}

// rules are those that the command is carried out under, where the ledger is
// under no later ones.
func (c *Command) rules() rules {
	switch {
	case c.Within:
		return 0
	case c.encoding() < 3:
		return firstRules
	}
	return secondRules
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
	r.version = r.byte()
	if r.version > version {
		return messages.Errorf(messages.Invalid, "command of version %d: this bank reads versions up to %d; run the same release on every replica", r.version, version)
	}
	if r.version == within {
		c.Within, r.version = true, version
	} else if r.version < version {
		c.version = r.version
	}
	c.Verb = Verb(r.byte())
	c.At = messages.Time(r.int())
	c.By = r.text()
	if r.version > 1 {
		c.Rank = Rank(r.byte())
	}
	if c.Verb == Transfers {
		if err := c.readTransfers(&r, space); err != nil {
			return err
		}
	} else {
		r.management(c)
	}
	if c.Rank > Clearing || c.Verb < Transfers || c.Verb > lastVerb {
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
