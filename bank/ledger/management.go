package ledger

import (
	"math"
	"strings"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/money"
)

type management struct {
	records  *records
	accounts *accounts
	lots     *lots
	books    *books
	plans    *planner
	expiry   *expiry
}

func (mg *management) carryOut(c *Command) (money.AccountReply, *messages.Error) {
	switch c.Verb {
	case Grant:
		return mg.grant(c)
	case Member:
		return mg.member(c)
	case Project:
		return mg.project(c.By, &c.Project)
	case Pay:
		return mg.pay(c)
	case Freeze:
		return mg.freeze(c)
	case Credit:
		return mg.credit(c.By, &c.Credit)
	case Withdraw:
		return mg.withdraw(c)
	}
	return money.AccountReply{}, nil // the verb Expire has no request
}

// movement returns the transfer of a grant, a payment or a withdrawal. Its identifier consists of a prefix, the caller
// and the key.
func (c *Command) movement() (t money.Transfer) {
	switch c.Verb {
	case Grant:
		g := &c.Grant
		t = money.Transfer{ID: grantPrefix + c.By + "/" + g.Key, Debit: money.IssuerAccount, Credit: g.Account, Amount: g.Amount, Reason: g.Reason, Expires: g.Expires, Timeout: g.Lasts}
	case Pay:
		p := &c.Pay
		t = money.Transfer{ID: payPrefix + c.By + "/" + p.Key, Debit: p.From, Credit: p.To, Amount: p.Amount, Reason: p.Reason}
	case Withdraw:
		w := &c.Withdraw
		t = money.Transfer{ID: withdrawPrefix + c.By + "/" + w.Key, Debit: w.Account, Credit: money.IssuerAccount, Amount: w.Amount, Reason: w.Reason}
	}
	t.Kind = money.Posted
	return t
}

// keyed carries out a transfer, but only once for each transfer identifier. It returns the state of the account with
// the name `show`.
func (mg *management) keyed(by messages.Name, t *money.Transfer, show messages.Name, run func(messages.Name, *money.Transfer) *messages.Error) (money.AccountReply, *messages.Error) {
	if mg.records.recorded(t.ID) != 0 {
		return mg.accounts.reply(show, mg.records.recall(t).Error)
	}
	if err := run(by, t); err != nil {
		mg.books.refuse(by, t, err, stamp{})
		return money.AccountReply{}, err
	}
	mg.expiry.sweepMoved()
	return mg.accounts.reply(show, nil)
}

// once plans a single transfer, carries it out, and appends its record.
func (mg *management) once(by messages.Name, t *money.Transfer) *messages.Error {
	s, err := mg.plans.prepare(by, t)
	if err != nil {
		return err
	}
	mg.books.do(&s)
	mg.books.commit(by, &s)
	return nil
}

func (mg *management) grant(c *Command) (money.AccountReply, *messages.Error) {
	t := c.movement()
	return mg.keyed(c.By, &t, t.Credit, mg.issue)
}

// issue carries out the transfer of a grant. If the account does not exist, issue opens it. It does this after all
// checks, so that a refused grant opens no account.
func (mg *management) issue(by messages.Name, t *money.Transfer) *messages.Error {
	credit, fresh := mg.accounts.byName[t.Credit], false
	if credit == nil {
		credit, fresh = &account{name: t.Credit}, true
	}
	s := step{asked: t, debit: mg.accounts.issuer, credit: credit, amount: t.Amount, expires: until(t, mg.records.now)}
	switch {
	case s.expires != 0 && s.expires <= mg.records.now:
		return messages.Errorf(messages.Expired, "the grant would expire at %v, but the time is already %v: give a later instant", t.Expires, mg.records.now)
	case s.expires != 0 && strings.HasPrefix(t.Credit, clearing.PeerAccountPrefix):
		return messages.Errorf(messages.Invalid, "account %q is for settlements with another site, and its credits cannot expire: grant without an expiry", clip(t.Credit))
	case s.expires != 0 && len(credit.lots) >= MaxLots:
		return messages.Errorf(messages.Exhausted, "account %q has credits of %d expiring grants, the maximum: grant without an expiry, or wait until one of these grants expires", credit.name, MaxLots)
	}
	if err := s.fits(); err != nil {
		return err
	}
	if fresh {
		s.credit = mg.books.openFor(by, t.Credit)
	}
	mg.books.do(&s)
	mg.books.commit(by, &s)
	return nil
}

// pay moves credits for an owner of the account. A request of a user who is no owner leaves no record. A repeated
// request gets its first answer. The answer shows the account only if the user may still see the account.
func (mg *management) pay(c *Command) (money.AccountReply, *messages.Error) {
	t := c.movement()
	if _, err := mg.accounts.owned(c, t.Debit, "pay from it"); err != nil {
		if mg.records.recorded(t.ID) != 0 {
			return money.AccountReply{Account: t.Debit}, mg.records.recall(&t).Error
		}
		return money.AccountReply{}, err
	}
	return mg.keyed(c.By, &t, t.Debit, mg.once)
}

func (mg *management) withdraw(c *Command) (money.AccountReply, *messages.Error) {
	t := c.movement()
	if _, err := mg.accounts.find(t.Debit); err != nil {
		return money.AccountReply{}, err
	}
	return mg.keyed(c.By, &t, t.Debit, mg.once)
}

// correct reverses a transfer. The correction's identifier is made from the transfer's, so a transfer has at most one
// correction. A refusal is not remembered: later the account may have enough credits.
func (mg *management) correct(by messages.Name, c *money.CorrectRequest) (money.CorrectReply, *messages.Error) {
	rec, err := mg.records.correctable(c.Transfer)
	if err != nil {
		return money.CorrectReply{}, err
	}
	t := money.Transfer{
		ID: correctPrefix + c.Transfer, Kind: money.Posted, Debit: rec.outcome.credit, Credit: rec.outcome.debit,
		Amount: c.Amount, Pending: c.Transfer, Job: rec.outcome.job, Reason: c.Reason,
	}
	if t.Amount == 0 {
		t.Amount = rec.outcome.amount
	}
	reply := money.CorrectReply{Transfer: t.ID, Debit: t.Debit, Credit: t.Credit, Amount: t.Amount}
	if number := mg.records.recorded(t.ID); number != 0 {
		return reply, mg.correctedBefore(number, &t)
	}
	err = mg.once(by, &t)
	mg.expiry.sweepMoved()
	return reply, err
}

// correctedBefore returns a Conflict if a second correction of the same transfer differs from the first one: a transfer
// can be corrected only once. The error says what the operator can do instead.
func (mg *management) correctedBefore(number uint64, t *money.Transfer) *messages.Error {
	first := mg.records.record(number)
	if same(first.asked, *t) {
		return nil
	}
	if first.asked.Amount == t.Amount {
		return messages.Errorf(messages.Conflict, "transfer %q was corrected before, for another reason (%s): nothing is left to do", clip(t.Pending), clip(first.asked.Reason))
	}
	return messages.Errorf(messages.Conflict, "transfer %q was corrected before, by %v credits, and can be corrected only once: to take back less, correct %q; to take back more, withdraw credits from account %q and grant them to account %q",
		clip(t.Pending), first.asked.Amount, clip(t.ID), t.Debit, t.Credit)
}

func (mg *management) project(by messages.Name, p *money.ProjectRequest) (money.AccountReply, *messages.Error) {
	a := mg.accounts.byName[p.Account]
	if a != nil && !a.project && a.present == 0 {
		return money.AccountReply{}, messages.Errorf(messages.Conflict, "account %q belongs to a user: choose another name for the project", p.Account)
	}
	if a != nil && a.present+len(p.Owners) > MaxMembers {
		return money.AccountReply{}, messages.Errorf(messages.Exhausted, "account %q has %d members, and the maximum is %d: remove some first", a.name, a.present, MaxMembers)
	}
	if a == nil {
		a = mg.books.openFor(by, p.Account)
	}
	mg.books.change(by, change{setting: asProject, account: a.name, text: p.Title})
	owner := money.RoleOwner
	for _, name := range p.Owners {
		c := Command{By: by, Member: money.MemberRequest{Account: a.name, Member: name, Role: &owner}}
		if _, err := mg.member(&c); err != nil {
			return money.AccountReply{}, err
		}
	}
	return a.brief(), nil
}

func (mg *management) freeze(c *Command) (money.AccountReply, *messages.Error) {
	f := &c.Freeze
	a, err := mg.accounts.owned(c, f.Account, "freeze it")
	if err != nil {
		return money.AccountReply{}, err
	}
	if c.Rank == User && a.frost.rank == frozenByOperator {
		return money.AccountReply{}, messages.Errorf(messages.PermissionDenied, "account %q was frozen by operator %q: only an operator can thaw it", a.name, a.frost.by)
	}
	ch := change{setting: freeze, account: a.name}
	if f.Frozen {
		ch.number, ch.text = int64(frozenByOperator), f.Reason
		if c.Rank == User {
			ch.number = int64(frozenByOwner)
		}
	}
	mg.books.change(c.By, ch)
	return a.brief(), nil
}

func (mg *management) credit(by messages.Name, r *money.CreditRequest) (money.AccountReply, *messages.Error) {
	a, err := mg.accounts.find(r.Account)
	if err != nil {
		return money.AccountReply{}, err
	}
	mg.books.change(by, change{setting: creditLimit, account: a.name, number: int64(r.Credit), text: r.Reason})
	mg.lots.moved = append(mg.lots.moved, a)
	mg.expiry.sweepMoved()
	return a.brief(), nil
}

// member adds a member to an account, changes its role or limit, or removes it. A repeated request changes nothing.
func (mg *management) member(c *Command) (money.AccountReply, *messages.Error) {
	m := &c.Member
	a, err := mg.accounts.owned(c, m.Account, "change its members")
	if err != nil {
		return money.AccountReply{}, err
	}
	present := a.has(m.Member)
	demotes := present && a.member(m.Member).role == money.RoleOwner && (m.Remove || m.Role != nil && *m.Role != money.RoleOwner)
	switch {
	case demotes && c.Rank == User && a.owning == 1:
		return money.AccountReply{}, messages.Errorf(messages.PermissionDenied, "%q is the last owner of account %q: make another member an owner first, or ask an operator", m.Member, a.name)
	case !m.Remove && !present && a.present >= MaxMembers:
		return money.AccountReply{}, messages.Errorf(messages.Exhausted, "account %q has %d members, the maximum: remove a member first", a.name, MaxMembers)
	}
	if mg.accounts.setMember(a, m.Member, m.Remove) {
		mg.books.write(&record{what: membership, at: mg.records.now, by: c.By, account: a.name, member: m.Member, remove: m.Remove}, nil, nil)
	}
	if m.Role != nil {
		mg.books.change(c.By, change{setting: memberRole, account: a.name, member: m.Member, number: int64(*m.Role)})
	}
	if m.Limit != nil {
		mg.books.change(c.By, change{setting: memberLimit, account: a.name, member: m.Member, number: int64(*m.Limit)})
	}
	return a.brief(), nil
}

// The function `after` returns t + d, or the largest time if the sum overflows.
func after(t messages.Time, d messages.Duration) messages.Time {
	if later := t.Add(d); later > t {
		return later
	}
	return math.MaxInt64
}
