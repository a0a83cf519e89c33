package faults

import (
	"fmt"

	"github.com/candor-grid/candor/bank/clearing"
	"github.com/candor-grid/candor/messages"
	clearingmsg "github.com/candor-grid/candor/messages/clearing"
)

// trade is a user's transaction with another site: a payment to somebody there, or an authorisation of a charge.
type trade struct {
	*site
	peer   *site
	user   messages.Name
	key    string
	amount messages.Credits
}

var auctioneer = messages.ServiceIdentity(messages.Auctioneer)

func newTrade(s *site, i int) {
	t := &trade{site: s, peer: s.sites[(s.index+1+s.rng.IntN(2))%3], user: userName(s.rng.IntN(users)), key: fmt.Sprint("t", i),
		amount: messages.Credits(1 + s.rng.Int64N(int64(4*messages.Credit)))}
	do := t.pay
	if i%2 == 0 {
		do = t.authorise
	}
	at := 8*second + messages.Duration(s.rng.Int64N(int64(s.plan.Duration)))
	s.queue.Push(s.now.Add(at), do)
	if s.rng.IntN(3) == 0 { // repeat the request, as if nobody knew whether it was carried out
		s.queue.Push(s.now.Add(at+messages.Duration(s.rng.Int64N(int64(20*second)))), do)
	}
}

func (t *trade) pay() {
	c := clearing.Command{Remit: &clearingmsg.RemitRequest{Key: t.key, Peer: t.peer.name, Payee: userName(len(t.key)), Amount: t.amount}}
	t.bank(t.clients, never, t.user, c, func(clearing.Result) {})
	if t.Bug == RefundRemit { // the bank behaves as if there were no answer
		t.queue.Push(t.now.Add(2*second), func() {
			for _, r := range t.banks.replicas {
				if r.serving() {
					r.shell.(*bankLeader).refund(t.user, t.key)
				}
			}
		})
	}
}

// authorise asks the home bank for an authorisation, and brings it to the other site.
func (t *trade) authorise() {
	interval := 20*second + messages.Duration(len(t.key))*20*second
	c := clearing.Command{Authorise: &clearingmsg.AuthoriseRequest{Key: t.key, Peer: t.peer.name, Amount: t.amount, Interval: interval}}
	t.bank(t.clients, never, t.user, c, func(came clearing.Result) {
		if came.Authorisation == nil {
			return
		}
		signed, err := clearing.SignAuthorisation(sealer(t.name), *came.Authorisation)
		if err != nil {
			t.violate("an authorisation cannot be signed: %v", err)
			return
		}
		t.accept(signed)
	})
}

// accept makes the other site accept the authorisation. Later, that site charges it, or the user revokes it.
func (t *trade) accept(a clearingmsg.SignedAuthorisation) {
	work := second + messages.Duration(t.rng.Int64N(int64(30*second)))
	part := messages.Credits(t.rng.Int64N(int64(t.amount) + 1))
	revoked := t.rng.IntN(5) == 0
	c := clearing.Command{Accept: &clearingmsg.AcceptRequest{Purpose: t.key, Authorisation: a}}
	t.peer.bank(t.clients, never, auctioneer, c, func(came clearing.Result) {
		switch {
		case came.Error != nil:
		case revoked:
			t.bank(t.clients, never, t.user, clearing.Command{Revoke: &clearingmsg.RevokeRequest{ID: a.Authorisation.ID}}, func(clearing.Result) {})
		default:
			t.queue.Push(t.now.Add(work), func() { t.charge(a.Authorisation.ID, part) })
		}
	})
}

// charge makes the other site charge an authorisation. That site may be cut off.
func (t *trade) charge(id string, amount messages.Credits) {
	c := clearing.Command{Charge: &clearingmsg.ChargeRequest{Issuer: t.name, ID: id, Amount: amount}}
	t.peer.bank(t.peer.clients, never, auctioneer, c, func(clearing.Result) {})
}
