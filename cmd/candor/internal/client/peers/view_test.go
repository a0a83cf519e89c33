package peers

import (
	"strings"
	"testing"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
)

// The table of peers must say what stops the trade with a peer, and which command helps.
func TestStateOfAPeer(t *testing.T) {
	const c = messages.Credit
	for _, x := range []struct {
		peer clearing.PeerReply
		want string
	}{
		{clearing.PeerReply{}, "answers"},
		{clearing.PeerReply{Tries: 1, Failure: "timeout"}, "silent after 1 message: timeout"},
		{clearing.PeerReply{Tries: 2, Failure: "parted: bye", Settled: 3 * c, Owed: c}, "has parted from this site: to part from the peer too, use \"candor peer part east --loss 2 --reason TEXT\""},
		{clearing.PeerReply{Tries: 2, Failure: "parted: bye", Owed: c}, "has parted from this site: to part from the peer too, use \"candor peer part east --loss 0 --reason TEXT\""},
		{clearing.PeerReply{Restored: true, Dispute: "x"}, "this site was restored: candor peer reconcile east"},
		{clearing.PeerReply{Dispute: "totals differ", Tries: 1}, "disputed: totals differ"},
		{clearing.PeerReply{Leaving: true}, "wants to part from this site: to agree, use \"candor peer part east\""},
		{clearing.PeerReply{Owed: -c}, "answers; none of the peer's debt can be settled: the peer's share of the reserve is 0 credits"},
		{clearing.PeerReply{Owed: -c, Share: 5 * c, Settled: 5 * c}, "answers; no more of the peer's debt can be settled before the peer pays 5 credits; after the payment, grant this amount to clearing--east"},
		{clearing.PeerReply{Owed: -c, Share: 5 * c}, "answers"},
		{clearing.PeerReply{Standing: clearing.PeerParted, Settled: -2 * c}, "parted ; 2 credits owed to the peer"},
		{clearing.PeerReply{Standing: clearing.PeerParted, Lost: c}, "parted ; 1 credit written off"},
	} {
		x.peer.Peer = "east"
		p := new(cli.Page)
		if got := peerState(p, x.peer); strings.ReplaceAll(got, p.At(0), "") != x.want {
			t.Errorf("%+v\nreads as %q\n     not %q", x.peer, got, x.want)
		}
	}
}

// An agreed parting waits for several things, in a fixed order. The text must name the first thing that is not done
// yet.
func TestWhatAPartingWaitsFor(t *testing.T) {
	const c = messages.Credit
	all := clearing.PeerReply{Owed: c, Settled: 2 * c, Tries: 1, Failure: "timeout", Outstanding: 3, Held: c}
	for _, x := range []struct {
		done func(*clearing.PeerReply)
		want string
	}{
		{func(*clearing.PeerReply) {}, "the debts are settled by the next cycle"},
		{func(r *clearing.PeerReply) { r.Owed = 0 }, "2 credits are settled and not paid"},
		{func(r *clearing.PeerReply) { r.Settled = 0 }, "silent after 1 message: timeout"},
		{func(r *clearing.PeerReply) { r.Tries = 0 }, "the peer's bank has 3 instructions to answer"},
		{func(r *clearing.PeerReply) { r.Outstanding = 0 }, "jobs that the peer pays for still run here"},
		{func(r *clearing.PeerReply) { r.Held = 0 }, "the peer's operator must part too; after that, \"candor peer list\" at the peer's site says what is missing"},
	} {
		x.done(&all)
		if got := parting(all); got != x.want {
			t.Errorf("%q, not %q", got, x.want)
		}
	}
}

func TestDebtsHaveADirection(t *testing.T) {
	for amount, want := range map[messages.Credits]string{
		0: "", 2 * messages.Credit: "2 credits owed by this site", -messages.Credit: "1 credit owed to this site",
	} {
		if got := owed(amount); got != want {
			t.Errorf("%v reads as %q, not %q", amount, got, want)
		}
	}
}

func TestLinksToAPeer(t *testing.T) {
	link := func(rtt messages.Duration, out bool) clearing.Link {
		return clearing.Link{Peer: "east", Address: "east.example:7422", RTT: rtt, Outgoing: out}
	}
	for _, x := range []struct {
		links    []clearing.Link
		way, rtt string
	}{
		{nil, "none", ""},
		{[]clearing.Link{link(0, true)}, "to east.example:7422", ""},
		{[]clearing.Link{link(2e6, false), link(1.5e6, true)}, "from east.example:7422 and 1 more", "1.5 ms"},
	} {
		if way, rtt := way(x.links); way != x.way || rtt != x.rtt {
			t.Errorf("%d links read as %q, %q, not %q, %q", len(x.links), way, rtt, x.way, x.rtt)
		}
	}
	r := siteStatus{Links: clearing.LinksReply{Links: []clearing.Link{link(0, true), {Peer: "north"}}}}
	if got := r.linksTo("east"); len(got) != 1 || got[0].Peer != "east" {
		t.Errorf("links to east: %+v", got)
	}
	if got := r.trip("south"); !strings.Contains(got.Failure, "not in the site's configuration") {
		t.Errorf("the trip to a peer that nobody named: %+v", got)
	}
}
