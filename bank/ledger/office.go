package ledger

import (
	"math"
	"strconv"
	"strings"

	"github.com/candor-grid/candor/messages"
)

// origin says who made a transfer's identifier, and so which rules it is under.
type origin uint8

const (
	ordinary  origin = iota // a service or an operator, by the verb Transfers
	granted                 // an operator, from the issuer
	paid                    // an owner of the account
	returned                // the ledger itself, as a grant expired
	withdrawn               // an operator, to the issuer
	corrected               // an operator, against an earlier transfer
)

// The prefixes of identifiers that the bank makes, from the caller and its
// key, the number of the record, or the corrected transfer. Nobody else may
// choose one.
const (
	grantPrefix    = "$grant/"
	payPrefix      = "$pay/"
	returnPrefix   = "$return/"
	withdrawPrefix = "$withdraw/"
	correctPrefix  = "$correct/"
)

var origins = []struct {
	prefix string
	origin origin
}{{grantPrefix, granted}, {payPrefix, paid}, {returnPrefix, returned}, {withdrawPrefix, withdrawn}, {correctPrefix, corrected}}

// ground is the origin's name in exports.
func (o origin) ground() string {
	return [...]string{ordinary: "", granted: "grant", paid: "payment", returned: "return", withdrawn: "withdrawal", corrected: "correction"}[o]
}

func originOf(id string) origin {
	if id == "" || id[0] != '$' {
		return ordinary
	}
	for _, o := range origins {
		if strings.HasPrefix(id, o.prefix) {
			return o.origin
		}
	}
	return ordinary
}

func uitoa(n uint64) string { return strconv.FormatUint(n, 10) }

// owned returns an account that a command's maker may manage.
func (l *Ledger) owned(c *Command, name messages.Name, what string) (*account, *messages.Error) {
	a := l.accounts[name]
	if c.Rank == User && (a == nil || !a.owns(c.By)) {
		return nil, messages.Errorf(messages.PermissionDenied, "account %q may not %s: ask an owner of account %q, or an operator", clip(c.By), what, clip(name))
	}
	return l.find(name)
}

// keyed carries out a transfer of the bank's own making once, and answers with
// an account after it.
func (l *Ledger) keyed(by messages.Name, t *messages.Transfer, show messages.Name, run func() *messages.Error) (messages.AccountReply, *messages.Error) {
	if l.recorded(t.ID) != 0 {
		return l.reply(show, l.recall(t).Error)
	}
	if err := run(); err != nil {
		l.rememberRefusal(by, t, err, stamp{})
		return messages.AccountReply{}, err
	}
	l.sweepMoved()
	return l.reply(show, nil)
}

// carryOut plans and does a single transfer.
func (l *Ledger) carryOut(by messages.Name, t *messages.Transfer) *messages.Error {
	s, err := l.prepare(by, t)
	if err != nil {
		return err
	}
	l.do(&s)
	l.commit(by, &s)
	return nil
}

// pay moves credits on the word of who owns them. Whoever does not leaves no
// trace; whoever did when it was asked first gets that answer, and sees the account
// only if it still may.
func (l *Ledger) pay(c *Command) (messages.AccountReply, *messages.Error) {
	p := &c.Pay
	if err := CheckPay(p); err != nil {
		return messages.AccountReply{}, err
	}
	t := messages.Transfer{ID: payPrefix + c.By + "/" + p.Key, Kind: messages.Posted, Debit: p.From, Credit: p.To, Amount: p.Amount, Reason: p.Reason}
	if _, err := l.owned(c, p.From, "pay from it"); err != nil {
		if l.rules >= secondRules && l.recorded(t.ID) != 0 {
			return messages.AccountReply{Account: p.From}, l.recall(&t).Error
		}
		return messages.AccountReply{}, err
	}
	return l.keyed(c.By, &t, p.From, func() *messages.Error { return l.carryOut(c.By, &t) })
}

// withdraw takes credits back to the issuer.
func (l *Ledger) withdraw(by messages.Name, w *messages.WithdrawRequest) (messages.AccountReply, *messages.Error) {
	if err := CheckWithdraw(w); err != nil {
		return messages.AccountReply{}, err
	}
	if _, err := l.find(w.Account); err != nil {
		return messages.AccountReply{}, err
	}
	t := messages.Transfer{ID: withdrawPrefix + by + "/" + w.Key, Kind: messages.Posted, Debit: w.Account, Credit: messages.IssuerAccount, Amount: w.Amount, Reason: w.Reason}
	return l.keyed(by, &t, w.Account, func() *messages.Error { return l.carryOut(by, &t) })
}

// correct takes a transfer back. The correction's identifier is that of what
// it corrects, so there can be one. A refusal is not remembered: once the
// account can cover it, the same request may succeed.
func (l *Ledger) correct(by messages.Name, c *messages.CorrectRequest) (messages.CorrectReply, *messages.Error) {
	if err := CheckCorrect(c); err != nil {
		return messages.CorrectReply{}, err
	}
	rec, err := l.correctable(c.Transfer)
	if err != nil {
		return messages.CorrectReply{}, err
	}
	t := messages.Transfer{
		ID: correctPrefix + c.Transfer, Kind: messages.Posted, Debit: rec.outcome.credit, Credit: rec.outcome.debit,
		Amount: c.Amount, Pending: c.Transfer, Job: rec.outcome.job, Reason: c.Reason,
	}
	if t.Amount == 0 {
		t.Amount = rec.outcome.amount
	}
	reply := messages.CorrectReply{Transfer: t.ID, Debit: t.Debit, Credit: t.Credit, Amount: t.Amount}
	if l.recorded(t.ID) != 0 {
		return reply, l.recall(&t).Error
	}
	err = l.carryOut(by, &t)
	l.sweepMoved()
	return reply, err
}

// correctable returns the record of a transfer that moved credits.
func (l *Ledger) correctable(id string) (record, *messages.Error) {
	number := l.recorded(id)
	if number == 0 {
		return record{}, messages.Errorf(messages.NotFound, "there is no transfer %q: statements show the identifier of each", clip(id))
	}
	rec := l.record(number)
	if rec.what != done || rec.outcome.amount == 0 {
		return record{}, messages.Errorf(messages.Invalid, "transfer %q moved no credits, so there is nothing to correct", clip(id))
	}
	return rec, nil
}

// planCorrection plans the reverse of an earlier transfer. The reverse of a
// charge gives the account and its member back what they were counted to have
// spent.
func (l *Ledger) planCorrection(s step) (step, *messages.Error) {
	rec, err := l.correctable(s.asked.Pending)
	if err != nil {
		return step{}, err
	}
	if o := &rec.outcome; o.debit != s.credit.name || o.credit != s.debit.name || s.amount > o.amount {
		return step{}, invalid(s.asked, "it corrects a movement of "+o.amount.String()+" credits from "+o.debit+" to "+o.credit+": correct at most that, in the other direction")
	}
	if rec.asked.Kind == messages.Post {
		s.refund, s.spent = s.credit, -s.amount
		s.member = l.holder(rec.asked.Pending, s.credit.name)
	} else if l.rules >= secondRules {
		l.countAgain(&s, &rec)
	}
	return s, nil
}

// countAgain counts what the correction of a correction moves: where the first
// of them took back a charge, every second restores it, and those between take it
// back once more.
func (l *Ledger) countAgain(s *step, rec *record) {
	root, restores, depth := *rec, false, 0
	for ; originOf(root.asked.ID) == corrected; depth++ {
		root, restores = l.record(l.recorded(root.asked.Pending)), !restores
	}
	if root.asked.Kind != messages.Post || depth > 1 && rec.rules < secondRules {
		return // the first rules did not count what is taken back now
	}
	s.spent, s.refund = s.amount, s.debit
	if !restores {
		s.spent, s.refund = -s.amount, s.credit
	}
	s.member = l.holder(root.asked.Pending, s.refund.name)
}

// holder is the member on whose word a hold was made, "" if it was the
// account's own.
func (l *Ledger) holder(hold string, account messages.Name) messages.Name {
	if rec := l.record(l.recorded(hold)); rec.asked.Member != account {
		return rec.asked.Member
	}
	return ""
}

// makeProject makes an account a project.
func (l *Ledger) makeProject(by messages.Name, p *messages.ProjectRequest) (messages.AccountReply, *messages.Error) {
	if err := CheckProject(p); err != nil {
		return messages.AccountReply{}, err
	}
	a := l.accounts[p.Account]
	if a != nil && !a.project && a.count() == 0 {
		return messages.AccountReply{}, messages.Errorf(messages.Conflict, "account %q is somebody's own: choose another name for the project", p.Account)
	}
	if a != nil && a.count()+len(p.Owners) > MaxMembers {
		return messages.AccountReply{}, messages.Errorf(messages.Exhausted, "account %q has %d members, and there can be %d: remove some first", a.name, a.count(), MaxMembers)
	}
	if a == nil {
		a = l.openFor(by, p.Account)
	}
	l.change(by, change{setting: asProject, account: a.name, text: p.Title})
	owner := messages.RoleOwner
	for _, name := range p.Owners {
		c := Command{By: by, Member: messages.MemberRequest{Account: a.name, Member: name, Role: &owner}}
		if _, err := l.changeMember(&c); err != nil {
			return messages.AccountReply{}, err
		}
	}
	return a.reply(), nil
}

// openFor opens an account and writes it down.
func (l *Ledger) openFor(by, name messages.Name) *account {
	a := l.open(name)
	l.write(&record{what: opened, at: l.now, by: by, account: a.name}, nil, nil)
	return a
}

// freeze freezes an account or thaws it.
func (l *Ledger) freeze(c *Command) (messages.AccountReply, *messages.Error) {
	f := &c.Freeze
	if err := CheckFreeze(f); err != nil {
		return messages.AccountReply{}, err
	}
	a, err := l.owned(c, f.Account, "freeze it")
	if err != nil {
		return messages.AccountReply{}, err
	}
	if c.Rank == User && a.frost.rank == frozenByOperator {
		return messages.AccountReply{}, messages.Errorf(messages.PermissionDenied, "account %q was frozen by operator %q: only an operator can thaw it", a.name, a.frost.by)
	}
	ch := change{setting: freeze, account: a.name}
	if f.Frozen {
		ch.number, ch.text = int64(frozenByOperator), f.Reason
		if c.Rank == User {
			ch.number = int64(frozenByOwner)
		}
	}
	l.change(c.By, ch)
	return a.reply(), nil
}

// setCredit says how far below zero an account may go.
func (l *Ledger) setCredit(by messages.Name, r *messages.CreditRequest) (messages.AccountReply, *messages.Error) {
	if err := CheckCredit(r); err != nil {
		return messages.AccountReply{}, err
	}
	a, err := l.find(r.Account)
	if err != nil {
		return messages.AccountReply{}, err
	}
	l.change(by, change{setting: creditLimit, account: a.name, number: int64(r.Credit), text: r.Reason})
	l.moved = append(l.moved, a)
	l.sweepMoved()
	return a.reply(), nil
}

// after returns the moment a span after another; the last there is where that
// is out of range.
func after(t messages.Time, d messages.Duration) messages.Time {
	if later := t.Add(d); later > t {
		return later
	}
	return math.MaxInt64
}
