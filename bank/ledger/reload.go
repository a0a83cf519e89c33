package ledger

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"github.com/candor-grid/candor/messages"
)

// compareState compares what the records came to with what is written down.
func (l *Ledger) compareState(r *source) error {
	var is bytes.Buffer
	if err := l.Capture().writeState(&is); err != nil {
		return err
	}
	written := make([]byte, is.Len())
	if _, err := io.ReadFull(r, written); err != nil {
		return damaged("its accounts", err)
	}
	if !bytes.Equal(written, is.Bytes()) {
		return fmt.Errorf("%w: its accounts differ from what its records come to", errImage)
	}
	return nil
}

// readDues takes the queue of expiries as it is written down.
func (l *Ledger) readDues(r *source) error {
	l.dues = nil
	if err := l.readChunks(r); err != nil {
		return err
	}
	for i, d := range l.dues {
		if i > 0 && l.dues.Less(i, i-1) || l.accounts[d.name] == nil {
			return fmt.Errorf("%w: its queue of expiries cannot be", errImage)
		}
	}
	return nil
}

// readChunks reads up to the empty chunk.
func (l *Ledger) readChunks(r *source) error {
	var raw []byte
	for {
		var err error
		if raw, err = readText(r, raw, maxChunk); err != nil {
			return damaged("its accounts", err)
		}
		if len(raw) == 0 {
			return nil
		}
		if !l.readChunk(string(raw)) {
			return fmt.Errorf("%w: its accounts cannot be read", errImage)
		}
	}
}

// readState takes the state as it is written down.
func (l *Ledger) readState(r *source) error {
	clear(l.accounts)
	l.order, l.copies, l.stale, l.names = nil, nil, nil, names{}
	if err := l.readChunks(r); err != nil {
		return err
	}
	done, err := binary.ReadUvarint(r)
	if err != nil {
		return damaged("its accounts", err)
	}
	l.done = done
	return l.checkState()
}

// maxChunk bounds a chunk in bytes: an account may have thousands of members.
const maxChunk = 1 << 30

func (l *Ledger) readChunk(s string) bool {
	r := reader{s: s}
	kind := r.byte()
	for range r.count(1) {
		switch kind {
		case accountsChunk:
			l.readAccount(&r)
		case holdsChunk:
			h := r.hold(l)
			if h.account == nil || l.holds[h.id] != nil {
				return false
			}
			l.addHold(h)
		case trustChunk:
			r.trust(&l.trust)
		case duesChunk:
			l.dues = append(l.dues, due{messages.Time(r.int()), r.text()}) // ascending, and so a heap
		default:
			return false
		}
	}
	return r.ok()
}

func (l *Ledger) readAccount(r *reader) {
	name := r.text()
	if l.accounts[name] != nil {
		r.fail()
		return
	}
	a := l.open(name)
	r.account(a)
	for i := range a.members {
		m := &a.members[i]
		if m.left {
			continue
		}
		projects := l.projects[m.name]
		at, _ := slices.BinarySearch(projects, a.name)
		l.projects[m.name] = slices.Insert(projects, at, a.name)
	}
}

// checkState refuses a state that cannot be: it comes without all the records
// that it could be recomputed from.
func (l *Ledger) checkState() error {
	if l.issuer = l.accounts[messages.IssuerAccount]; l.issuer == nil || l.accounts[messages.SiteAccount] == nil {
		return fmt.Errorf("%w: the bank's own accounts are missing", errImage)
	}
	reserved := make(map[*account]messages.Credits, len(l.holds))
	for _, h := range l.holds {
		reserved[h.account] += h.amount
	}
	var total messages.Credits
	for _, a := range l.order {
		total += a.balance
		if a.reserved != reserved[a] || a.trail.last() > l.journal.count {
			return fmt.Errorf("%w: account %q does not agree with its holds or entries", errImage, a.name)
		}
	}
	if total != 0 {
		return fmt.Errorf("%w: its balances do not sum to zero", errImage)
	}
	l.balances = -l.issuer.balance
	return nil
}
