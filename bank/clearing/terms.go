package clearing

import (
	"math/bits"
	"slices"

	"github.com/candor-grid/candor/messages"
)

// terms are what operators say of each peer and of all together: the limit of what it
// may owe, and its share of the reserve for what it may have settled and not paid.
type terms struct {
	peers *peers
	money *money
}

// setPeer opens a peer's account or changes the terms. An operator who sets
// them also declares a dispute to be settled; who only lowers the limit does not.
func (t *terms) setPeer(r *messages.PeerRequest) (*messages.PeerReply, *Rejected) {
	p, account := t.peers.byName[r.Peer], PeerAccount(r.Peer)
	before, _ := t.money.books.Brief(account) // of a new peer there is none
	if p == nil {
		if len(t.peers.byName) >= maxPeers {
			return nil, ordinary(messages.Errorf(messages.Exhausted, "there are %d peers, the most there can be", maxPeers))
		}
		if _, err := t.money.books.Brief(account); err == nil {
			return nil, ordinary(messages.Errorf(messages.Conflict, "account %q is somebody's already, and is to be the peer's: give that one another name", account))
		}
	}
	if p != nil {
		if err := p.trustable(r); err != nil {
			return nil, err
		}
	}
	if settled := SettledAccount(r.Peer); p == nil && (settled == SettlementAccount || settled == CorrectionAccount) {
		return nil, reject(Malformed, messages.Invalid, "peer: no site can be called %q: it must have another name", r.Peer)
	}
	t.divide() // by the terms so far
	if _, err := t.money.line(account, "the bank of site "+r.Peer, r.Limit); err != nil {
		return nil, err
	}
	if p != nil && p.Standing == messages.PeerParted {
		p.rejoin(t.peers.site, t.money.books.Now())
	}
	if p == nil {
		p = &peer{relation: relation{Name: r.Peer, Out: newBook(t.peers.site, r.Peer), In: newBook(r.Peer, t.peers.site)}}
		t.peers.add(p)
	}
	if r.Limit >= before.Credit || !slices.Equal(p.Keys, r.Keys) {
		p.Dispute = ""
	}
	if !slices.Equal(p.Keys, r.Keys) {
		p.trust(r.Keys)
	}
	if r.Share != nil {
		p.Share, p.Stated = *r.Share, true
	}
	t.divide()
	reply := t.describe(p)
	return &reply, nil
}

// describe is the peer as operators see it.
func (t *terms) describe(p *peer) messages.PeerReply {
	r := messages.PeerReply{
		Peer: p.Name, Keys: slices.Clone(p.Keys), Outstanding: len(p.outbox), Waiting: p.asked,
		Sent: p.Out.Total, Received: p.In.Total, Heard: p.Heard, Dispute: p.Dispute, Retired: slices.Clone(p.Retired),
		Standing: p.Standing, Since: p.Since, Lost: p.Lost, Leaving: p.Left,
		Restored: t.peers.whole(p) != nil, Incarnation: p.Incarnation,
	}
	if a, err := t.money.books.Brief(PeerAccount(p.Name)); err == nil {
		r.Limit, r.Owed, r.Held = a.Credit, a.Balance, a.Reserved
	}
	if a, err := t.money.books.Brief(SettledAccount(p.Name)); err == nil {
		r.Share, r.Settled = a.Credit, -a.Balance
	}
	return r
}

// settlementTitle is that of the account for all the other sites.
const settlementTitle = "settlements with other sites"

// setReserve says what the other sites together may owe by settlements, 0 for
// what their shares come to. A lower reserve makes every share smaller.
func (t *terms) setReserve(r *messages.ReserveRequest) (*messages.AccountReply, *Rejected) {
	a, err := t.money.line(SettlementAccount, settlementTitle, r.Limit)
	if err == nil {
		t.divide()
	}
	return &a, err
}

// divide gives each peer its share of the reserve, which is the credit of its
// account of settled debts: so the ledger itself refuses whatever is beyond. A
// share is what an operator stated, and otherwise the limit.
func (t *terms) divide() {
	reserve := t.bound()
	var sum uint64
	for _, name := range t.peers.order {
		sum += uint64(t.wanted(t.peers.byName[name]))
	}
	for _, name := range t.peers.order {
		share := t.wanted(t.peers.byName[name])
		if reserve > 0 && sum > uint64(reserve) {
			high, low := bits.Mul64(uint64(share), uint64(reserve))
			quotient, _ := bits.Div64(high, low, sum) // below share, which fits
			share = messages.Credits(quotient)
		}
		t.allot(SettledAccount(name), "settled debts of site "+name, share)
	}
}

// bound is the bound on all shares together, 0 if there is none. It opens the
// account that has it.
func (t *terms) bound() messages.Credits {
	a, err := t.money.books.Brief(SettlementAccount)
	if err != nil {
		t.allot(SettlementAccount, settlementTitle, 0)
	}
	return a.Credit
}

// wanted is the share that a peer has where the reserve is large enough. A lower
// limit takes nothing of it back that settles what the peer owes already.
func (t *terms) wanted(p *peer) messages.Credits {
	if p.Stated {
		return p.Share
	}
	owing, _ := t.money.books.Brief(PeerAccount(p.Name))
	settled, _ := t.money.books.Brief(SettledAccount(p.Name)) // 0 of one that is not open
	owes := owing.Reserved - owing.Balance - settled.Balance
	return max(owing.Credit, min(settled.Credit, owes))
}

// allot opens an account, or changes its credit, where that is not what it is.
func (t *terms) allot(account messages.Name, title string, credit messages.Credits) {
	if a, err := t.money.books.Brief(account); err == nil && a.Credit == credit {
		return
	}
	if _, err := t.money.line(account, title, credit); err != nil && t.money.fault == "" {
		t.money.fault = clip(err.Error())
	}
}

// settledAccount is the account that owes what a peer's settlements moved.
func (t *terms) settledAccount(p *peer) messages.Name {
	account := SettledAccount(p.Name)
	if _, err := t.money.books.Brief(account); err != nil {
		t.divide()
	}
	return account
}

// settlements is what this site owes all the others by settlements, and the
// reserve for what they owe it.
func (t *terms) settlements() (owed, reserve messages.Credits) {
	if a, err := t.money.books.Brief(SettlementAccount); err == nil {
		owed, reserve = a.Balance, a.Credit
	}
	var shares messages.Credits
	for _, name := range t.peers.order {
		if a, err := t.money.books.Brief(SettledAccount(name)); err == nil {
			owed, shares = owed+a.Balance, shares+a.Credit
		}
	}
	if reserve == 0 {
		reserve = shares
	}
	return owed, reserve
}
