package ledger

import (
	"slices"
	"strings"
	"sync"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

type accounts struct {
	byName   map[messages.Name]*account
	order    []*account // in the order of opening
	issuer   *account
	projects map[messages.Name][]messages.Name // by member: its accounts, in ascending order
	names    names                             // names of all accounts
	balances messages.Credits                  // sum over all accounts except the issuer's, updated by each transfer

	// The sorted list of accounts is divided into pages. The field `copies` has a copy of each page, and an image of
	// the ledger is made from these copies. A page is stale if one of its accounts has changed since the page was
	// copied.
	copies  [][]account
	stale   []bool
	copying *sync.Mutex // protects copies and stale: several readers may take images at the same time
}

// newAccounts returns accounts with only the issuer's and the site's account.
func newAccounts() *accounts {
	as := &accounts{copying: new(sync.Mutex), byName: map[messages.Name]*account{}, projects: map[messages.Name][]messages.Name{}}
	as.issuer = as.open(money.IssuerAccount)
	as.open(money.SiteAccount)
	return as
}

// clear removes all accounts, before the accounts of an image are read.
func (as *accounts) clear() {
	clear(as.byName)
	as.order, as.copies, as.stale, as.names = nil, nil, nil, names{}
}

// open adds an account. It copies the name, which may share the memory of a command.
func (as *accounts) open(name messages.Name) *account {
	a := &account{name: strings.Clone(name), place: len(as.order)}
	as.byName[a.name] = a
	as.order = append(as.order, a)
	as.names.add(a.name)
	as.touch(a)
	return a
}

// find returns an account. Its NotFound error says how to open one.
func (as *accounts) find(name messages.Name) (*account, *messages.Error) {
	if a := as.byName[name]; a != nil {
		return a, nil
	}
	return nil, messages.Errorf(messages.NotFound, "there is no account %q: an operator opens it with its first grant", clip(name))
}

// owned returns an account, or an error if the maker of the command may not manage it. The argument `what` completes
// the sentence "alice may not ...", for example "pay from it".
func (as *accounts) owned(c *Command, name messages.Name, what string) (*account, *messages.Error) {
	a := as.byName[name]
	if c.Rank == User && (a == nil || !a.owns(c.By)) {
		return nil, messages.Errorf(messages.PermissionDenied, "account %q may not %s: ask an owner of account %q, or an operator", clip(c.By), what, clip(name))
	}
	return as.find(name)
}

func (as *accounts) reply(name messages.Name, err *messages.Error) (money.AccountReply, *messages.Error) {
	if err != nil {
		return money.AccountReply{}, err
	}
	return as.byName[name].brief(), nil
}

// setMember adds or removes a member and reports whether this changed anything.
func (as *accounts) setMember(a *account, name messages.Name, remove bool) bool {
	if a.has(name) != remove {
		return false
	}
	i, known := a.search(name)
	projects := as.projects[name]
	j, _ := slices.BinarySearch(projects, a.name)
	if !known {
		name = strings.Clone(name)
		a.members = slices.Insert(a.members, i, &member{name: name, left: true})
	}
	m := a.members[i]
	a.tally(m, -1)
	*m = member{name: m.name, role: m.role, limit: m.limit, spent: m.spent, held: m.held, left: remove}
	switch {
	case remove && m.unused():
		a.members = slices.Delete(a.members, i, i+1)
	case !remove:
		m.role, m.limit = 0, 0
		a.tally(m, 1)
	}
	if remove {
		projects = slices.Delete(projects, j, j+1)
	} else {
		projects = slices.Insert(projects, j, a.name)
	}
	if as.projects[name] = projects; len(projects) == 0 {
		delete(as.projects, name)
	}
	return true
}

// alter makes a change and reports whether anything changed. A change of an unknown account or member, or to a value
// out of range, changes nothing.
func (as *accounts) alter(by messages.Name, c *change) bool {
	a := as.byName[c.account]
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

// copied is the number of accounts on one page of the copies of accounts.
const copied = 256

func (as *accounts) touch(a *account) {
	page := a.place / copied
	for page >= len(as.stale) {
		as.stale = append(as.stale, true)
	}
	as.stale[page] = true
}

// touched marks the pages of all accounts that a record names. A record changes no other accounts.
func (as *accounts) touched(r *record) {
	for _, name := range [...]messages.Name{r.account, r.change.account, r.outcome.debit, r.outcome.credit} {
		if a := as.byName[name]; a != nil {
			as.touch(a)
		}
	}
}

func (as *accounts) refresh() {
	as.copying.Lock()
	defer as.copying.Unlock()
	for page, stale := range as.stale {
		if !stale {
			continue
		}
		from := as.order[page*copied : min(len(as.order), (page+1)*copied)]
		copies := make([]account, len(from))
		for i, a := range from {
			copies[i] = a.copy()
		}
		if page == len(as.copies) {
			as.copies = append(as.copies, nil)
		}
		as.copies[page], as.stale[page] = copies, false
	}
}
