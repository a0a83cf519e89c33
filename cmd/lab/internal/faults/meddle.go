package faults

import (
	"slices"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/desk"
	"github.com/candor-grid/candor/messages/money"
)

// meddle inserts bugs into the proposals of the desk (the decision logic).
func (l *leader) meddle(list []desk.Proposal) (out []desk.Proposal) {
	for _, p := range list {
		c := p.Command
		switch {
		case l.Bug == LeaseForever && c.Lost != nil, l.Bug == GangForever && c.Disband != nil, l.Bug == EvictionForgotten && c.Drain != nil:
			continue
		case l.Bug == SettledAnew && c.Settle != nil:
			anew := *c.Settle
			anew.Charge /= 2
			out = append(out, desk.Proposal{Command: &book.Command{Settle: &anew}})
		case l.Bug == SpentForgotten && c.Decide != nil:
			c.Decide.Discard = nil
		case l.Bug == DecidesTwice && c.Decide != nil:
			l.tell(desk.Done{ID: p.ID})
			p.ID = 0
		}
		out = append(out, p)
	}
	return out
}

// onceEach inserts a bug into a leader. After the first directive to a node, the leader drops all further directives to
// this node.
func (l *leader) onceEach(list []desk.Direction) []desk.Direction {
	return slices.DeleteFunc(list, func(d desk.Direction) bool {
		again := l.told[d.Node]
		l.told[d.Node] = true
		return again && l.Bug == DirectiveOnce
	})
}

// presume is an inserted bug: it answers that all transfers were made, without waiting for the bank.
func presume(list []money.Transfer, answer func(any, error)) {
	reply := new(money.TransferReply)
	for _, t := range list {
		reply.Results = append(reply.Results, money.TransferResult{Amount: t.Amount})
	}
	answer(reply, nil)
}

// spoil is an inserted bug: a part of a payment goes to an account that the mechanism did not choose.
func (w *World) spoil(list []money.Transfer) []money.Transfer {
	out := slices.Clone(list)
	for _, t := range list {
		if w.Bug == Skim && t.Kind == money.Post {
			out = append(out, money.Transfer{ID: t.ID + "/skim", Debit: t.Credit, Credit: "u0", Amount: 1 + t.Amount/10, Job: t.Job})
		}
	}
	return out
}

// impatient is an inserted bug: if the bank has not answered a transfer after 20 ms, it frees the held credits of this
// transfer.
func (l *leader) impatient(list []money.Transfer, over func() bool) {
	if l.Bug != RefundTimeout {
		return
	}
	l.after(&l.r.host.host, second/50, func() {
		for _, t := range list {
			if t.Pending != "" && !over() {
				refund := money.Transfer{ID: t.Pending + "/refund", Kind: money.Void, Pending: t.Pending}
				l.transfer(l.r.host.name, l.gone, []money.Transfer{refund}, func([]money.TransferResult, error) {})
			}
		}
	})
}
