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
	place   int // in the queue of expiries; -1: not there
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
}

func (l *Ledger) removeHold(h *hold) {
	delete(l.holds, h.id)
	if h.place >= 0 {
		heap.Remove(&l.expiries, h.place)
	}
	l.held -= h.amount
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
	if l.lapsed[id] {
		return nil, messages.Errorf(messages.Expired, "hold %q expired and its credits are free again: make a new one, and extend it in time", clip(id))
	}
	rec := l.record(number)
	if rec.what != done || rec.asked.Kind != messages.Hold {
		return nil, messages.Errorf(messages.NotFound, "transfer %q is not a hold that was made: name the identifier of one", clip(id))
	}
	return nil, messages.Errorf(messages.Ended, "hold %q was posted or voided before: a hold resolves once", clip(id))
}

// NextExpiry returns when the next pending hold lapses, 0 if none will.
func (l *Ledger) NextExpiry() messages.Time {
	if len(l.expiries) == 0 {
		return 0
	}
	return l.expiries[0].expires
}

// advance lets time pass and the holds that are due lapse. It returns how many.
func (l *Ledger) advance(at messages.Time) int {
	l.now = max(l.now, at)
	n := 0
	for ; len(l.expiries) > 0 && l.expiries[0].expires <= l.now; n++ {
		l.lapse(l.expiries[0])
	}
	return n
}

// lapse frees a hold that is due and writes it down.
func (l *Ledger) lapse(h *hold) {
	s := step{
		asked: &messages.Transfer{Kind: messages.Void, Pending: h.id},
		debit: h.account, held: -h.amount, hold: h, job: h.job,
	}
	l.do(&s)
	l.lapsed[h.id] = true
	l.write(&record{what: lapsed, at: l.now, asked: *s.asked, outcome: s.outcome()}, s.debit, nil)
}

// newHold makes the hold that a transfer asks for. Its identifier is copied,
// for it may be part of a command.
func newHold(t *messages.Transfer, a *account) *hold {
	return &hold{
		id: strings.Clone(t.ID), account: a, payee: strings.Clone(t.Credit), amount: t.Amount,
		expires: t.Expires, job: t.Job, place: -1,
	}
}
