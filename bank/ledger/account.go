package ledger

import (
	"slices"
	"strings"

	"github.com/candor-grid/candor/messages"
)

// account is one account of the ledger.
type account struct {
	name messages.Name
	standing
	granted messages.Credits // received from the issuer, ever
	spent   messages.Credits // posted from its holds, ever
	credit  messages.Credits // how far below zero it may go
	members []member         // ascending by name
	lots    []lot            // of expiring grants, by when
	holds   int              // pending
	project bool
	title   string // of a project
	frost   frost
	trail   trail // of the records that changed its standing
	place   int   // in the order of opening
}

func (a *account) issuer() bool { return a.name == messages.IssuerAccount }

// open adds an account. The name is copied, for it may be part of a command.
func (l *Ledger) open(name messages.Name) *account {
	a := &account{name: strings.Clone(name), place: len(l.order)}
	l.accounts[a.name] = a
	l.order = append(l.order, a)
	l.names.add(a.name)
	l.touch(a)
	return a
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
	r := messages.AccountReply{
		Account: a.name, Balance: a.balance, Reserved: a.reserved, Available: a.available(),
		Granted: a.granted, Spent: a.spent, Credit: a.credit, Holds: a.holds,
		Project: a.project, Title: a.title, Frozen: a.frost.by, Why: a.frost.why,
	}
	for i := range a.members {
		m := &a.members[i]
		if m.left {
			continue
		}
		if m.role.Spends() {
			r.Members = append(r.Members, m.name)
		}
		r.Roles = append(r.Roles, messages.Membership{Member: m.name, Role: m.role, Limit: m.limit, Spent: m.spent, Held: m.held})
	}
	for _, o := range a.lots {
		r.Expiring = append(r.Expiring, messages.Expiring{Grant: o.grant, Expires: o.expires, Free: o.free, Held: o.held})
	}
	return r
}

// MaxAccounts is the most accounts that one page lists.
const MaxAccounts = 1000

// Accounts lists every account, the bank's own too, by name.
func (l *Ledger) Accounts() []messages.AccountReply {
	names := make([]messages.Name, 0, len(l.order))
	l.names.after("", func(name messages.Name) bool { names = append(names, name); return true })
	return l.replies(names)
}

// AccountsPage lists accounts by name, those after one, at most a limit; 0 is
// MaxAccounts. It costs the logarithm of their number and the length of the
// page; with q.Projects up to their number.
func (l *Ledger) AccountsPage(q messages.AccountsRequest) (messages.AccountsReply, error) {
	each := func(f func(messages.Name) bool) { l.names.after(q.After, f) }
	return l.accountsPage(q, each)
}

// AccountsOf lists, as AccountsPage does, the account of a user, if it has
// one, and those that it has a part in.
func (l *Ledger) AccountsOf(user messages.Name, q messages.AccountsRequest) (messages.AccountsReply, error) {
	names := slices.Clone(l.projects[user])
	if l.accounts[user] != nil && !slices.Contains(names, user) {
		names = append(names, user)
	}
	slices.Sort(names)
	return l.accountsPage(q, func(f func(messages.Name) bool) {
		for _, name := range above(names, q.After) {
			if !f(name) {
				return
			}
		}
	})
}

func (l *Ledger) accountsPage(q messages.AccountsRequest, each func(func(messages.Name) bool)) (messages.AccountsReply, error) {
	if q.Limit < 0 || q.Limit > MaxAccounts {
		return messages.AccountsReply{}, messages.Errorf(messages.TooLarge, "limit %d: ask for 1 to %d accounts, and page on with after", q.Limit, MaxAccounts)
	}
	if q.Limit == 0 {
		q.Limit = MaxAccounts
	}
	reply := messages.AccountsReply{Accounts: []messages.AccountReply{}}
	each(func(name messages.Name) bool {
		a := l.accounts[name]
		switch {
		case q.Projects && !a.project:
		case len(reply.Accounts) == q.Limit:
			reply.More = true
			return false
		default:
			reply.Accounts = append(reply.Accounts, a.reply())
		}
		return true
	})
	return reply, nil
}

func (l *Ledger) replies(names []messages.Name) []messages.AccountReply {
	out := make([]messages.AccountReply, 0, len(names))
	for _, name := range names {
		out = append(out, l.accounts[name].reply())
	}
	return out
}

// MaySee reports whether a user may see an account and its statement: it is
// its own or one it has a part in.
func (l *Ledger) MaySee(user, name messages.Name) bool {
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
