package ledger

import (
	"container/heap"
	"strings"

	"github.com/candor-grid/candor/messages"
)

// hold is a pending hold.
type hold struct {
	id      string
	account *account
	payee   messages.Name // the only account it may be posted to; "": any
	amount  messages.Credits
	expires messages.Time // 0: never
	job     messages.JobID
	by      messages.Name // who made it, and may resolve it
	member  messages.Name // on whose word; "": the account's own
	draws   []draw        // what it took of expiring grants
	place   int           // in the queue of expiries; -1: not there
}

func (h *hold) earlier(o *hold) bool {
	if h.expires != o.expires {
		return h.expires < o.expires
	}
	return h.id < o.id
}

// expiries is a heap of the pending holds that have an expiry.
type expiries []*hold

func (e expiries) Len() int           { return len(e) }
func (e expiries) Less(i, j int) bool { return e[i].earlier(e[j]) }
func (e expiries) Swap(i, j int)      { e[i], e[j] = e[j], e[i]; e[i].place, e[j].place = i, j }
func (e *expiries) Push(h any)        { h.(*hold).place = len(*e); *e = append(*e, h.(*hold)) }

func (e *expiries) Pop() any {
	last := len(*e) - 1
	h := (*e)[last]
	(*e)[last] = nil
	*e = (*e)[:last]
	h.place = -1
	return h
}

// queue puts a hold where its expiry says.
func (e *expiries) queue(h *hold) {
	switch {
	case h.place >= 0 && h.expires == 0:
		heap.Remove(e, h.place)
	case h.place >= 0:
		heap.Fix(e, h.place)
	case h.expires != 0:
		heap.Push(e, h)
	}
}

func (l *Ledger) addHold(h *hold) {
	l.holds[h.id] = h
	l.expiries.queue(h)
	l.held += h.amount
	h.account.holds++
}

func (l *Ledger) removeHold(h *hold) {
	delete(l.holds, h.id)
	if h.place >= 0 {
		heap.Remove(&l.expiries, h.place)
	}
	l.held -= h.amount
	h.account.holds--
}

// findHold returns a pending hold, or the refusal that says why it is none.
func (l *Ledger) findHold(id string) (*hold, *messages.Error) {
	if h := l.holds[id]; h != nil {
		return h, nil
	}
	number := l.recorded(id)
	if number == 0 {
		return nil, messages.Errorf(messages.NotFound, "there is no hold %q: make it first", clip(id))
	}
	if l.recorded(lapseKey(id)) != 0 {
		return nil, messages.Errorf(messages.Expired, "hold %q expired and its credits are free again: make a new one, and extend it in time", clip(id))
	}
	rec := l.record(number)
	if rec.what != done || rec.asked.Kind != messages.Hold {
		return nil, messages.Errorf(messages.NotFound, "transfer %q is not a hold that was made: name the identifier of one", clip(id))
	}
	return nil, messages.Errorf(messages.Ended, "hold %q was posted or voided before: a hold resolves once", clip(id))
}

// NextExpiry returns when the next pending hold lapses or a grant may expire,
// 0 if none will.
func (l *Ledger) NextExpiry() messages.Time {
	switch {
	case l.holdFirst():
		return l.expiries[0].expires
	case len(l.dues) > 0:
		return l.dues[0].at
	}
	return 0
}

// holdFirst reports whether the next to expire is a hold, not a grant.
func (l *Ledger) holdFirst() bool {
	return len(l.expiries) > 0 && (len(l.dues) == 0 || l.expiries[0].expires <= l.dues[0].at)
}

// advance lets time pass, holds that are due lapse and grants expire, in the
// order of time. It returns how many holds lapsed.
func (l *Ledger) advance(at messages.Time) int {
	l.now = max(l.now, at)
	n := 0
	for next := l.NextExpiry(); next != 0 && next <= l.now; next = l.NextExpiry() {
		if l.holdFirst() {
			h := l.expiries[0]
			l.lapse(h)
			l.sweep(h.account, next)
			n++
		} else if d := heap.Pop(&l.dues).(due); l.accounts[d.name] != nil {
			l.sweep(l.accounts[d.name], d.at)
		}
	}
	return n
}

// lapse frees a hold that is due and writes it down.
func (l *Ledger) lapse(h *hold) {
	s := step{
		asked: &messages.Transfer{Kind: messages.Void, Pending: h.id},
		debit: h.account, held: -h.amount, hold: h, job: h.job, member: h.member,
	}
	l.do(&s)
	l.known.add(lapseKey(h.id), l.write(&record{what: lapsed, at: l.now, asked: *s.asked, outcome: s.outcome()}, s.debit, nil))
}

// newHold makes the hold that a transfer asks for. Its texts are copied, for
// they may be parts of a command.
func newHold(t *messages.Transfer, a *account) *hold {
	h := &hold{
		id: strings.Clone(t.ID), account: a, payee: strings.Clone(t.Credit), amount: t.Amount,
		expires: t.Expires, job: t.Job, place: -1,
	}
	if m := a.member(t.Member); m != nil && t.Member != a.name {
		h.member = m.name
	}
	return h
}

// until is when a Hold or Extend asks for, 0 for never.
func until(t *messages.Transfer, now messages.Time) messages.Time {
	if t.Timeout > 0 {
		return after(now, t.Timeout)
	}
	return t.Expires
}
