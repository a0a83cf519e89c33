package clearing

import (
	"bytes"
	"fmt"
	"sort"

	"github.com/candor-grid/candor/messages"
)

// Lines is a page of this site's book of the instructions of one sender, to
// be signed: its own or the peer's.
func (s *State) Lines(name messages.Name, r messages.LinesRequest) (messages.Lines, error) {
	p, refusal := s.peer(name)
	if refusal != nil {
		return messages.Lines{}, refusal.Err
	}
	if err := r.Validate(); err != nil {
		return messages.Lines{}, err
	}
	if r.Limit == 0 {
		r.Limit = messages.MaxBookLines
	}
	b := &p.in
	switch r.Sender {
	case s.site:
		b = &p.out
	case p.name:
	default:
		return messages.Lines{}, messages.Errorf(messages.NotFound, "sender %q: is neither %q nor %q", clip(r.Sender), s.site, p.name)
	}
	return messages.Lines{
		Site: s.site, Peer: p.name, Sender: r.Sender, Oldest: b.oldest(), Last: b.total.Number,
		List: b.page(r.From, r.Limit), At: s.books.Now(),
	}, nil
}

// ScreenLines reports what is wrong with a page of a peer's book of the
// instructions of a sender: it must be signed by the peer, be of the book that
// was asked for, and have its numbers in order.
func (s *State) ScreenLines(l *messages.SignedLines, name, sender messages.Name) *Rejected {
	m := &l.Lines
	if m.Site != name || m.Sender != sender {
		return reject(Misaddressed, messages.Conflict, "the page is of the book of %q about %q", clip(m.Site), clip(m.Sender))
	}
	if err := s.screenSigned(m.Site, m.Peer, domainLines, m, l.Signature); err != nil {
		return err
	}
	for i := range m.List {
		if m.List[i].Number != m.List[0].Number+uint64(i) || len(m.List) > messages.MaxBookLines {
			return reject(Malformed, messages.Invalid, "the page has too many lines, or not all numbers in order")
		}
	}
	return nil
}

// ScreenPosition reports what is wrong with a peer's position in a cycle.
func (s *State) ScreenPosition(p *messages.SignedPosition, name messages.Name, cycle uint64) *Rejected {
	if p.Position.Site != name || p.Position.Cycle != cycle {
		return reject(Misaddressed, messages.Conflict, "the position is of site %q in cycle %d", clip(p.Position.Site), p.Position.Cycle)
	}
	return s.screenSigned(name, s.site, domainPosition, &p.Position, p.Signature)
}

// Difference is the first number at which two books of one direction differ,
// and the line that each has for it.
type Difference struct {
	Number       uint64
	Earlier      bool // it is this number or one before, which a book no longer has
	Ours, Theirs messages.ClearingLine
}

// String says what differs.
func (d Difference) String() string {
	where := fmt.Sprintf("first at number %d", d.Number)
	if d.Earlier {
		where = fmt.Sprintf("at number %d, the oldest that both still have, or before", d.Number)
	}
	show := func(l messages.ClearingLine) string {
		return fmt.Sprintf("%s of %v, of which %v moved, refused: %v", l.Kind, l.Asked, l.Moved, l.Refused)
	}
	return fmt.Sprintf("the books differ %s: ours has %s; theirs %s", where, show(d.Ours), show(d.Theirs))
}

// Compare finds the first number at which two books differ, given consecutive
// lines of each. Numbers that only one of them has are no difference: they
// are in flight. As each digest covers all before it, a binary search finds it.
func Compare(ours, theirs []messages.ClearingLine) (Difference, bool) {
	ours, theirs = overlap(ours, theirs)
	i := sort.Search(len(ours), func(i int) bool {
		return ours[i].Number != theirs[i].Number || !bytes.Equal(ours[i].Digest, theirs[i].Digest)
	})
	if i == len(ours) {
		return Difference{}, false
	}
	return Difference{Number: ours[i].Number, Earlier: i == 0 && ours[0].Number > 1, Ours: ours[i], Theirs: theirs[i]}, true
}

// overlap cuts two runs of lines to the numbers that both have.
func overlap(a, b []messages.ClearingLine) (_, _ []messages.ClearingLine) {
	if len(a) == 0 || len(b) == 0 {
		return nil, nil
	}
	first := max(a[0].Number, b[0].Number)
	a = a[min(first-a[0].Number, uint64(len(a))):]
	b = b[min(first-b[0].Number, uint64(len(b))):]
	n := min(len(a), len(b))
	return a[:n], b[:n]
}
