package ledger

import (
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

// books carries out steps on the accounts, holds and lots, and writes the records of the steps.
type books struct {
	records  *records
	accounts *accounts
	holds    *holds
	lots     *lots
	requests *requests
	done     uint64 // number of transfers that were carried out
}

// do carries out a planned step. It cannot fail: the planner has checked it.
func (b *books) do(s *step) {
	s.debitLots = s.debit.lots
	if s.credit != nil {
		s.creditLots = s.credit.lots
	}
	b.move(s, 1)
	b.lots.move(s)
	b.lots.note(s.debit)
	b.lots.note(s.credit)
	b.holds.change(s, s.asked.Kind == money.Hold)
	s.debitAfter = s.debit.standing
	if s.credit != nil {
		s.creditAfter = s.credit.standing
	}
}

func (b *books) undo(s *step) {
	b.move(s, -1)
	s.debit.lots = s.debitLots
	if s.credit != nil {
		s.credit.lots = s.creditLots
	}
	b.holds.change(s, s.asked.Kind != money.Hold)
}

func (b *books) undoAll(steps []step) {
	for i := len(steps) - 1; i >= 0; i-- {
		b.undo(&steps[i])
	}
}

// move changes the accounts of a step. With sign 1 it does the step; with sign -1 it undoes the step.
func (b *books) move(s *step, sign messages.Credits) {
	s.debit.balance -= sign * s.amount
	s.debit.reserved += sign * s.held
	s.use(sign)
	if s.credit == nil {
		return
	}
	if !s.credit.issuer() {
		b.accounts.balances += sign * s.amount
	}
	if !s.debit.issuer() {
		b.accounts.balances -= sign * s.amount
	}
	s.credit.balance += sign * s.amount
	if a := s.charged(); sign > 0 {
		s.spentBefore, a.spent = a.spent, counted(a.spent, s.spent)
	} else {
		a.spent = s.spentBefore
	}
	if s.grants() { // a grant is never in a chain, so it is never undone
		s.credit.granted = counted(s.credit.granted, s.amount)
	}
}

// write appends a record. If a signed request led to the record, the request's record is written first.
func (b *books) write(r *record, debit, credit *account) uint64 {
	b.requests.writeAsked()
	b.accounts.touched(r)
	return b.records.write(r, debit, credit)
}

func (b *books) commit(by messages.Name, s *step) {
	debit, credit := s.debit, s.credit
	if s.amount == 0 && s.held == 0 {
		debit = nil // an Extend does not change a standing
	}
	if s.amount == 0 {
		credit = nil
	}
	rec := record{what: done, at: b.records.now, by: by, asked: *s.asked, outcome: s.outcome(), stamp: s.stamp}
	b.records.known.add(s.asked.ID, b.write(&rec, debit, credit))
	b.done++
}

func (b *books) refuse(by messages.Name, t *money.Transfer, err *messages.Error, asked stamp) {
	rec := record{what: refused, at: b.records.now, by: by, asked: *t, refusal: *err, stamp: asked}
	b.records.known.add(t.ID, b.write(&rec, nil, nil))
}

func (b *books) change(by messages.Name, c change) {
	if b.accounts.alter(by, &c) {
		b.write(&record{what: changed, at: b.records.now, by: by, change: c}, nil, nil)
	}
}

func (b *books) openFor(by, name messages.Name) *account {
	a := b.accounts.open(name)
	b.write(&record{what: opened, at: b.records.now, by: by, account: a.name}, nil, nil)
	return a
}
