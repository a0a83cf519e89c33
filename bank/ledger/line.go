package ledger

import (
	"fmt"
	"strings"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

// Line is one record of the journal, for programs that export or check it.
type Line struct {
	Number uint64
	What   string // "opened", "membership", "done", "refused", "lapsed", …
	At     messages.Time
	By     messages.Name // who asked; "" means the bank itself

	// Asked is the transfer that this line of the journal describes. For a lapsed hold, only Kind and Pending are set.
	Asked money.Transfer
	// The line moved Amount from Debit to Credit, and changed the reserve of Debit by Held.
	Debit, Credit           messages.Name
	Amount, Held            messages.Credits
	Job                     messages.JobID
	DebitAfter, CreditAfter money.Standing
	// Ground says why the bank itself moved credits: "grant", "payment", "return", "withdrawal" or "correction". ""
	// means that a service or an operator did.
	Ground string
	Note   string // describes a line that moves no credits
	// Account is set only if the line moves no credits. It is the account that the line is about.
	Account messages.Name
}

// Moves reports whether the line changed the balance or the reserve of an account.
func (l *Line) Moves() bool { return l.Amount != 0 || l.Held != 0 }

// ReadLine decodes the canonical bytes of a record.
func ReadLine(number uint64, raw []byte) (Line, error) {
	rec, ok := decodeRecord(raw)
	if !ok {
		return Line{}, fmt.Errorf("record %d %w", number, errRecord)
	}
	return rec.line(number), nil
}

func (r *record) line(number uint64) Line {
	o := &r.outcome
	l := Line{Number: number, What: r.what.String(), At: r.at, By: r.by, Asked: r.asked, Account: r.account + r.change.account, Note: r.note()}
	l.Ground = originOf(r.asked.ID).ground()
	switch r.what {
	case done, lapsed:
		l.Debit, l.Credit, l.Amount, l.Held, l.Job = o.debit, o.credit, o.amount, o.held, o.job
		l.DebitAfter = money.Standing{Account: o.debit, Balance: o.debitAfter.balance, Reserved: o.debitAfter.reserved}
		if o.credit != "" {
			l.CreditAfter = money.Standing{Account: o.credit, Balance: o.creditAfter.balance, Reserved: o.creditAfter.reserved}
		}
	}
	return l
}

// note returns a description of a record that moves no credits; "" for other records.
func (r *record) note() string {
	switch {
	case r.what == opened:
		return "account " + r.account + " is opened"
	case r.what == membership && r.remove:
		return r.member + " may no longer use account " + r.account
	case r.what == membership:
		return r.member + " may use account " + r.account
	case r.what == changed:
		return r.change.words(r.by)
	case r.what == trusted:
		return "the site says which keys are its own"
	case r.what == requested:
		return fmt.Sprintf("%s sent a signed request: %q", r.by, r.verb)
	case r.what == said && r.by == "":
		return fmt.Sprintf("time passed, so settlements with other sites went on (%s)", r.verb)
	case r.what == said:
		return fmt.Sprintf("the bank of %s sent a signed statement: %q", strings.TrimPrefix(r.by, "$"), r.verb)
	case r.what == refused:
		return fmt.Sprintf("%s %q is refused (%v): %s", r.asked.Kind, r.asked.ID, r.refusal.Kind, whyRefused(r.refusal.Kind))
	case r.what == done && r.asked.Kind == money.Extend:
		return r.extension()
	}
	return ""
}

// The method extension describes a record of the kind Extend, which sets the expiry of a hold. The record does not say
// whether the expiry was changed. So the text says that an expiry later than the new one stays.
func (r *record) extension() string {
	switch to := until(&r.asked, r.at); {
	case to == 0:
		return fmt.Sprintf("hold %q no longer expires", r.asked.Pending)
	case to <= r.at:
		return fmt.Sprintf("hold %q keeps its expiry: the new expiry was not in the future", r.asked.Pending)
	default:
		return fmt.Sprintf("hold %q is extended to %v, unless its expiry was later", r.asked.Pending, to)
	}
}

var whatNames = [...]string{opened: "opened", membership: "membership", done: "done", refused: "refused", lapsed: "lapsed", changed: "changed", trusted: "trusted", requested: "requested", said: "said"}

// String returns the name of the kind of record, for example "opened".
func (w what) String() string {
	if int(w) < len(whatNames) && whatNames[w] != "" {
		return whatNames[w]
	}
	return "unknown"
}

// words returns a description of a change. The argument `by` is the account that asked for the change.
func (c *change) words(by messages.Name) string {
	switch c.setting {
	case asProject:
		return fmt.Sprintf("account %s is project %q", c.account, c.text)
	case memberRole:
		return fmt.Sprintf("%s is %s of account %s", c.member, money.Role(c.number), c.account)
	case memberLimit:
		return fmt.Sprintf("the limit of %s in account %s is %v", c.member, c.account, messages.Credits(c.number))
	case freeze:
		if freezer(c.number) == thawed {
			return fmt.Sprintf("account %s is thawed by %s", c.account, by)
		}
		return fmt.Sprintf("account %s is frozen by %s: %s", c.account, by, c.text)
	case creditLimit:
		return fmt.Sprintf("account %s may go %v below zero: %s", c.account, messages.Credits(c.number), c.text)
	}
	return fmt.Sprintf("account %s is changed", c.account)
}
