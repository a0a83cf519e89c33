package ledger

// link links an entry of an account to earlier ones. back and jump are distances in records; 0
// means no link.
//
// Jumps follow the skew-binary numbers: from the newest of n entries, the oldest entry with a
// property that all later ones have is found in about 3 log n steps (E. W. Myers, "An
// applicative random-access stack", Information Processing Letters 17, 1983). So a statement
// can start anywhere without an index of entries.
type link struct {
	ordinal    uint64 // number of the entry in its account, from 1; 0: the record is no entry
	back, jump uint64
}

// trail is what an account needs to link its next entry: the roots of the complete trees of its
// entries, newest last. Its length is about the logarithm of their number.
type trail struct {
	count uint64
	roots []root
}

type root struct {
	number uint64 // number of the record
	size   uint64 // entries in its tree
}

// last returns the number of the newest entry's record, 0 if there is none.
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

func (c *codec) link(l *link) {
	c.uint(&l.ordinal)
	if l.ordinal > 1 {
		c.uint(&l.back)
		c.uint(&l.jump)
	}
}

// entry is a record that is an entry of an account.
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

// before returns the number of the account's previous entry, 0 if there is none.
func (e *entry) before(name string) uint64 {
	if at := e.linkOf(name); at.back != 0 {
		return e.number - at.back
	}
	return 0
}
