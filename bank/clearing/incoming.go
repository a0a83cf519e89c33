package clearing

import (
	"cmp"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	moneymsg "github.com/candor-grid/candor/messages/money"
)

type incoming struct {
	refused  [Reasons]uint64 // numbers of all refusals of the clearing, by reason
	peers    *peers
	money    *money
	issuer   *issuer
	acceptor *acceptor
	cycles   *cycles
}

// receive carries out a peer's new instructions in order, and answers repeated ones with their first outcomes. It
// answers or refuses a message as a whole.
func (in *incoming) receive(signed *clearing.SignedInstructions) (*clearing.Receipt, *Rejected) {
	m := &signed.Instructions
	p := in.peers.byName[m.From]
	if err := in.admit(p, m); err != nil {
		return nil, err
	}
	first := max(m.First, p.Known+1)
	for n := max(first, p.In.Total.Number+1); n < end(m); n++ {
		i := &m.List[n-m.First]
		o := in.obey(p, i)
		p.In.enter(i, &o)
		p.Outcomes = append(p.Outcomes, o)
	}
	return in.receipt(p, first, end(m)), nil
}

// admit stores two facts from a peer's message: which of this bank's instructions the peer knows, and the time of the
// peer's clock. Or it refuses the whole message. It changes only the state of the peer.
func (in *incoming) admit(p *peer, m *clearing.Instructions) *Rejected {
	news := end(m) > p.In.Total.Number+1 || m.Known.Number > p.Known
	if p.Standing == clearing.PeerParted && news {
		return parted(p)
	}
	if err := p.agrees(m); err != nil {
		return err
	}
	if err := p.follows(m); err != nil {
		return err
	}
	if err := p.renewed(m); err != nil {
		return err
	}
	p.forget(m.Known.Number)
	in.peers.hear(p, m.At, news)
	return nil
}

// Answered is called with instructions that have passed all checks. If they would change nothing, because they are
// repeated or contain nothing new, it returns the receipt or refusal for them. Otherwise it returns false, and Apply
// must carry out the message.
func (s *State) Answered(signed *clearing.SignedInstructions) (*clearing.Receipt, *Rejected, bool) {
	m := &signed.Instructions
	p := s.peers.byName[m.From]
	if p == nil {
		return nil, nil, false
	}
	is := *p // copied, because only Apply may change the peer
	err := s.incoming.admit(&is, m)
	switch {
	case is.known() != p.known() || s.turns(&Command{Instructions: signed}):
		return nil, nil, false
	case err != nil:
		return nil, err, true
	case end(m) > p.In.Total.Number+1:
		return nil, nil, false
	}
	return s.incoming.receipt(p, max(m.First, p.Known+1), end(m)), nil, true
}

// Idle reports which new instructions of a checked message are not worth a place in the log. These are payments of less
// than `least`, and ends of authorisations that are not open.
func (s *State) Idle(m *clearing.Instructions, least messages.Credits) (idle []bool) {
	p := s.peers.byName[m.From]
	for n := max(m.First, p.In.Total.Number+1); n < end(m); n++ {
		i := &m.List[n-m.First]
		is := false
		switch i.Kind {
		case clearing.InstructPay:
			is = i.Amount < least
		case clearing.InstructCharge:
			a := s.issuer.issued.find(i.ID)
			is = a == nil && (i.Amount == 0 || i.Amount > p.Forgotten) || a != nil && a.Peer != p.Name
		case clearing.InstructRevoke:
			is = s.acceptor.accepted.find(acceptedKey(p.Name, i.ID)) == nil
		}
		idle = append(idle, is)
	}
	return idle
}

func end(m *clearing.Instructions) uint64 { return m.First + uint64(len(m.List)) }

// agrees returns a refusal in two cases: the sender has outcomes that this book lacks, or the sender's running total
// differs from this book's total after the same number of instructions.
func (p *peer) agrees(m *clearing.Instructions) *Rejected {
	if m.Known.Number > p.In.Total.Number {
		return p.disputes(reject(Lost, messages.Conflict, "bank %q has our outcome of number %d, and this book ends at %d: this bank lost what it had answered; restore it from a replica or a snapshot that has it",
			p.Name, m.Known.Number, p.In.Total.Number))
	}
	ours, known := p.In.at(m.Known.Number)
	if known && !same(ours, m.Known) {
		return p.disputes(reject(Totals, messages.Conflict, "bank %q says that its instructions up to number %[3]d sum to a debt of %[2]v, but this book has %[4]v: compare the lines of both books",
			p.Name, m.Known.Owed, m.Known.Number, ours.Owed))
	}
	return nil
}

// follows returns why a message with numbered instructions is refused, or nil. It refuses a message if numbers before
// its first number are missing, if the sender already has the outcomes of all its instructions, if an instruction
// differs from an earlier one with the same number, or if too many instructions would be without an answer.
func (p *peer) follows(m *clearing.Instructions) *Rejected {
	end := end(m)
	known := max(p.Known, m.Known.Number)
	switch {
	case m.First > p.In.Total.Number+1:
		return reject(Gap, messages.Unavailable, "numbers %d to %d are missing: send them first", p.In.Total.Number+1, m.First-1)
	case len(m.List) > 0 && end <= known+1:
		return reject(Repeated, messages.Expired, "numbers %d to %d were answered, and their sender has the outcomes", m.First, end-1)
	case end > known+1+MaxOutstanding:
		return reject(Flood, messages.Exhausted, "number %d is %d after the last one whose outcome is known: at most %d may be outstanding", end-1, end-1-known, MaxOutstanding)
	}
	// Compare also the numbers that were answered before: the sender may have been restored to an older state.
	for n := max(m.First, p.In.oldest()); n < end && n <= p.In.Total.Number; n++ {
		if !p.sameNumber(n, &m.List[n-m.First]) {
			return p.disputes(reject(Rewritten, messages.Conflict, "number %d had other content before: keep both as evidence", n))
		}
	}
	return nil
}

// sameNumber reports whether instruction i equals the earlier instruction with the number n, which the peer may have
// sent again. If this bank has forgotten the outcome of the earlier instruction, sameNumber compares i with that
// instruction's line in the book. This line has everything except the text of a refusal.
func (p *peer) sameNumber(n uint64, i *clearing.Instruction) bool {
	before, _ := p.In.at(n - 1)
	is, _ := p.In.at(n)
	if n > p.Known {
		return same(After(before, i, &p.Outcomes[n-p.Known-1]), is)
	}
	l := &p.In.Lines[n-p.In.oldest()].Shown
	if l.Refused {
		return l.Kind == i.Kind && l.Asked == i.Amount
	}
	return same(After(before, i, &moneymsg.TransferResult{Amount: l.Moved}), is)
}

// forget removes the outcomes up to the number `known`, because the sender has confirmed them.
func (p *peer) forget(known uint64) {
	if known > p.Known {
		p.Outcomes = append([]moneymsg.TransferResult(nil), p.Outcomes[known-p.Known:]...)
		p.Known = known
	}
}

// receipt returns the receipt with the outcomes of the numbers in [first, end).
func (in *incoming) receipt(p *peer, first, end uint64) *clearing.Receipt {
	total, _ := p.In.at(max(end, first) - 1)
	r := &clearing.Receipt{From: in.peers.site, To: p.Name, First: first, Outcomes: []moneymsg.TransferResult{}, Total: total, At: in.money.books.Now()}
	for n := first; n < end; n++ {
		r.Outcomes = append(r.Outcomes, p.Outcomes[n-p.Known-1])
	}
	return r
}

// obey carries out one instruction. The outcome is final, even if it is a refusal.
func (in *incoming) obey(p *peer, i *clearing.Instruction) moneymsg.TransferResult {
	moved, err := in.obeyed(p, i)
	if err != nil {
		in.refused[err.Reason]++
		return err.final()
	}
	return moneymsg.TransferResult{Amount: moved}
}

func (in *incoming) obeyed(p *peer, i *clearing.Instruction) (messages.Credits, *Rejected) {
	if err := malformed(i.Validate()); err != nil {
		return 0, err
	}
	if !p.In.holds(i.Amount) {
		return 0, reject(Amount, messages.TooLarge, "the payments and charges of site %q exceed what can be counted", p.Name)
	}
	switch i.Kind {
	case clearing.InstructPay:
		return in.payOut(p, i)
	case clearing.InstructCharge:
		return in.issuer.honour(p, i)
	case clearing.InstructSettle:
		return in.cycles.acceptOffer(p, i)
	case clearing.InstructPart:
		p.Left = true
		return 0, nil
	}
	return 0, in.acceptor.release(p, i)
}

// payOut pays an account of this site. The peer then owes the amount.
func (in *incoming) payOut(p *peer, i *clearing.Instruction) (messages.Credits, *Rejected) {
	if err := cmp.Or(users(i.Account), in.peers.trades(p), in.peers.credible(p), in.peers.covers(p, i.Amount)); err != nil {
		return 0, err
	}
	if _, err := in.money.books.Brief(i.Account); err != nil {
		return 0, ordinary(err)
	}
	return in.money.move(maker, moneymsg.Transfer{
		Kind: moneymsg.Posted, Debit: PeerAccount(p.Name), Credit: i.Account, Amount: i.Amount, Reason: clip("from site " + p.Name + ": " + i.Reason),
	})
}
