package ledger

import "github.com/candor-grid/candor/messages"

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
	reply, err := l.page(a, q)
	if err != nil {
		return messages.StatementReply{}, messages.Errorf(messages.Internal, "the history of account %q cannot be read: %v", a.name, err)
	}
	return reply, nil
}

// page collects the entries of an account that a request asks for.
func (l *Ledger) page(a *account, q messages.StatementRequest) (messages.StatementReply, error) {
	reply := messages.StatementReply{Account: a.name, Entries: []messages.Entry{}}
	first, err := l.oldest(a, func(e *entry) bool { return e.number > q.After && e.at >= q.From })
	if err != nil {
		return reply, err
	}
	if first == nil {
		return reply, l.opening(a, a.trail.last(), &reply)
	}
	if err := l.opening(a, first.before(a.name), &reply); err != nil {
		return reply, err
	}
	entries, err := l.run(a, first, q.Limit+1)
	if err != nil {
		return reply, err
	}
	for i := range entries {
		e := &entries[i]
		if q.To != 0 && e.at >= q.To {
			break
		}
		if len(reply.Entries) == q.Limit {
			reply.More = true
			break
		}
		reply.Entries = append(reply.Entries, e.entry(a.name, e.number))
	}
	return reply, l.explain(reply.Entries)
}

// opening notes the balance after an entry, if there is one.
func (l *Ledger) opening(a *account, number uint64, reply *messages.StatementReply) error {
	if number == 0 {
		return nil
	}
	rec, err := l.read(number)
	if err == nil {
		reply.Opening = rec.entry(a.name, number).Balance
	}
	return err
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
