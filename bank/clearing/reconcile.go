package clearing

import (
	"bytes"
	"sort"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
)

// Lines returns a page of a book. A book lists the instructions of one sender, which is this site or the peer. The
// caller signs the page.
func (s *State) Lines(name messages.Name, r clearing.LinesRequest) (clearing.Lines, error) {
	p, refusal := s.peers.find(name)
	if refusal != nil {
		return clearing.Lines{}, refusal.Err
	}
	if err := r.Validate(); err != nil {
		return clearing.Lines{}, err
	}
	if r.Limit == 0 {
		r.Limit = clearing.MaxBookLines
	}
	b := &p.In
	switch r.Sender {
	case s.peers.site:
		b = &p.Out
	case p.Name:
	default:
		return clearing.Lines{}, messages.Errorf(messages.NotFound, "sender %q: is neither %q nor %q", clip(r.Sender), s.peers.site, p.Name)
	}
	return clearing.Lines{
		Site: s.peers.site, Peer: p.Name, Sender: r.Sender, Oldest: b.oldest(), Last: b.Total.Number,
		List: b.page(r.From, r.Limit), At: s.money.books.Now(),
	}, nil
}

// Compare returns the first number at which two books differ, or nil. The arguments are consecutive lines of each book.
// Compare looks only at the numbers that both arguments have. Each digest covers all lines before it, so a binary
// search is enough.
func Compare(ours, theirs []clearing.ClearingLine) *clearing.BookDifference {
	ours, theirs = overlap(ours, theirs)
	i := sort.Search(len(ours), func(i int) bool {
		return ours[i].Number != theirs[i].Number || !bytes.Equal(ours[i].Digest, theirs[i].Digest)
	})
	if i == len(ours) {
		return nil
	}
	return &clearing.BookDifference{Number: ours[i].Number, Earlier: i == 0 && ours[0].Number > 1, Ours: ours[i], Theirs: theirs[i]}
}

// Each argument is a list of lines with consecutive numbers. overlap keeps the lines whose numbers are in both lists.
// It returns these lines of a, and these lines of b.
func overlap(a, b []clearing.ClearingLine) (_, _ []clearing.ClearingLine) {
	if len(a) == 0 || len(b) == 0 {
		return nil, nil
	}
	first := max(a[0].Number, b[0].Number)
	a = a[min(first-a[0].Number, uint64(len(a))):]
	b = b[min(first-b[0].Number, uint64(len(b))):]
	n := min(len(a), len(b))
	return a[:n], b[:n]
}

// This bank and a peer both keep a book of the instructions that one of them has sent. LostHere compares the peer's
// book with this bank's book. It returns how many of these instructions this bank has lost. The caller must read the
// peer's book first, and then call LostHere. If this bank's book were read first, an instruction that came after this
// reading would count as lost.
func (s *State) LostHere(name, sender messages.Name, theirs []clearing.ClearingLine) uint64 {
	p := s.peers.byName[name]
	for i := range theirs {
		if p == nil || p.had(&theirs[i], sender == p.Name) {
			continue
		}
		first := theirs[i].Number
		if last := p.end(sender == p.Name); i == 0 && last < first { // the peer's book begins after the first lost number
			first = last + 1
		}
		return theirs[len(theirs)-1].Number + 1 - first
	}
	return 0
}

// The instructions between two banks are numbered separately in each direction. The method end returns the last number
// that this bank knows in one direction. If `theirs` is true, this is the direction of the peer's instructions.
// Otherwise it is the direction of this bank's own instructions.
func (p *peer) end(theirs bool) uint64 {
	if theirs {
		return p.In.Total.Number
	}
	return p.last()
}

// Forgot reports whether this site was restored from a backup and lost open authorisations. The peer's totals show
// this.
func (s *State) Forgot(t *clearing.Totals) bool {
	p := s.peers.byName[t.Site]
	return p != nil && s.peers.forgot(p, t)
}

func (ps *peers) forgot(p *peer, t *clearing.Totals) bool {
	return ps.whole(p) != nil && t.Latest > ps.since
}

// The method `had` reports whether this bank also has a line of the peer's book. If `theirs` is true, the line is about
// an instruction that the peer sent. Otherwise it is about an instruction that this bank sent.
func (p *peer) had(l *clearing.ClearingLine, theirs bool) bool {
	switch {
	case theirs:
		return l.Number <= p.In.Total.Number
	case l.Number <= p.Out.Total.Number:
		return true
	case l.Number > p.last():
		return false
	}
	i := &p.outbox[l.Number-p.Out.Total.Number-1].Instruction
	return i.Kind == l.Kind && i.Amount == l.Asked
}

// Certain returns the number of the last instruction of a sender that the peer certainly has: a message that the peer
// signed shows it. If a book has fewer instructions of this sender, the book has lost some.
func (s *State) Certain(name, sender messages.Name) uint64 {
	switch p := s.peers.byName[name]; {
	case p == nil:
		return 0
	case sender == name:
		return p.Known
	default:
		return p.Out.Total.Number
	}
}
