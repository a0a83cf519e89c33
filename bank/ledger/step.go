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
	// What Extend swaps with the hold's own, and when a grant expires. The job is often not
	// known when the hold is made.
	expires messages.Time
	learned messages.JobID
	spent   messages.Credits // change of what was spent for jobs
	member  messages.Name    // on whose word credits are held or spent; "": the account's own
	refund  *account         // has spent less, by a correction; nil: spent is of debit
	// What was counted as spent by the account, and by the member, before it was done.
	spentBefore, memberBefore messages.Credits
	chained                   bool // it is one of several linked transfers, and may be taken back
	// What the accounts had of expiring grants before it was done, if it is chained.
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

func (s *step) grants() bool { return s.debit.issuer() && originOf(s.asked.ID) == granted }

func (s *step) outcome() outcome {
	o := outcome{debit: s.debit.name, amount: s.amount, held: s.held, job: s.job, debitAfter: s.debitAfter, creditAfter: s.creditAfter}
	if s.credit != nil {
		o.credit = s.credit.name
	}
	return o
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
