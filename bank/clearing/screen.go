package clearing

import (
	"slices"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
)

type screen struct {
	verify Verify
	peers  *peers
}

// Screen returns a refusal if a command is wrong in every state of the books, and nil otherwise. The leader calls it
// before it proposes the command. Screen changes and counts nothing.
func (s *State) Screen(c *Command) *Rejected {
	switch {
	case c.Peer != nil:
		return s.screen.peer(c.Peer)
	case c.Reserve != nil:
		return malformed(c.Reserve.Validate())
	case c.Authorise != nil:
		return malformed(c.Authorise.Validate())
	case c.Revoke != nil:
		return malformed(c.Revoke.Validate())
	case c.Remit != nil:
		return malformed(c.Remit.Validate())
	case c.Charge != nil:
		return malformed(c.Charge.Validate())
	case c.Part != nil:
		return malformed(c.Part.Validate())
	case c.Confirm != nil:
		return malformed(c.Confirm.Validate())
	case c.Adopt != nil:
		if err := malformed(c.Adopt.Validate()); err != nil {
			return err
		}
		return s.ScreenTotals(&c.Adopt.Totals, c.Adopt.Totals.Totals.Site)
	case c.Accept != nil:
		return s.screen.authorisation(c.Accept)
	case c.Instructions != nil:
		i := &c.Instructions.Instructions
		return s.screen.message(i.From, i.To, domainInstructions, i, c.Instructions.Signature, len(i.List), i.First)
	case c.Receipt != nil:
		r := &c.Receipt.Receipt
		return s.screen.message(r.From, r.To, domainReceipt, r, c.Receipt.Signature, len(r.Outcomes), r.First)
	}
	return nil
}

func (sc *screen) peer(r *clearing.PeerRequest) *Rejected {
	if r.Peer == sc.peers.site {
		return reject(Malformed, messages.Invalid, "peer: %q is this site itself", r.Peer)
	}
	return malformed(r.Validate())
}

func (sc *screen) authorisation(r *clearing.AcceptRequest) *Rejected {
	if err := malformed(r.Validate()); err != nil {
		return err
	}
	a := &r.Authorisation.Authorisation
	if a.Peer == sc.peers.site && sc.peers.byName[a.Issuer] == nil { // the two sites may just be becoming peers
		return reject(Stranger, messages.Unavailable, "site %q is no peer of %q: an operator of %q can add the peer; try again then", clip(a.Issuer), sc.peers.site, sc.peers.site)
	}
	return sc.signed(a.Issuer, a.Peer, domainAuthorisation, a, r.Authorisation.Signature)
}

func (sc *screen) message(from, to messages.Name, domain string, value any, signature []byte, n int, first uint64) *Rejected {
	if err := sc.signed(from, to, domain, value, signature); err != nil {
		return err
	}
	if err := sc.peers.whole(sc.peers.byName[from]); err != nil {
		return err
	}
	if n > clearing.MaxInstructions || first == 0 || first > maxNumber {
		return reject(Malformed, messages.Invalid, "%d numbers from %d on: send 1 to %d from 1 on", n, first, clearing.MaxInstructions)
	}
	return nil
}

// maxNumber is the largest number of an instruction that is accepted, so that sums of such numbers fit in 64 bits. No
// correct peer ever reaches it.
const maxNumber = 1 << 62

// signed checks the sender, the receiver and the signature of a message.
func (sc *screen) signed(from, to messages.Name, domain string, value any, signature []byte) *Rejected {
	if to != sc.peers.site {
		return reject(Misaddressed, messages.PermissionDenied, "it is for site %q, and this is %q", clip(to), sc.peers.site)
	}
	p := sc.peers.byName[from]
	if p == nil {
		return reject(Stranger, messages.PermissionDenied, "site %q is no peer of %q: an operator can add the peer", clip(from), sc.peers.site)
	}
	if len(p.Keys) == 0 {
		return parted(p)
	}
	if !verifyAny(sc.verify, p.trusted(sc.peers.money.books.Now()), domain, value, signature) {
		return reject(Signature, messages.PermissionDenied, "the signature is not from %q for this content: the content was altered, or another key signed", p.Name)
	}
	return nil
}

// A peer keeps a book of the instructions of each sender, and sends each book page by page. ScreenLines checks a page.
// It returns what is wrong: with its signature, with the book to which it belongs, or with the order of its numbers.
func (s *State) ScreenLines(l *clearing.SignedLines, name, sender messages.Name) *Rejected {
	m := &l.Lines
	if m.Site != name || m.Sender != sender {
		return reject(Misaddressed, messages.Conflict, "the page is of the book of %q about %q", clip(m.Site), clip(m.Sender))
	}
	if err := s.screen.signed(m.Site, m.Peer, domainLines, m, l.Signature); err != nil {
		return err
	}
	for i := range m.List {
		if m.List[i].Number != m.List[0].Number+uint64(i) || len(m.List) > clearing.MaxBookLines {
			return reject(Malformed, messages.Invalid, "the page has too many lines, or not all numbers in order")
		}
		if l := &m.List[i]; l.Moved != 0 && (l.Refused || !countable(l.Moved) || l.Moved > l.Asked) || !l.Refused && !countable(l.Asked) {
			return reject(Malformed, messages.Invalid, "number %d of the page moved %v of %v credits, which cannot be", l.Number, l.Moved, l.Asked)
		}
	}
	return nil
}

func countable(c messages.Credits) bool { return c >= 0 && c <= messages.MaxCredits }

// ScreenTotals returns what is wrong with the totals of a peer's bank, or nil.
func (s *State) ScreenTotals(t *clearing.SignedTotals, name messages.Name) *Rejected {
	if t.Totals.Site != name {
		return reject(Misaddressed, messages.Conflict, "the totals are of the books of %q", clip(t.Totals.Site))
	}
	return s.screen.signed(name, t.Totals.Peer, domainTotals, &t.Totals, t.Signature)
}

// ScreenPosition checks a peer's position in a cycle. It returns why the position must be refused, or nil.
func (s *State) ScreenPosition(p *clearing.SignedPosition, name messages.Name, cycle uint64) *Rejected {
	if p.Position.Site != name || p.Position.Cycle != cycle {
		return reject(Misaddressed, messages.Conflict, "the position is of site %q in cycle %d", clip(p.Position.Site), p.Position.Cycle)
	}
	if err := s.screen.signed(name, s.peers.site, domainPosition, &p.Position, p.Signature); err != nil {
		return err
	}
	legs := p.Position.Legs
	for i := range legs {
		if l := &legs[i]; len(legs) > maxPeers || !messages.ValidName(l.Peer) || !countable(l.Paid) || !countable(l.Received) || !countable(l.Volume) ||
			slices.ContainsFunc(legs[:i], func(other clearing.Leg) bool { return other.Peer == l.Peer }) {
			return reject(Malformed, messages.Invalid, "the position has too many legs, one twice, or one that cannot be: with %q, paid %v, received %v", clip(l.Peer), l.Paid, l.Received)
		}
	}
	return nil
}
