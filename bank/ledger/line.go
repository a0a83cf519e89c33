package ledger

import (
	"fmt"
	"strings"

	"github.com/candor-grid/candor/messages"
)

// Line is a record of the journal, for those who read it from outside: to
// export it, or to check it.
type Line struct {
	Number uint64
	What   string // "opened", "membership", "done", "refused", "lapsed", …
	At     messages.Time
	By     messages.Name // who asked; "": the bank itself

	// Asked is what was asked for, in a line of a transfer; of a hold that
	// lapsed, only Kind and Pending.
	Asked messages.Transfer
	// What it came to, if it was done: Amount moved from Debit to Credit, and
	// Held more set aside on Debit.
	Debit, Credit           messages.Name
	Amount, Held            messages.Credits
	Job                     messages.JobID
	DebitAfter, CreditAfter messages.Standing
	// Ground is why the bank itself moved credits: "grant", "payment", "return",
	// "withdrawal" or "correction"; "" for the transfers of services.
	Ground string
	Note   string // a line that moves nothing, in words
	// Account is what a line that moves nothing is about.
	Account messages.Name
}

// Moves reports whether the line changed any standing.
func (l *Line) Moves() bool { return l.Amount != 0 || l.Held != 0 }

// ReadLine reads a record in its canonical bytes.
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
		l.DebitAfter = messages.Standing{Account: o.debit, Balance: o.debitAfter.balance, Reserved: o.debitAfter.reserved}
		if o.credit != "" {
			l.CreditAfter = messages.Standing{Account: o.credit, Balance: o.creditAfter.balance, Reserved: o.creditAfter.reserved}
		}
	}
	return l
}

// note is a record that moves no credits, in words; "" for the others.
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
		return fmt.Sprintf("%s asks for %q, and proves it", r.by, r.verb)
	case r.what == said && r.by == "":
		return fmt.Sprintf("settlements with other sites go on by themselves (%s)", r.verb)
	case r.what == said:
		return fmt.Sprintf("the bank of %s says %q, and signs it", strings.TrimPrefix(r.by, "$"), r.verb)
	case r.what == refused:
		return fmt.Sprintf("%s %q is refused (%v): %s", r.asked.Kind, r.asked.ID, r.refusal.Kind, whyRefused(r.refusal.Kind))
	case r.what == done && r.asked.Kind == messages.Extend:
		return r.extension()
	}
	return ""
}

// extension is what an Extend came to, in words. The hold may have had a later
// expiry, which stands.
func (r *record) extension() string {
	switch to := until(&r.asked, r.at); {
	case to == 0:
		return fmt.Sprintf("hold %q expires no more", r.asked.Pending)
	case to <= r.at:
		return fmt.Sprintf("hold %q keeps its expiry: it was to be extended to no later than now", r.asked.Pending)
	default:
		return fmt.Sprintf("hold %q is extended to %v, if it was not to expire later", r.asked.Pending, to)
	}
}

var whatNames = [...]string{opened: "opened", membership: "membership", done: "done", refused: "refused", lapsed: "lapsed", changed: "changed", trusted: "trusted", requested: "requested", said: "said"}

// String returns the name of what a record is about.
func (w what) String() string {
	if int(w) < len(whatNames) && whatNames[w] != "" {
		return whatNames[w]
	}
	return "unknown"
}

// words says what a change is about.
func (c *change) words(by messages.Name) string {
	switch c.setting {
	case asProject:
		return fmt.Sprintf("account %s is project %q", c.account, c.text)
	case memberRole:
		return fmt.Sprintf("%s is %s of account %s", c.member, messages.Role(c.number), c.account)
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
