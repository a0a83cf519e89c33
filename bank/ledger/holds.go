package ledger

import (
	"strings"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/heap"
	"github.com/candor-grid/candor/messages/money"
)

type hold struct {
	id      string
	account *account
	payee   messages.Name // the only account to post to; "" means any
	amount  messages.Credits
	expires messages.Time // 0 means never
	job     messages.JobID
	by      messages.Name // the account that made the hold; no other service may resolve a service's hold
	member  messages.Name // the member for whom it was made; "" means the account itself
	draws   []draw        // the parts of expiring grants that the hold uses
	place   int           // position in holds.queue; -1 if the hold is not in the queue
	before  *hold         // the next older hold of the account
	after   *hold         // the next newer hold of the account
}

func (h *hold) earlier(o *hold) bool {
	if h.expires != o.expires {
		return h.expires < o.expires
	}
	return h.id < o.id
}

// newHold returns the hold for a transfer. The texts of the transfer may share the memory of a command, which the hold
// must not keep. So newHold copies the texts.
func newHold(t *money.Transfer, a *account) *hold {
	h := &hold{
		id: strings.Clone(t.ID), account: a, payee: strings.Clone(t.Credit), amount: t.Amount,
		expires: t.Expires, job: t.Job, place: -1,
	}
	if m := a.member(t.Member); m != nil && t.Member != a.name {
		h.member = m.name
	}
	return h
}

// The function `until` returns the expiry that a Hold or Extend asks for. 0 means never.
func until(t *money.Transfer, now messages.Time) messages.Time {
	if t.Timeout > 0 {
		return after(now, t.Timeout)
	}
	return t.Expires
}

type holds struct {
	byID  map[string]*hold
	queue []*hold // a heap of the holds that expire, in the order of expiring
	sum   messages.Credits
	made  messages.Name // the maker of the last hold
}

func newHolds() *holds { return &holds{byID: map[string]*hold{}} }

func (hs *holds) add(h *hold) {
	hs.byID[h.id] = h
	hs.enqueue(h)
	hs.sum += h.amount
	h.account.holds++
	h.before, h.after = h.account.latest, nil
	if h.before != nil {
		h.before.after = h
	}
	h.account.latest = h
}

func (hs *holds) remove(h *hold) {
	delete(hs.byID, h.id)
	if h.place >= 0 {
		expiring.Remove(&hs.queue, h.place)
	}
	hs.sum -= h.amount
	h.account.holds--
	if h.before != nil {
		h.before.after = h.after
	}
	if h.after != nil {
		h.after.before = h.before
	} else {
		h.account.latest = h.before
	}
}

// change carries out what a step does to a hold. A Hold adds it, Post and Void remove it, and an Extend exchanges some
// of its fields.
func (hs *holds) change(s *step, add bool) {
	switch {
	case s.asked.Kind == money.Posted:
	case s.asked.Kind == money.Extend:
		hs.swap(s)
	case add:
		hs.add(s.hold)
	default:
		hs.remove(s.hold)
	}
}

func (hs *holds) swap(s *step) {
	s.hold.expires, s.expires = s.expires, s.hold.expires
	s.hold.job, s.learned = s.learned, s.hold.job
	hs.enqueue(s.hold)
}

// maker returns a copy of the name of the service that makes a hold. To save memory, consecutive holds of one service
// share one copy.
func (hs *holds) maker(by messages.Name) messages.Name {
	if hs.made != by {
		hs.made = strings.Clone(by)
	}
	return hs.made
}

// The heap of holds uses the order expiring: the hold with the earliest expiry comes first.
var expiring = heap.Order[*hold]{Before: (*hold).earlier, Moved: func(h *hold, at int) { h.place = at }}

// enqueue puts a hold into the queue of expiries, or moves it to its new position.
func (hs *holds) enqueue(h *hold) {
	switch {
	case h.place >= 0 && h.expires == 0:
		expiring.Remove(&hs.queue, h.place)
	case h.place >= 0:
		expiring.Fix(hs.queue, h.place)
	case h.expires != 0:
		expiring.Push(&hs.queue, h)
	}
}
