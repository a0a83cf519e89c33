package clearing

import (
	"slices"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	moneymsg "github.com/candor-grid/candor/messages/money"
)

const keptCycles = 64

// cycle has the amounts that this site and a peer settled in one cycle. Fields are exported for the image only.
type cycle struct {
	Number        uint64
	Paid          messages.Credits // amount from this site to the peer
	Received      messages.Credits // amount from the peer to this site
	Volume        messages.Credits // sum of payments and charges that the peer answered since the previous cycle
	PaidFinal     bool             // the peer answered this site's offer, or there was nothing to offer
	ReceivedFinal bool             // the peer made its offer and got this site's answer
}

// cycle returns the peer's entry for a cycle, and creates the entry if needed. If this site closed the cycle before it
// knew the peer, this site pays the peer nothing for this cycle.
func (p *peer) cycle(number, closed uint64) *cycle {
	i := len(p.Cycles)
	for i > 0 && p.Cycles[i-1].Number > number {
		i--
	}
	if i > 0 && p.Cycles[i-1].Number == number {
		return &p.Cycles[i-1]
	}
	p.Cycles = slices.Insert(p.Cycles, i, cycle{Number: number, PaidFinal: number <= closed})
	if drop := min(len(p.Cycles)-keptCycles, i); drop > 0 {
		p.Cycles = append([]cycle(nil), p.Cycles[drop:]...)
		i -= drop
	}
	return &p.Cycles[i]
}

// In each cycle, a site adds up what it owes each peer, and offers to settle these amounts. cycles closes the cycles of
// this site, and accepts the offers of peers.
type cycles struct {
	latest uint64 // number of the latest closed cycle
	peers  *peers
	money  *money
	terms  *terms
}

// close closes a cycle: it offers each peer the amount that this site owes it, even 0. If the cycle is already closed,
// nothing changes. In both cases, close returns this site's position in the cycle.
func (cs *cycles) close(r *clearing.CloseRequest) (*clearing.Position, *Rejected) {
	number := r.Cycle
	if number == 0 {
		number = cs.latest
	}
	if r.Correct {
		if err := cs.reopen(number); err != nil {
			return nil, err
		}
	}
	if number <= cs.latest {
		return cs.position(number)
	}
	if err := cs.closable(number); err != nil {
		return nil, err
	}
	for _, name := range cs.peers.order {
		cs.offer(cs.peers.byName[name], number)
	}
	cs.latest = number
	return cs.position(number)
}

// closable returns a refusal if the number of a cycle is too large. Closing a cycle also ends every cycle before it, so
// no number may be left out. The next number is one more than the latest number of this site and of its peers. The
// first cycle of a site may have any number.
func (cs *cycles) closable(number uint64) *Rejected {
	next := cs.latest + 1
	for _, p := range cs.peers.byName {
		if n := len(p.Cycles); n > 0 {
			next = max(next, p.Cycles[n-1].Number+1)
		}
	}
	if cs.latest == 0 || number <= next {
		return nil
	}
	return ordinary(messages.Errorf(messages.Invalid, "cycle %d is not the next: the latest cycle closed here is %d, so close cycle %d; if wrong cycles were closed, close the right cycle with --correct", number, cs.latest, cs.latest+1))
}

// reopen opens some cycles again that were closed by mistake: the cycle with this number and all later ones. Before
// this, each peer must have answered that it accepted nothing in these cycles.
func (cs *cycles) reopen(number uint64) *Rejected {
	if number == 0 || number >= cs.latest {
		return ordinary(messages.Errorf(messages.Invalid, "cycle %d: only a cycle before the latest, %d, can be closed with --correct in the place of later cycles", number, cs.latest))
	}
	for _, name := range cs.peers.order {
		if err := cs.peers.byName[name].reopenable(number, cs.latest); err != nil {
			return err
		}
	}
	for _, p := range cs.peers.byName {
		p.reopen(number)
	}
	cs.latest = number - 1
	return nil
}

// reopenable returns a refusal if the given cycles cannot be opened again. This is so if something was settled with the
// peer in one of them, or if the peer may still accept an offer to settle one of them.
func (p *peer) reopenable(number, latest uint64) *Rejected {
	if p.offered >= number {
		return ordinary(messages.Errorf(messages.Conflict, "site %q has not answered the offer of cycle %d, and may still accept it: try again after its answer", p.Name, p.offered))
	}
	for _, c := range p.Cycles {
		if c.Number >= number && c.Paid > 0 || c.Number == latest && c.Received > 0 {
			return ordinary(messages.Errorf(messages.Conflict, "cycle %d was settled with site %q and cannot be taken back", c.Number, p.Name))
		}
	}
	return nil
}

// reopen removes this site's offers in the cycle with the given number and in all later cycles.
func (p *peer) reopen(number uint64) {
	kept := p.Cycles[:0:0]
	for _, c := range p.Cycles {
		if c.Number >= number {
			p.Counted -= c.Volume
			c.PaidFinal, c.Volume = false, 0
		}
		if c.Number < number || c.ReceivedFinal && c.Received > 0 {
			kept = append(kept, c)
		}
	}
	p.Cycles = kept
}

// offer computes from this site's own book how much this site owes a peer. It sets this amount aside, and offers it to
// the peer.
func (cs *cycles) offer(p *peer, number uint64) {
	if p.Leaving || p.Standing == clearing.PeerParted {
		return // this site owes nothing
	}
	account := PeerAccount(p.Name)
	owed, room := cs.money.owed(account)
	amount, hold := max(0, min(owed, room, messages.MaxCredits)), ""
	cs.terms.bound()
	if p.offers >= maxOffers || cs.peers.whole(p) != nil {
		p.cycle(number, cs.latest) // the cycle stays open: the peer is suspended, or this site was restored
		return
	}
	if cs.peers.credible(p) != nil {
		amount = 0
	}
	if amount > 0 {
		hold = cs.money.mint()
		if _, err := cs.money.move(maker, moneymsg.Transfer{ID: hold, Kind: moneymsg.Hold, Debit: account, Member: account, Credit: SettlementAccount, Amount: amount,
			Reason: "settlement with site " + p.Name}); err != nil {
			amount, hold = 0, "" // the debt stays as it is
		}
	}
	c := p.cycle(number, cs.latest)
	c.Volume, p.Counted = p.Out.Total.Volume-p.Counted, p.Out.Total.Volume
	p.send(item{Instruction: clearing.Instruction{Kind: clearing.InstructSettle, Cycle: number, Amount: amount}, Hold: hold, Held: amount})
}

const maxOffers = 64

// acceptOffer accepts a peer's offer, up to the amount that the peer owes by this site's book, and up to the peer's
// share of the reserve. While the books of the two banks differ, it accepts nothing.
func (cs *cycles) acceptOffer(p *peer, i *clearing.Instruction) (messages.Credits, *Rejected) {
	if len(p.Cycles) == keptCycles && p.Cycles[0].Number > i.Cycle {
		return 0, reject(Stale, messages.Expired, "cycle %d is too long ago", i.Cycle)
	}
	if i.Cycle > cs.latest+keptCycles/2 {
		return 0, reject(Future, messages.Invalid, "cycle %d is too far ahead: the latest closed here is %d", i.Cycle, cs.latest)
	}
	c := p.cycle(i.Cycle, cs.latest)
	if c.ReceivedFinal {
		return 0, reject(Recharged, messages.Conflict, "cycle %d was settled before", i.Cycle)
	}
	owed, _ := cs.money.owed(PeerAccount(p.Name))
	account := cs.terms.settledAccount(p)
	_, reserve := cs.money.owed(account)
	amount := min(i.Amount, -owed, reserve)
	if cs.peers.credible(p) != nil {
		amount = 0
	}
	if amount > 0 {
		if _, err := cs.money.move(maker, moneymsg.Transfer{
			Kind: moneymsg.Posted, Debit: account, Credit: PeerAccount(p.Name), Amount: amount, Reason: "settlement with site " + p.Name,
		}); err != nil {
			return 0, err
		}
	}
	c.Received, c.ReceivedFinal = max(0, amount), true
	return c.Received, nil
}

// position returns what this site has paid to each peer for a cycle, and what it has received, by the answers that have
// arrived until now. It leaves out peers from which this site has parted.
func (cs *cycles) position(number uint64) (*clearing.Position, *Rejected) {
	if number == 0 && cs.latest == 0 {
		return nil, ordinary(messages.Errorf(messages.NotFound, "no cycle was closed here yet: close cycle 1 first"))
	}
	if number == 0 || number > cs.latest {
		return nil, ordinary(messages.Errorf(messages.NotFound, "cycle %d was not closed here: the latest is %d", number, cs.latest))
	}
	r := &clearing.Position{Site: cs.peers.site, Cycle: number, Legs: []clearing.Leg{}, Complete: true, At: cs.money.books.Now()}
	for _, name := range cs.peers.order {
		p := cs.peers.byName[name]
		for _, c := range p.Cycles {
			if c.Number != number || p.Standing == clearing.PeerParted {
				continue
			}
			final := c.PaidFinal && c.ReceivedFinal
			r.Legs = append(r.Legs, clearing.Leg{Peer: name, Paid: c.Paid, Received: c.Received, Volume: c.Volume, Final: final})
			r.Net += c.Received - c.Paid
			r.Complete = r.Complete && final
		}
	}
	return r, nil
}
