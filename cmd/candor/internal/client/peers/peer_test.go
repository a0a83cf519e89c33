package peers_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/peers"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/clienttest"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/money"
)

// newSite returns a site whose user has the commands of the package, with "site status".
func newSite(t *testing.T) *clienttest.Site {
	return clienttest.New(t, peers.Commands, func(a *cli.App) []*cobra.Command {
		site := &cobra.Command{Use: "site", Short: "prepare a site"}
		peers.AddStatus(a, site, site.UsageTemplate())
		return []*cobra.Command{site}
	})
}

func somePeers() clearing.PeersReply {
	return clearing.PeersReply{
		Site: "west", Key: "ADKEY", Settled: -30 * messages.Credit, Reserve: 500 * messages.Credit, Cycle: 6,
		Refused: []clearing.RefusalTally{{Reason: "signature", Count: 2}, {Reason: "gap", Count: 1}},
		Peers: []clearing.PeerReply{
			{Peer: "east", Keys: []string{"AEAST"}, Limit: 100 * messages.Credit, Owed: 12 * messages.Credit, Held: 3 * messages.Credit, Share: 100 * messages.Credit, Settled: 40 * messages.Credit, Sent: clearing.RunningTotal{Number: 1041},
				Received: clearing.RunningTotal{Number: 7}, Heard: clienttest.At(3590)},
			{Peer: "north", Limit: 50 * messages.Credit, Share: 50 * messages.Credit, Owed: -5 * messages.Credit, Outstanding: 3, Waiting: 6 * messages.Credit, Tries: 9, Failure: "nobody answers", Heard: clienttest.At(100)},
			{Peer: "south", Dispute: "totals: compare the lines"},
		},
	}
}

func someNet() clearing.NettingReport {
	return clearing.NettingReport{
		Cycle: 6, Volume: 90 * messages.Credit, Bilateral: 40 * messages.Credit, Multilateral: 30 * messages.Credit,
		Positions: []clearing.Position{
			{Site: "east", Cycle: 6, Net: -30 * messages.Credit, Legs: []clearing.Leg{{Peer: "west", Paid: 35 * messages.Credit, Received: 5 * messages.Credit}}},
			{Site: "west", Cycle: 6, Net: 30 * messages.Credit, Legs: []clearing.Leg{{Peer: "east", Paid: 5 * messages.Credit, Received: 35 * messages.Credit}}},
		},
		Payments: []clearing.NetPayment{{From: "east", To: "west", Amount: 30 * messages.Credit}},
		Missing:  []messages.Name{"north"}, Faults: []string{"west says otherwise"},
	}
}

func TestPeerViews(t *testing.T) {
	peers := somePeers()
	peers.Peers = append(peers.Peers, clearing.PeerReply{Peer: "wells", Limit: 10 * messages.Credit, Share: 10 * messages.Credit, Settled: 10 * messages.Credit, Owed: -4 * messages.Credit})
	differ := clearing.ReconcileReply{Peer: "east", Books: []clearing.ReconciledBook{
		{Sender: "west", Ours: 9, Theirs: 8},
		{Sender: "east", Ours: 4, Theirs: 4, Difference: &clearing.BookDifference{Number: 3, Earlier: true,
			Ours:   clearing.ClearingLine{Number: 3, Kind: clearing.InstructCharge, Asked: messages.Credit, Moved: messages.Credit, Digest: []byte("abcdefghi")},
			Theirs: clearing.ClearingLine{Number: 3, Kind: clearing.InstructCharge, Asked: messages.Credit, Refused: true, Digest: []byte("ABCDEFGHI")}}},
		{Sender: "west", Ours: 1, Theirs: 2, LostHere: 1, LostThere: 2},
	}}
	parted := clearing.PeersReply{Site: "west", Key: "ADKEY", Peers: []clearing.PeerReply{
		{Peer: "a", Standing: clearing.PeerParted, Since: 1_790_000_000_000_000, Lost: 5 * messages.Credit},
		{Peer: "b", Standing: clearing.PeerParted, Since: 1_790_000_000_000_000, Settled: -5 * messages.Credit},
		{Peer: "c", Standing: clearing.PeerParting, Since: 1_790_000_000_000_000, Owed: messages.Credit},
		{Peer: "d", Standing: clearing.PeerSuspended, Since: 1_790_000_000_000_000, Tries: 9, Failure: "nobody serves that"},
		{Peer: "e", Leaving: true},
		{Peer: "f", Standing: clearing.PeerParting, Since: 1_790_000_000_000_000},
		{Peer: "g", Owed: -3 * messages.Credit, Settled: 2 * messages.Credit, Tries: 6, Failure: "parted: site \"west\" was parted from at 2026-11-27T15:14:32Z: an operator can make it a peer again"},
	}}
	settled := func(s *clienttest.Site) {
		clienttest.Gives[clearing.CycleRequest](messages.Bank, clearing.VerbNet, someNet())(s)
		clienttest.Gives[messages.Empty](messages.Bank, clearing.VerbPeers, peers)(s)
	}
	clienttest.CheckViews(t, newSite, map[string]clienttest.View{
		"peers":      {Line: "peer list", Serve: clienttest.Gives[messages.Empty](messages.Bank, clearing.VerbPeers, peers)},
		"peers_none": {Line: "peer list", Serve: clienttest.Gives[messages.Empty](messages.Bank, clearing.VerbPeers, clearing.PeersReply{Site: "west", Key: "ADKEY"})},
		"parted":     {Line: "peer part a --loss 5 --reason gone", Serve: clienttest.Gives[clearing.PartRequest](messages.Bank, clearing.VerbPart, clearing.PartReply{Peer: parted.Peers[0], Returned: 2 * messages.Credit})},
		"parting":    {Line: "peer part c", Serve: clienttest.Gives[clearing.PartRequest](messages.Bank, clearing.VerbPart, clearing.PartReply{Peer: parted.Peers[2], Authorised: 1, Visits: 2})},
		"standings":  {Line: "peer list", Serve: clienttest.Gives[messages.Empty](messages.Bank, clearing.VerbPeers, parted)},
		"reconciled": {Line: "peer reconcile east", Serve: clienttest.Gives[clearing.ReconcileRequest](messages.Bank, clearing.VerbReconcile, differ)},
		"settled":    {Line: "settle", Serve: settled},
	})
}

func TestPeerRequests(t *testing.T) {
	s := newSite(t)
	var peer clearing.PeerRequest
	clienttest.Answer(s, messages.Bank, clearing.VerbPeer, func(r clearing.PeerRequest) (clearing.PeerReply, error) {
		peer = r
		return clearing.PeerReply{Peer: r.Peer, Limit: r.Limit}, nil
	})
	clienttest.Answer(s, messages.Bank, clearing.VerbPeers, func(messages.Empty) (clearing.PeersReply, error) { return somePeers(), nil })
	var reserve clearing.ReserveRequest
	clienttest.Answer(s, messages.Bank, clearing.VerbReserve, func(r clearing.ReserveRequest) (money.AccountReply, error) {
		reserve = r
		return clienttest.Account(), nil
	})
	var closed clearing.CloseRequest
	clienttest.Answer(s, messages.Bank, clearing.VerbClose, func(r clearing.CloseRequest) (clearing.SignedPosition, error) {
		closed = r
		return clearing.SignedPosition{}, nil
	})
	report := someNet()
	clienttest.Answer(s, messages.Bank, clearing.VerbNet, func(clearing.CycleRequest) (clearing.NettingReport, error) { return report, nil })
	books := clearing.ReconcileReply{Books: []clearing.ReconciledBook{{Sender: "west", Difference: &clearing.BookDifference{Number: 2}}}}
	clienttest.Answer(s, messages.Bank, clearing.VerbReconcile, func(r clearing.ReconcileRequest) (clearing.ReconcileReply, error) {
		books.Peer = r.Peer
		return books, nil
	})
	var confirm clearing.ConfirmRequest
	clienttest.Answer(s, messages.Bank, clearing.VerbConfirm, func(r clearing.ConfirmRequest) (clearing.SignedTotals, error) {
		confirm = r
		return clearing.SignedTotals{Totals: r.Totals}, nil
	})
	var adopt clearing.AdoptRequest
	clienttest.Answer(s, messages.Bank, clearing.VerbAdopt, func(r clearing.AdoptRequest) (clearing.Adoption, error) {
		adopt = r
		a := *books.Adoption
		books.Adoption = nil
		return a, nil
	})
	run := func(code int, line, out, err string) {
		t.Helper()
		s.Run(strings.Fields(line)...).Expect(t, code, out, err)
	}
	run(cli.CodeOK, "peer add east --key A --key B --limit 7", "up to 7 credits", "")
	if peer.Peer != "east" || strings.Join(peer.Keys, ",") != "A,B" || peer.Limit != 7*messages.Credit {
		t.Errorf("asked for %+v", peer)
	}
	run(cli.CodeOK, "peer limit east 9", "up to 9 credits", "")
	if strings.Join(peer.Keys, ",") != "AEAST" || peer.Limit != 9*messages.Credit {
		t.Errorf("asked for %+v", peer)
	}
	run(cli.CodeNotFound, "peer limit nowhere 9", "", "candor peer add")
	run(cli.CodeUsage, "peer add east --limit 7", "", "key")
	run(cli.CodeUsage, "peer", "", "reconcile")
	run(cli.CodeOK, "peer reserve 11", "", "")
	if reserve.Limit != 11*messages.Credit {
		t.Errorf("asked for %+v", reserve)
	}
	run(cli.CodeOK, "peer list", "silent after 9 messages: nobody answers", "")
	run(cli.CodeOK, "peer list --json", `"key":"ADKEY"`, "")
	run(cli.CodeFailed, "peer reconcile east", "first difference at number 2", "")
	books.Books[0].Difference = nil
	run(cli.CodeOK, "peer reconcile east", "the books agree", "")
	run(cli.CodeOK, "peer reconcile east --adopt", "the books agree", "")
	run(cli.CodeUsage, "peer reconcile east --adopt --confirm", "", "confirm")
	books.Totals = clearing.Totals{Site: "west", Sent: clearing.RunningTotal{Number: 12}, Authorised: 3 * messages.Credit}
	run(cli.CodeOK, "peer reconcile east --confirm", "candor peer reconcile west --adopt", "")
	if !reflect.DeepEqual(confirm.Totals, books.Totals) {
		t.Errorf("confirmed %+v", confirm)
	}
	books.Adoption = &clearing.Adoption{Numbers: 10_000, Correction: -2 * messages.Credit, Returned: messages.Credit}
	books.Theirs = clearing.SignedTotals{Totals: clearing.Totals{Site: "east", Confirmed: true}, Signature: []byte("east")}
	run(cli.CodeFailed, "peer reconcile east", "To go on from the totals of east: candor peer reconcile east --adopt", "")
	run(cli.CodeRepaired, "peer reconcile east --adopt", "For clearing--correction  -2", "")
	if !reflect.DeepEqual(adopt, clearing.AdoptRequest{Totals: books.Theirs, Correction: -2 * messages.Credit}) {
		t.Errorf("asked for %+v", adopt)
	}
	books.Books[0].LostHere = 1 // one message number is lost here, and the totals of east do not contain it
	run(cli.CodeFailed, "peer reconcile east --adopt", "Lost here: 1 message number", "")
	run(cli.CodeFailed, "settle", "NOT complete", "")
	if closed.Cycle != 0 {
		t.Error("a look closed a cycle")
	}
	report.Balanced = true
	run(cli.CodeOK, "settle --cycle 6", "east pays 30 credits to west", "")
	if closed.Cycle != 6 {
		t.Errorf("closed %+v", closed)
	}
	run(cli.CodeUsage, "settle --cycle none", "", "--cycle")
}

// Only candor peer add makes a parted site a peer again. New terms for a site must not stop its parting.
func TestTermsOfAPartedPeer(t *testing.T) {
	s := newSite(t)
	var asked int
	standing := clearing.PeerParted
	clienttest.Answer(s, messages.Bank, clearing.VerbPeer, func(r clearing.PeerRequest) (clearing.PeerReply, error) {
		asked++
		return clearing.PeerReply{Peer: r.Peer, Limit: r.Limit, Standing: standing}, nil
	})
	clienttest.Answer(s, messages.Bank, clearing.VerbPeers, func(messages.Empty) (clearing.PeersReply, error) {
		return clearing.PeersReply{Peers: []clearing.PeerReply{{Peer: "east", Keys: []string{"AEAST"}, Standing: standing}}}, nil
	})
	for _, line := range []string{"peer limit east 0", "peer key east ANEW --now"} {
		s.Run(strings.Fields(line)...).Expect(t, cli.CodeFailed, "", "\"candor peer add\" makes that site a peer again")
	}
	if asked > 0 {
		t.Error("a limit made a site a peer that was parted from")
	}
	standing = clearing.PeerParting
	s.Run("peer", "limit", "east", "9").Expect(t, cli.CodeOK, "is still parting from east", "")
}
