package ledger

// link leads from an entry of an account to earlier ones. Back and Jump are
// how many records earlier they are, 0 for none.
//
// Jumps follow the skew-binary numbers: from the newest of n entries, the
// oldest with any property that all later ones share is found in about
// 3 log n steps (E. W. Myers, "An applicative random-access stack",
// Information Processing Letters 17, 1983). So a statement starts anywhere
// without an index: the journal itself leads there.
type link struct {
	ordinal    uint64 // from 1, of the account's entries; 0: the record is no entry
	back, jump uint64
}

// trail is what an account needs to link its next entry: the roots of the
// complete trees that its entries make, newest last. It is as long as the
// logarithm of their number.
type trail struct {
	count uint64
	roots []root
}

type root struct {
	number uint64 // of the record
	size   uint64 // entries in its tree
}

// last is the number of the newest entry, 0 if there is none.
func (t *trail) last() uint64 {
	if len(t.roots) == 0 {
		return 0
	}
	return t.roots[len(t.roots)-1].number
}

// extend adds an entry and returns its link.
func (t *trail) extend(number uint64) link {
	t.count++
	l := link{ordinal: t.count}
	n := len(t.roots)
	if n > 0 {
		l.back = number - t.roots[n-1].number
	}
	size := uint64(1)
	if n > 1 && t.roots[n-1].size == t.roots[n-2].size {
		size += 2 * t.roots[n-1].size
		n -= 2
	}
	if n > 0 {
		l.jump = number - t.roots[n-1].number
	}
	t.roots = append(t.roots[:n], root{number, size})
	return l
}

func (w *writer) link(l link) {
	w.uint(l.ordinal)
	if l.ordinal > 1 {
		w.uint(l.back)
		w.uint(l.jump)
	}
}

func (r *reader) link() link {
	l := link{ordinal: r.uint()}
	if l.ordinal > 1 {
		l.back, l.jump = r.uint(), r.uint()
	}
	return l
}

// entry is a record as one of those of an account.
type entry struct {
	record
	number uint64
}

// linkOf returns the link of the record in the trail of an account.
func (r *record) linkOf(name string) link {
	if r.outcome.debit == name {
		return r.debitLink
	}
	return r.creditLink
}

// before is the number of the account's entry before this one, 0 if none is.
func (e *entry) before(name string) uint64 {
	if at := e.linkOf(name); at.back != 0 {
		return e.number - at.back
	}
	return 0
}

func (l *Ledger) readEntry(number uint64) (*entry, error) {
	rec, err := l.read(number)
	if err != nil {
		return nil, err
	}
	return &entry{rec, number}, nil
}

// oldest returns the oldest entry of an account of which late is true, and
// then is of all newer ones; nil if it is of none.
func (l *Ledger) oldest(a *account, late func(*entry) bool) (*entry, error) {
	if a.trail.count == 0 {
		return nil, nil
	}
	found, err := l.readEntry(a.trail.last())
	if err != nil || !late(found) {
		return nil, err
	}
	for {
		next, err := l.step(a, found, late)
		if err != nil || next == nil {
			return found, err
		}
		found = next
	}
}

// step goes back from an entry as far as one link leads to one that is late;
// nil if it leads to none.
func (l *Ledger) step(a *account, from *entry, late func(*entry) bool) (*entry, error) {
	at := from.linkOf(a.name)
	for _, distance := range [2]uint64{at.jump, at.back} {
		if distance == 0 {
			continue
		}
		earlier, err := l.readEntry(from.number - distance)
		if err != nil || late(earlier) {
			return earlier, err
		}
	}
	return nil, nil
}

// run returns up to so many entries of an account, from one on, oldest first.
func (l *Ledger) run(a *account, first *entry, most int) ([]entry, error) {
	from := first.linkOf(a.name).ordinal
	to := min(from+uint64(most)-1, a.trail.count)
	e, err := l.oldest(a, func(e *entry) bool { return e.linkOf(a.name).ordinal >= to })
	if err != nil {
		return nil, err
	}
	entries := make([]entry, to-from+1)
	for i := len(entries) - 1; ; i-- {
		entries[i] = *e
		if i == 0 {
			return entries, nil
		}
		if e, err = l.readEntry(e.before(a.name)); err != nil {
			return nil, err
		}
	}
}
