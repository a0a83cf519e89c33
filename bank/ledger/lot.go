package ledger

import (
	"cmp"
	"container/heap"
	"slices"
	"strings"

	"github.com/candor-grid/candor/messages"
)

// MaxLots is the most grants with an expiry of which an account can have
// something left.
const MaxLots = 1000

// lot is what is left of an expiring grant on an account. The lots of an
// account are in the order of (expires, grant), and a slice of them is never
// changed once it is the account's: a change makes another, so that taking it
// back is putting the old one in its place.
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

// take draws up to an amount from the free parts, the earliest to expire
// first; hold says whether it is held or gone. The rest of the amount is of
// credits that do not expire.
func take(lots []lot, amount messages.Credits, hold bool) ([]lot, []draw) {
	if len(lots) == 0 {
		return lots, nil
	}
	lots = slices.Clone(lots)
	var draws []draw
	for i := range lots {
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
	}
	return tidy(lots), draws
}

// settle ends the holding of draws: an amount of them is spent, the earliest
// to expire first, and the rest is free again.
func settle(lots []lot, draws []draw, spent messages.Credits) []lot {
	if len(draws) == 0 {
		return lots
	}
	lots = slices.Clone(lots)
	for i := range draws {
		part := min(draws[i].amount, spent)
		spent -= part
		at, found := find(lots, &draws[i])
		if !found {
			continue // never: a lot stays while something of it is held
		}
		lots[at].held -= draws[i].amount
		lots[at].free += draws[i].amount - part
	}
	return tidy(lots)
}

// give adds draws as free parts.
func give(lots []lot, draws []draw) []lot {
	if len(draws) == 0 {
		return lots
	}
	lots = slices.Clone(lots)
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

// tidy leaves out the lots of which nothing is left.
func tidy(lots []lot) []lot {
	return slices.DeleteFunc(lots, func(o lot) bool { return o.free == 0 && o.held == 0 })
}

// due is a moment at which something of an account may expire. One too many
// does no harm: what is due is looked up when the moment comes.
type due struct {
	at   messages.Time
	name messages.Name
}

// dues is a heap of them, in the order of (at, name).
type dues []due

func (d dues) Len() int      { return len(d) }
func (d dues) Swap(i, j int) { d[i], d[j] = d[j], d[i] }
func (d dues) Less(i, j int) bool {
	return d[i].at < d[j].at || d[i].at == d[j].at && d[i].name < d[j].name
}
func (d *dues) Push(x any) { *d = append(*d, x.(due)) }

func (d *dues) Pop() any {
	last := len(*d) - 1
	x := (*d)[last]
	*d = (*d)[:last]
	return x
}

// moveLots is the part of a step that concerns expiring grants.
func (l *Ledger) moveLots(s *step) {
	t := s.asked
	switch {
	case t.Kind == messages.Hold:
		s.debit.lots, s.hold.draws = take(s.debit.lots, t.Amount, true)
	case t.Kind == messages.Post || t.Kind == messages.Void:
		s.debit.lots = settle(s.debit.lots, s.hold.draws, s.amount)
	case t.Kind != messages.Posted:
	case s.debit.issuer() && t.Expires != 0:
		l.receive(s.credit, []draw{{strings.Clone(t.ID), t.Expires, t.Amount}})
	case originOf(t.ID) == returned:
		s.debit.lots = giveUp(s.debit.lots, t.Pending, t.Amount)
	default:
		var draws []draw
		s.debit.lots, draws = take(s.debit.lots, t.Amount, false)
		if originOf(t.ID) == paid {
			l.receive(s.credit, draws)
		}
	}
}

// giveUp takes an amount off the free part of one lot.
func giveUp(lots []lot, grant string, amount messages.Credits) []lot {
	lots = slices.Clone(lots)
	for i := range lots {
		if lots[i].grant == grant {
			lots[i].free -= amount
		}
	}
	return tidy(lots)
}

func (l *Ledger) receive(a *account, draws []draw) {
	a.lots = give(a.lots, draws)
	for i := range draws {
		heap.Push(&l.dues, due{draws[i].expires, a.name})
	}
}

// sweepMoved sweeps the accounts that a command moved something on: what an
// account owed may have delayed a return, and what it received make up for it.
func (l *Ledger) sweepMoved() {
	if l.rules < secondRules {
		return
	}
	moved := l.moved
	l.moved = nil
	for _, a := range moved {
		l.sweep(a, l.now)
	}
	l.moved = moved[:0]
}

// sweep returns to the issuer what is free of the grants to an account that
// have expired by a moment. Where the account owes, what it owes stays.
func (l *Ledger) sweep(a *account, by messages.Time) {
	for _, o := range a.lots {
		if o.expires > by {
			return
		}
		room, fits := sum(a.available(), a.credit)
		if !fits {
			room = a.available()
		}
		if amount := min(o.free, room); amount > 0 {
			l.giveBack(a, o.grant, amount)
		}
	}
}

// returnReason stands in statements for what was left of a grant.
const returnReason = "the grant expired; what was not spent of it went back"

// giveBack returns a part of a grant, under an identifier that no other record
// can have.
func (l *Ledger) giveBack(a *account, grant string, amount messages.Credits) {
	t := messages.Transfer{
		ID: returnPrefix + uitoa(l.journal.count+1), Kind: messages.Posted,
		Debit: a.name, Credit: messages.IssuerAccount, Amount: amount, Pending: grant, Reason: returnReason,
	}
	s := step{asked: &t, debit: a, credit: l.issuer, amount: amount}
	l.do(&s)
	l.commit("", &s)
}
