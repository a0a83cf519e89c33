package ledger

import (
	"slices"
	"strings"

	"github.com/candor-grid/candor/messages"
)

// MaxMembers is the most members an account can have.
const MaxMembers = 10_000

// account is one account of the ledger.
type account struct {
	name messages.Name
	standing
	granted messages.Credits // received from the issuer, ever
	spent   messages.Credits // posted from its holds, ever
	members []messages.Name  // ascending
	entries []uint64         // numbers of the records that changed its standing
}

func (a *account) has(member messages.Name) bool {
	_, found := slices.BinarySearch(a.members, member)
	return found
}

func (a *account) issuer() bool { return a.name == messages.IssuerAccount }

// open adds an account. The name is copied, for it may be part of a command.
func (l *Ledger) open(name messages.Name) *account {
	a := &account{name: strings.Clone(name)}
	l.accounts[a.name] = a
	l.order = append(l.order, a)
	return a
}

// setMember adds or removes a member and reports whether that changed anything.
func (l *Ledger) setMember(a *account, member messages.Name, remove bool) bool {
	i, found := slices.BinarySearch(a.members, member)
	if found != remove {
		return false
	}
	projects := l.projects[member]
	j, _ := slices.BinarySearch(projects, a.name)
	if remove {
		a.members = slices.Delete(a.members, i, i+1)
		projects = slices.Delete(projects, j, j+1)
	} else {
		member = strings.Clone(member)
		a.members = slices.Insert(a.members, i, member)
		projects = slices.Insert(projects, j, a.name)
	}
	if len(projects) == 0 {
		delete(l.projects, member)
	} else {
		l.projects[member] = projects
	}
	return true
}

// find returns an account, or the refusal that says what to do without it.
func (l *Ledger) find(name messages.Name) (*account, *messages.Error) {
	if a := l.accounts[name]; a != nil {
		return a, nil
	}
	return nil, messages.Errorf(messages.NotFound, "there is no account %q: an operator opens it with its first grant", clip(name))
}

// Account returns an account as it stands.
func (l *Ledger) Account(name messages.Name) (messages.AccountReply, error) {
	a, err := l.find(name)
	if err != nil {
		return messages.AccountReply{}, err
	}
	return a.reply(), nil
}

func (a *account) reply() messages.AccountReply {
	return messages.AccountReply{
		Account: a.name, Balance: a.balance, Reserved: a.reserved, Available: a.available(),
		Granted: a.granted, Spent: a.spent, Members: slices.Clone(a.members),
	}
}

// Accounts lists every account, the bank's own too, by name. It costs
// n log n in their number; see Len.
func (l *Ledger) Accounts() []messages.AccountReply {
	names := make([]messages.Name, 0, len(l.order))
	for _, a := range l.order {
		names = append(names, a.name)
	}
	slices.Sort(names)
	return l.replies(names)
}

// AccountsOf lists, by name, the account of a user, if it has one, and those
// that it is a member of.
func (l *Ledger) AccountsOf(user messages.Name) []messages.AccountReply {
	names := slices.Clone(l.projects[user])
	if l.accounts[user] != nil && !slices.Contains(names, user) {
		names = append(names, user)
	}
	slices.Sort(names)
	return l.replies(names)
}

func (l *Ledger) replies(names []messages.Name) []messages.AccountReply {
	out := make([]messages.AccountReply, 0, len(names))
	for _, name := range names {
		out = append(out, l.accounts[name].reply())
	}
	return out
}

// MayUse reports whether a user may see an account and make holds on it: it
// is its own or one it is a member of.
func (l *Ledger) MayUse(user, name messages.Name) bool {
	if user == name {
		return true
	}
	a := l.accounts[name]
	return a != nil && a.has(user)
}

// Totals sums up the ledger at no cost.
type Totals struct {
	Accounts  int // the bank's own too
	Holds     int // pending
	Issued    messages.Credits
	Held      messages.Credits
	Transfers uint64 // done, ever
	Records   uint64
}

// Totals returns the running totals; Image.Audit recomputes them.
func (l *Ledger) Totals() Totals {
	return Totals{
		Accounts: len(l.order), Holds: len(l.holds), Issued: -l.issuer.balance, Held: l.held,
		Transfers: l.done, Records: l.journal.count,
	}
}
