package ledger

import (
	"slices"

	"github.com/candor-grid/candor/messages"
)

// copied is how many accounts are copied together for an image.
const copied = 256

// touch notes that an account will have to be copied for the next image.
func (l *Ledger) touch(a *account) {
	page := a.place / copied
	for page >= len(l.stale) {
		l.stale = append(l.stale, true)
	}
	l.stale[page] = true
}

// touched notes all the accounts that a record changes: every change is
// written down, and a record names what it changes.
func (l *Ledger) touched(r *record) {
	for _, name := range [...]messages.Name{r.account, r.change.account, r.outcome.debit, r.outcome.credit} {
		if a := l.accounts[name]; a != nil {
			l.touch(a)
		}
	}
}

// refresh copies the accounts that changed since the last time.
func (l *Ledger) refresh() {
	l.copying.Lock()
	defer l.copying.Unlock()
	for page, stale := range l.stale {
		if !stale {
			continue
		}
		from := l.order[page*copied : min(len(l.order), (page+1)*copied)]
		copies := make([]account, len(from))
		for i, a := range from {
			copies[i] = a.copy()
		}
		if page == len(l.copies) {
			l.copies = append(l.copies, nil)
		}
		l.copies[page], l.stale[page] = copies, false
	}
}

// copy shares nothing with the account that may change.
func (a *account) copy() account {
	c := *a
	c.members = slices.Clone(a.members)
	c.trail.roots = slices.Clone(a.trail.roots)
	return c
}
