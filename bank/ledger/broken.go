package ledger

import (
	"fmt"

	"github.com/candor-grid/candor/messages"
)

// Err returns why the ledger does nothing any more: its store failed. What it
// holds may then be half of a change. The replica is to be ended and started
// again, from its image and the log; its files are as they were.
func (l *Ledger) Err() error { return l.broken }

// fail notes the first error of the store.
func (l *Ledger) fail(err error) {
	if l.broken == nil && err != nil {
		l.broken = fmt.Errorf("the bank's history: %w", err)
	}
}

func (l *Ledger) refuseBroken() Result {
	return Result{Error: messages.Errorf(messages.Internal, "this replica cannot go on: %v", l.broken)}
}

// record decodes a record that this ledger wrote. Where the store cannot give
// it, it is empty, and the command that needed it comes to nothing.
func (l *Ledger) record(number uint64) record {
	rec, err := l.read(number)
	l.fail(err)
	return rec
}

// read is record for those who only look.
func (l *Ledger) read(number uint64) (record, error) {
	if number == 0 || number > l.journal.count {
		return record{}, fmt.Errorf("there is no record %d", number)
	}
	raw, err := l.journal.at(number)
	if err != nil {
		return record{}, err
	}
	rec, ok := decodeRecord(raw)
	if !ok {
		return record{}, fmt.Errorf("record %d %w", number, errRecord)
	}
	return rec, nil
}
