package ledger

import (
	"fmt"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

// records has the journal, the index of its identifiers, and a time. This is the time of the latest record, and it
// never decreases.
type records struct {
	journal journal
	known   index // the identifiers of all answered transfers
	now     messages.Time
	broken  error // first error of the store; after an error every command is refused

	rank   Rank    // rank of the maker of the present command
	replay *replay // the replay that carries out records again; nil if commands are new
	buffer codec   // memory that is used again for each record
}

func newRecords(s Store) *records {
	return &records{journal: newJournal(s), known: newIndex()}
}

// write appends a record and returns its number. If the accounts `debit` and `credit` are not nil, the record becomes
// an entry in their statements.
func (rs *records) write(r *record, debit, credit *account) uint64 {
	if debit != nil {
		r.debitLink = debit.trail.extend(rs.journal.count + 1)
	}
	if credit != nil {
		r.creditLink = credit.trail.extend(rs.journal.count + 1)
	}
	if r.by != "" {
		r.rank = rs.rank
	}
	rs.buffer.b = rs.buffer.b[:0]
	rs.buffer.record(r)
	if rs.replay != nil {
		rs.replay.wrote(rs.buffer.b)
	}
	number, err := rs.journal.append(rs.buffer.b, rs.keyOf(r))
	rs.fail(err)
	return number
}

// enter appends an encoded record to the journal. It does not apply the record: an image is being loaded, and its state
// already includes the record's effects.
func (rs *records) enter(raw []byte) error {
	rec, err := rs.next(rs.journal.count+1, raw)
	if err != nil {
		return err
	}
	rs.now = rec.at
	key := rs.keyOf(&rec)
	number, err := rs.journal.append(raw, key)
	if err == nil && key != 0 {
		rs.known.enter(key, number)
	}
	return err
}

// next decodes a record, and checks that its time is not before the time of the last record.
func (rs *records) next(number uint64, raw []byte) (record, error) {
	rec, ok := decodeRecord(raw)
	switch {
	case !ok:
		return rec, fmt.Errorf("record %d %w", number, errRecord)
	case rec.at < rs.now:
		return rec, fmt.Errorf("record %d %w", number, errTime)
	}
	return rec, nil
}

// follow appends a segment to the records. The store already has the segment's file.
func (rs *records) follow(s Sealed, sum *Sum) error {
	keys, err := s.Keys()
	if err != nil {
		return err
	}
	for i, key := range keys {
		if key != 0 {
			rs.known.enter(key, sum.First+uint64(i))
		}
	}
	rs.journal.follow(s)
	return nil
}

// keyOf returns the hash under which the index has a record, or 0.
func (rs *records) keyOf(r *record) uint64 {
	if key := r.key(); key != "" {
		return rs.known.hash(key)
	}
	return 0
}

// record returns a record that this ledger wrote. If the store cannot read it, the result is empty, and the present
// command is refused.
func (rs *records) record(number uint64) record {
	rec, err := rs.read(number)
	rs.fail(err)
	return rec
}

// read returns a record, or the error of reading it. Several goroutines may read at the same time.
func (rs *records) read(number uint64) (record, error) {
	if number == 0 || number > rs.journal.count {
		return record{}, fmt.Errorf("there is no record %d", number)
	}
	raw, err := rs.journal.at(number)
	if err != nil {
		return record{}, err
	}
	rec, ok := decodeRecord(raw)
	if !ok {
		return record{}, fmt.Errorf("record %d %w", number, errRecord)
	}
	return rec, nil
}

func (rs *records) fail(err error) {
	if rs.broken == nil && err != nil {
		rs.broken = fmt.Errorf("the bank's history: %w", err)
	}
}

// refusal returns the answer to every command after the store has failed.
func (rs *records) refusal() *messages.Error {
	return messages.Errorf(messages.Internal, "this replica cannot go on: %v", rs.broken)
}

// recorded returns the number of the record of the transfer with an identifier. It returns 0 if there is no such
// transfer.
func (rs *records) recorded(id string) uint64 {
	return rs.known.find(rs.known.hash(id), func(number uint64) bool {
		rec := rs.record(number)
		return rec.key() == id
	})
}

// seek returns the record that answered an identifier. Several goroutines may call it at the same time.
func (rs *records) seek(id string) (found record, err error) {
	rs.known.find(rs.known.digest(id), func(number uint64) bool {
		if err == nil {
			found, err = rs.read(number)
		}
		return err == nil && found.key() == id
	})
	return found, err
}

// recall returns the result that the ledger has remembered for a transfer with this identifier. It returns a Conflict
// if that transfer had other content.
func (rs *records) recall(t *money.Transfer) money.TransferResult {
	number := rs.recorded(t.ID)
	if number == 0 {
		return money.TransferResult{Error: messages.Errorf(messages.Conflict,
			"transfer %q is new, but linked to one that was answered before without it: send the same chain again, or use new identifiers", clip(t.ID))}
	}
	rec := rs.record(number)
	if !same(rec.asked, *t) {
		return money.TransferResult{Error: messages.Errorf(messages.Conflict,
			"transfer %q was answered before with other content: choose a new identifier for a new transfer", clip(t.ID))}
	}
	result := rec.result()
	if result.Error == nil && rec.asked.Kind == money.Extend {
		result.Amount = rs.record(rs.recorded(rec.asked.Pending)).asked.Amount
	}
	return result
}

// This function reports whether two transfers under one identifier have the same content. Two fields may differ: the
// expiry, which depends on the time of the request, and the reason of a job's transfer, which may have become longer.
// If a transfer is repeated with another value of such a field, the first value stays.
func same(a, b money.Transfer) bool {
	if a.Job != 0 && a.Job == b.Job {
		a.Reason = b.Reason
	}
	if a.Kind == money.Hold && b.Kind == money.Hold {
		a.Expires = b.Expires
	}
	return a == b
}

// correctable returns the record of a transfer. It returns an error if the transfer cannot be corrected, for example
// because it moved no credits.
func (rs *records) correctable(id string) (record, *messages.Error) {
	number := rs.recorded(id)
	if number == 0 {
		return record{}, messages.Errorf(messages.NotFound, "there is no transfer %q: statements show the identifier of each", clip(id))
	}
	rec := rs.record(number)
	if rec.what != done || rec.outcome.amount == 0 {
		return record{}, messages.Errorf(messages.Invalid, "transfer %q moved no credits, so there is nothing to correct", clip(id))
	}
	return rec, nil
}

// holder returns the member for whom a hold was made, or "" if it was made for the account itself.
func (rs *records) holder(hold string, account messages.Name) messages.Name {
	if rec := rs.record(rs.recorded(hold)); rec.asked.Member != account {
		return rec.asked.Member
	}
	return ""
}
