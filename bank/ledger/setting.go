package ledger

import (
	"strings"

	"github.com/candor-grid/candor/messages"
)

// setting is what a change of an account without movement is about. The list
// is append-only: changes stay in journals.
type setting uint8

const (
	asProject   setting = iota + 1 // text: the title
	memberRole                     // member, number: a messages.Role
	memberLimit                    // member, number: credits
	freeze                         // number: a freezer; text: why
	creditLimit                    // number: credits; text: why
)

// change is a setting of an account, as it is written down.
type change struct {
	setting setting
	account messages.Name
	member  messages.Name
	number  int64
	text    string
}

// freezer says who froze an account, as far as it matters for thawing.
type freezer uint8

const (
	thawed freezer = iota
	frozenByOperator
	frozenByOwner
)

// frost is whether an account is frozen, and why.
type frost struct {
	rank freezer
	by   messages.Name
	why  string
}

// change makes a change and writes it down, unless it changes nothing.
func (l *Ledger) change(by messages.Name, c change) {
	if l.alter(by, &c) {
		l.write(&record{what: changed, at: l.now, by: by, change: c}, nil, nil)
	}
}

// alter makes a change and reports whether it changed anything. One that
// names what does not exist, or is out of range, changes nothing.
func (l *Ledger) alter(by messages.Name, c *change) bool {
	a := l.accounts[c.account]
	if a == nil || c.number < 0 {
		return false
	}
	switch c.setting {
	case asProject:
		made, titled := set(&a.project, true), set(&a.title, strings.Clone(c.text))
		return made || titled
	case memberRole, memberLimit:
		return a.alterMember(c)
	case freeze:
		f := frost{rank: freezer(c.number)}
		if f.rank > frozenByOwner {
			return false
		}
		if f.rank != thawed {
			f.by, f.why = strings.Clone(by), strings.Clone(c.text)
		}
		return set(&a.frost, f)
	case creditLimit:
		return c.number <= int64(messages.MaxCredits) && set(&a.credit, messages.Credits(c.number))
	}
	return false
}

func (a *account) alterMember(c *change) bool {
	m := a.member(c.member)
	switch {
	case m == nil || m.left:
		return false
	case c.setting == memberRole:
		return c.number <= int64(messages.RoleAuditor) && set(&m.role, messages.Role(c.number))
	}
	return c.number <= int64(messages.MaxCredits) && set(&m.limit, messages.Credits(c.number))
}

func set[T comparable](to *T, value T) bool {
	was := *to
	*to = value
	return was != value
}

func (w *writer) change(c *change) {
	w.byte(byte(c.setting))
	w.text(c.account)
	w.text(c.member)
	w.int(c.number)
	w.text(c.text)
}

func (r *reader) change() change {
	return change{setting: setting(r.byte()), account: r.text(), member: r.text(), number: r.int(), text: r.text()}
}

// thawedFor refuses what may not be done while an account is frozen.
func (a *account) thawedFor(what string) *messages.Error {
	if a.frost.rank == thawed {
		return nil
	}
	why := a.frost.why
	if why == "" {
		why = "no reason was given"
	}
	return messages.Errorf(messages.PermissionDenied, "account %q is frozen by %q (%s): nothing can be %s it until it is thawed", a.name, a.frost.by, clip(why), what)
}
