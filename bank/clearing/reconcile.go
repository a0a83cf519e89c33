package clearing

import (
	"bytes"
	"sort"

	"github.com/candor-grid/candor/messages"
)

// Lines is a page of this site's book of the instructions of one sender, to
// be signed: its own or the peer's.
func (s *State) Lines(name messages.Name, r messages.LinesRequest) (messages.Lines, error) {
	p, refusal := s.peers.find(name)
	if refusal != nil {
		return messages.Lines{}, refusal.Err
	}
	if err := r.Validate(); err != nil {
		return messages.Lines{}, err
	}
	if r.Limit == 0 {
		r.Limit = messages.MaxBookLines
	}
	b := &p.In
	switch r.Sender {
	case s.peers.site:
		b = &p.Out
	case p.Name:
	default:
		return messages.Lines{}, messages.Errorf(messages.NotFound, "sender %q: is neither %q nor %q", clip(r.Sender), s.peers.site, p.Name)
	}
	return messages.Lines{
		Site: s.peers.site, Peer: p.Name, Sender: r.Sender, Oldest: b.oldest(), Last: b.Total.Number,
		List: b.page(r.From, r.Limit), At: s.money.books.Now(),
	}, nil
}

// Compare finds the first number at which two books differ, given consecutive
// lines of each; nil if there is none. Numbers that only one of them has are no difference: they
// are in flight. As each digest covers all before it, a binary search finds it.
func Compare(ours, theirs []messages.ClearingLine) *messages.BookDifference {
	ours, theirs = overlap(ours, theirs)
	i := sort.Search(len(ours), func(i int) bool {
		return ours[i].Number != theirs[i].Number || !bytes.Equal(ours[i].Digest, theirs[i].Digest)
	})
	if i == len(ours) {
		return nil
	}
	return &messages.BookDifference{Number: ours[i].Number, Earlier: i == 0 && ours[0].Number > 1, Ours: ours[i], Theirs: theirs[i]}
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
