package ledger

import (
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

type modelPart struct{ account, name messages.Name }

// modelMember is the entry of a member in an account. It stays when the member leaves. If the member comes back, what
// it spent before still counts.
type modelMember struct {
	in    bool
	role  money.Role
	limit messages.Credits
	spent *big.Int
}

func (m *model) mayHold(t money.Transfer) (messages.Kind, bool) {
	if t.Member == t.Debit {
		return 0, true
	}
	p := m.parts[modelPart{t.Debit, t.Member}]
	switch {
	case !p.in || p.role == money.RoleAuditor:
		return messages.PermissionDenied, false
	case p.limit == 0:
		return 0, true
	}
	used := new(big.Int).Add(m.heldBy(t.Debit, t.Member), big.NewInt(int64(t.Amount)))
	return messages.Insufficient, used.Add(used, p.spent).Cmp(big.NewInt(int64(p.limit))) <= 0
}

func (m *model) heldBy(account, member messages.Name) *big.Int {
	sum := new(big.Int)
	for _, h := range m.pending {
		if h.account == account && h.member == member {
			sum.Add(sum, big.NewInt(int64(h.amount)))
		}
	}
	return sum
}

func (m *model) charge(account, member messages.Name, amount messages.Credits) {
	key := modelPart{account, member}
	if p, ever := m.parts[key]; ever {
		p.spent = least(new(big.Int).Add(p.spent, big.NewInt(int64(amount))), big.NewInt(math.MaxInt64))
		m.parts[key] = p
	}
}

func (m *model) owns(by, account messages.Name) bool {
	p := m.parts[modelPart{account, by}]
	return by == account || p.in && p.role == money.RoleOwner
}

// The model predicts how the ledger answers a command about an account. managed returns the kind of the refusal, and
// true if the command is not refused.
func (m *model) managed(by messages.Name, rank Rank, account messages.Name) (messages.Kind, bool) {
	if rank == User && (!m.isOpen(account) || !m.owns(by, account)) {
		return messages.PermissionDenied, false
	}
	return messages.NotFound, m.isOpen(account)
}

func (m *model) member(by messages.Name, rank Rank, r money.MemberRequest) (messages.Kind, bool) {
	if err := checkMember(&r); err != nil {
		return err.Kind, false
	}
	if kind, ok := m.managed(by, rank, r.Account); !ok {
		return kind, false
	}
	key := modelPart{r.Account, r.Member}
	p, ever := m.parts[key]
	loses := p.in && p.role == money.RoleOwner && (r.Remove || r.Role != nil && *r.Role != money.RoleOwner)
	if loses && rank == User && m.owners(r.Account) == 1 {
		return messages.PermissionDenied, false
	}
	switch {
	case r.Remove:
		p.in = false
	case !p.in:
		p.in, p.role, p.limit = true, money.RoleMember, 0
	}
	if !ever {
		p.spent = new(big.Int)
	}
	if r.Role != nil {
		p.role = *r.Role
	}
	if r.Limit != nil {
		p.limit = *r.Limit
	}
	m.parts[key] = p
	return 0, true
}

func (m *model) owners(account messages.Name) (n int) {
	for key, p := range m.parts {
		if key.account == account && p.in && p.role == money.RoleOwner {
			n++
		}
	}
	return n
}

func (m *model) makeProject(r money.ProjectRequest) (messages.Kind, bool) {
	if err := checkProject(&r); err != nil {
		return err.Kind, false
	}
	_, already := m.project[r.Account]
	shared := false
	for key, p := range m.parts {
		shared = shared || key.account == r.Account && p.in
	}
	if m.isOpen(r.Account) && !already && !shared {
		return messages.Conflict, false
	}
	if !m.isOpen(r.Account) {
		m.open(r.Account)
	}
	m.project[r.Account] = r.Title
	owner := money.RoleOwner
	for _, name := range r.Owners {
		m.member("ops", Operator, money.MemberRequest{Account: r.Account, Member: name, Role: &owner})
	}
	return 0, true
}

func (m *model) freeze(by messages.Name, rank Rank, r money.FreezeRequest) (messages.Kind, bool) {
	if err := checkFreeze(&r); err != nil {
		return err.Kind, false
	}
	if kind, ok := m.managed(by, rank, r.Account); !ok {
		return kind, false
	}
	if rank == User && m.frozen[r.Account] == frozenByOperator {
		return messages.PermissionDenied, false
	}
	switch {
	case !r.Frozen:
		m.frozen[r.Account] = thawed
	case rank == User:
		m.frozen[r.Account] = frozenByOwner
	default:
		m.frozen[r.Account] = frozenByOperator
	}
	return 0, true
}

func (m *model) setCredit(r money.CreditRequest) (messages.Kind, bool) {
	if err := checkCredit(&r); err != nil {
		return err.Kind, false
	}
	if m.isOpen(r.Account) {
		m.credit[r.Account] = r.Credit
	}
	return messages.NotFound, m.isOpen(r.Account)
}

// The method once returns the answer that a transfer with this identifier got earlier. If there is no earlier answer,
// the method calls `run`. It stores the outcome if the transfer was done, or if `remember` is true.
func (m *model) once(by messages.Name, t money.Transfer, remember bool, run func() (messages.Kind, bool)) (messages.Kind, bool) {
	if answer, known := m.answers[t.ID]; known {
		if answer.asked != t {
			return messages.Conflict, false
		}
		return answer.kind, !answer.failed
	}
	kind, ok := run()
	if ok {
		m.done++
		m.answers[t.ID] = modelAnswer{t, by, modelResult{amount: t.Amount}}
	} else if remember {
		m.answers[t.ID] = modelAnswer{t, by, modelResult{kind: kind, failed: true}}
	}
	return kind, ok
}

func (m *model) grant(by messages.Name, g money.GrantRequest) (messages.Kind, bool) {
	if err := checkGrant(&g); err != nil {
		return err.Kind, false
	}
	t := money.Transfer{ID: "$grant/" + by + "/" + g.Key, Debit: money.IssuerAccount, Credit: g.Account, Amount: g.Amount, Reason: g.Reason, Expires: g.Expires}
	return m.once(by, t, true, func() (messages.Kind, bool) {
		if g.Expires != 0 && g.Expires <= m.now {
			return messages.Expired, false
		}
		granted, fresh := new(big.Int), !m.isOpen(g.Account)
		if fresh {
			m.open(g.Account)
		}
		granted.Add(m.granted[g.Account], big.NewInt(int64(g.Amount)))
		if !m.move(money.IssuerAccount, g.Account, g.Amount) {
			if fresh {
				delete(m.balance, g.Account)
			}
			return messages.TooLarge, false
		}
		m.granted[g.Account] = least(granted, big.NewInt(math.MaxInt64))
		if g.Expires != 0 {
			m.give(modelLot{g.Account, g.Expires, t.ID}, g.Amount)
		}
		return 0, true
	})
}

func least(a, b *big.Int) *big.Int {
	if a.Cmp(b) <= 0 {
		return a
	}
	return b
}

func (m *model) pay(by messages.Name, rank Rank, r money.PayRequest) (messages.Kind, bool) {
	if err := checkPay(&r); err != nil {
		return err.Kind, false
	}
	t := money.Transfer{ID: "$pay/" + by + "/" + r.Key, Debit: r.From, Credit: r.To, Amount: r.Amount, Reason: r.Reason}
	if kind, ok := m.managed(by, rank, r.From); !ok && m.answers[t.ID].asked.ID == "" {
		return kind, false
	}
	return m.once(by, t, true, func() (messages.Kind, bool) {
		switch {
		case !m.isOpen(r.To):
			return messages.NotFound, false
		case m.frozen[r.From] != thawed:
			return messages.PermissionDenied, false
		case m.short(r.From, r.Amount):
			return messages.Insufficient, false
		case !m.move(r.From, r.To, r.Amount):
			return messages.TooLarge, false
		}
		for lot, amount := range m.take(r.From, r.Amount) {
			m.give(modelLot{r.To, lot.expires, lot.grant}, amount)
		}
		return 0, true
	})
}

func (m *model) withdraw(by messages.Name, r money.WithdrawRequest) (messages.Kind, bool) {
	if err := checkWithdraw(&r); err != nil {
		return err.Kind, false
	}
	if !m.isOpen(r.Account) {
		return messages.NotFound, false
	}
	t := money.Transfer{ID: "$withdraw/" + by + "/" + r.Key, Debit: r.Account, Credit: money.IssuerAccount, Amount: r.Amount, Reason: r.Reason}
	return m.once(by, t, true, func() (messages.Kind, bool) {
		if m.short(r.Account, r.Amount) {
			return messages.Insufficient, false
		}
		if !m.move(r.Account, money.IssuerAccount, r.Amount) {
			return messages.TooLarge, false
		}
		m.take(r.Account, r.Amount)
		return 0, true
	})
}

// correct reverses a transfer. If the transfer is a charge, correct needs the hold that was charged, because the hold
// names the accounts. `holds` has the hold of each charge.
func (m *model) correct(by messages.Name, r money.CorrectRequest, holds map[string]modelHold) (messages.Kind, bool) {
	if err := checkCorrect(&r); err != nil {
		return err.Kind, false
	}
	old, known := m.answers[r.Transfer]
	charge := old.asked.Kind == money.Post
	root, turned := old, false
	for strings.HasPrefix(root.asked.ID, "$correct/") {
		root, turned = m.answers[root.asked.Pending], !turned
	}
	switch {
	case !known:
		return messages.NotFound, false
	case old.failed || !charge && old.asked.Kind != money.Posted || old.amount == 0:
		return messages.Invalid, false
	}
	from, to, h := old.asked.Debit, old.asked.Credit, holds[old.asked.Pending]
	if charge {
		from = h.account
		if to == "" {
			to = h.payee
		}
	}
	t := money.Transfer{ID: "$correct/" + r.Transfer, Debit: to, Credit: from, Amount: r.Amount, Pending: r.Transfer, Reason: r.Reason}
	if t.Amount == 0 {
		t.Amount = old.amount
	}
	return m.once(by, t, false, func() (messages.Kind, bool) {
		switch {
		case t.Amount > old.amount:
			return messages.Invalid, false
		case m.short(to, t.Amount):
			return messages.Insufficient, false
		case !m.move(to, from, t.Amount):
			return messages.TooLarge, false
		}
		if root.asked.Kind == money.Post {
			h, back := holds[root.asked.Pending], -t.Amount
			if turned {
				back = t.Amount
			}
			m.spent[h.account] = least(new(big.Int).Add(m.spent[h.account], big.NewInt(int64(back))), big.NewInt(math.MaxInt64))
			m.charge(h.account, h.member, back)
		}
		m.take(to, t.Amount)
		return 0, true
	})
}

func (m *model) membersOf(account messages.Name) (names []messages.Name) {
	for key, p := range m.parts {
		if key.account == account && p.in && p.role != money.RoleAuditor {
			names = append(names, key.name)
		}
	}
	slices.Sort(names)
	return names
}
