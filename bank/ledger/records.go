package ledger

import (
	"fmt"

	"github.com/candor-grid/candor/messages"
)

// records is what the ledger wrote: the journal, the index of its identifiers, and
// the time of the latest record, which never goes back.
type records struct {
	journal journal
	known   index // of the identifiers that were answered
	now     messages.Time
	broken  error // of the store; nothing is done any more

	rank   Rank    // of who made the command under way
	replay *replay // whose records are carried out again; nil: commands are new
	buffer codec   // its space is used again for each record
}

func newRecords(s Store) *records {
	return &records{journal: newJournal(s), known: newIndex()}
}

// write appends a record and enters it on the statements of the accounts
// whose standing it changed, if not nil. It returns the record's number.
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

// enter appends the bytes of a record to a history whose state comes from an image.
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

// next reads a record, which may not be of an earlier time than those before.
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

// follow puts a segment that the store has behind the records so far.
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

// keyOf is the hash under which a record is found, 0 for none.
func (rs *records) keyOf(r *record) uint64 {
	if key := r.key(); key != "" {
		return rs.known.hash(key)
	}
	return 0
}

// record decodes a record that this ledger wrote. Where the store cannot give
// it, it is empty, and the command that needed it comes to nothing.
func (rs *records) record(number uint64) record {
	rec, err := rs.read(number)
	rs.fail(err)
	return rec
}

// read returns a record, or why it cannot be read. Several queries may read at a time.
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

// fail notes the first error of the store.
func (rs *records) fail(err error) {
	if rs.broken == nil && err != nil {
		rs.broken = fmt.Errorf("the bank's history: %w", err)
	}
}

// refusal answers every command after the store has failed.
func (rs *records) refusal() *messages.Error {
	return messages.Errorf(messages.Internal, "this replica cannot go on: %v", rs.broken)
}

// recorded returns the number of the record that answered an identifier, 0 if
// none did.
func (rs *records) recorded(id string) uint64 {
	return rs.known.find(rs.known.hash(id), func(number uint64) bool {
		rec := rs.record(number)
		return rec.key() == id
	})
}

// seek returns the record that answered an identifier, for those who only
// look: several may at a time.
func (rs *records) seek(id string) (found record, err error) {
	rs.known.find(rs.known.digest(id), func(number uint64) bool {
		if err == nil {
			found, err = rs.read(number)
		}
		return err == nil && found.key() == id
	})
	return found, err
}

// recall returns the remembered result of a transfer, or a Conflict.
func (rs *records) recall(t *messages.Transfer) messages.TransferResult {
	number := rs.recorded(t.ID)
	if number == 0 {
		return messages.TransferResult{Error: messages.Errorf(messages.Conflict,
			"transfer %q is new, but is linked to one that was answered before without it: send the chain as it was, or under new identifiers", clip(t.ID))}
	}
	rec := rs.record(number)
	if !same(rec.asked, *t) {
		return messages.TransferResult{Error: messages.Errorf(messages.Conflict,
			"transfer %q was answered before with other content: choose a new identifier for a new transfer", clip(t.ID))}
	}
	result := rec.result()
	if result.Error == nil && rec.asked.Kind == messages.Extend {
		result.Amount = rs.record(rs.recorded(rec.asked.Pending)).asked.Amount
	}
	return result
}

// same reports whether two transfers under one identifier have the same
// content. When a hold is to expire is counted from the moment of asking and
// so differs when the same is asked again: the first expiry stands. What is said of
// a job may be longer by then, as its last tasks have ended or it has a new name: the
// first reason stands.
func same(a, b messages.Transfer) bool {
	if a.Job != 0 && a.Job == b.Job {
		a.Reason = b.Reason
	}
	if a.Kind == messages.Hold && b.Kind == messages.Hold {
		a.Expires = b.Expires
	}
	return a == b
}

// correctable returns the record of a transfer that moved credits.
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

// holder is the member on whose word a hold was made, "" if it was the
// account's own.
func (rs *records) holder(hold string, account messages.Name) messages.Name {
	if rec := rs.record(rs.recorded(hold)); rec.asked.Member != account {
		return rec.asked.Member
	}
	return ""
}
