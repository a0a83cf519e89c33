package ledger

import (
	"slices"
	"strings"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

// MaxMembers is the maximum number of members of an account.
const MaxMembers = 10_000

// member is a member of an account, with its role, its limit, and the sums that it spent and holds.
type member struct {
	name  messages.Name
	role  money.Role
	limit messages.Credits // upper bound of spent + held; 0 means none
	spent messages.Credits // sum posted from the member's holds, minus corrections
	held  messages.Credits // reserved by the member's pending holds
	// left is true after the member was removed. The fields `spent` and `held` keep their values. If the member is
	// added again, both count against its limit.
	left bool
}

func (m *member) unused() bool { return m.spent == 0 && m.held == 0 }

func (a *account) search(name messages.Name) (int, bool) {
	return slices.BinarySearchFunc(a.members, name, func(m *member, name messages.Name) int { return strings.Compare(m.name, name) })
}

// member returns the entry of a name, even if the member has left, or nil if there is none.
func (a *account) member(name messages.Name) *member {
	if i, found := a.search(name); found {
		return a.members[i]
	}
	return nil
}

// part returns the role that a name has in an account, and whether the name has one.
func (a *account) part(name messages.Name) (money.Role, bool) {
	if name == a.name {
		return money.RoleSelf, true
	}
	if m := a.member(name); m != nil && !m.left {
		return m.role, true
	}
	return 0, false
}

func (a *account) owns(name messages.Name) bool {
	role, ok := a.part(name)
	return ok && (role == money.RoleSelf || role == money.RoleOwner)
}

func (a *account) has(name messages.Name) bool {
	m := a.member(name)
	return m != nil && !m.left
}

// tally counts a member `m`. If the argument `by` is 1, it increases the account's number of members, and its number of
// owners if `m` is an owner. If `by` is -1, it decreases them.
func (a *account) tally(m *member, by int) {
	if m.left {
		return
	}
	a.present += by
	if m.role == money.RoleOwner {
		a.owning += by
	}
}

// mayHold returns an error if the member with this name may not place a hold of this amount on the account.
func (a *account) mayHold(name messages.Name, amount messages.Credits) *messages.Error {
	role, ok := a.part(name)
	switch {
	case !ok:
		return messages.Errorf(messages.PermissionDenied, "%q is not a member of account %q: an owner of the account or an operator can add the member", clip(name), a.name)
	case !role.Spends():
		return messages.Errorf(messages.PermissionDenied, "%q is an auditor of account %q and may only look at the account: an owner of the account can make the auditor a member", clip(name), a.name)
	case role == money.RoleSelf:
		return nil
	}
	m := a.member(name)
	used, fits := sum(m.spent, m.held)
	all, also := sum(used, amount)
	if m.limit != 0 && (!fits || !also || all > m.limit) {
		return messages.Errorf(messages.Insufficient, "the limit of %q in account %q is %v credits: %v are spent and %v are held, and %v more would exceed the limit; an owner can raise the limit",
			m.name, a.name, m.limit, m.spent, m.held, amount)
	}
	return nil
}

// checkMember returns an error if a change of membership is malformed. It does not look at the state of the ledger.
func checkMember(m *money.MemberRequest) *messages.Error {
	switch {
	case !messages.ValidFreeName(m.Account):
		return badName(m.Account)
	case !messages.ValidName(m.Member):
		return messages.Errorf(messages.Invalid, "member %q: a user's name is a lower-case letter, then at most 62 of a-z, 0-9, '-' and '_'", clip(m.Member))
	case m.Account == m.Member:
		return messages.Errorf(messages.Invalid, "account %q cannot be its own member: name another member", m.Account)
	case m.Remove && (m.Role != nil || m.Limit != nil):
		return messages.Errorf(messages.Invalid, "a member that is removed has no role and no limit: leave both fields out")
	case m.Role != nil && *m.Role > money.RoleAuditor:
		return messages.Errorf(messages.Invalid, "role %v cannot be given: use member, owner or auditor", *m.Role)
	case m.Limit != nil && *m.Limit < 0:
		return messages.Errorf(messages.Invalid, "limit %v is negative: give an amount, or 0 for no limit", *m.Limit)
	case m.Limit != nil && *m.Limit > messages.MaxCredits:
		return messages.Errorf(messages.TooLarge, "limit %v is above %v credits: give less, or 0 for no limit", *m.Limit, messages.MaxCredits)
	}
	return nil
}

// A step is a checked transfer. If it is made for a member of an account, its amounts count against this member's
// limit. use adds the amounts that the step holds and spends to the member's sums. With the sign −1 it subtracts them.
func (s *step) use(sign messages.Credits) {
	if s.member == "" {
		return
	}
	a := s.charged()
	if a.member(s.member) == nil && sign*s.spent > 0 { // the member was removed after a correction of its spending
		i, _ := a.search(s.member)
		a.members = slices.Insert(a.members, i, &member{name: strings.Clone(s.member), left: true})
	}
	if m := a.member(s.member); m != nil {
		m.held += sign * s.held
		if sign > 0 {
			s.memberBefore, m.spent = m.spent, counted(m.spent, s.spent)
		} else {
			m.spent = s.memberBefore
		}
	}
}
