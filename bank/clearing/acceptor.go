package clearing

import (
	"crypto/sha256"
	"fmt"

	"github.com/candor-grid/candor/messages"
)

// MaxVisits is the most authorisations of one peer that may be open, or have a
// charge or release that the peer has not answered. It is the peer's and not of
// its users, whose names the peer chooses.
const MaxVisits = 10_000

// accepted is an authorisation of another site that this one may charge, or
// did, or gave up. It is remembered until it ends; later it is refused for
// having ended.
type accepted struct {
	messages.Authorisation
	purpose string
	hold    string // sets the amount aside of what the issuer may owe; "" once resolved
	closed  closing
	taken   messages.Credits // by the charge
	number  uint64           // of the charge to the issuer
	firm    bool             // it is not given up while it is open
}

// closing says how an accepted authorisation came to its end.
type closing uint8

const (
	open    closing = iota
	charged         // taken, or released by a charge of 0
	revoked         // given up at the issuer's request
)

// acceptedKey identifies an authorisation among those of all sites: a site's
// name has no slash.
func acceptedKey(issuer messages.Name, id string) string { return issuer + "/" + id }

// acceptor accepts authorisations of other sites, and charges them.
type acceptor struct {
	accepted register[accepted] // until they can no longer be charged
	peers    *peers
	money    *money
}

// accept takes an authorisation whose signature was checked: from now on it
// can be charged, whether the issuer can be reached or not.
func (ac *acceptor) accept(r *messages.AcceptRequest) (*messages.ClearingReply, *Rejected) {
	a := &r.Authorisation.Authorisation
	p, err := ac.peers.find(a.Issuer)
	if err != nil {
		return nil, err
	}
	if err := ac.timely(p, a); err != nil {
		return nil, err
	}
	key := acceptedKey(a.Issuer, a.ID)
	if first := ac.accepted.find(key); first != nil {
		return first.again(r.Purpose, a)
	}
	if err := first(ac.peers.credible(p), ac.remembers(p, a.Account), ac.hosts(p), ac.peers.covers(p, a.Amount)); err != nil {
		return nil, err
	}
	account, hold := PeerAccount(p.name), ac.money.mint()
	if _, err := ac.money.move(maker, messages.Transfer{
		ID: hold, Kind: messages.Hold, Debit: account, Member: account, Amount: a.Amount, Expires: a.Ends(), Reason: clip("authorisation " + key),
	}); err != nil {
		return nil, ordinary(messages.Errorf(err.Err.Kind, "site %q would owe more than it may: %s", p.name, err.Err.Message))
	}
	ac.remember(p, a.Account, a.Ends(), accepted{Authorisation: *a, purpose: r.Purpose, hold: hold, firm: r.Firm})
	return &messages.ClearingReply{}, nil
}

// hosts refuses an authorisation while too many of its issuer are open or have
// a charge that waits for an answer. So each that is accepted can be charged.
func (ac *acceptor) hosts(p *peer) *Rejected {
	if ac.money.rules == firstRules || p.open+p.charges < MaxVisits {
		return nil
	}
	return reject(Flood, messages.Exhausted, "%d authorisations of site %q are open, and %d charges wait for its bank to answer, together the most there may be: try again when some have ended", p.open, p.name, p.charges)
}

// remembers refuses what would be one authorisation too many to remember: every
// peer has a part of the register that the others cannot fill.
func (ac *acceptor) remembers(p *peer, account messages.Name) *Rejected {
	if ac.money.rules == firstRules {
		return ac.accepted.room(acceptedKey(p.name, account))
	}
	if most := maxRegistered / max(8, len(ac.peers.byName)); p.remembered >= most {
		return reject(Flood, messages.Exhausted, "%d authorisations of site %q are remembered, the most there may be: try again when some have ended", p.remembered, p.name)
	}
	return nil
}

// remember enters an authorisation of a peer.
func (ac *acceptor) remember(p *peer, account messages.Name, until messages.Time, a accepted) {
	ac.accepted.add(acceptedKey(p.name, a.ID), acceptedKey(p.name, account), until, a)
	p.remembered++
	if a.closed == open {
		p.open++
	}
}

// timely refuses an authorisation that has ended, by this bank's time or the
// latest that the issuer signed, and one from beyond what clocks may differ.
func (ac *acceptor) timely(p *peer, a *messages.Authorisation) *Rejected {
	now := max(ac.money.books.Now(), p.heard)
	if a.Ends() <= now {
		return reject(Stale, messages.Expired, "authorisation %q ended at %v, and it is %v: ask the home bank for a new one", clip(a.ID), a.Ends(), now)
	}
	if a.Issued > ac.money.books.Now().Add(messages.MaxClockSkew) {
		return reject(Future, messages.Invalid, "authorisation %q was issued at %v, and it is %v here: the clocks differ by more than %v; set them", clip(a.ID), a.Issued, ac.money.books.Now(), messages.MaxClockSkew)
	}
	return nil
}

// again answers an authorisation that is known.
func (k *accepted) again(purpose string, a *messages.Authorisation) (*messages.ClearingReply, *Rejected) {
	switch {
	case k.closed == revoked:
		return nil, reject(Recharged, messages.Ended, "authorisation %q was given up at its issuer's request", clip(a.ID))
	case k.Authorisation != *a:
		return nil, reject(Rewritten, messages.Conflict, "authorisation %q was accepted before with other content, signed by the same bank: keep both as evidence", clip(a.ID))
	case k.purpose != purpose:
		return nil, reject(Replayed, messages.Conflict, "authorisation %q was accepted before to pay for %q: ask for a new one", clip(a.ID), k.purpose)
	case k.closed == charged:
		return nil, reject(Recharged, messages.Ended, "authorisation %q was charged or released before: it can be once", clip(a.ID))
	}
	return &messages.ClearingReply{}, nil
}

// charge takes at most what was authorised, once, and instructs the issuer's
// bank. The payee has it when that bank confirms; until then it is set aside.
func (ac *acceptor) charge(r *messages.ChargeRequest) (*messages.ClearingReply, *Rejected) {
	p, err := ac.peers.find(r.Issuer)
	if err != nil {
		return nil, err
	}
	a := ac.accepted.find(acceptedKey(r.Issuer, r.ID))
	if a == nil && ac.money.books.Done(chargeOf(r)) {
		return &messages.ClearingReply{Number: p.chargeOf(r.ID)}, nil
	}
	if a == nil {
		return nil, ordinary(messages.Errorf(messages.NotFound, "authorisation %q of site %q is not accepted here, or has ended: accept it first", clip(r.ID), p.name))
	}
	if a.closed != open {
		return a.chargeAgain(r)
	}
	if r.Amount > a.Amount {
		return nil, reject(Amount, messages.Insufficient, "authorisation %q is of %v credits: %v cannot be charged, charge at most what was authorised", clip(r.ID), a.Amount, r.Amount)
	}
	if err := users(r.Payee); err != nil {
		return nil, err
	}
	if p.heard >= a.Frees() {
		return nil, reject(Stale, messages.Expired, "authorisation %q was freed by its issuer at %v", clip(r.ID), a.Frees())
	}
	if ac.money.rules == firstRules {
		if err := ac.peers.room(p); err != nil {
			return nil, err
		}
	}
	it, err := ac.capture(a, r)
	if err != nil {
		return nil, err
	}
	a.hold, a.closed, a.taken = "", charged, r.Amount
	p.open--
	a.number = p.send(it)
	return &messages.ClearingReply{Number: a.number}, nil
}

// chargeAgain answers a charge of what was charged or given up before.
func (k *accepted) chargeAgain(r *messages.ChargeRequest) (*messages.ClearingReply, *Rejected) {
	if k.closed == charged && k.taken == r.Amount {
		return &messages.ClearingReply{Number: k.number}, nil
	}
	return nil, reject(Recharged, messages.Conflict, "authorisation %q was charged, released or given up before: it can be once", clip(r.ID))
}

// capture keeps what an authorisation sets aside for as long as it takes the
// issuer's bank to answer: nobody is refunded because a bank is silent. A
// release frees it at once.
func (ac *acceptor) capture(a *accepted, r *messages.ChargeRequest) (item, *Rejected) {
	it := item{
		instruction: messages.Instruction{Kind: messages.InstructCharge, ID: r.ID, Amount: r.Amount, Job: r.Job, Reason: r.Reason},
		hold:        a.hold, held: a.Amount, payee: r.Payee,
	}
	if it.payee == "" {
		it.payee = messages.SiteAccount
	}
	t := messages.Transfer{Kind: messages.Extend, Pending: a.hold, Reason: "charged"}
	if ac.money.rules != firstRules {
		t.ID = chargeOf(r)
	}
	if r.Amount == 0 {
		t.Kind, t.Reason = messages.Void, "released"
		it.hold, it.held, it.payee = "", 0, ""
	} else if _, err := ac.money.books.Account(it.payee); err != nil {
		return item{}, ordinary(err)
	}
	_, err := ac.money.move(maker, t)
	return it, err
}

// chargeOf identifies, in the ledger, what a charge does to what was set aside.
// The ledger remembers it for ever, and with it what was charged.
func chargeOf(r *messages.ChargeRequest) string {
	sum := sha256.Sum256([]byte(fmt.Sprint(acceptedKey(r.Issuer, r.ID), "\x00", int64(r.Amount))))
	return fmt.Sprintf("%scharge/%x", TransferPrefix, sum[:16])
}

// chargeOf finds the charge of an authorisation that waits, 0 if none does.
func (p *peer) chargeOf(id string) uint64 {
	for i := range p.outbox {
		if it := &p.outbox[i].instruction; it.Kind == messages.InstructCharge && it.ID == id {
			return p.out.total.Number + uint64(i) + 1
		}
	}
	return 0
}

// expire forgets an authorisation that has ended. One that was not charged is
// released, so that the home bank need not wait for its margin; false if, under
// the first rules, the outbox has no room for that now.
func (ac *acceptor) expire(key string, a *accepted) bool {
	p := ac.peers.byName[a.Issuer]
	if a.closed == open {
		if ac.money.rules == firstRules && ac.peers.room(p) != nil {
			return false
		}
		p.open--
		p.send(item{instruction: messages.Instruction{Kind: messages.InstructCharge, ID: a.ID, Reason: "it ended without a charge"}})
	}
	ac.accepted.drop(key)
	p.remembered--
	return true
}

// release releases an authorisation of the peer that was not charged, and
// remembers to accept it no more.
func (ac *acceptor) release(p *peer, i *messages.Instruction) *Rejected {
	key := acceptedKey(p.name, i.ID)
	a := ac.accepted.find(key)
	if a != nil && a.closed == charged {
		return ordinary(messages.Errorf(messages.Ended, "authorisation %q was charged or released before", clip(i.ID)))
	}
	if a != nil && a.hold != "" && a.firm {
		return ordinary(messages.Errorf(messages.Conflict, "authorisation %q pays for %q, which is under way: it is charged, or given back, when that has ended", clip(i.ID), clip(a.purpose)))
	}
	if a != nil && a.hold != "" {
		ac.money.must(messages.Transfer{Kind: messages.Void, Pending: a.hold, Reason: "given up at the request of site " + p.name})
		a.hold, a.closed = "", revoked
		p.open--
		return nil
	}
	if a != nil || i.Expires <= ac.money.books.Now() {
		return nil
	}
	if i.Expires > ac.money.books.Now().Add(2*messages.MaxInterval) {
		return reject(Future, messages.Invalid, "authorisation %q would end at %v, later than any may", clip(i.ID), i.Expires)
	}
	if err := ac.remembers(p, ""); err != nil {
		return err
	}
	ac.remember(p, "", i.Expires, accepted{Authorisation: messages.Authorisation{Issuer: p.name, ID: i.ID}, closed: revoked})
	return nil
}
