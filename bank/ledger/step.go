package ledger

import (
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

// step is a transfer that was checked against the state. Steps can be done, and then undone in reverse order.
type step struct {
	asked  *money.Transfer
	debit  *account
	credit *account         // nil if no credits move
	amount messages.Credits // credits that move from debit to credit
	held   messages.Credits // change of debit's reserve
	hold   *hold            // the hold that is made, resolved or extended; nil for Posted
	job    messages.JobID
	// An Extend changes the expiry of a hold. It may also set the hold's job, which often is not known when the hold is
	// made. To undo such a step, the field `expires` keeps the hold's old expiry, and the field `learned` keeps its old
	// job. For a grant, `expires` is the expiry of the grant.
	expires messages.Time
	learned messages.JobID
	spent   messages.Credits // change of the amount spent for jobs
	member  messages.Name    // the member for whom credits are held or spent; "" means the account itself
	refund  *account         // the account whose spent credits a correction changes; nil means debit
	// These are the amounts that the account and the member had spent before the step.
	spentBefore, memberBefore messages.Credits
	chained                   bool // one of several linked transfers, so it may be undone
	// These are the lots of both accounts before the step. They are kept only for a step of a chain, because such a
	// step may be undone.
	debitLots, creditLots []lot
	// These are the standings of both accounts directly after the step.
	debitAfter, creditAfter standing
	stamp                   stamp // the account that asked, and its signature
}

// charged returns the account whose spent credits the step changes.
func (s *step) charged() *account {
	if s.refund != nil {
		return s.refund
	}
	return s.debit
}

func (s *step) grants() bool { return s.debit.issuer() && originOf(s.asked.ID) == granted }

func (s *step) outcome() outcome {
	o := outcome{debit: s.debit.name, amount: s.amount, held: s.held, job: s.job, debitAfter: s.debitAfter, creditAfter: s.creditAfter}
	if s.credit != nil {
		o.credit = s.credit.name
	}
	return o
}

// result returns the amount that the caller of a transfer sees in the answer.
func (s *step) result() messages.Credits {
	if s.asked.Kind == money.Extend {
		return s.hold.amount
	}
	return resultAmount(s.asked, s.amount, s.held)
}

// resultAmount returns the amount that a transfer moved, set aside or freed. For an Extend, it returns the amount of
// the hold that was extended.
func resultAmount(t *money.Transfer, moved, held messages.Credits) messages.Credits {
	switch t.Kind {
	case money.Hold:
		return held
	case money.Void:
		return -held
	}
	return moved
}
