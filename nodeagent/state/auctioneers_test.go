package state_test

import (
	"testing"

	"github.com/candor-grid/candor/messages"
)

// TestANodeFollowsItsMarketToAnotherAuctioneer, whose terms are lower: it registers anew, and
// works for it.
func TestANodeFollowsItsMarketToAnotherAuctioneer(t *testing.T) {
	a := newAgent(t, 1, 1)
	register := func(auctioneer messages.Name, term uint64) {
		t.Helper()
		r := a.request()
		if r.Register == nil {
			t.Fatalf("sent %+v, want a registration", r)
		}
		a.Registered(a.now, r.ID, &messages.RegisterReply{Lease: lease, Term: term, Auctioneer: auctioneer,
			Markets: []messages.Market{{Name: "main", Classes: []messages.Name{"cpu"}}}})
		a.act()
	}
	register("day", 9)
	first := a.Session()
	a.take(whole(9, 5, 0, 1))
	a.now = a.Wake()
	r := a.request()
	a.Answered(a.now, r.ID, &messages.ExchangeReply{Seq: r.Exchange.Seq, Markets: []messages.Market{{}}})
	register("night", 2)
	if a.Session() == first {
		t.Error("the session is the one with the other auctioneer")
	}
	a.take(whole(2, 1, 1, 1, messages.JobWeight{Job: 7, Weight: 1}))
	r = a.request()
	if r.Exchange == nil || slotsOf(r.Exchange) != 1 {
		t.Fatalf("sent %+v, want a claim", r)
	}
	a.Answered(a.now, r.ID, grants(r, 0, 1))
	a.act()
	if len(a.starts) != 1 {
		t.Error("the task of the other auctioneer did not start")
	}
}

// TestWordsOfAnotherAuctioneerAreNotHeeded, whatever their terms: the market was there for a
// while, and is with the node's own one again.
func TestWordsOfAnotherAuctioneerAreNotHeeded(t *testing.T) {
	a := newAgent(t, 1, 1)
	r := a.request()
	a.Registered(a.now, r.ID, &messages.RegisterReply{Lease: lease, Term: 2, Auctioneer: "day",
		Markets: []messages.Market{{Name: "main", Classes: []messages.Name{"cpu"}}}})
	a.act()
	session := a.Session()
	others := whole(9, 5, 1, 1, messages.JobWeight{Job: 8, Weight: 1})
	others.Auctioneer = "night"
	a.take(others)
	a.Directive(a.now, &messages.Directive{Term: 9, Auctioneer: "night", Markets: []messages.Market{{}}})
	a.act()
	own := whole(2, 1, 1, 1, messages.JobWeight{Job: 7, Weight: 1})
	own.Auctioneer = "day"
	a.take(own)
	r = a.request()
	if r.Exchange == nil || slotsOf(r.Exchange) != 1 || a.Session() != session {
		t.Fatalf("sent %+v, want a claim in the same session", r)
	}
}
