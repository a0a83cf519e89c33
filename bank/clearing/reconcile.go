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

// Compare returns the first number at which two books differ, or nil. It gets consecutive lines of each book, and
// compares the numbers that both have. Each digest covers all lines before it, so a binary search is enough.
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

// Each argument is a list of consecutive lines. overlap returns the parts of the two lists with the numbers that both
// have.
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

// LostHere compares a peer's book of the instructions of one sender with this bank's book. It returns how many of these
// instructions this bank must have had before, and has lost. The caller must read the peer's book first, and then call
// LostHere. If this bank's book were read first, instructions that came in between would count as lost.
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

// Instructions are numbered separately in each direction between the two banks. end returns the last number that this
// bank knows. If `theirs` is true, it looks at the instructions of the peer, and otherwise at its own instructions to
// the peer.
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

// Reports whether this bank had a given line of the peer's book. `theirs` is true for the book of the peer's
// instructions, and false for the book of this bank's instructions.
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

// Certain returns the number of a sender's last instruction that the peer has, as the peer's own signed messages show.
// A book with fewer instructions of this sender has lost some.
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
