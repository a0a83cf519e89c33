package ledger

import (
	"bytes"
	"errors"

	"github.com/candor-grid/candor/messages"
)

var (
	errRecord  = errors.New("cannot be read")
	errDiffers = errors.New("is not what it should come to")
	errTime    = errors.New("is older than the one before")
)

// replay does again what a record says was done, under the same rules, and
// checks that it comes to the same bytes.
func (l *Ledger) replay(raw []byte) error {
	rec, ok := decodeRecord(raw)
	if !ok {
		return errRecord
	}
	if rec.at < l.now {
		return errTime
	}
	l.now = rec.at
	before := l.journal.count
	if err := l.again(&rec); err != nil {
		return err
	}
	if l.journal.count != before+1 || !bytes.Equal(l.buffer.b, raw) {
		return errDiffers
	}
	return l.broken
}

// again repeats the change of a record and writes it down anew.
func (l *Ledger) again(rec *record) error {
	switch rec.what {
	case opened:
		return l.openAgain(rec)
	case membership:
		return l.memberAgain(rec)
	case changed:
		if !l.alter(rec.by, &rec.change) {
			return errDiffers
		}
		l.write(rec, nil, nil)
		return nil
	case lapsed:
		h := l.holds[rec.asked.Pending]
		if h == nil || h.expires == 0 || h.expires > l.now {
			return errDiffers
		}
		l.lapse(h)
		return nil
	}
	if l.recorded(rec.asked.ID) != 0 {
		return errDiffers
	}
	if rec.what == refused {
		l.known.add(rec.asked.ID, l.write(rec, nil, nil))
		return nil
	}
	return l.transferAgain(rec)
}

func (l *Ledger) openAgain(rec *record) error {
	if l.accounts[rec.account] != nil || !messages.ValidName(rec.account) {
		return errDiffers
	}
	l.open(rec.account)
	l.write(rec, nil, nil)
	return nil
}

func (l *Ledger) memberAgain(rec *record) error {
	a := l.accounts[rec.account]
	if a == nil || !l.setMember(a, rec.member, rec.remove) {
		return errDiffers
	}
	l.write(rec, nil, nil)
	return nil
}

func (l *Ledger) transferAgain(rec *record) error {
	if rec.asked.Kind > messages.Extend {
		return errDiffers
	}
	s, err := l.prepare(rec.by, &rec.asked)
	if err != nil {
		return err
	}
	l.do(&s)
	l.commit(rec.by, &s)
	return nil
}
