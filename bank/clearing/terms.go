package clearing

import (
	"math/bits"
	"slices"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	moneymsg "github.com/candor-grid/candor/messages/money"
)

// terms has the limits that operators set. The debt of each peer has a limit. The reserve limits the debts of all peers
// together that are settled and not yet paid. A peer's share of the reserve limits this peer's part of these debts.
type terms struct {
	peers *peers
	money *money
}

// setPeer opens a peer's account or changes its terms. It also ends a dispute with the peer, except if it only lowers
// the limit.
func (t *terms) setPeer(r *clearing.PeerRequest) (*clearing.PeerReply, *Rejected) {
	p, account := t.peers.byName[r.Peer], PeerAccount(r.Peer)
	before, _ := t.money.books.Brief(account) // for an unknown account, the credit is 0
	if p == nil {
		if len(t.peers.byName) >= maxPeers {
			return nil, ordinary(messages.Errorf(messages.Exhausted, "there are %d peers, the maximum", maxPeers))
		}
		if _, err := t.money.books.Brief(account); err == nil {
			return nil, ordinary(messages.Errorf(messages.Conflict, "account %q is needed for the peer, but it already exists: the peer must have another name", account))
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
	t.divide() // compute the peers' shares of the reserve, with the terms before this change
	if _, err := t.money.line(account, "the bank of site "+r.Peer, r.Limit); err != nil {
		return nil, err
	}
	if p != nil && p.Standing == clearing.PeerParted {
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

// describe returns a peer as operators see it.
func (t *terms) describe(p *peer) clearing.PeerReply {
	r := clearing.PeerReply{
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

const settlementTitle = "settlements with other sites"

// setReserve sets the maximum that the other sites together may owe by settlements; 0 means the sum of their shares.
func (t *terms) setReserve(r *clearing.ReserveRequest) (*moneymsg.AccountReply, *Rejected) {
	a, err := t.money.line(SettlementAccount, settlementTitle, r.Limit)
	if err == nil {
		t.divide()
	}
	return &a, err
}

// divide gives each peer its share of the reserve. A peer's share is its limit, or less if all limits together exceed
// the reserve. The share becomes the credit of the peer's SettledAccount, so the ledger enforces it.
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
			quotient, _ := bits.Div64(high, low, sum) // smaller than share, so it fits in 64 bits
			share = messages.Credits(quotient)
		}
		t.allot(SettledAccount(name), "settled debts of site "+name, share)
	}
}

// bound returns the limit on the sum of all peers' shares, or 0 if there is no limit. An account stores this limit. If
// the account does not exist yet, bound opens the account.
func (t *terms) bound() messages.Credits {
	a, err := t.money.books.Brief(SettlementAccount)
	if err != nil {
		t.allot(SettlementAccount, settlementTitle, 0)
	}
	return a.Credit
}

// The method `wanted` returns the share of the reserve that a peer gets if the reserve is large enough for all peers.
// It is the share that an operator has set, or else the peer's limit. If this is less than the peer's settled debt, it
// is the debt. The reserve limits the sum of the settled debts of all peers.
func (t *terms) wanted(p *peer) messages.Credits {
	if p.Stated {
		return p.Share
	}
	owing, _ := t.money.books.Brief(PeerAccount(p.Name))
	settled, _ := t.money.books.Brief(SettledAccount(p.Name)) // this is 0 if the account does not exist
	owes := owing.Reserved - owing.Balance - settled.Balance
	return max(owing.Credit, min(settled.Credit, owes))
}

func (t *terms) allot(account messages.Name, title string, credit messages.Credits) {
	if a, err := t.money.books.Brief(account); err == nil && a.Credit == credit {
		return
	}
	if _, err := t.money.line(account, title, credit); err != nil && t.money.fault == "" {
		t.money.fault = clip(err.Error())
	}
}

// settledAccount opens and returns the SettledAccount of a peer.
func (t *terms) settledAccount(p *peer) messages.Name {
	account := SettledAccount(p.Name)
	if _, err := t.money.books.Brief(account); err != nil {
		t.divide()
	}
	return account
}

// settlements returns two sums. `owed` is what this site owes other sites in settlement accounts. `reserve` limits what
// all peers may owe this site in these accounts.
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
