package ledger

// link points from an entry of an account to earlier entries. The field `back` is the distance to the previous entry,
// in records. The field `jump` is the distance to a much earlier entry. 0 means no link.
//
// The lengths of the jumps follow the skew-binary numbers. If a property of an entry also holds for all later entries,
// the oldest of n entries with this property is found in about 3 log n steps (E. W. Myers, "An applicative
// random-access stack", Information Processing Letters 17, 1983).
type link struct {
	ordinal    uint64 // number of the entry in its account, from 1; 0 if the record is not an entry
	back, jump uint64
}

// trail has what an account needs to link its next entry to the earlier entries. The earlier entries form a few
// complete binary trees. The trail has the roots of these trees, newest last. Their number is at most about the
// logarithm of the number of entries.
type trail struct {
	count uint64
	roots []root
}

type root struct {
	number uint64 // number of the root's record
	size   uint64 // number of entries in its tree
}

// last returns the number of the newest entry's record, or 0 if there is none.
func (t *trail) last() uint64 {
	if len(t.roots) == 0 {
		return 0
	}
	return t.roots[len(t.roots)-1].number
}

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

type entry struct {
	record
	number uint64
}

// linkOf returns the link of the record to earlier entries of an account.
func (r *record) linkOf(name string) link {
	if r.outcome.debit == name {
		return r.debitLink
	}
	return r.creditLink
}

// The method `before` returns the number of the record with the account's previous entry, or 0.
func (e *entry) before(name string) uint64 {
	if at := e.linkOf(name); at.back != 0 {
		return e.number - at.back
	}
	return 0
}
