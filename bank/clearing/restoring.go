package clearing

import (
	"crypto/sha256"
	"slices"

	"github.com/candor-grid/candor/messages"
)

// Incarnation is when this site was last restored from a backup, 0 if it never was.
func (s *State) Incarnation() uint64 { return s.peers.incarnation }

// Uncompared reports whether this site was restored, and has not found since that its
// books with a peer are whole.
func (s *State) Uncompared(name messages.Name) bool {
	p := s.peers.byName[name]
	return p != nil && s.peers.whole(p) != nil
}

// whole refuses whatever needs the number after the last, while this bank may have lost
// numbers.
func (ps *peers) whole(p *peer) *Rejected {
	if p.Compared == ps.incarnation || p.Standing == messages.PeerParted {
		return nil
	}
	return reject(Restored, messages.Unavailable, "site %q was restored from a backup, and may have lost what it agreed with %q: an operator of %q sees it with candor peer reconcile %s", ps.site, p.Name, ps.site, p.Name)
}

// compared notes that nothing was lost of the books with a peer.
func (ps *peers) compared(name messages.Name) *Rejected {
	p, err := ps.find(name)
	if err == nil {
		p.Compared = ps.incarnation
	}
	return err
}

// renewed takes note of the incarnation of a peer, and of its latest statement. What it
// signed before it was restored counts no more, because it knows nothing of that. What is
// disputed stays so: a peer that was restored, and a liar that says so, look alike, and the
// operator decides.
func (p *peer) renewed(signed *messages.SignedInstructions) *Rejected {
	m := &signed.Instructions
	if m.Incarnation < p.Incarnation {
		return reject(Restored, messages.Expired, "it was signed before site %q was restored from a backup", p.Name)
	}
	p.Incarnation = m.Incarnation
	if end(m) > p.In.Total.Number+1 || m.Known.Number > p.Known || p.Said == nil {
		p.Said = signed
	}
	return nil
}

// Statements are what this bank kept of its trade with a peer which the peer lost.
func (s *State) Statements(name messages.Name, r messages.StatementsRequest) (messages.Statements, error) {
	p, refusal := s.peers.find(name)
	if refusal != nil {
		return messages.Statements{}, refusal.Err
	}
	st := messages.Statements{Site: s.peers.site, Peer: p.Name, To: []messages.Carried{}, From: []messages.Carried{}, Authorisations: []messages.SignedAuthorisation{}}
	if p.Told != nil && p.Told.Receipt.Total.Number > r.Received {
		st.Receipt, st.To = p.Told, p.Out.carried(r.Received+1, p.Told.Receipt.Total.Number)
	}
	if p.Said != nil {
		m := &p.Said.Instructions
		if m.Known.Number > r.Sent || m.First+uint64(len(m.List)) > r.Sent+1 {
			st.Instructions, st.From = p.Said, p.In.carried(r.Sent+1, m.Known.Number)
		}
	}
	lost := chargedIn(st.To)
	for _, a := range s.acceptor.accepted.sorted() {
		if a.Issuer == p.Name && len(a.Signature) > 0 && (a.Closed == open || a.Closed == charged && lost[a.ID]) && len(st.Authorisations) < messages.MaxStatements {
			st.Authorisations = append(st.Authorisations, messages.SignedAuthorisation{Authorisation: a.Authorisation, Signature: a.Signature})
		}
	}
	return st, nil
}

// carried lists the numbers from one to another with their content, as far as the book
// has them and a message may.
func (b *book) carried(from, to uint64) []messages.Carried {
	list := []messages.Carried{}
	for n := max(from, 1); n <= min(to, b.Total.Number) && n >= b.oldest() && len(list) < messages.MaxStatements; n++ {
		list = append(list, b.Lines[n-b.oldest()].Carried)
	}
	return list
}

// chargedIn are the authorisations that instructions charged or released.
func chargedIn(list []messages.Carried) map[string]bool {
	all := map[string]bool{}
	for i := range list {
		if c := &list[i]; c.Instruction.Kind == messages.InstructCharge && c.Outcome.Error == nil {
			all[c.Instruction.ID] = true
		}
	}
	return all
}

// ScreenStatements reports what is wrong with a peer's statements: what this site is to
// have signed must be signed with one of its keys.
func (s *State) ScreenStatements(st *messages.Statements, name messages.Name, keys []string) *Rejected {
	if st.Site != name || st.Peer != s.peers.site {
		return reject(Misaddressed, messages.Conflict, "the statements are of the books of %q about %q", clip(st.Site), clip(st.Peer))
	}
	own := func(from, to messages.Name, domain string, value any, signature []byte) bool {
		return from == s.peers.site && to == name && verifyAny(s.screen.verify, keys, domain, value, signature)
	}
	forged := reject(Signature, messages.PermissionDenied, "site %q shows what %q is to have signed, and the signature is of none of its keys", name, s.peers.site)
	if r := st.Receipt; r != nil && !own(r.Receipt.From, r.Receipt.To, domainReceipt, &r.Receipt, r.Signature) {
		return forged
	}
	if m := st.Instructions; m != nil && !own(m.Instructions.From, m.Instructions.To, domainInstructions, &m.Instructions, m.Signature) {
		return forged
	}
	for i := range st.Authorisations {
		a := &st.Authorisations[i]
		if !own(a.Authorisation.Issuer, a.Authorisation.Peer, domainAuthorisation, &a.Authorisation, a.Signature) || a.Authorisation.Validate() != nil {
			return forged
		}
	}
	return nil
}

// proven returns the instructions that lead from a total to another, as their digests
// prove; an error says why they do not.
func proven(list []messages.Carried, from, to messages.RunningTotal) ([]messages.Carried, *Rejected) {
	if to.Number <= from.Number {
		return nil, nil
	}
	total := from
	for i := range list {
		total = After(total, &list[i].Instruction, &list[i].Outcome)
	}
	if !same(total, to) {
		return nil, reject(Totals, messages.Conflict, "numbers %d to %d are not proven by what this site signed: the peer has %d of them, and they come to %v owed by number %d where %v were signed",
			from.Number+1, to.Number, len(list), total.Owed, total.Number, to.Owed)
	}
	return list, nil
}

// digestOf is of what a repair enters, and of the totals that it goes on from.
func digestOf(p *peer, st *messages.Statements) []byte {
	content := struct {
		Peer           messages.Name
		In, Out        messages.RunningTotal
		To, From       []messages.Carried
		Receipt        messages.RunningTotal
		Instructions   messages.Instructions
		Authorisations []messages.SignedAuthorisation
	}{Peer: p.Name, In: p.In.Total, Out: p.Out.Total, To: st.To, From: st.From, Authorisations: slices.Clone(st.Authorisations)}
	if st.Receipt != nil {
		content.Receipt = st.Receipt.Receipt.Total
	}
	if st.Instructions != nil {
		content.Instructions = st.Instructions.Instructions
	}
	sum := sha256.Sum256(signed("candor clearing repair 1", &content))
	return sum[:]
}

// Ends says how far the books with a peer go here, to ask the peer for what is after.
func (s *State) Ends(name messages.Name) (r messages.StatementsRequest) {
	if p := s.peers.byName[name]; p != nil {
		r = messages.StatementsRequest{Received: p.In.Total.Number, Sent: p.Out.Total.Number}
	}
	return r
}
