package ledger

import (
	"cmp"
	"slices"
	"strings"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/heap"
)

// MaxLots is the most grants with an expiry of which an account can have
// something left.
const MaxLots = 1000

// lot is what is left of an expiring grant on an account. The lots of an
// account are in the order of (expires, grant). They are changed in place: a step that may be
// taken back changes a copy.
type lot struct {
	grant   string // identifier of the grant's transfer
	expires messages.Time
	free    messages.Credits // neither spent nor held
	held    messages.Credits // by pending holds
}

// draw is a part of a grant that a hold or a payment took.
type draw struct {
	grant   string
	expires messages.Time
	amount  messages.Credits
}

// find returns where the lot of a draw is, or belongs.
func find(lots []lot, d *draw) (int, bool) {
	return slices.BinarySearchFunc(lots, d, func(o lot, d *draw) int {
		return cmp.Or(cmp.Compare(o.expires, d.expires), strings.Compare(o.grant, d.grant))
	})
}

// drawOn draws up to an amount from the free parts, the earliest to expire
// first; hold says whether it is held or gone. The rest of the amount is of
// credits that do not expire.
func drawOn(lots []lot, amount messages.Credits, hold bool) ([]lot, []draw) {
	var draws []draw
	empty := false
	for i := range lots {
		if amount == 0 {
			break
		}
		part := min(lots[i].free, amount)
		if part <= 0 {
			continue
		}
		draws = append(draws, draw{lots[i].grant, lots[i].expires, part})
		amount -= part
		lots[i].free -= part
		if hold {
			lots[i].held += part
		}
		empty = empty || lots[i].empty()
	}
	return tidy(lots, empty), draws
}

// resolveDraws ends the holding of draws: an amount of them is spent, the earliest
// to expire first, and the rest is free again.
func resolveDraws(lots []lot, draws []draw, spent messages.Credits) []lot {
	empty := false
	for i := range draws {
		part := min(draws[i].amount, spent)
		spent -= part
		at, found := find(lots, &draws[i])
		if !found {
			continue // never: a lot stays while something of it is held
		}
		lots[at].held -= draws[i].amount
		lots[at].free += draws[i].amount - part
		empty = empty || lots[at].empty()
	}
	return tidy(lots, empty)
}

// give adds draws as free parts.
func give(lots []lot, draws []draw) []lot {
	for i := range draws {
		d := &draws[i]
		at, found := find(lots, d)
		if !found {
			lots = slices.Insert(lots, at, lot{grant: d.grant, expires: d.expires})
		}
		lots[at].free += d.amount
	}
	return lots
}

// giveUp takes an amount off the free part of one lot.
func giveUp(lots []lot, grant string, amount messages.Credits) []lot {
	if i := slices.IndexFunc(lots, func(o lot) bool { return o.grant == grant }); i >= 0 {
		lots[i].free -= amount
		return tidy(lots, lots[i].empty())
	}
	return lots
}

// empty reports whether nothing is left of a lot.
func (o *lot) empty() bool { return o.free == 0 && o.held == 0 }

// tidy leaves out the lots of which nothing is left, if there are any.
func tidy(lots []lot, empty bool) []lot {
	if !empty {
		return lots
	}
	return slices.DeleteFunc(lots, func(o lot) bool { return o.empty() })
}

// lots knows when credits of expiring grants are due. What each account has of such a
// grant is the account's.
type lots struct {
	dues  []*account // a heap, inTurn, of those with a due
	moved []*account // by the command under way, with lots that may have come to be returned
}

// move is the part of a step that concerns expiring grants.
func (ls *lots) move(s *step) {
	t := s.asked
	if s.chained {
		s.debit.lots = slices.Clone(s.debit.lots)
		if s.credit != nil && s.credit != s.debit {
			s.credit.lots = slices.Clone(s.credit.lots)
		}
	}
	switch {
	case t.Kind == messages.Hold:
		s.debit.lots, s.hold.draws = drawOn(s.debit.lots, t.Amount, true)
	case t.Kind == messages.Post || t.Kind == messages.Void:
		s.debit.lots = resolveDraws(s.debit.lots, s.hold.draws, s.amount)
	case t.Kind != messages.Posted:
	case s.debit.issuer() && s.expires != 0:
		s.credit.lots = give(s.credit.lots, []draw{{strings.Clone(t.ID), s.expires, t.Amount}})
	case originOf(t.ID) == returned:
		s.debit.lots = giveUp(s.debit.lots, t.Pending, t.Amount)
	default:
		var draws []draw
		s.debit.lots, draws = drawOn(s.debit.lots, t.Amount, false)
		if originOf(t.ID) == paid {
			s.credit.lots = give(s.credit.lots, draws)
		}
	}
}

// note notes an account of which something may have come to be returned, or to be due.
func (ls *lots) note(a *account) {
	if a != nil && (len(a.lots) > 0 || a.due != 0) {
		ls.moved = append(ls.moved, a)
	}
}

// schedule has an account stand in the queue for the first of its lots that expires after a
// moment, and for no other: what expired before it keeps only as long as it owes that, and
// then it is noted.
func (ls *lots) schedule(a *account, after messages.Time) {
	next := messages.Time(0)
	if i, _ := slices.BinarySearchFunc(a.lots, after, func(o lot, t messages.Time) int { return cmp.Or(cmp.Compare(o.expires, t), -1) }); i < len(a.lots) {
		next = a.lots[i].expires
	}
	switch was := a.due; {
	case was == next:
	case next == 0:
		inTurn.Remove(&ls.dues, a.queued)
		a.due = 0
	case was == 0:
		a.due = next
		inTurn.Push(&ls.dues, a)
	default:
		a.due = next
		inTurn.Fix(ls.dues, a.queued)
	}
}

// inTurn has the account with the first due before the others.
var inTurn = heap.Order[*account]{
	Before: func(a, b *account) bool { return a.due < b.due || a.due == b.due && a.name < b.name },
	Moved:  func(a *account, at int) { a.queued = at },
}
