package ledger

import "github.com/candor-grid/candor/messages"

// step is a transfer that was checked against the state. It can be done, and then undone in the
// reverse order.
type step struct {
	asked  *messages.Transfer
	debit  *account
	credit *account         // nil: no credits move
	amount messages.Credits // moves from debit to credit
	held   messages.Credits // change of what is reserved on debit
	hold   *hold            // made, resolved or extended; nil for Posted
	job    messages.JobID
	// The fields that an Extend swaps with the hold's, and the expiry of a grant. The job is
	// often not known yet when the hold is made.
	expires messages.Time
	learned messages.JobID
	spent   messages.Credits // change of what was spent for jobs
	member  messages.Name    // the member for whom credits are held or spent; "": the account itself
	refund  *account         // the account whose spent a correction reduces; nil: debit's spent changes
	// What the account and the member had spent before the step.
	spentBefore, memberBefore messages.Credits
	chained                   bool // one of several linked transfers: it may be undone
	// The lots of both accounts before the step, if it is chained.
	debitLots, creditLots []lot
	// The standings right after the step.
	debitAfter, creditAfter standing
	stamp                   stamp // the account that asked, and its signature
}

// charged returns the account whose spent changes.
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

// result returns the answer to the maker of the transfer.
func (s *step) result() messages.Credits {
	if s.asked.Kind == messages.Extend {
		return s.hold.amount
	}
	return resultAmount(s.asked, s.amount, s.held)
}

// resultAmount returns what was moved, set aside or freed. An Extend does not change its
// amount, so result uses the hold's.
func resultAmount(t *messages.Transfer, moved, held messages.Credits) messages.Credits {
	switch t.Kind {
	case messages.Hold:
		return held
	case messages.Void:
		return -held
	}
	return moved
}
