package clearing

import "github.com/candor-grid/candor/messages"

// receive carries out the instructions of a peer that are new, in order, and
// answers those that were carried out before with their first outcomes. A
// message is refused as a whole, or answered as a whole.
func (s *State) receive(m *messages.Instructions) (*messages.Receipt, *Rejected) {
	p := s.peers[m.From]
	if err := p.agrees(m); err != nil {
		return nil, err
	}
	if err := p.follows(m); err != nil {
		return nil, err
	}
	p.forget(m.Known.Number)
	s.hear(p, m.At)
	first := max(m.First, p.known+1)
	for n := max(first, p.in.total.Number+1); n < m.First+uint64(len(m.List)); n++ {
		i := &m.List[n-m.First]
		o := s.obey(p, i)
		p.in.enter(i, &o)
		p.outcomes = append(p.outcomes, o)
	}
	return s.receipt(p, first, m.First+uint64(len(m.List))), nil
}

// Answered looks up the receipt of instructions that were screened and carried
// out before, all of them; it changes nothing, so that a message that comes
// again costs no place in the log. False: Apply must have it.
func (s *State) Answered(m *messages.Instructions) (*messages.Receipt, bool) {
	if s.peers[m.From] == nil {
		return nil, false
	}
	p := *s.peers[m.From] // a dispute is for Apply to note
	end := m.First + uint64(len(m.List))
	if len(m.List) == 0 || end > p.in.total.Number+1 || m.Known.Number > p.known || p.agrees(m) != nil || p.follows(m) != nil {
		return nil, false
	}
	return s.receipt(&p, max(m.First, p.known+1), end), true
}

// agrees compares the sender's running total with this book, at the number
// that it is of.
func (p *peer) agrees(m *messages.Instructions) *Rejected {
	if m.Known.Number > p.in.total.Number {
		return p.disputes(reject(Lost, messages.Conflict, "bank %q has our outcome of number %d, and this book ends at %d: this bank lost what it had answered; restore it from a replica or a snapshot that has it",
			p.name, m.Known.Number, p.in.total.Number))
	}
	ours, known := p.in.at(m.Known.Number)
	if known && !same(ours, m.Known) {
		return p.disputes(reject(Totals, messages.Conflict, "bank %q says that its instructions come to %v owed by number %d, and this book to %v: compare the lines of both books",
			p.name, m.Known.Owed, m.Known.Number, ours.Owed))
	}
	return nil
}

// follows refuses a message that leaves numbers out, repeats only numbers
// whose outcomes the sender has, gives a known number other content, or makes
// more outstanding than may be.
func (p *peer) follows(m *messages.Instructions) *Rejected {
	end := m.First + uint64(len(m.List)) // one past the last
	known := max(p.known, m.Known.Number)
	switch {
	case m.First > p.in.total.Number+1:
		return reject(Gap, messages.Unavailable, "numbers %d to %d are missing: send them first", p.in.total.Number+1, m.First-1)
	case len(m.List) > 0 && end <= known+1:
		return reject(Repeated, messages.Expired, "numbers %d to %d were answered, and their sender has the outcomes", m.First, end-1)
	case end > known+1+MaxOutstanding:
		return reject(Flood, messages.Exhausted, "number %d is %d after the last one whose outcome is known: at most %d may be outstanding", end-1, end-1-known, MaxOutstanding)
	}
	for n := max(m.First, p.known+1); n < end && n <= p.in.total.Number; n++ {
		before, _ := p.in.at(n - 1)
		is, _ := p.in.at(n)
		if !same(after(before, &m.List[n-m.First], &p.outcomes[n-p.known-1]), is) {
			return p.disputes(reject(Rewritten, messages.Conflict, "number %d had other content before: keep both as evidence", n))
		}
	}
	return nil
}

// forget drops the outcomes that the sender has.
func (p *peer) forget(known uint64) {
	if known > p.known {
		p.outcomes = append([]messages.TransferResult(nil), p.outcomes[known-p.known:]...)
		p.known = known
	}
}

// receipt answers the numbers from first to before end.
func (s *State) receipt(p *peer, first, end uint64) *messages.Receipt {
	total, _ := p.in.at(max(end, first) - 1)
	r := &messages.Receipt{From: s.site, To: p.name, First: first, Outcomes: []messages.TransferResult{}, Total: total, At: s.books.Now()}
	for n := first; n < end; n++ {
		r.Outcomes = append(r.Outcomes, p.outcomes[n-p.known-1])
	}
	return r
}

// obey carries out one instruction. Its outcome is final, a refusal too.
func (s *State) obey(p *peer, i *messages.Instruction) messages.TransferResult {
	moved, err := s.obeyed(p, i)
	if err != nil {
		s.refused[err.Reason]++
		if s.rules != firstRules {
			return err.settled()
		}
		return err.outcome()
	}
	return messages.TransferResult{Amount: moved}
}

func (s *State) obeyed(p *peer, i *messages.Instruction) (messages.Credits, *Rejected) {
	if err := malformed(i.Validate()); err != nil {
		return 0, err
	}
	if !p.in.holds(i.Amount) {
		return 0, reject(Amount, messages.TooLarge, "the payments and charges of site %q exceed what can be counted", p.name)
	}
	switch i.Kind {
	case messages.InstructPay:
		return s.payOut(p, i)
	case messages.InstructCharge:
		return s.charged(p, i)
	case messages.InstructSettle:
		return s.settled(p, i)
	}
	return 0, s.giveUp(p, i)
}

// payOut pays an account of this site: the peer owes it.
func (s *State) payOut(p *peer, i *messages.Instruction) (messages.Credits, *Rejected) {
	if err := users(i.Account); err != nil {
		return 0, err
	}
	if err := s.credible(p); err != nil {
		return 0, err
	}
	if err := s.covers(p, i.Amount); err != nil {
		return 0, err
	}
	if _, err := s.books.Account(i.Account); err != nil && s.rules != firstRules {
		return 0, ordinary(err)
	}
	return s.move(maker, messages.Transfer{
		Kind: messages.Posted, Debit: PeerAccount(p.name), Credit: i.Account, Amount: i.Amount, Reason: clip("from site " + p.name + ": " + i.Reason),
	})
}

// charged takes what the peer charged from an authorisation of this site, and
// frees the rest; this site owes it.
func (s *State) charged(p *peer, i *messages.Instruction) (messages.Credits, *Rejected) {
	a := s.issued.find(i.ID)
	if a == nil && i.Amount == 0 {
		return 0, nil // released or not: nothing of it is set aside any more
	}
	if a == nil {
		return 0, reject(Recharged, messages.Ended, "authorisation %q is not pending: it was charged, given back or freed, or never made", clip(i.ID))
	}
	if a.Peer != p.name {
		return 0, reject(Poached, messages.PermissionDenied, "authorisation %q is not for site %q", clip(i.ID), p.name)
	}
	if i.Amount > a.Amount {
		return 0, reject(Amount, messages.Insufficient, "authorisation %q is of %v credits: %v cannot be charged", clip(i.ID), a.Amount, i.Amount)
	}
	t := messages.Transfer{Kind: messages.Post, Pending: authorisationHold + a.ID, Credit: PeerAccount(p.name), Amount: i.Amount, Job: a.job,
		Reason: clip("charged by site " + p.name + ": " + i.Reason)}
	if i.Amount == 0 {
		t.Kind, t.Credit = messages.Void, ""
	}
	if _, err := s.move(maker, t); err != nil {
		return 0, err
	}
	s.issued.drop(i.ID)
	return i.Amount, nil
}

// giveUp releases an authorisation of the peer that was not charged, and
// remembers to accept it no more.
func (s *State) giveUp(p *peer, i *messages.Instruction) *Rejected {
	key := acceptedKey(p.name, i.ID)
	a := s.accepted.find(key)
	if a != nil && a.closed == charged {
		return ordinary(messages.Errorf(messages.Ended, "authorisation %q was charged or released before", clip(i.ID)))
	}
	if a != nil && a.hold != "" && a.firm {
		return ordinary(messages.Errorf(messages.Conflict, "authorisation %q pays for %q, which is under way: it is charged, or given back, when that has ended", clip(i.ID), clip(a.purpose)))
	}
	if a != nil && a.hold != "" {
		s.must(messages.Transfer{Kind: messages.Void, Pending: a.hold, Reason: "given up at the request of site " + p.name})
		a.hold, a.closed = "", revoked
		p.open--
		return nil
	}
	if a != nil || i.Expires <= s.books.Now() {
		return nil
	}
	if i.Expires > s.books.Now().Add(2*messages.MaxInterval) {
		return reject(Future, messages.Invalid, "authorisation %q would end at %v, later than any may", clip(i.ID), i.Expires)
	}
	if err := s.remembers(p, ""); err != nil {
		return err
	}
	s.remember(p, "", i.Expires, accepted{Authorisation: messages.Authorisation{Issuer: p.name, ID: i.ID}, closed: revoked})
	return nil
}
