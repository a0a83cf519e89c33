package ledger

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

// Holds returns the pending holds of an account. If there are more than MaxPendingHolds, it returns only the newest
// ones.
func (l *Ledger) Holds(name messages.Name) []money.PendingHold {
	if a := l.accounts.byName[name]; a != nil {
		return a.pending()
	}
	return nil
}

// Account returns an account with its members and expiring grants.
func (l *Ledger) Account(name messages.Name) (money.AccountReply, error) {
	a, err := l.accounts.find(name)
	if err != nil {
		return money.AccountReply{}, err
	}
	return a.reply(), nil
}

// Brief returns an account without its members and expiring grants.
func (l *Ledger) Brief(name messages.Name) (money.AccountReply, error) {
	a, err := l.accounts.find(name)
	if err != nil {
		return money.AccountReply{}, err
	}
	return a.brief(), nil
}

// MaxAccounts is the maximum number of accounts on one page. A page also ends when it has about pageBytes bytes. It has
// at least one account.
const (
	MaxAccounts = 1000
	pageBytes   = 512 << 10
)

// bytes returns the estimated size of the account in a reply.
func (a *account) bytes() int { return 512 + len(a.title) + 192*(len(a.members)+len(a.lots)) }

// Accounts returns every account, by name, including the bank's own accounts.
func (l *Ledger) Accounts() []money.AccountReply {
	list := make([]money.AccountReply, 0, len(l.accounts.order))
	for name := range l.accounts.names.after("") {
		list = append(list, l.accounts.byName[name].reply())
	}
	return list
}

// MostGranted returns the accounts of users and projects that were granted the most credits, at most `most` of them.
// The results leave out the accounts' members and expiring grants. MostGranted reads every account.
func (l *Ledger) MostGranted(most int) (list []money.AccountReply) {
	compare := func(a, b money.AccountReply) int {
		return cmp.Or(cmp.Compare(b.Granted, a.Granted), cmp.Compare(a.Account, b.Account))
	}
	for name := range l.accounts.names.after("") {
		if strings.HasPrefix(name, "$") { // names with "$" are accounts of the site itself
			continue
		}
		a := l.accounts.byName[name].brief()
		if at, _ := slices.BinarySearchFunc(list, a, compare); at < most {
			list = slices.Insert(list, at, a)
			list = list[:min(len(list), most)]
		}
	}
	return list
}

// AccountsPage returns a page of the accounts, in the order of their names. The page begins after the name q.After, and
// has at most q.Limit accounts (0 means MaxAccounts). The time is in proportion to the logarithm of the number of
// accounts, plus the length of the page. If q.Projects is set, the time can be in proportion to the number of accounts.
func (l *Ledger) AccountsPage(q money.AccountsRequest) (money.AccountsReply, error) {
	return l.accounts.page(q, l.accounts.names.after(q.After))
}

// AccountsOf returns a page of a user's account and the accounts that the user is a member of; see AccountsPage.
func (l *Ledger) AccountsOf(user messages.Name, q money.AccountsRequest) (money.AccountsReply, error) {
	names := slices.Clone(l.accounts.projects[user])
	if l.accounts.byName[user] != nil && !slices.Contains(names, user) {
		names = append(names, user)
	}
	slices.Sort(names)
	names = slices.DeleteFunc(names, func(name messages.Name) bool { return name <= q.After })
	return l.accounts.page(q, slices.Values(names))
}

func (as *accounts) page(q money.AccountsRequest, names iter.Seq[messages.Name]) (money.AccountsReply, error) {
	if q.Limit < 0 || q.Limit > MaxAccounts {
		return money.AccountsReply{}, messages.Errorf(messages.TooLarge, "limit %d: ask for 1 to %d accounts; the field `after` selects the next page", q.Limit, MaxAccounts)
	}
	if q.Limit == 0 {
		q.Limit = MaxAccounts
	}
	reply := money.AccountsReply{Accounts: []money.AccountReply{}}
	size := 0
	for name := range names {
		a := as.byName[name]
		if q.Projects && !a.project && len(a.members) == 0 {
			continue
		}
		size += a.bytes()
		if reply.More = len(reply.Accounts) == q.Limit || len(reply.Accounts) > 0 && size > pageBytes; reply.More {
			break
		}
		reply.Accounts = append(reply.Accounts, a.reply())
	}
	return reply, nil
}

// MaySee reports whether a user may see an account and its statement. The account must be the user's own, or the user
// must be a member of it.
func (l *Ledger) MaySee(user, name messages.Name) bool {
	if user == name {
		return true
	}
	a := l.accounts.byName[name]
	return a != nil && a.has(user)
}

// Owns reports whether a user may pay from an account. This is so if the account is the user's own, or if it is a
// project and the user is one of its owners.
func (l *Ledger) Owns(user, name messages.Name) bool {
	if user == name {
		return true
	}
	a := l.accounts.byName[name]
	return a != nil && a.owns(user)
}

// Limited reports whether a user is a member of an account with a limit.
func (l *Ledger) Limited(user, name messages.Name) bool {
	a := l.accounts.byName[name]
	return a != nil && a.has(user) && a.member(user).limit != 0
}

// Standings returns the balance and reserve of all accounts, by name. If there are more than `most` accounts, it
// returns an error.
func (l *Ledger) Standings(most int) ([]money.Standing, error) {
	if len(l.accounts.order) > most {
		return nil, messages.Errorf(messages.TooLarge, "there are %d accounts, more than fit into one reply: verify the bank's directory instead, with --history", len(l.accounts.order))
	}
	list := make([]money.Standing, 0, len(l.accounts.order))
	for name := range l.accounts.names.after("") {
		a := l.accounts.byName[name]
		list = append(list, money.Standing{Account: name, Balance: a.balance, Reserved: a.reserved})
	}
	return list, nil
}

// Totals are sums over the whole ledger, which are updated at each change.
type Totals struct {
	Accounts  int // number of accounts, including the bank's own accounts
	Holds     int // number of pending holds
	Issued    messages.Credits
	Held      messages.Credits
	Transfers uint64 // number of transfers since the beginning
	Records   uint64
}

// Totals returns the running totals. Image.Audit recomputes them from the records.
func (l *Ledger) Totals() Totals {
	return Totals{
		Accounts: len(l.accounts.order), Holds: len(l.holds.byID), Issued: -l.accounts.issuer.balance, Held: l.holds.sum,
		Transfers: l.books.done, Records: l.records.journal.count,
	}
}

// Books returns the bank's running totals, in constant time. The books balance if the issued amount (minus the issuer's
// balance) equals the sum over the other accounts. [Image.Audit] recomputes these totals.
func (l *Ledger) Books() money.BooksReply {
	t := l.Totals()
	r := money.BooksReply{
		Issued: t.Issued, Balances: l.accounts.balances, Held: t.Held, Holds: t.Holds,
		Accounts: t.Accounts - 1, Transfers: t.Transfers, Balanced: l.accounts.balances == t.Issued,
		Message: fmt.Sprintf("the running totals of %d records agree; an operator can compute them again from the first record", t.Records),
	}
	if !r.Balanced {
		r.Message = fmt.Sprintf("the balances sum to %v, and %v were issued", r.Balances, r.Issued)
	}
	return r
}
