package ledger

import (
	"slices"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

type account struct {
	name messages.Name
	standing
	granted messages.Credits // total that it received from the issuer
	spent   messages.Credits // total of the holds that were charged
	credit  messages.Credits // how far the balance may be below zero
	members []*member        // ascending by name; a member that left stays in the list if it has spent credits, or still has holds
	present int              // number of members that have not left; computed from members
	owning  int              // number of present members that are owners; computed from members
	lots    []lot            // what is left of expiring grants, ascending by expiry
	due     messages.Time    // when the first of lots expires; 0 means never
	queued  int              // position of the account in lots.dues, if due is not 0
	holds   int              // number of pending holds
	latest  *hold            // the newest pending hold; nil means none
	project bool
	title   string // title of a project; "" for other accounts
	frost   frost
	trail   trail // links to the records that changed the account's standing
	place   int   // position of the account in accounts.order
}

func (a *account) issuer() bool { return a.name == money.IssuerAccount }

// brief returns a description of the account without members and expiring grants.
func (a *account) brief() money.AccountReply {
	return money.AccountReply{
		Account: a.name, Balance: a.balance, Reserved: a.reserved, Available: a.available(),
		Granted: a.granted, Spent: a.spent, Credit: a.credit, Holds: a.holds,
		Project: a.project, Title: a.title, Frozen: a.frost.by, Why: a.frost.why,
	}
}

func (a *account) reply() money.AccountReply {
	r := a.brief()
	for _, m := range a.members {
		if m.left {
			continue
		}
		if m.role.Spends() {
			r.Members = append(r.Members, m.name)
		}
		r.Roles = append(r.Roles, money.Membership{Member: m.name, Role: m.role, Limit: m.limit, Spent: m.spent, Held: m.held})
	}
	for _, o := range a.lots {
		r.Expiring = append(r.Expiring, money.Expiring{Grant: o.grant, Expires: o.expires, Free: o.free, Held: o.held})
	}
	return r
}

// pending returns at most MaxPendingHolds holds of the account, newest first.
func (a *account) pending() (list []money.PendingHold) {
	for h := a.latest; h != nil && len(list) < money.MaxPendingHolds; h = h.before {
		member := h.member
		if member == "" {
			member = a.name
		}
		list = append(list, money.PendingHold{ID: h.id, Amount: h.amount, Expires: h.expires, Job: h.job, By: h.by, Member: member, Payee: h.payee})
	}
	return list
}

// copy returns a copy that does not change with the account. It has no holds.
func (a *account) copy() account {
	c := *a
	c.latest = nil
	c.lots, c.members = slices.Clone(a.lots), slices.Clone(a.members)
	for i, m := range c.members {
		own := *m
		c.members[i] = &own
	}
	c.trail.roots = slices.Clone(a.trail.roots)
	return c
}

// freezer says who froze an account. An owner cannot unfreeze what an operator froze.
type freezer uint8

const (
	thawed freezer = iota
	frozenByOperator
	frozenByOwner
)

// frost says whether an account is frozen, who froze it, and why.
type frost struct {
	rank freezer
	by   messages.Name
	why  string
}

// thawedFor returns an error if the account is frozen. The argument `what` completes the sentence "nothing can be ...
// it", for example "paid from".
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

func (a *account) alterMember(c *change) bool {
	m := a.member(c.member)
	switch {
	case m == nil || m.left:
		return false
	case c.setting == memberRole:
		a.tally(m, -1)
		defer a.tally(m, 1)
		return c.number <= int64(money.RoleAuditor) && set(&m.role, money.Role(c.number))
	}
	return c.number <= int64(messages.MaxCredits) && set(&m.limit, messages.Credits(c.number))
}

func set[T comparable](to *T, value T) bool {
	was := *to
	*to = value
	return was != value
}
