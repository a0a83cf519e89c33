package ledger

import (
	"slices"
	"strings"

	"github.com/candor-grid/candor/messages"
)

// Rank is what whoever asks for a command may do, as the leader knows it.
type Rank uint8

// The ranks.
const (
	Operator Rank = iota
	Service       // resolves only the holds that it made
	User          // manages only what it owns
	Clearing      // the bank's clearing, on the word of By: makes and resolves what settles with other sites
)

// ClearingPrefix begins the identifiers of the transfers that the clearing
// makes.
const ClearingPrefix = "clearing/"

var rankNames = [...]string{Operator: "an operator", Service: "a service", User: "a user", Clearing: "the clearing"}

// String returns the rank with its article.
func (r Rank) String() string {
	if int(r) < len(rankNames) {
		return rankNames[r]
	}
	return "of no known rank"
}

// verbsOf lists the verbs that only some ranks may use. Time passes by itself.
var verbsOf = [...][]Rank{
	Transfers: {Operator, Service, Clearing},
	Grant:     {Operator},
	Member:    {Operator, User},
	Project:   {Operator, Clearing},
	Pay:       {Operator, User},
	Freeze:    {Operator, User},
	Credit:    {Operator, Clearing},
	Withdraw:  {Operator},
	Correct:   {Operator},
	Session:   {Operator, Service},
}

var verbNames = [...]string{
	Transfers: "transfer", Grant: "grant credits", Member: "change members", Expire: "let time pass", Project: "make projects",
	Session: "open a session", Pay: "pay", Freeze: "freeze accounts", Credit: "give credit", Withdraw: "take credits back", Correct: "correct transfers",
}

// admit refuses a command that its maker may not ask for. The refusal leaves no record.
func (l *Ledger) admit(c *Command) *messages.Error {
	if c.Verb == Expire || c.Verb == Keys {
		return nil
	}
	if c.By == "" {
		return messages.Errorf(messages.PermissionDenied, "nobody asks for this: only time passes by itself")
	}
	if !mayBe(c.By, c.Rank) {
		return messages.Errorf(messages.PermissionDenied, "%q cannot be %v: services have names that begin with $, and nobody else has", clip(c.By), c.Rank)
	}
	if slices.Contains(verbsOf[c.Verb], c.Rank) {
		return nil
	}
	return messages.Errorf(messages.PermissionDenied, "%q is %v and may not %s: ask an operator of the site", clip(c.By), c.Rank, verbNames[c.Verb])
}

// mayBe reports whether a name can have a rank: services, and they alone, have
// names that begin with "$".
func mayBe(name messages.Name, rank Rank) bool {
	return rank == Clearing || strings.HasPrefix(name, "$") == (rank == Service)
}

// permitted refuses a service that would resolve or extend the hold of another.
func (s *step) permitted(c *Command) *messages.Error {
	if s.hold == nil || s.asked.Kind == messages.Hold || s.hold.by == c.By || c.Rank == Operator {
		return nil
	}
	if c.Rank == Clearing && strings.HasPrefix(s.hold.id, ClearingPrefix) {
		return nil
	}
	return messages.Errorf(messages.PermissionDenied, "hold %q was made by %q: only that one and operators may resolve it", clip(s.hold.id), s.hold.by)
}
