package ledger

import (
	"slices"
	"strings"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

// Rank says what the maker of a command may do. The leader decides which rank the command has.
type Rank uint8

const (
	Operator Rank = iota
	Service       // may resolve only the holds that it made
	User          // may manage only the accounts that it owns
	Clearing      // the bank's clearing: it makes and resolves settlements with other sites for the account in By
)

// ClearingPrefix begins the identifiers of the clearing's transfers.
const ClearingPrefix = "clearing/"

var rankNames = [...]string{Operator: "an operator", Service: "a service", User: "a user", Clearing: "the clearing"}

// String returns the rank with its article, for example "an operator".
func (r Rank) String() string {
	if int(r) < len(rankNames) {
		return rankNames[r]
	}
	return "of no known rank"
}

// verbsOf has, for each verb, the ranks that may use it. No caller may ask for Expire.
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

// admit returns an error if the maker of a command may not make it. This refusal leaves no record.
func (l *Ledger) admit(c *Command) *messages.Error {
	if c.Verb == Expire || c.Verb == Keys {
		return nil
	}
	if c.By == "" {
		return messages.Errorf(messages.PermissionDenied, "the request does not say who asks: send it with the name of an account, a service or an operator")
	}
	if !mayBe(c.By, c.Rank) {
		return messages.Errorf(messages.PermissionDenied, "%q cannot be %v: the names of services begin with $, and no other names do", clip(c.By), c.Rank)
	}
	if slices.Contains(verbsOf[c.Verb], c.Rank) {
		return nil
	}
	return messages.Errorf(messages.PermissionDenied, "%q is %v and may not %s: ask an operator of the site", clip(c.By), c.Rank, verbNames[c.Verb])
}

// mayBe reports whether a name can have a rank. Names of services begin with "$", and no other names do. Any name can
// have the rank Clearing.
func mayBe(name messages.Name, rank Rank) bool {
	return rank == Clearing || strings.HasPrefix(name, "$") == (rank == Service)
}

// permitted returns an error if a service would resolve or extend a hold that another service made.
func (s *step) permitted(c *Command) *messages.Error {
	if s.hold == nil || s.asked.Kind == money.Hold || s.hold.by == c.By || c.Rank == Operator {
		return nil
	}
	if c.Rank == Clearing && strings.HasPrefix(s.hold.id, ClearingPrefix) {
		return nil
	}
	return messages.Errorf(messages.PermissionDenied, "hold %q was made by %q: only %[2]q and operators may resolve it", clip(s.hold.id), s.hold.by)
}
