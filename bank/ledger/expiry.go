package ledger

import (
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

// expiry ends a hold when the hold expires. When a grant expires, it also returns the unspent part of the grant (a lot)
// to the issuer. The queues of holds and lots say what expires next.
type expiry struct {
	records  *records
	accounts *accounts
	holds    *holds
	lots     *lots
	books    *books
}

// next returns when the next hold lapses or grant expires, or 0 for never.
func (e *expiry) next() messages.Time {
	switch {
	case e.holdFirst():
		return e.holds.queue[0].expires
	case len(e.lots.dues) > 0:
		return e.lots.dues[0].due
	}
	return 0
}

// holdFirst reports whether the next hold is due before the next grant, or at the same time.
func (e *expiry) holdFirst() bool {
	return len(e.holds.queue) > 0 && (len(e.lots.dues) == 0 || e.holds.queue[0].expires <= e.lots.dues[0].due)
}

// advance sets the time to `at`. Holds lapse and grants expire in the order of their times. advance returns how many
// holds lapsed.
func (e *expiry) advance(at messages.Time) int {
	e.records.now = max(e.records.now, at)
	n := 0
	for next := e.next(); next != 0 && next <= e.records.now; next = e.next() {
		if e.holdFirst() {
			h := e.holds.queue[0]
			e.lapse(h)
			e.sweep(h.account, next)
			n++
		} else {
			e.sweep(e.lots.dues[0], next)
		}
	}
	return n
}

func (e *expiry) lapse(h *hold) {
	s := step{
		asked: &money.Transfer{Kind: money.Void, Pending: h.id},
		debit: h.account, held: -h.amount, hold: h, job: h.job, member: h.member,
	}
	e.books.do(&s)
	e.records.known.add(lapseKey(h.id), e.books.write(&record{what: lapsed, at: e.records.now, asked: *s.asked, outcome: s.outcome()}, s.debit, nil))
}

// sweepMoved calls sweep for each account whose credits were moved by the last command. When a grant expires, its
// account may not have enough credits to return. Such an account may now have enough.
func (e *expiry) sweepMoved() {
	moved := e.lots.moved
	e.lots.moved = nil
	for _, a := range moved {
		e.sweep(a, e.records.now)
	}
	e.lots.moved = moved[:0]
}

// sweep returns the unspent part of grants to their issuers, if the grants expire at the time `by` or earlier. A return
// never takes an account below its limit. What cannot be returned for this reason is returned later.
func (e *expiry) sweep(a *account, by messages.Time) {
	defer e.lots.schedule(a, by)
	for i := 0; i < len(a.lots) && a.lots[i].expires <= by; {
		o := a.lots[i]
		room, fits := sum(a.available(), a.credit)
		if !fits {
			room = a.available()
		}
		if amount := min(o.free, room); amount > 0 {
			e.giveBack(a, o.grant, amount)
		}
		if i < len(a.lots) && a.lots[i].grant == o.grant { // some of the lot is left
			i++
		}
	}
}

// returnReason is the reason in a statement for the return of an expired grant.
const returnReason = "the grant expired; what was not spent of it went back"

// giveBack returns a part of a grant to the issuer. The transfer's identifier contains the record's number, so it is
// unique.
func (e *expiry) giveBack(a *account, grant string, amount messages.Credits) {
	t := money.Transfer{
		ID: returnPrefix + uitoa(e.records.journal.count+1), Kind: money.Posted,
		Debit: a.name, Credit: money.IssuerAccount, Amount: amount, Pending: grant, Reason: returnReason,
	}
	s := step{asked: &t, debit: a, credit: e.accounts.issuer, amount: amount}
	e.books.do(&s)
	e.books.commit("", &s)
}
