package clearing

import (
	"cmp"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	moneymsg "github.com/candor-grid/candor/messages/money"
)

// partings ends this site's relation to a peer, either with the peer's agreement or without it. It also suspends silent
// peers.
type partings struct {
	peers    *peers
	money    *money
	terms    *terms
	issuer   *issuer
	acceptor *acceptor
}

// trades returns a refusal of new business with a peer that is suspended, is parting, or has parted from this site.
func (ps *peers) trades(p *peer) *Rejected {
	if err := ps.whole(p); err != nil {
		return err
	}
	switch {
	case p.Standing == clearing.PeerSuspended:
		return ordinary(messages.Errorf(messages.Unavailable, "site %q is suspended since %v, because its bank does not answer: try again when the bank answers", p.Name, p.Since))
	case p.Standing == clearing.PeerParted:
		return parted(p)
	case p.Standing == clearing.PeerParting || p.Left:
		return reject(Parted, messages.PermissionDenied, "site %q and %q are parting: nothing new is begun with it", p.Name, ps.site)
	}
	return nil
}

func parted(p *peer) *Rejected {
	return reject(Parted, messages.PermissionDenied, "site %q was parted from at %v: an operator can make it a peer again", p.Name, p.Since)
}

// suspend stops new business with a peer until the peer sends a message again.
func (pt *partings) suspend(name messages.Name) *Rejected {
	p, err := pt.peers.find(name)
	if err == nil && p.Standing == clearing.PeerOpen {
		p.Standing, p.Since = clearing.PeerSuspended, pt.money.books.Now()
	}
	return err
}

// part begins a parting on which both sites agree, or carries out a one-sided parting. If the parting already began,
// part returns its state.
func (pt *partings) part(by messages.Name, r *clearing.PartRequest) (*clearing.PartReply, *Rejected) {
	p, err := pt.peers.find(r.Peer)
	if err != nil {
		return nil, err
	}
	reply := &clearing.PartReply{Peer: clearing.PeerReply{Peer: p.Name}}
	switch {
	case p.Standing == clearing.PeerParted:
	case r.Loss != nil:
		err = pt.abandon(p, cmp.Or(r.Account, by), r, reply)
	case p.Standing != clearing.PeerParting:
		p.Standing, p.Since = clearing.PeerParting, pt.money.books.Now()
		fallthrough
	default:
		reply.Authorised, reply.Visits = pt.authorised(p), p.open
	}
	return reply, err
}

// authorised returns how many authorisations a peer may still charge.
func (pt *partings) authorised(p *peer) int { return len(pt.issuer.issued.with[p.Name]) }

// Some peers are parting by agreement. When nothing is left between the two sites, each site tells the other that it
// leaves. proceed sends this message for each such peer. When both sites have told each other, proceed ends the
// parting.
func (pt *partings) proceed() {
	for p := pt.next(); p != nil; p = pt.next() {
		if p.Leaving {
			pt.end(p)
			continue
		}
		p.Leaving = true
		p.send(item{Instruction: clearing.Instruction{Kind: clearing.InstructPart}})
	}
}

// next returns a peer that is parting from the site and has nothing left to settle, so that the parting can go on. It
// returns nil if there is none.
func (pt *partings) next() *peer {
	for _, name := range pt.peers.order {
		p := pt.peers.byName[name]
		if p.Standing == clearing.PeerParting && len(p.outbox) == 0 && (p.Leaving && p.Left || !p.Leaving && pt.even(p)) {
			return p
		}
	}
	return nil
}

// The method `even` reports whether nothing is owed, reserved or authorised between this site and a peer.
func (pt *partings) even(p *peer) bool {
	a, _ := pt.money.books.Brief(PeerAccount(p.Name))
	settled, _ := pt.money.books.Brief(SettledAccount(p.Name)) // 0 if the account does not exist
	return a.Balance == 0 && a.Reserved == 0 && settled.Balance == 0 && p.open == 0 && pt.authorised(p) == 0
}

// end marks a peer as parted, and sets the limits of its accounts to 0.
func (pt *partings) end(p *peer) {
	p.Standing, p.Since, p.Share, p.Stated, p.Dispute = clearing.PeerParted, pt.money.books.Now(), 0, true, ""
	pt.terms.allot(PeerAccount(p.Name), "the bank of site "+p.Name, 0)
	pt.terms.divide()
}

// owes returns the amount that a peer owes by trade and settlements. A negative amount is owed by this site.
func (pt *partings) owes(p *peer) messages.Credits {
	a, _ := pt.money.books.Brief(PeerAccount(p.Name))
	settled, _ := pt.money.books.Brief(SettledAccount(p.Name))
	return -a.Balance - settled.Balance
}

// abandon ends the relation with a peer that does not agree to part, or that no longer exists. It writes off the peer's
// debt, never trusts its keys again, and frees the credits reserved for it. This site's own debt stays on the peer's
// SettledAccount.
func (pt *partings) abandon(p *peer, account messages.Name, r *clearing.PartRequest, reply *clearing.PartReply) *Rejected {
	loss, settled := max(0, pt.owes(p)), pt.terms.settledAccount(p)
	switch {
	case *r.Loss != loss:
		return ordinary(messages.Errorf(messages.Conflict, "loss: is stated as %s, and site %q owes %v: state this amount", r.Loss.Words(), p.Name, loss))
	case users(account) != nil:
		return users(account)
	}
	if a, _ := pt.money.books.Brief(account); a.Available < loss { // an unknown account has nothing available
		return ordinary(messages.Errorf(messages.Insufficient, "account %q has %s free, and the loss is %v: grant credits to the account first, or name another account", account, a.Available.Words(), loss))
	}
	reason := clip("parted from site " + p.Name + ": " + r.Reason)
	if loss > 0 {
		if _, err := pt.money.move(maker, moneymsg.Transfer{Kind: moneymsg.Posted, Debit: account, Credit: settled, Amount: loss, Reason: reason}); err != nil {
			return err
		}
	}
	pt.giveBack(p, reply, reason)
	switch b, _ := pt.money.owed(PeerAccount(p.Name)); {
	case b > 0:
		pt.money.must(moneymsg.Transfer{Kind: moneymsg.Posted, Debit: PeerAccount(p.Name), Credit: settled, Amount: b, Reason: reason})
	case b < 0:
		pt.money.must(moneymsg.Transfer{Kind: moneymsg.Posted, Debit: settled, Credit: PeerAccount(p.Name), Amount: -b, Reason: reason})
	}
	p.Lost += loss
	p.trust(nil)
	pt.end(p)
	return nil
}

// giveBack frees all credits reserved between a peer and this site.
func (pt *partings) giveBack(p *peer, reply *clearing.PartReply, reason string) {
	void := func(hold string) {
		if hold != "" {
			pt.money.must(moneymsg.Transfer{Kind: moneymsg.Void, Pending: hold, Reason: reason})
		}
	}
	for i := range p.outbox {
		switch it := &p.outbox[i]; it.Instruction.Kind {
		case clearing.InstructPay:
			reply.Returned += it.Held
		case clearing.InstructCharge:
			reply.Forgone += it.Instruction.Amount
		}
		void(p.outbox[i].Hold)
	}
	p.outbox, p.counts = nil, counts{}
	for _, a := range pt.issuer.issued.between(p.Name) {
		void(authorisationHold + a.ID)
		pt.issuer.issued.drop(a.ID)
		reply.Returned += a.Amount
	}
	for _, a := range pt.acceptor.accepted.between(p.Name) {
		void(a.Hold)
		pt.acceptor.accepted.drop(acceptedKey(a.Issuer, a.ID))
	}
	p.remembered, p.open = 0, 0
}

// rejoin makes a parted site a peer again. If both sites agreed to part, the old books continue. If one site parted
// alone, new books begin. In this case the peer's keys must be new, so that old signatures do not count.
func (p *peer) rejoin(site messages.Name, now messages.Time) {
	p.Standing, p.Since, p.Leaving, p.Left, p.Stated = clearing.PeerOpen, now, false, false, false
	if len(p.Keys) > 0 {
		return
	}
	p.Out, p.In, p.Began = newBook(site, p.Name), newBook(p.Name, site), now
	p.Outcomes, p.Known, p.Cycles, p.Counted, p.Confirmed, p.Forgotten = nil, 0, nil, 0, nil, 0
	p.Incarnation = 0 // a peer that was rebuilt counts its incarnations (restores) from the start again
}
