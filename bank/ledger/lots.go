package ledger

import (
	"cmp"
	"slices"
	"strings"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/heap"
	"github.com/candor-grid/candor/messages/money"
)

// MaxLots is the maximum number of lots (parts of expiring grants) of an account.
const MaxLots = 1000

// lot is the remaining part of an expiring grant of an account. The lots of an account are ordered by (expires, grant).
// A command usually changes the stored lots. If its changes may be undone, it changes a copy of them.
type lot struct {
	grant   string // identifier of the transfer that made the grant
	expires messages.Time
	free    messages.Credits // credits that are neither spent nor held
	held    messages.Credits // credits that pending holds reserve
}

// A hold or a payment can take credits from several grants. draw is the amount that it took from one of them.
type draw struct {
	grant   string
	expires messages.Time
	amount  messages.Credits
}

// A draw takes credits from a lot. find returns the position of this lot in the list, or the position at which to
// insert it.
func find(lots []lot, d *draw) (int, bool) {
	return slices.BinarySearchFunc(lots, d, func(o lot, d *draw) int {
		return cmp.Or(cmp.Compare(o.expires, d.expires), strings.Compare(o.grant, d.grant))
	})
}

// drawOn takes an amount from the free parts of lots, first from the lot that expires first. If `hold` is true, the
// credits stay in the lots as held credits. Otherwise they leave the lots. If the lots have less than the amount,
// drawOn takes what they have.
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

// resolveDraws ends a hold. A draw is the amount that the hold has taken from one lot. resolveDraws spends the amount
// `spent`. It takes this amount from the draws, in the order in which their lots expire. What remains of each draw
// becomes free in its lot again.
func resolveDraws(lots []lot, draws []draw, spent messages.Credits) []lot {
	empty := false
	for i := range draws {
		part := min(draws[i].amount, spent)
		spent -= part
		at, found := find(lots, &draws[i])
		if !found {
			continue // cannot happen: a lot stays while some of it is held
		}
		lots[at].held -= draws[i].amount
		lots[at].free += draws[i].amount - part
		empty = empty || lots[at].empty()
	}
	return tidy(lots, empty)
}

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

// A grant that expires is one lot of the account's credits. giveUp subtracts an amount from the free credits of the lot
// of this grant.
func giveUp(lots []lot, grant string, amount messages.Credits) []lot {
	if i := slices.IndexFunc(lots, func(o lot) bool { return o.grant == grant }); i >= 0 {
		lots[i].free -= amount
		return tidy(lots, lots[i].empty())
	}
	return lots
}

func (o *lot) empty() bool { return o.free == 0 && o.held == 0 }

// tidy returns the list without its empty lots. If the argument `empty` is false, the list has none, and stays as it
// is.
func tidy(lots []lot, empty bool) []lot {
	if !empty {
		return lots
	}
	return slices.DeleteFunc(lots, func(o lot) bool { return o.empty() })
}

// lots stores when the lots of each account are due. The lots themselves are in the accounts.
type lots struct {
	dues  []*account // a heap of the accounts with a due time, in the order of inTurn
	moved []*account // accounts whose lots the present command changed
}

func (ls *lots) move(s *step) {
	t := s.asked
	if s.chained {
		s.debit.lots = slices.Clone(s.debit.lots)
		if s.credit != nil && s.credit != s.debit {
			s.credit.lots = slices.Clone(s.credit.lots)
		}
	}
	switch {
	case t.Kind == money.Hold:
		s.debit.lots, s.hold.draws = drawOn(s.debit.lots, t.Amount, true)
	case t.Kind == money.Post || t.Kind == money.Void:
		s.debit.lots = resolveDraws(s.debit.lots, s.hold.draws, s.amount)
	case t.Kind != money.Posted:
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

// note adds an account to the list ls.moved, which is worked through later. It does so only if the account has lots, or
// waits for the expiry of a lot.
func (ls *lots) note(a *account) {
	if a != nil && (len(a.lots) > 0 || a.due != 0) {
		ls.moved = append(ls.moved, a)
	}
}

// schedule puts an account into the queue of expiries, with the next expiry of one of its lots after the time `after`.
// It ignores lots that have expired earlier. Such lots stay until the account receives credits. Then the method note
// puts the account on a list for sweepMoved.
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

// inTurn orders accounts by their due time, earliest first.
var inTurn = heap.Order[*account]{
	Before: func(a, b *account) bool { return a.due < b.due || a.due == b.due && a.name < b.name },
	Moved:  func(a *account, at int) { a.queued = at },
}
