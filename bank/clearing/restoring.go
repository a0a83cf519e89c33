package clearing

import (
	"bytes"
	"math"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	moneymsg "github.com/candor-grid/candor/messages/money"
)

// restored does what is needed if this bank was restored from a backup. The backup lacks the latest instructions. So
// the bank asks its peers for their totals of all instructions, and continues from these.
type restored struct {
	peers    *peers
	money    *money
	terms    *terms
	issuer   *issuer
	acceptor *acceptor
}

// Incarnation returns this site's incarnation, or 0 if it was never restored from a backup. It also returns when the
// backup of the last restore began.
func (s *State) Incarnation() (uint64, messages.Time) { return s.peers.incarnation, s.peers.backup }

// Uncompared reports whether this site was restored, and its books with a peer have not been found equal since then.
func (s *State) Uncompared(name messages.Name) bool {
	p := s.peers.byName[name]
	return p != nil && s.peers.whole(p) != nil
}

// A restore may make this bank forget instructions that it exchanged with a peer, and their numbers. So the bank must
// not use new numbers for this peer before an operator has compared the books of both banks. Until then, the method
// `whole` returns a refusal.
func (ps *peers) whole(p *peer) *Rejected {
	if p.Compared == ps.incarnation || p.Standing == clearing.PeerParted {
		return nil
	}
	return reject(Restored, messages.Unavailable, "site %q was restored from a backup, and may have lost what it agreed with %q: an operator of %q sees it with candor peer reconcile %s", ps.site, p.Name, ps.site, p.Name)
}

// compared is called when the comparison of the books with a peer is done and nothing was lost. It lets trade with the
// peer begin. Each restore gives a site a higher incarnation number. The argument `known` is the incarnation of this
// site that the peer knows.
func (ps *peers) compared(name messages.Name, known uint64) *Rejected {
	p, err := ps.find(name)
	if err == nil {
		ps.rise(p, known)
	}
	return err
}

// Each restore of this site begins a new incarnation with a higher number. rise permits trade with a peer again after a
// restore. The argument `known` is the highest number that the peer knows. Normally it is lower than the number of the
// present incarnation. Otherwise the site uses the number known+1 with this peer. This happens if an earlier restore was
// made while the clock was ahead, since the numbers come from the clock.
func (ps *peers) rise(p *peer, known uint64) {
	p.Compared = ps.incarnation
	if known >= ps.incarnation && known < math.MaxUint64 {
		p.Above = known + 1
	}
}

func (ps *peers) incarnationFor(p *peer) uint64 { return max(ps.incarnation, p.Above) }

// renewed stores the new incarnation of a peer that was restored. It refuses messages that the peer signed before the
// restore, because the peer no longer knows them. It does not end a dispute, because a restored peer and a liar look
// the same. A dispute ends when the operator of this site has confirmed totals, and the peer continues from these
// totals.
func (p *peer) renewed(m *clearing.Instructions) *Rejected {
	if m.Incarnation < p.Incarnation {
		return reject(Restored, messages.Expired, "it was signed before site %q was restored from a backup", p.Name)
	}
	if t := p.Confirmed; t != nil && m.Incarnation > p.Incarnation && m.Known.Number == t.Received.Number {
		p.Dispute, p.Confirmed = "", nil
	}
	p.Incarnation = m.Incarnation
	return nil
}

// Totals returns this bank's totals of its trade with a peer. After an operator has confirmed totals, it returns the
// confirmed totals, until a further instruction is sent or received.
func (s *State) Totals(name messages.Name) (clearing.Totals, error) {
	p, err := s.peers.find(name)
	if err != nil {
		return clearing.Totals{}, err.Err
	}
	if t := p.Confirmed; t != nil && same(t.Sent, p.Out.Total) && same(t.Received, p.In.Total) && t.Incarnation == p.Incarnation {
		return *t, nil
	}
	return s.restored.totals(p), nil
}

func (rs *restored) totals(p *peer) clearing.Totals {
	t := clearing.Totals{Site: rs.peers.site, Peer: p.Name, Sent: p.Out.Total, Received: p.In.Total, Leaving: p.Leaving, Left: p.Left, Incarnation: p.Incarnation}
	may := func(a *accepted, amount messages.Credits) {
		t.Authorised += amount
		if a != nil {
			t.Latest = max(t.Latest, a.Issued)
		}
	}
	for _, e := range rs.acceptor.accepted.byID {
		if a := &e.value; a.Authorisation.Issuer == p.Name && a.Closed == open {
			may(a, a.Amount)
		}
	}
	for i := range p.outbox {
		if it := &p.outbox[i].Instruction; it.Kind == clearing.InstructCharge && it.Amount > 0 {
			may(rs.acceptor.accepted.find(acceptedKey(p.Name, it.ID)), it.Amount)
		}
	}
	return t
}

// confirm confirms the totals that an operator saw, if they are still correct. The peer can then adopt them.
func (rs *restored) confirm(r *clearing.ConfirmRequest) (*clearing.Totals, *Rejected) {
	p, err := rs.peers.find(r.Totals.Peer)
	if err != nil {
		return nil, err
	}
	t, seen := rs.totals(p), r.Totals
	seen.Confirmed = false
	if !bytes.Equal(signed(domainTotals, &t), signed(domainTotals, &seen)) {
		return nil, changed(p)
	}
	t.Confirmed = true
	p.Confirmed = &t
	return p.Confirmed, nil
}

func changed(p *peer) *Rejected {
	return ordinary(messages.Errorf(messages.Conflict, "the books with site %q have changed since you saw them: compare the books again with `candor peer reconcile %s`", p.Name, p.Name))
}

// Adoption returns what would change in this bank's books if the bank adopted the totals that a peer reports. It
// returns nil if this bank has lost nothing.
func (s *State) Adoption(t *clearing.Totals) (*clearing.Adoption, *Rejected) {
	p, err := s.peers.find(t.Site)
	if err != nil {
		return nil, err
	}
	return s.restored.plan(p, t)
}

// maxOwed bounds the amounts that are owed in a peer's totals. The difference of two such amounts then fits in 64 bits.
const maxOwed = 1 << 61

func (rs *restored) plan(p *peer, t *clearing.Totals) (*clearing.Adoption, *Rejected) {
	out, sent, err := p.Out.further(&t.Received)
	in, received, failed := p.In.further(&t.Sent)
	switch {
	case err != nil:
		return nil, err
	case failed != nil:
		return nil, failed
	case sent+received == 0 && !rs.peers.forgot(p, t):
		return nil, nil
	}
	a := &clearing.Adoption{Numbers: sent + received, Authorised: t.Authorised}
	owes, _ := rs.money.owed(PeerAccount(p.Name))
	a.Correction = owes - (out.Owed - in.Owed)
	if most := messages.MaxCredits; a.Correction > most || a.Correction < -most {
		return nil, reject(Amount, messages.Conflict, "the totals of site %q differ from this site's books by %v credits, more than can be booked", p.Name, a.Correction)
	}
	for _, it := range p.outbox[:min(sent, uint64(len(p.outbox)))] {
		if it.Instruction.Kind == clearing.InstructPay {
			a.Returned += it.Held
		}
	}
	return a, nil
}

// Both banks number the instructions of each direction. further compares the peer's totals for one direction with this
// book. If the peer has more instructions than this book, the banks must continue from the peer's totals. Otherwise
// they continue from this book's totals. further returns these totals. It also returns by how many instructions the
// peer is ahead of this book.
func (b *book) further(theirs *clearing.RunningTotal) (clearing.RunningTotal, uint64, *Rejected) {
	if theirs.Number > maxNumber || theirs.Owed > maxOwed || theirs.Owed < -maxOwed || theirs.Volume < 0 {
		return b.Total, 0, reject(Amount, messages.Invalid, "the totals have number %d, and %v owed of %v: they cannot be", theirs.Number, theirs.Owed, theirs.Volume)
	}
	if ours, known := b.at(theirs.Number); known && !same(ours, *theirs) {
		return b.Total, 0, reject(Totals, messages.Conflict, "the books come to %v owed here by number %d, and to %v at the peer: this bank has not lost them, and the books differ", ours.Owed, ours.Number, theirs.Owed)
	}
	if theirs.Number <= b.Total.Number {
		return b.Total, 0, nil
	}
	return *theirs, theirs.Number - b.Total.Number, nil
}

// The method adopt replaces this site's numbers and totals of a peer by the numbers and totals that the peer reports.
// So this site then owes what the peer says. The correction account pays or gets the difference.
func (rs *restored) adopt(r *clearing.AdoptRequest) (*clearing.Adoption, *Rejected) {
	t := &r.Totals.Totals
	p, err := rs.peers.find(t.Site)
	if err != nil {
		return nil, err
	}
	a, err := rs.plan(p, t)
	switch {
	case err != nil:
		return nil, err
	case a == nil:
		return nil, ordinary(messages.Errorf(messages.Conflict, "this site lost nothing of its books with site %q: there is nothing to adopt", p.Name))
	case !t.Confirmed:
		return nil, ordinary(messages.Errorf(messages.Conflict, "the operator of site %q has not confirmed its books: ask that operator to run \"candor peer reconcile %s --confirm\"", p.Name, rs.peers.site))
	case a.Correction != r.Correction:
		return nil, changed(p)
	}
	rs.terms.allot(CorrectionAccount, "the result of restoring books", messages.MaxCredits)
	if _, room := rs.money.owed(CorrectionAccount); room < -a.Correction {
		return nil, ordinary(messages.Errorf(messages.Exhausted, "account %q cannot pay %v more", CorrectionAccount, -a.Correction))
	}
	rs.correct(p, a.Correction)
	rs.goOn(p, t)
	p.Forgotten, p.Adopted = t.Authorised, rs.money.books.Now()
	p.Left = p.Left || t.Leaving
	if t.Left && p.Standing != clearing.PeerParting {
		p.Standing, p.Since, p.Leaving = clearing.PeerParting, p.Adopted, true
	}
	if rs.peers.incarnation == p.Compared { // the site was restored, but did not notice the restore
		rs.peers.incarnation, rs.peers.since = max(rs.peers.incarnation+1, uint64(p.Adopted)), 0
	}
	p.Dispute = ""
	rs.peers.rise(p, t.Incarnation)
	return a, nil
}

// This site's debt to a peer changes by `amount`, which can be positive or negative. The method `correct` books this
// change as a transfer between the peer's account and the correction account, even if the debt is then above the peer's
// limit.
func (rs *restored) correct(p *peer, amount messages.Credits) {
	t := moneymsg.Transfer{Kind: moneymsg.Posted, Debit: PeerAccount(p.Name), Credit: CorrectionAccount, Amount: amount, Reason: "lost numbers of site " + p.Name}
	if amount < 0 {
		t.Debit, t.Credit, t.Amount = t.Credit, t.Debit, -amount
	}
	if amount != 0 {
		of, _ := rs.money.books.Brief(PeerAccount(p.Name))
		rs.terms.allot(PeerAccount(p.Name), "while lost numbers are booked", messages.MaxCredits)
		rs.money.must(t)
		rs.terms.allot(PeerAccount(p.Name), "as before lost numbers were booked", of.Credit)
	}
}

// goOn is for a bank that was restored. It replaces this bank's totals by the peer's totals. Payments whose outcome was
// lost are voided. Every other waiting instruction is sent again under a new number; the peer carries it out only once.
func (rs *restored) goOn(p *peer, t *clearing.Totals) {
	if t.Sent.Number > p.In.Total.Number {
		p.In, p.Known, p.Outcomes = bookFrom(t.Sent), t.Sent.Number, nil
	}
	if t.Received.Number <= p.Out.Total.Number {
		return
	}
	lost, waiting := t.Received.Number-p.Out.Total.Number, p.outbox
	p.Out, p.Counted, p.outbox, p.counts = bookFrom(t.Received), t.Received.Volume, nil, counts{}
	for i, it := range waiting {
		if uint64(i) >= lost || it.Instruction.Kind != clearing.InstructPay {
			p.send(it)
			continue
		}
		rs.money.must(moneymsg.Transfer{Kind: moneymsg.Void, Pending: it.Hold, Reason: clip("what became of it at site " + p.Name + " was lost")})
	}
}

// longest is the longest time for which an authorisation can be charged at its home bank.
const longest = clearing.MaxInterval + margin

// A bank that was restored from a backup may have lost authorisations that a peer still holds. remembered pays the
// charge of such an authorisation. The sum of all such charges is limited. When an operator makes this bank adopt the
// peer's totals, they include this limit.
func (is *issuer) remembered(p *peer, i *clearing.Instruction) (messages.Credits, *Rejected) {
	if is.money.books.Done(authorisationHold+i.ID) || p.Forgotten < i.Amount || is.money.books.Now() > p.Adopted.Add(longest) {
		return 0, reject(Recharged, messages.Ended, "authorisation %q is not pending: it was charged, given back or freed, or never made", clip(i.ID))
	}
	p.Forgotten -= i.Amount
	return is.money.move(maker, moneymsg.Transfer{Kind: moneymsg.Posted, Debit: CorrectionAccount, Credit: PeerAccount(p.Name), Amount: i.Amount,
		Reason: clip("authorised before a restoration, charged by site " + p.Name + ": " + i.Reason)})
}
