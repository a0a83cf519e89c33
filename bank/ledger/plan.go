package ledger

import (
	"math"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

// planner plans the step of a transfer, or refuses it. It changes nothing.
type planner struct {
	records  *records
	accounts *accounts
	holds    *holds
}

// prepare plans a transfer that the caller requested. In a hold, it stores the caller's name.
func (p *planner) prepare(by messages.Name, t *money.Transfer) (step, *messages.Error) {
	s, err := p.plan(t)
	if err == nil && t.Kind == money.Hold {
		s.hold.by = p.holds.maker(by)
	}
	return s, err
}

// plan checks a transfer against the state, and returns its step for books.do.
func (p *planner) plan(t *money.Transfer) (step, *messages.Error) {
	switch t.Kind {
	case money.Posted:
		return p.planPosted(t)
	case money.Hold:
		return p.planHold(t)
	}
	return p.planResolution(t)
}

func (p *planner) planPosted(t *money.Transfer) (step, *messages.Error) {
	debit, err := p.accounts.find(t.Debit)
	if err != nil {
		return step{}, err
	}
	credit, err := p.accounts.find(t.Credit)
	if err != nil {
		return step{}, err
	}
	s := step{asked: t, debit: debit, credit: credit, amount: t.Amount, job: t.Job}
	if s, err = p.planOrigin(s); err != nil {
		return step{}, err
	}
	if err := s.covered(t.Amount); err != nil {
		return step{}, err
	}
	return s, s.fits()
}

// planOrigin checks a Posted transfer. The rules depend on the transfer's origin: who chose its identifier. Operators
// and the ledger itself may move credits of a frozen account.
func (p *planner) planOrigin(s step) (step, *messages.Error) {
	switch originOf(s.asked.ID) {
	case ordinary:
		return s, s.debit.thawedFor("moved from")
	case paid:
		if len(s.debit.lots)+len(s.credit.lots) > MaxLots {
			return s, messages.Errorf(messages.Exhausted, "accounts %q and %q have credits of more than %d expiring grants: pay when some of them have expired", s.debit.name, s.credit.name, MaxLots)
		}
		return s, s.debit.thawedFor("paid from")
	case corrected:
		return p.planCorrection(s)
	}
	return s, nil
}

func (p *planner) planHold(t *money.Transfer) (step, *messages.Error) {
	debit, err := p.accounts.find(t.Debit)
	if err != nil {
		return step{}, err
	}
	if err := p.mayHold(debit, t); err != nil {
		return step{}, err
	}
	if t.Credit != "" {
		if _, err := p.accounts.find(t.Credit); err != nil {
			return step{}, err
		}
	}
	if t.Expires != 0 && until(t, p.records.now) <= p.records.now {
		return step{}, messages.Errorf(messages.Expired, "hold %q would expire at %v, but the time is already %v: give a later instant", clip(t.ID), t.Expires, p.records.now)
	}
	s := step{asked: t, debit: debit, held: t.Amount, job: t.Job}
	if err := s.covered(t.Amount); err != nil {
		return step{}, err
	}
	if _, fits := sum(p.holds.sum, t.Amount); !fits {
		return step{}, messages.Errorf(messages.TooLarge, "holding %s more would exceed the maximum that all holds of a bank can sum to: hold less", t.Amount.Words())
	}
	s.hold = newHold(t, debit)
	s.hold.expires, s.member = until(t, p.records.now), s.hold.member
	return s, nil
}

// MaxHolds is the maximum number of pending holds on one account, so that no account can fill the bank's memory.
const MaxHolds = 100_000

func (p *planner) mayHold(a *account, t *money.Transfer) *messages.Error {
	if err := a.mayHold(t.Member, t.Amount); err != nil {
		return err
	}
	if a.holds >= MaxHolds {
		return messages.Errorf(messages.Exhausted, "account %q has %d pending holds, the maximum: wait until some jobs have ended", a.name, a.holds)
	}
	return a.thawedFor("held on")
}

func (p *planner) planResolution(t *money.Transfer) (step, *messages.Error) {
	h, err := p.findHold(t.Pending)
	if err != nil {
		return step{}, err
	}
	if t.Debit != "" && t.Debit != h.account.name {
		return step{}, messages.Errorf(messages.PermissionDenied, "hold %q is on account %q, not on %q: leave the field debit empty, or name the right account", clip(h.id), h.account.name, clip(t.Debit))
	}
	s := step{asked: t, debit: h.account, hold: h, job: h.job, member: h.member}
	if t.Job != 0 {
		s.job = t.Job
	}
	if t.Kind == money.Post {
		return p.planPost(s)
	}
	if t.Amount != 0 && t.Amount != h.amount {
		return step{}, messages.Errorf(messages.Invalid, "hold %q reserves %s, not %v: give amount 0, or the whole amount of the hold", clip(h.id), h.amount.Words(), t.Amount)
	}
	if t.Kind == money.Void {
		s.held = -h.amount
	} else {
		s.expires, s.learned = later(h.expires, until(t, p.records.now)), s.job
	}
	return s, nil
}

// later returns the later of two expiries; 0 stands for never.
func later(a, b messages.Time) messages.Time {
	if a == 0 || b == 0 {
		return 0
	}
	return max(a, b)
}

func (p *planner) planPost(s step) (step, *messages.Error) {
	t, h := s.asked, s.hold
	if t.Amount > h.amount {
		return step{}, messages.Errorf(messages.Insufficient, "hold %q reserves %s: %v cannot be posted from it; post at most what is held", clip(h.id), h.amount.Words(), t.Amount)
	}
	payee := t.Credit
	if payee == "" {
		payee = h.payee
	}
	if payee == "" {
		return step{}, invalid(t, "credit is empty and the hold names no payee: name the account that receives")
	}
	if h.payee != "" && payee != h.payee {
		return step{}, messages.Errorf(messages.PermissionDenied, "hold %q can only be posted to %q, not to %q", clip(h.id), h.payee, clip(payee))
	}
	credit, err := p.accounts.find(payee)
	if err != nil {
		return step{}, err
	}
	if credit == s.debit {
		return step{}, invalid(t, "credit is the account of the hold: void the hold instead")
	}
	s.credit, s.amount, s.held, s.spent = credit, t.Amount, -h.amount, t.Amount
	return s, s.fits()
}

// covered returns an error if the account cannot pay the argument `amount` from its available credits and its credit
// limit. The issuer's account has no limit.
func (s *step) covered(amount messages.Credits) *messages.Error {
	a := s.debit
	if a.issuer() {
		return nil
	}
	if room, ok := sum(a.available(), a.credit); ok && room < amount {
		return messages.Errorf(messages.Insufficient, "account %q has %s available (balance %v, held %v, credit line %v), but %v are needed: ask for less, or ask an operator for a grant",
			a.name, room.Words(), a.balance, a.reserved, a.credit, amount)
	}
	return nil
}

// fits returns an error if the step would make a balance too large or too small to count. The negative of each balance
// must be in range too, because the issuer's balance is the negative of the sum of all issued credits.
func (s *step) fits() *messages.Error {
	less, debited := sum(s.debit.balance, -s.amount)
	debited = debited && less > math.MinInt64
	_, credited := sum(s.credit.balance, s.amount)
	if debited && credited {
		return nil
	}
	return messages.Errorf(messages.TooLarge, "moving %v credits from %q to %q would exceed what an account can count: move less",
		s.amount, s.debit.name, s.credit.name)
}

// counted adds an amount to a sum that is kept only for statistics, such as the sum of all grants. The sum stops at the
// largest possible number. So an account for which this sum has become too large can still receive grants and be
// charged.
func counted(total, more messages.Credits) messages.Credits {
	if all, fits := sum(total, more); fits {
		return all
	}
	return math.MaxInt64
}

func sum(a, b messages.Credits) (messages.Credits, bool) {
	c := a + b
	return c, (c > a) == (b > 0)
}

// findHold returns a pending hold. If the hold is not pending, the error says why: it was posted, voided or has lapsed,
// or never existed.
func (p *planner) findHold(id string) (*hold, *messages.Error) {
	if h := p.holds.byID[id]; h != nil {
		return h, nil
	}
	number := p.records.recorded(id)
	if number == 0 {
		return nil, messages.Errorf(messages.NotFound, "there is no hold %q: make it first", clip(id))
	}
	if p.records.recorded(lapseKey(id)) != 0 {
		return nil, messages.Errorf(messages.Expired, "hold %q expired and its credits are free again: make a new hold, and extend the new hold in time", clip(id))
	}
	rec := p.records.record(number)
	if rec.what != done || rec.asked.Kind != money.Hold {
		return nil, messages.Errorf(messages.NotFound, "transfer %q is not a hold that was made: give the identifier of a hold", clip(id))
	}
	return nil, messages.Errorf(messages.Ended, "hold %q was posted or voided before: a hold resolves once", clip(id))
}

// planCorrection plans the reverse of an earlier transfer. The reverse of a charge also lowers the sums of what the
// account and its member have spent.
func (p *planner) planCorrection(s step) (step, *messages.Error) {
	rec, err := p.records.correctable(s.asked.Pending)
	if err != nil {
		return step{}, err
	}
	if o := &rec.outcome; o.debit != s.credit.name || o.credit != s.debit.name || s.amount > o.amount {
		return step{}, invalid(s.asked, "it corrects a movement of "+o.amount.String()+" credits from "+o.debit+" to "+o.credit+": correct at most that, in the other direction")
	}
	if rec.asked.Kind == money.Post {
		s.refund, s.spent = s.credit, -s.amount
		s.member = p.records.holder(rec.asked.Pending, s.credit.name)
	} else {
		p.countAgain(&s, &rec)
	}
	return s, nil
}

// countAgain handles the correction of an earlier correction. It decides whether the sums of spent credits fall or
// rise: the first correction of a transfer lowers them, the second one restores them, the third one lowers them again,
// and so on.
func (p *planner) countAgain(s *step, rec *record) {
	root, restores := *rec, false
	for originOf(root.asked.ID) == corrected {
		root, restores = p.records.record(p.records.recorded(root.asked.Pending)), !restores
	}
	if root.asked.Kind != money.Post {
		return
	}
	s.spent, s.refund = s.amount, s.debit
	if !restores {
		s.spent, s.refund = -s.amount, s.credit
	}
	s.member = p.records.holder(root.asked.Pending, s.refund.name)
}
