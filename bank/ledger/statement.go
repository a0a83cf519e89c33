package ledger

import (
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

// These are limits on the number of entries on a page.
const (
	DefaultPage = 100
	MaxPage     = 1000
)

// Statement returns a page of an account's history, oldest first. It considers the entries with numbers above q.After
// and times in [q.From, q.To); if q.To is 0, there is no end. A page has at most q.Limit entries. They are the first
// ones or, with q.Newest, the last ones. The cost grows with the logarithm of the history's length, and with the length
// of the page.
func (l *Ledger) Statement(q money.StatementRequest) (money.StatementReply, error) {
	a, refusal := l.accounts.find(q.Account)
	if refusal != nil {
		return money.StatementReply{}, refusal
	}
	if q.Limit < 0 || q.Limit > MaxPage {
		return money.StatementReply{}, messages.Errorf(messages.TooLarge, "limit %d: ask for 1 to %d entries; the field `after` selects the next page", q.Limit, MaxPage)
	}
	if q.Limit == 0 {
		q.Limit = DefaultPage
	}
	reply, err := (&statement{a, l.records, l.holds}).page(q)
	if err != nil {
		return money.StatementReply{}, messages.Errorf(messages.Internal, "the history of account %q cannot be read: %v", a.name, err)
	}
	return reply, nil
}

type statement struct {
	account *account
	records *records
	holds   *holds
}

func (s *statement) page(q money.StatementRequest) (money.StatementReply, error) {
	reply := money.StatementReply{Account: s.account.name, Entries: []money.Entry{}}
	first, err := s.oldest(func(e *entry) bool { return e.number > q.After && e.at >= q.From })
	if err != nil {
		return reply, err
	}
	if first == nil {
		return reply, s.opening(s.account.trail.last(), &reply)
	}
	older := false
	if q.Newest {
		if first, older, err = s.newest(first, q); err != nil {
			return reply, err
		}
	}
	if err := s.opening(first.before(s.account.name), &reply); err != nil {
		return reply, err
	}
	entries, err := s.run(first, q.Limit+1)
	if err != nil {
		return reply, err
	}
	for i := range entries {
		e := &entries[i]
		if past(q, e) {
			break
		}
		if len(reply.Entries) == q.Limit {
			reply.More = true
			break
		}
		reply.Entries = append(reply.Entries, e.entry(s.account.name, e.number))
	}
	if q.Newest {
		reply.More = older
	}
	return reply, s.explain(reply.Entries)
}

// newest returns the first entry of the page with the newest entries. The page never begins before the entry `first`.
// The second result reports whether the page leaves out older entries.
func (s *statement) newest(first *entry, q money.StatementRequest) (*entry, bool, error) {
	name := s.account.name
	end := s.account.trail.count
	after, err := s.oldest(func(e *entry) bool { return past(q, e) })
	if err != nil {
		return nil, false, err
	}
	if after != nil {
		end = after.linkOf(name).ordinal - 1
	}
	least := first.linkOf(name).ordinal
	from := max(least, end+1-min(uint64(q.Limit), end))
	e, err := s.oldest(func(e *entry) bool { return e.linkOf(name).ordinal >= from })
	return e, from > least, err
}

// past reports whether an entry is too late for the requested part of a statement. The entry is too late if it is not
// before the time q.To, or not before the record with the number q.Before.
func past(q money.StatementRequest, e *entry) bool {
	return q.To != 0 && e.at >= q.To || q.Before != 0 && e.number >= q.Before
}

// opening sets the balance at the beginning of the page. `number` is the record before the page; 0 means that the page
// begins with the account's first record. The balance is the account's balance after that record, or 0.
func (s *statement) opening(number uint64, reply *money.StatementReply) error {
	if number == 0 {
		return nil
	}
	rec, err := s.records.read(number)
	if err == nil {
		reply.Opening = rec.entry(s.account.name, number).Balance
	}
	return err
}

// lapseReason is the reason in a statement for a hold that expired.
const lapseReason = "the hold expired"

func (r *record) entry(name messages.Name, number uint64) money.Entry {
	o := &r.outcome
	e := money.Entry{Number: number, At: r.at, Kind: r.asked.Kind, Transfer: r.asked.ID, Job: o.job, Reason: r.asked.Reason}
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

func (s *statement) readEntry(number uint64) (*entry, error) {
	rec, err := s.records.read(number)
	if err != nil {
		return nil, err
	}
	return &entry{rec, number}, nil
}

// oldest goes back through the entries of a statement. It returns the oldest entry for which the function `late`
// returns true, or nil. If `late` returns true for an entry, it must also return true for all newer entries.
func (s *statement) oldest(late func(*entry) bool) (*entry, error) {
	if s.account.trail.count == 0 {
		return nil, nil
	}
	found, err := s.readEntry(s.account.trail.last())
	if err != nil || !late(found) {
		return nil, err
	}
	for {
		next, err := s.step(found, late)
		if err != nil || next == nil {
			return found, err
		}
		found = next
	}
}

// step goes from an entry back to an earlier entry of the account. Each entry has two links to earlier entries, a
// longer and a shorter link. step follows the longer link if `late` returns true for the entry at its end. Otherwise it
// tries the shorter link in the same way. If `late` returns false for both entries, step returns nil.
func (s *statement) step(from *entry, late func(*entry) bool) (*entry, error) {
	at := from.linkOf(s.account.name)
	for _, distance := range [2]uint64{at.jump, at.back} {
		if distance == 0 {
			continue
		}
		earlier, err := s.readEntry(from.number - distance)
		if err != nil || late(earlier) {
			return earlier, err
		}
	}
	return nil, nil
}

// run returns at most `most` entries, oldest first, starting with the entry `first`.
func (s *statement) run(first *entry, most int) ([]entry, error) {
	from := first.linkOf(s.account.name).ordinal
	to := min(from+uint64(most)-1, s.account.trail.count)
	e, err := s.oldest(func(e *entry) bool { return e.linkOf(s.account.name).ordinal >= to })
	if err != nil {
		return nil, err
	}
	entries := make([]entry, to-from+1)
	for i := len(entries) - 1; ; i-- {
		entries[i] = *e
		if i == 0 {
			return entries, nil
		}
		if e, err = s.readEntry(e.before(s.account.name)); err != nil {
			return nil, err
		}
	}
}

// explain adds details to the entries. It adds who made the request. If an entry is a hold or the resolution of a hold,
// explain also adds the member and the job. While a hold is pending, the ledger knows its job. For a resolved hold, the
// record of the hold often has no job, but a later record may have it. explain searches the page for this later record.
func (s *statement) explain(entries []money.Entry) error {
	jobs := map[string]messages.JobID{}
	for i := range entries {
		e := &entries[i]
		rec, err := s.records.read(e.Number)
		if err != nil {
			return err
		}
		e.By = rec.by
		if rec.what == done {
			e.Pending = rec.asked.Pending
		}
		if hold := rec.about(); hold != "" {
			if err := s.explainHold(e, hold); err != nil {
				return err
			}
			if e.Job != 0 {
				jobs[hold] = e.Job
			}
		}
	}
	for i := range entries {
		if e := &entries[i]; e.Kind == money.Hold && e.Job == 0 {
			e.Job = jobs[e.Transfer]
		}
	}
	return nil
}

// The method `about` returns the identifier of a hold, or "". The record says that the hold was made, or how it was
// resolved.
func (r *record) about() string {
	switch {
	case r.what == done && r.asked.Kind == money.Hold:
		return r.asked.ID
	case r.what == lapsed || resolves(r.asked.Kind):
		return r.asked.Pending
	}
	return ""
}

func (s *statement) explainHold(e *money.Entry, id string) error {
	h := s.holds.byID[id]
	if h == nil {
		rec, err := s.records.seek(id)
		e.Member = rec.asked.Member
		return err
	}
	if e.Member = h.member; e.Member == "" {
		e.Member = h.account.name
	}
	if e.Job == 0 {
		e.Job = h.job
	}
	return nil
}
