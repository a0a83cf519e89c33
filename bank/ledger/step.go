package ledger

import "github.com/candor-grid/candor/messages"

// step is a transfer that has been checked against the state and can be done,
// and undone in the reverse order.
type step struct {
	asked  *messages.Transfer
	debit  *account
	credit *account         // nil: credits move nowhere
	amount messages.Credits // from debit to credit
	held   messages.Credits // change of what is reserved on debit
	hold   *hold            // made, resolved or extended; nil for Posted
	job    messages.JobID
	// What Extend swaps with the hold's own. The job is often not known when
	// the hold is made.
	expires messages.Time
	learned messages.JobID
	spent   messages.Credits // change of what was spent for jobs
	member  messages.Name    // on whose word credits are held or spent; "": the account's own
	refund  *account         // has spent less, by a correction; nil: spent is of debit
	// What the accounts had of expiring grants before it was done.
	debitLots, creditLots []lot
	// The standings right after it was done.
	debitAfter, creditAfter standing
	stamp                   stamp // who asked
}

// charged is the account of which spent is changed.
func (s *step) charged() *account {
	if s.refund != nil {
		return s.refund
	}
	return s.debit
}

// grants reports whether the step is a grant.
func (s *step) grants() bool { return s.debit.issuer() && originOf(s.asked.ID) == granted }

func (s *step) outcome() outcome {
	o := outcome{debit: s.debit.name, amount: s.amount, held: s.held, job: s.job, debitAfter: s.debitAfter, creditAfter: s.creditAfter}
	if s.credit != nil {
		o.credit = s.credit.name
	}
	return o
}

// do carries out a planned step. It cannot fail.
func (l *Ledger) do(s *step) {
	s.debitLots = s.debit.lots
	if s.credit != nil {
		s.creditLots = s.credit.lots
	}
	l.move(s, 1)
	l.moveLots(s)
	l.noteMoved(s.debit)
	l.noteMoved(s.credit)
	switch s.asked.Kind {
	case messages.Hold:
		l.addHold(s.hold)
	case messages.Post, messages.Void:
		l.removeHold(s.hold)
	case messages.Extend:
		l.swapExpiry(s)
	}
	s.debitAfter = s.debit.standing
	if s.credit != nil {
		s.creditAfter = s.credit.standing
	}
}

// noteMoved notes an account of which something may have come to be returned.
func (l *Ledger) noteMoved(a *account) {
	if a != nil && len(a.lots) > 0 {
		l.moved = append(l.moved, a)
	}
}

// undo takes back the step that was done last.
func (l *Ledger) undo(s *step) {
	l.move(s, -1)
	s.debit.lots = s.debitLots
	if s.credit != nil {
		s.credit.lots = s.creditLots
	}
	switch s.asked.Kind {
	case messages.Hold:
		l.removeHold(s.hold)
	case messages.Post, messages.Void:
		l.addHold(s.hold)
	case messages.Extend:
		l.swapExpiry(s)
	}
}

func (l *Ledger) swapExpiry(s *step) {
	s.hold.expires, s.expires = s.expires, s.hold.expires
	s.hold.job, s.learned = s.learned, s.hold.job
	l.expiries.queue(s.hold)
}

// move changes the accounts as the step says, or with sign −1 back.
func (l *Ledger) move(s *step, sign messages.Credits) {
	s.debit.balance -= sign * s.amount
	s.debit.reserved += sign * s.held
	s.use(sign)
	if s.credit == nil {
		return
	}
	if !s.credit.issuer() {
		l.balances += sign * s.amount
	}
	if !s.debit.issuer() {
		l.balances -= sign * s.amount
	}
	s.credit.balance += sign * s.amount
	s.charged().spent += sign * s.spent
	if s.grants() {
		s.credit.granted += sign * s.amount
	}
}

// result is what the maker of the transfer is told.
func (s *step) result() messages.Credits {
	if s.asked.Kind == messages.Extend {
		return s.hold.amount
	}
	return resultAmount(s.asked, s.amount, s.held)
}

// resultAmount is what was moved, set aside or freed; of an Extend, which
// changes no amount, the caller knows better.
func resultAmount(t *messages.Transfer, moved, held messages.Credits) messages.Credits {
	switch t.Kind {
	case messages.Hold:
		return held
	case messages.Void:
		return -held
	}
	return moved
}
