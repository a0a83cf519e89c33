package ledger

import (
	"sort"

	"github.com/candor-grid/candor/messages"
)

// Limits on a page of a statement, in entries.
const (
	DefaultPage = 100
	MaxPage     = 1000
)

// Statement returns a page of an account's history: the entries numbered
// above After and made in [From, To), oldest first; To = 0 is no end. It costs
// the logarithm of the history and the length of the page.
func (l *Ledger) Statement(q messages.StatementRequest) (messages.StatementReply, error) {
	a, refusal := l.find(q.Account)
	if refusal != nil {
		return messages.StatementReply{}, refusal
	}
	if q.Limit < 0 || q.Limit > MaxPage {
		return messages.StatementReply{}, messages.Errorf(messages.TooLarge, "limit %d: ask for 1 to %d entries, and page on with after", q.Limit, MaxPage)
	}
	if q.Limit == 0 {
		q.Limit = DefaultPage
	}
	first := sort.Search(len(a.entries), func(i int) bool {
		return a.entries[i] > q.After && l.record(a.entries[i]).at >= q.From
	})
	return l.page(a, first, q), nil
}

// page collects the entries of an account from position first on.
func (l *Ledger) page(a *account, first int, q messages.StatementRequest) messages.StatementReply {
	reply := messages.StatementReply{Account: a.name, Entries: []messages.Entry{}}
	if first > 0 {
		rec := l.record(a.entries[first-1])
		reply.Opening = rec.entry(a.name, a.entries[first-1]).Balance
	}
	for _, number := range a.entries[first:] {
		rec := l.record(number)
		if q.To != 0 && rec.at >= q.To {
			break
		}
		if len(reply.Entries) == q.Limit {
			reply.More = true
			break
		}
		reply.Entries = append(reply.Entries, rec.entry(a.name, number))
	}
	return reply
}

// lapseReason stands in the statement for a hold that nobody resolved.
const lapseReason = "the hold expired"

// entry is the record as it stands in the statement of one of its accounts.
func (r *record) entry(name messages.Name, number uint64) messages.Entry {
	o := &r.outcome
	e := messages.Entry{Number: number, At: r.at, Kind: r.asked.Kind, Transfer: r.asked.ID, Job: o.job, Reason: r.asked.Reason}
	if r.what == lapsed {
		e.Transfer, e.Reason = r.asked.Pending, lapseReason
	}
	if name == o.debit {
		e.Other, e.Change, e.Hold = o.credit, -o.amount, o.held
		e.Balance, e.Reserved = o.debitAfter.balance, o.debitAfter.reserved
		return e
	}
	e.Other, e.Change = o.debit, o.amount
	e.Balance, e.Reserved = o.creditAfter.balance, o.creditAfter.reserved
	return e
}
