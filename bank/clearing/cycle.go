package clearing

import "github.com/candor-grid/candor/messages"

// keptCycles is how many cycles of each peer are remembered.
const keptCycles = 64

// cycle is what one cycle came to between this site and a peer. Its fields are
// exported for the image alone.
type cycle struct {
	Number        uint64
	Paid          messages.Credits // to the peer
	Received      messages.Credits // from the peer
	Volume        messages.Credits // of the payments and charges that the peer answered since the cycle before
	PaidFinal     bool             // the peer answered our offer, or there was none to make
	ReceivedFinal bool             // the peer made its offer, and it was answered
}

// cycle finds or makes the entry of a cycle. One that this site closed before
// it knew the peer has nothing to pay.
func (p *peer) cycle(number, closed uint64) *cycle {
	i := len(p.cycles)
	for i > 0 && p.cycles[i-1].Number > number {
		i--
	}
	if i > 0 && p.cycles[i-1].Number == number {
		return &p.cycles[i-1]
	}
	p.cycles = append(p.cycles, cycle{})
	copy(p.cycles[i+1:], p.cycles[i:])
	p.cycles[i] = cycle{Number: number, PaidFinal: number <= closed}
	if drop := min(len(p.cycles)-keptCycles, i); drop > 0 {
		p.cycles = append([]cycle(nil), p.cycles[drop:]...)
		i -= drop
	}
	return &p.cycles[i]
}

// close ends a cycle: each peer is offered what this site owes it, if only
// nothing, which tells the peer that nothing is to come. Asked again it shows
// how the cycle stands.
func (s *State) close(number uint64) (*messages.Position, *Rejected) {
	if number == 0 {
		number = s.cycle
	}
	if number <= s.cycle {
		return s.Position(number)
	}
	for _, name := range s.order {
		if err := s.peers[name].room(); err != nil {
			return nil, err
		}
	}
	for _, name := range s.order {
		s.offer(s.peers[name], number)
	}
	s.cycle = number
	return s.Position(number)
}

// offer sets aside what this site owes a peer by its own book, and offers it.
// The peer takes of it what is owed by its own.
func (s *State) offer(p *peer, number uint64) {
	account := PeerAccount(p.name)
	owed, room := s.owed(account)
	amount, hold := max(0, min(owed, room, messages.MaxCredits)), ""
	if amount > 0 {
		hold = s.mint()
		if _, err := s.move(maker, messages.Transfer{ID: hold, Kind: messages.Hold, Debit: account, Member: account, Credit: SettlementAccount, Amount: amount,
			Reason: "settlement with site " + p.name}); err != nil {
			amount, hold = 0, "" // no reserve yet: the debt stays for the next cycle
		}
	}
	c := p.cycle(number, s.cycle)
	c.Volume, p.counted = p.out.total.Volume-p.counted, p.out.total.Volume
	p.send(item{instruction: messages.Instruction{Kind: messages.InstructSettle, Cycle: number, Amount: amount}, hold: hold, held: amount})
}

// settled takes of a peer's offer what the peer owes by this book, as far as
// the reserve covers it. From then on the federation owes it.
func (s *State) settled(p *peer, i *messages.Instruction) (messages.Credits, *Rejected) {
	if len(p.cycles) == keptCycles && p.cycles[0].Number > i.Cycle {
		return 0, reject(Stale, messages.Expired, "cycle %d is too long ago", i.Cycle)
	}
	if i.Cycle > s.cycle+keptCycles/2 {
		return 0, reject(Future, messages.Invalid, "cycle %d is too far ahead: the latest closed here is %d", i.Cycle, s.cycle)
	}
	c := p.cycle(i.Cycle, s.cycle)
	if c.ReceivedFinal {
		return 0, reject(Recharged, messages.Conflict, "cycle %d was settled before", i.Cycle)
	}
	owed, _ := s.owed(PeerAccount(p.name))
	_, reserve := s.owed(SettlementAccount)
	amount := min(i.Amount, -owed, reserve)
	if amount > 0 {
		if _, err := s.move(maker, messages.Transfer{
			Kind: messages.Posted, Debit: SettlementAccount, Credit: PeerAccount(p.name), Amount: amount, Reason: "settlement with site " + p.name,
		}); err != nil {
			return 0, err
		}
	}
	c.Received, c.ReceivedFinal = max(0, amount), true
	return c.Received, nil
}

// Position is how this site comes out of a cycle so far.
func (s *State) Position(number uint64) (*messages.Position, *Rejected) {
	if number == 0 && s.cycle == 0 {
		return nil, ordinary(messages.Errorf(messages.NotFound, "no cycle was closed here yet: close the first one, 1"))
	}
	if number == 0 || number > s.cycle {
		return nil, ordinary(messages.Errorf(messages.NotFound, "cycle %d was not closed here: the latest is %d", number, s.cycle))
	}
	r := &messages.Position{Site: s.site, Cycle: number, Legs: []messages.Leg{}, Complete: true, At: s.books.Now()}
	for _, name := range s.order {
		p := s.peers[name]
		for _, c := range p.cycles {
			if c.Number != number {
				continue
			}
			final := c.PaidFinal && c.ReceivedFinal
			r.Legs = append(r.Legs, messages.Leg{Peer: name, Paid: c.Paid, Received: c.Received, Volume: c.Volume, Final: final})
			r.Net += c.Received - c.Paid
			r.Complete = r.Complete && final
		}
	}
	return r, nil
}
