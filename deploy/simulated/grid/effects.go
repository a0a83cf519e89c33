package grid

import (
	"slices"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/market"
	"github.com/candor-grid/candor/messages"
)

// mostTransfers is how many transfers go to the bank in one request.
const mostTransfers = 512

// carryOut makes the book's effects happen, oldest first: charges and rounds at
// the bank, and what there is to observe. A round goes alone, after the charges
// before it and before those after it.
func (l *leader) carryOut() {
	if l.busy {
		return
	}
	var money, seen []book.Effect
	for e := range l.book.EachEffect {
		switch {
		case e.Kind == book.Observe:
			seen = append(seen, e)
			continue
		case len(money) == mostTransfers, len(money) > 0 && (e.Kind == book.Round || money[0].Kind == book.Round):
		default:
			money = append(money, e)
			continue
		}
		break
	}
	l.observe(seen)
	l.pay(money)
}

// observe notes what became of jobs that are final.
func (l *leader) observe(seen []book.Effect) {
	if len(seen) == 0 {
		return
	}
	c := &book.Confirm{}
	for _, e := range seen {
		l.conclude(l.book.Job(e.Job))
		c.Effects = append(c.Effects, book.Confirmation{Effect: e.ID})
	}
	l.propose(&book.Command{Confirm: c})
}

// pay asks the bank for charges, or for one round.
func (l *leader) pay(money []book.Effect) {
	transfers := l.transfersOf(money)
	if len(transfers) == 0 {
		l.confirm(money, nil, nil)
		return
	}
	l.busy = true
	l.transfer(transfers, func(r []messages.TransferResult) {
		l.busy = false
		if i := slices.IndexFunc(r, func(r messages.TransferResult) bool { return r.Error != nil }); i >= 0 {
			l.fail("transfer %s was refused: %v", transfers[i].ID, r[i].Error)
			return
		}
		l.confirm(money, transfers, r)
	})
}

func (l *leader) transfersOf(money []book.Effect) (out []messages.Transfer) {
	for i := range money {
		if money[i].Kind == book.Round {
			return market.Round(l.book, &money[i], 0)
		}
		if j := l.book.Job(money[i].Job); j.HoldID() != "" {
			out = append(out, market.Charge(j))
		}
	}
	return out
}

// confirm says how effects turned out: what a charge moved, and nothing where
// there was nothing to charge, though its hold was freed.
func (l *leader) confirm(money []book.Effect, transfers []messages.Transfer, results []messages.TransferResult) {
	if len(money) == 0 {
		return
	}
	c := &book.Confirm{}
	next := 0
	for _, e := range money {
		done := book.Confirmation{Effect: e.ID}
		if e.Kind == book.Charge && l.book.Job(e.Job).HoldID() != "" {
			if transfers[next].Kind == messages.Post {
				done.Amount = results[next].Amount
			}
			next++
		}
		c.Effects = append(c.Effects, done)
	}
	l.propose(&book.Command{Confirm: c})
}
