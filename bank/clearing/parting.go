package clearing

import (
	"cmp"

	"github.com/candor-grid/candor/messages"
)

// partings end what is between this site and a peer, by agreement or alone, and
// suspend peers that are silent.
type partings struct {
	peers    *peers
	money    *money
	terms    *terms
	issuer   *issuer
	acceptor *acceptor
}

// trades refuses whatever would begin something new with a peer that is silent, or
// that this site parts from, or that parts from this site.
func (ps *peers) trades(p *peer) *Rejected {
	if err := ps.whole(p); err != nil {
		return err
	}
	switch {
	case p.Standing == messages.PeerSuspended:
		return ordinary(messages.Errorf(messages.Unavailable, "site %q is suspended since %v, because its bank does not answer: try again when it does", p.Name, p.Since))
	case p.Standing == messages.PeerParted:
		return parted(p)
	case p.Standing == messages.PeerParting || p.Left:
		return reject(Parted, messages.PermissionDenied, "site %q and %q are parting: nothing new is begun with it", p.Name, ps.site)
	}
	return nil
}

// parted refuses what comes from a peer that was parted from, or is for it.
func parted(p *peer) *Rejected {
	return reject(Parted, messages.PermissionDenied, "site %q was parted from at %v: an operator can make it a peer again", p.Name, p.Since)
}

// suspend begins nothing new with a peer until it is heard of again.
func (pt *partings) suspend(name messages.Name) *Rejected {
	p, err := pt.peers.find(name)
	if err == nil && p.Standing == messages.PeerOpen {
		p.Standing, p.Since = messages.PeerSuspended, pt.money.books.Now()
	}
	return err
}

// part begins an agreed parting, or carries out a one-sided one. Asked again it says
// how the parting stands.
func (pt *partings) part(by messages.Name, r *messages.PartRequest) (*messages.PartReply, *Rejected) {
	p, err := pt.peers.find(r.Peer)
	if err != nil {
		return nil, err
	}
	reply := &messages.PartReply{Peer: messages.PeerReply{Peer: p.Name}}
	switch {
	case p.Standing == messages.PeerParted:
	case r.Loss != nil:
		err = pt.abandon(p, cmp.Or(r.Account, by), r, reply)
	case p.Standing != messages.PeerParting:
		p.Standing, p.Since = messages.PeerParting, pt.money.books.Now()
		fallthrough
	default:
		reply.Authorised, reply.Visits = pt.authorised(p), p.open
	}
	return reply, err
}

// authorised counts the authorisations that a peer may still charge.
func (pt *partings) authorised(p *peer) int { return len(pt.issuer.issued.with[p.Name]) }

// proceed takes agreed partings on: the peer is told as soon as nothing is between
// the two sites, and they have parted when each has told the other. From then on
// neither sends anything.
func (pt *partings) proceed() {
	for p := pt.next(); p != nil; p = pt.next() {
		if p.Leaving {
			pt.end(p)
			continue
		}
		p.Leaving = true
		p.send(item{Instruction: messages.Instruction{Kind: messages.InstructPart}})
	}
}

// next is a peer with which a parting can go on, nil if there is none.
func (pt *partings) next() *peer {
	for _, name := range pt.peers.order {
		p := pt.peers.byName[name]
		if p.Standing == messages.PeerParting && len(p.outbox) == 0 && (p.Leaving && p.Left || !p.Leaving && pt.even(p)) {
			return p
		}
	}
	return nil
}

// even reports whether nothing is owed, set aside or authorised between the sites.
func (pt *partings) even(p *peer) bool {
	a, _ := pt.money.books.Brief(PeerAccount(p.Name))
	settled, _ := pt.money.books.Brief(SettledAccount(p.Name)) // 0 of one that is not open
	return a.Balance == 0 && a.Reserved == 0 && settled.Balance == 0 && p.open == 0 && pt.authorised(p) == 0
}

// end closes the accounts of a peer: it may owe nothing.
func (pt *partings) end(p *peer) {
	p.Standing, p.Since, p.Share, p.Stated, p.Dispute = messages.PeerParted, pt.money.books.Now(), 0, true, ""
	pt.terms.allot(PeerAccount(p.Name), "the bank of site "+p.Name, 0)
	pt.terms.divide()
}

// owes is what a peer owes by trade and by settlements, negative if this site owes.
func (pt *partings) owes(p *peer) messages.Credits {
	a, _ := pt.money.books.Brief(PeerAccount(p.Name))
	settled, _ := pt.money.books.Brief(SettledAccount(p.Name))
	return -a.Balance - settled.Balance
}

// abandon parts from a peer that does not agree to it, or is gone. Its debt is
// written off, its keys are never trusted again, and what users set aside for it
// is theirs. What this site owes it stays on the account of its settled debts,
// for an operator to pay and withdraw.
func (pt *partings) abandon(p *peer, account messages.Name, r *messages.PartRequest, reply *messages.PartReply) *Rejected {
	loss, settled := max(0, pt.owes(p)), pt.terms.settledAccount(p)
	switch {
	case *r.Loss != loss:
		return ordinary(messages.Errorf(messages.Conflict, "loss: is stated as %s, and site %q owes %v: state that", r.Loss.Words(), p.Name, loss))
	case users(account) != nil:
		return users(account)
	}
	if a, _ := pt.money.books.Brief(account); a.Available < loss { // of an account that is not open there is none
		return ordinary(messages.Errorf(messages.Insufficient, "account %q has %s free, and the loss is %v: grant them to it first, or name another account", account, a.Available.Words(), loss))
	}
	reason := clip("parted from site " + p.Name + ": " + r.Reason)
	if loss > 0 {
		if _, err := pt.money.move(maker, messages.Transfer{Kind: messages.Posted, Debit: account, Credit: settled, Amount: loss, Reason: reason}); err != nil {
			return err
		}
	}
	pt.giveBack(p, reply, reason)
	switch b, _ := pt.money.owed(PeerAccount(p.Name)); {
	case b > 0:
		pt.money.must(messages.Transfer{Kind: messages.Posted, Debit: PeerAccount(p.Name), Credit: settled, Amount: b, Reason: reason})
	case b < 0:
		pt.money.must(messages.Transfer{Kind: messages.Posted, Debit: settled, Credit: PeerAccount(p.Name), Amount: -b, Reason: reason})
	}
	p.Lost += loss
	p.trust(nil)
	pt.end(p)
	return nil
}

// giveBack frees all that is set aside between a peer and this site.
func (pt *partings) giveBack(p *peer, reply *messages.PartReply, reason string) {
	void := func(hold string) {
		if hold != "" {
			pt.money.must(messages.Transfer{Kind: messages.Void, Pending: hold, Reason: reason})
		}
	}
	for i := range p.outbox {
		switch it := &p.outbox[i]; it.Instruction.Kind {
		case messages.InstructPay:
			reply.Returned += it.Held
		case messages.InstructCharge:
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

// rejoin makes a peer of a site that was parted from. After an agreed parting the
// books go on. After a one-sided parting they begin anew, and nothing that was signed
// for the old ones counts, because the keys are others.
func (p *peer) rejoin(site messages.Name, now messages.Time) {
	p.Standing, p.Since, p.Leaving, p.Left, p.Stated = messages.PeerOpen, now, false, false, false
	if len(p.Keys) > 0 {
		return
	}
	p.Out, p.In, p.Began = newBook(site, p.Name), newBook(p.Name, site), now
	p.Outcomes, p.Known, p.Cycles, p.Counted, p.Confirmed, p.Forgotten = nil, 0, nil, 0, nil, 0
	p.Incarnation = 0 // it may have been rebuilt
}
