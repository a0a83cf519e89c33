package clearing

import "github.com/candor-grid/candor/messages"

// learn takes what instructions of this site came to. Outcomes count once, in
// the order of their numbers, and only if the peer's running total is what
// this book comes to with them.
func (s *State) learn(m *messages.Receipt) *Rejected {
	p := s.peers[m.From]
	end := m.First + uint64(len(m.Outcomes)) // one past the last
	switch next := p.out.total.Number + 1; {
	case end <= next:
		return s.repeats(p, m, end-1)
	case m.First > next:
		return reject(Gap, messages.Unavailable, "the outcomes of numbers %d to %d are missing", next, m.First-1)
	case end-1 > p.last():
		return p.disputes(reject(Lost, messages.Conflict, "bank %q has outcomes up to number %d, and this bank's instructions end at %d: this bank lost what it had sent; restore it from a replica or a snapshot that has it",
			p.name, end-1, p.last()))
	}
	outcomes := m.Outcomes[p.out.total.Number+1-m.First:]
	if err := p.tallies(outcomes, m.Total); err != nil {
		return err
	}
	s.hear(p, m.At)
	for i := range outcomes {
		s.resolve(p, &p.outbox[i], &outcomes[i])
		p.out.enter(&p.outbox[i].instruction, &outcomes[i])
	}
	p.answered(len(outcomes))
	return nil
}

// repeats is about a receipt of nothing new, the last number of which is
// given: one that does not agree with this book is refused as such.
func (s *State) repeats(p *peer, m *messages.Receipt, last uint64) *Rejected {
	ours, known := p.out.at(last)
	if known && !same(ours, m.Total) {
		return p.disputes(reject(Totals, messages.Conflict, "bank %q says that our instructions come to %v owed by number %d, and this book to %v: compare the lines of both books",
			p.name, m.Total.Owed, last, ours.Owed))
	}
	s.hear(p, m.At)
	if len(m.Outcomes) == 0 {
		return nil
	}
	return reject(Repeated, messages.Expired, "the outcomes up to number %d are known", last)
}

// tallies compares the running total that outcomes lead to with the peer's, and
// refuses what cannot be an outcome.
func (p *peer) tallies(outcomes []messages.TransferResult, theirs messages.RunningTotal) *Rejected {
	ours := p.out.total
	for i := range outcomes {
		o, asked := &outcomes[i], &p.outbox[i].instruction
		if !plausible(asked, o) {
			return p.disputes(reject(Amount, messages.Conflict, "bank %q says it moved %v for number %d, which is of %v", p.name, o.Amount, ours.Number+1, asked.Amount))
		}
		ours = after(ours, asked, o)
	}
	if !same(ours, theirs) {
		return p.disputes(reject(Totals, messages.Conflict, "bank %q says that our instructions come to %v owed by number %d, and this book comes to %v: compare the lines of both books",
			p.name, theirs.Owed, theirs.Number, ours.Owed))
	}
	return nil
}

// plausible reports whether an outcome can be one of an instruction: all or
// nothing, but for a settlement, of which part may be taken.
func plausible(i *messages.Instruction, o *messages.TransferResult) bool {
	switch {
	case o.Error != nil:
		return o.Amount == 0 && len(o.Error.Op) == 0 && len(o.Error.Message) <= maxMessage
	case i.Kind == messages.InstructSettle:
		return o.Amount >= 0 && o.Amount <= i.Amount
	case i.Kind == messages.InstructRevoke:
		return o.Amount == 0
	}
	return o.Amount == i.Amount
}

// resolve turns the hold of an instruction into what its outcome says: a
// transfer if it was carried out, nothing if it was refused. There is no third
// way to resolve it.
func (s *State) resolve(p *peer, it *item, o *messages.TransferResult) {
	i := &it.instruction
	switch {
	case i.Kind == messages.InstructRevoke:
		s.giveBack(p, i, o)
	case it.hold == "":
	case o.Error != nil:
		s.must(messages.Transfer{Kind: messages.Void, Pending: it.hold, Reason: clip("refused by site " + p.name + ": " + o.Error.Message)})
	case o.Amount == 0:
		s.must(messages.Transfer{Kind: messages.Void, Pending: it.hold, Reason: "nothing was taken by site " + p.name})
	default:
		s.must(messages.Transfer{Kind: messages.Post, Pending: it.hold, Credit: it.payee, Amount: o.Amount, Job: i.Job,
			Reason: clip(i.Kind.String() + " confirmed by site " + p.name + ": " + i.Reason)})
	}
	if i.Kind == messages.InstructSettle {
		c := p.cycle(i.Cycle, s.cycle)
		c.Paid, c.PaidFinal = o.Amount, true
	}
}

// giveBack frees the credits of an authorisation that its peer gave up.
func (s *State) giveBack(p *peer, i *messages.Instruction, o *messages.TransferResult) {
	a := s.issued.find(i.ID)
	if a == nil {
		return // it was released or freed meanwhile
	}
	if o.Error != nil {
		a.revoking = false
		return
	}
	s.must(messages.Transfer{Kind: messages.Void, Pending: authorisationHold + a.ID, Reason: "given up by site " + p.name})
	s.issued.drop(i.ID)
}

// Outgoing is what a peer has to be sent again and again until it has answered:
// its first unanswered instructions, under the numbers that they have for
// ever. With none it tells the peer which outcomes are known.
func (s *State) Outgoing(name messages.Name, at messages.Time) (messages.Instructions, bool) {
	p := s.peers[name]
	if p == nil {
		return messages.Instructions{}, false
	}
	m := messages.Instructions{From: s.site, To: name, First: p.out.total.Number + 1, List: []messages.Instruction{}, Known: p.out.total, At: at}
	for i := range p.outbox[:min(len(p.outbox), messages.MaxInstructions)] {
		m.List = append(m.List, p.outbox[i].instruction)
	}
	return m, true
}
