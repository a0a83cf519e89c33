package clearing

import (
	"cmp"
	"crypto/sha256"
	"fmt"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	moneymsg "github.com/candor-grid/candor/messages/money"
)

// MaxVisits is the maximum number of one peer's authorisations that are open, or whose charge or release the peer has
// not answered. The peer chooses its users' names, so all its users count together.
const MaxVisits = 10_000

// accepted is an authorisation of another site. There are three cases: this site may still charge the authorisation,
// has charged it, or gave it up. Until the authorisation ends, no other authorisation may have the same identifier. The
// fields of accepted are exported only because an image contains them.
type accepted struct {
	Owner string // the bound account with its site: "west/alice"
	Until messages.Time
	clearing.Authorisation
	Hold    string // the hold that reserves the amount from the issuer's limit; "" once resolved
	Closed  closing
	Taken   messages.Credits // amount of the charge
	Number  uint64           // number of the instruction that charged this authorisation
	Purpose string
	Firm    bool // this site does not give up the authorisation while it is open
}

func (k *accepted) entry() (id, owner string, site messages.Name, until messages.Time) {
	return acceptedKey(k.Issuer, k.ID), k.Owner, k.Issuer, k.Until
}

type closing uint8

const (
	open    closing = iota
	charged         // charged, or released with a charge of 0
	revoked         // given up because the issuer asked
)

// acceptedKey returns a key that is unique among the authorisations of all sites, for example "west/alice/1". Names of
// sites have no slash.
func acceptedKey(issuer messages.Name, id string) string { return issuer + "/" + id }

// acceptor accepts authorisations of other sites, and charges them.
type acceptor struct {
	accepted register[accepted, *accepted] // authorisations, kept until they can no longer be charged
	peers    *peers
	money    *money
}

// accept takes an authorisation whose signature was checked. From then on this site can charge it without the issuer.
func (ac *acceptor) accept(r *clearing.AcceptRequest) (*clearing.ClearingReply, *Rejected) {
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
	if err := cmp.Or(ac.peers.trades(p), ac.peers.credible(p), ac.remembers(p), ac.hosts(p), ac.peers.covers(p, a.Amount)); err != nil {
		return nil, err
	}
	account, hold := PeerAccount(p.Name), ac.money.mint()
	if _, err := ac.money.move(maker, moneymsg.Transfer{
		ID: hold, Kind: moneymsg.Hold, Debit: account, Member: account, Amount: a.Amount, Expires: a.Ends(), Reason: clip("authorisation " + key),
	}); err != nil {
		return nil, ordinary(messages.Errorf(err.Err.Kind, "site %q would owe more than it may: %s", p.Name, err.Err.Message))
	}
	ac.remember(accepted{Owner: acceptedKey(p.Name, a.Account), Until: a.Ends(), Authorisation: *a, Purpose: r.Purpose, Hold: hold, Firm: r.Firm})
	return &clearing.ClearingReply{}, nil
}

// The method hosts returns a refusal if this site holds too many authorisations of a peer. It counts two kinds. An open
// authorisation may still become a charge. A charged authorisation counts until the peer's bank has answered the
// charge.
func (ac *acceptor) hosts(p *peer) *Rejected {
	if p.open+p.charges < MaxVisits {
		return nil
	}
	return reject(Flood, messages.Exhausted, "%d authorisations of site %q are open, and %d charges wait for its bank to answer, together the most there may be: try again when some have ended", p.open, p.Name, p.charges)
}

// remembers returns a refusal if the register has too many authorisations of the issuer. Each peer may fill only its
// own part of the register.
func (ac *acceptor) remembers(p *peer) *Rejected {
	if most := maxRegistered / max(8, len(ac.peers.byName)); p.remembered >= most {
		return reject(Flood, messages.Exhausted, "%d authorisations of site %q are remembered, the most there may be: try again when some have ended", p.remembered, p.Name)
	}
	return nil
}

func (ac *acceptor) remember(a accepted) {
	ac.accepted.add(a)
	p := ac.peers.byName[a.Issuer]
	if p == nil {
		return // cannot happen with an image that this clearing wrote
	}
	p.remembered++
	if a.Closed == open {
		p.open++
	}
}

// timely returns a refusal for an authorisation that has ended. It looks at two times: the time of this bank's clock,
// and the latest time that the issuer has signed. timely also refuses an authorisation whose time of issue is later
// than the clock allows.
func (ac *acceptor) timely(p *peer, a *clearing.Authorisation) *Rejected {
	now := max(ac.money.books.Now(), p.Heard)
	if a.Ends() <= now {
		return reject(Stale, messages.Expired, "authorisation %q ended at %v, but the time is now %v: ask the home bank for a new authorisation", clip(a.ID), a.Ends(), now)
	}
	if a.Issued > ac.money.books.Now().Add(clearing.MaxClockSkew) {
		return reject(Future, messages.Invalid, "authorisation %q was issued at %v, and it is %v here: the clocks differ by more than %v; set them", clip(a.ID), a.Issued, ac.money.books.Now(), clearing.MaxClockSkew)
	}
	return nil
}

// again returns the answer to a repeated request to accept the authorisation.
func (k *accepted) again(purpose string, a *clearing.Authorisation) (*clearing.ClearingReply, *Rejected) {
	switch {
	case k.Closed == revoked:
		return nil, reject(Recharged, messages.Ended, "authorisation %q was given up at its issuer's request", clip(a.ID))
	case k.Authorisation != *a:
		return nil, reject(Rewritten, messages.Conflict, "authorisation %q was accepted before with other content, signed by the same bank: keep both as evidence", clip(a.ID))
	case k.Purpose != purpose:
		return nil, reject(Replayed, messages.Conflict, "authorisation %q was accepted before to pay for %q: ask for a new authorisation", clip(a.ID), k.Purpose)
	case k.Closed == charged:
		return nil, reject(Recharged, messages.Ended, "authorisation %q was charged or released before: it can be once", clip(a.ID))
	}
	return &clearing.ClearingReply{}, nil
}

// charge charges an authorisation. This is possible once, and for at most the authorised amount. charge instructs the
// issuer's bank to pay. When this bank confirms, the payee gets the amount.
func (ac *acceptor) charge(r *clearing.ChargeRequest) (*clearing.ClearingReply, *Rejected) {
	p, err := ac.peers.find(r.Issuer)
	if err != nil {
		return nil, err
	}
	a := ac.accepted.find(acceptedKey(r.Issuer, r.ID))
	if a == nil && ac.money.books.Done(p.chargeID(r)) {
		return &clearing.ClearingReply{Number: p.chargeOf(r.ID)}, nil
	}
	if a == nil {
		return nil, ordinary(messages.Errorf(messages.NotFound, "authorisation %q of site %q is not accepted here, or has ended: accept it first", clip(r.ID), p.Name))
	}
	if a.Closed != open {
		return a.chargeAgain(r)
	}
	if r.Amount > a.Amount {
		return nil, reject(Amount, messages.Insufficient, "authorisation %q is of %v credits: %v cannot be charged, charge at most what was authorised", clip(r.ID), a.Amount, r.Amount)
	}
	if err := users(r.Payee); err != nil {
		return nil, err
	}
	if p.Heard >= a.Frees() {
		return nil, reject(Stale, messages.Expired, "authorisation %q was freed by its issuer at %v", clip(r.ID), a.Frees())
	}
	it, err := ac.capture(p, a, r)
	if err != nil {
		return nil, err
	}
	a.Hold, a.Closed, a.Taken = "", charged, r.Amount
	p.open--
	a.Number = p.send(it)
	return &clearing.ClearingReply{Number: a.Number}, nil
}

// chargeAgain returns the answer to a charge of an authorisation that was already charged or given up.
func (k *accepted) chargeAgain(r *clearing.ChargeRequest) (*clearing.ClearingReply, *Rejected) {
	if k.Closed == charged && k.Taken == r.Amount {
		return &clearing.ClearingReply{Number: k.Number}, nil
	}
	return nil, reject(Recharged, messages.Conflict, "authorisation %q was charged, released or given up before: it can be once", clip(r.ID))
}

// capture reserves the charged amount until the issuer's bank answers. A charge of 0 releases the amount at once.
func (ac *acceptor) capture(p *peer, a *accepted, r *clearing.ChargeRequest) (item, *Rejected) {
	it := item{
		Instruction: clearing.Instruction{Kind: clearing.InstructCharge, ID: r.ID, Amount: r.Amount, Job: r.Job, Reason: r.Reason},
		Hold:        a.Hold, Held: a.Amount, Payee: r.Payee,
	}
	if it.Payee == "" {
		it.Payee = moneymsg.SiteAccount
	}
	if it.Payee != moneymsg.SiteAccount {
		it.Instruction.Account = it.Payee
	}
	t := moneymsg.Transfer{ID: p.chargeID(r), Kind: moneymsg.Extend, Pending: a.Hold, Reason: "charged"}
	if r.Amount == 0 {
		t.Kind, t.Reason = moneymsg.Void, "released"
		it.Hold, it.Held, it.Payee, it.Instruction.Account = "", 0, "", ""
	} else if _, err := ac.money.books.Brief(it.Payee); err != nil {
		return item{}, ordinary(err)
	}
	_, err := ac.money.move(maker, t)
	return it, err
}

// chargeID returns the identifier of the ledger's transfer for a charge. It is a digest of the charge's content. A
// number would not be unique: a peer that is restored from a backup may use its numbers again.
func (p *peer) chargeID(r *clearing.ChargeRequest) string {
	sum := sha256.Sum256([]byte(fmt.Sprint(acceptedKey(r.Issuer, r.ID), "\x00", int64(r.Amount), "\x00", int64(p.Began), "\x00", p.Incarnation)))
	return fmt.Sprintf("%scharge/%x", TransferPrefix, sum[:16])
}

func (p *peer) chargeOf(id string) uint64 { return p.numbers[chargeKey(id)] }

// expire removes an authorisation that ended. If the authorisation was not charged, expire tells its home bank, which
// can then free the credits at once. Without the message, the home bank would free them only some time after the
// authorisation's end, because clocks may differ and sites may be cut off from each other.
func (ac *acceptor) expire(a *accepted) {
	p := ac.peers.byName[a.Issuer]
	if a.Closed == open {
		p.open--
		p.send(item{Instruction: clearing.Instruction{Kind: clearing.InstructCharge, ID: a.ID, Reason: "it ended without a charge"}})
	}
	ac.accepted.drop(acceptedKey(a.Issuer, a.ID))
	p.remembered--
}

// release gives up an authorisation that was not charged. From then on, a charge of it is refused.
func (ac *acceptor) release(p *peer, i *clearing.Instruction) *Rejected {
	key := acceptedKey(p.Name, i.ID)
	a := ac.accepted.find(key)
	if a != nil && a.Closed == charged {
		return ordinary(messages.Errorf(messages.Ended, "authorisation %q was charged or released before", clip(i.ID)))
	}
	if a != nil && a.Hold != "" && a.Firm {
		return ordinary(messages.Errorf(messages.Conflict, "authorisation %q pays for %q, which has not ended: at its end the authorisation is charged or given back", clip(i.ID), clip(a.Purpose)))
	}
	if a != nil && a.Hold != "" {
		ac.money.must(moneymsg.Transfer{Kind: moneymsg.Void, Pending: a.Hold, Reason: "given up at the request of site " + p.Name})
		a.Hold, a.Closed = "", revoked
		p.open--
		return nil
	}
	if a != nil || i.Expires <= ac.money.books.Now() {
		return nil
	}
	if i.Expires > ac.money.books.Now().Add(2*clearing.MaxInterval) {
		return reject(Future, messages.Invalid, "authorisation %q would end at %v, later than any may", clip(i.ID), i.Expires)
	}
	if err := ac.remembers(p); err != nil {
		return err
	}
	ac.remember(accepted{Owner: acceptedKey(p.Name, ""), Until: i.Expires, Authorisation: clearing.Authorisation{Issuer: p.Name, ID: i.ID}, Closed: revoked})
	return nil
}
