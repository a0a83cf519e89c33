package ledger

import "github.com/candor-grid/candor/messages"

// expiry lets holds lapse and grants return as time passes. It has no state of its
// own: what is due stands in the queues of the holds and the lots.
type expiry struct {
	records  *records
	accounts *accounts
	holds    *holds
	lots     *lots
	books    *books
}

// next returns when the next pending hold lapses or a grant may expire,
// 0 if none will.
func (e *expiry) next() messages.Time {
	switch {
	case e.holdFirst():
		return e.holds.queue[0].expires
	case len(e.lots.dues) > 0:
		return e.lots.dues[0].due
	}
	return 0
}

// holdFirst reports whether the next to expire is a hold, not a grant.
func (e *expiry) holdFirst() bool {
	return len(e.holds.queue) > 0 && (len(e.lots.dues) == 0 || e.holds.queue[0].expires <= e.lots.dues[0].due)
}

// advance lets time pass, holds that are due lapse and grants expire, in the
// order of time. It returns how many holds lapsed.
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

// lapse frees a hold that is due and writes it down.
func (e *expiry) lapse(h *hold) {
	s := step{
		asked: &messages.Transfer{Kind: messages.Void, Pending: h.id},
		debit: h.account, held: -h.amount, hold: h, job: h.job, member: h.member,
	}
	e.books.do(&s)
	e.records.known.add(lapseKey(h.id), e.books.write(&record{what: lapsed, at: e.records.now, asked: *s.asked, outcome: s.outcome()}, s.debit, nil))
}

// sweepMoved sweeps the accounts that a command moved something on: what an
// account owed may have delayed a return, and what it received make up for it.
func (e *expiry) sweepMoved() {
	moved := e.lots.moved
	e.lots.moved = nil
	for _, a := range moved {
		e.sweep(a, e.records.now)
	}
	e.lots.moved = moved[:0]
}

// sweep returns to the issuer what is free of the grants to an account that
// have expired by a moment. Where the account owes, what it owes stays.
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
		if i < len(a.lots) && a.lots[i].grant == o.grant { // not all of it went
			i++
		}
	}
}

// returnReason stands in statements for what was left of a grant.
const returnReason = "the grant expired; what was not spent of it went back"

// giveBack returns a part of a grant, under an identifier that no other record
// can have.
func (e *expiry) giveBack(a *account, grant string, amount messages.Credits) {
	t := messages.Transfer{
		ID: returnPrefix + uitoa(e.records.journal.count+1), Kind: messages.Posted,
		Debit: a.name, Credit: messages.IssuerAccount, Amount: amount, Pending: grant, Reason: returnReason,
	}
	s := step{asked: &t, debit: a, credit: e.accounts.issuer, amount: amount}
	e.books.do(&s)
	e.books.commit("", &s)
}
