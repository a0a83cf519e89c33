package client

import (
	"reflect"
	"strings"
	"testing"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/money"
)

func somePeers() clearing.PeersReply {
	return clearing.PeersReply{
		Site: "west", Key: "ADKEY", Settled: -30 * credit, Reserve: 500 * credit, Cycle: 6,
		Refused: []clearing.RefusalTally{{Reason: "signature", Count: 2}, {Reason: "gap", Count: 1}},
		Peers: []clearing.PeerReply{
			{Peer: "east", Keys: []string{"AEAST"}, Limit: 100 * credit, Owed: 12 * credit, Held: 3 * credit, Share: 100 * credit, Settled: 40 * credit, Sent: clearing.RunningTotal{Number: 1041},
				Received: clearing.RunningTotal{Number: 7}, Heard: at(3590)},
			{Peer: "north", Limit: 50 * credit, Share: 50 * credit, Owed: -5 * credit, Outstanding: 3, Waiting: 6 * credit, Tries: 9, Failure: "nobody answers", Heard: at(100)},
			{Peer: "south", Dispute: "totals: compare the lines"},
		},
	}
}

func someNet() clearing.NettingReport {
	return clearing.NettingReport{
		Cycle: 6, Volume: 90 * credit, Bilateral: 40 * credit, Multilateral: 30 * credit,
		Positions: []clearing.Position{
			{Site: "east", Cycle: 6, Net: -30 * credit, Legs: []clearing.Leg{{Peer: "west", Paid: 35 * credit, Received: 5 * credit}}},
			{Site: "west", Cycle: 6, Net: 30 * credit, Legs: []clearing.Leg{{Peer: "east", Paid: 5 * credit, Received: 35 * credit}}},
		},
		Payments: []clearing.NetPayment{{From: "east", To: "west", Amount: 30 * credit}},
		Missing:  []messages.Name{"north"}, Faults: []string{"west says otherwise"},
	}
}

func TestPeerViews(t *testing.T) {
	peers := somePeers()
	peers.Peers = append(peers.Peers, clearing.PeerReply{Peer: "wells", Limit: 10 * credit, Share: 10 * credit, Settled: 10 * credit, Owed: -4 * credit})
	differ := clearing.ReconcileReply{Peer: "east", Books: []clearing.ReconciledBook{
		{Sender: "west", Ours: 9, Theirs: 8},
		{Sender: "east", Ours: 4, Theirs: 4, Difference: &clearing.BookDifference{Number: 3, Earlier: true,
			Ours:   clearing.ClearingLine{Number: 3, Kind: clearing.InstructCharge, Asked: credit, Moved: credit, Digest: []byte("abcdefghi")},
			Theirs: clearing.ClearingLine{Number: 3, Kind: clearing.InstructCharge, Asked: credit, Refused: true, Digest: []byte("ABCDEFGHI")}}},
		{Sender: "west", Ours: 1, Theirs: 2, LostHere: 1, LostThere: 2},
	}}
	parted := clearing.PeersReply{Site: "west", Key: "ADKEY", Peers: []clearing.PeerReply{
		{Peer: "a", Standing: clearing.PeerParted, Since: 1_790_000_000_000_000, Lost: 5 * credit},
		{Peer: "b", Standing: clearing.PeerParted, Since: 1_790_000_000_000_000, Settled: -5 * credit},
		{Peer: "c", Standing: clearing.PeerParting, Since: 1_790_000_000_000_000, Owed: credit},
		{Peer: "d", Standing: clearing.PeerSuspended, Since: 1_790_000_000_000_000, Tries: 9, Failure: "nobody serves that"},
		{Peer: "e", Leaving: true},
		{Peer: "f", Standing: clearing.PeerParting, Since: 1_790_000_000_000_000},
		{Peer: "g", Owed: -3 * credit, Settled: 2 * credit, Tries: 6, Failure: "parted: site \"west\" was parted from at 2026-11-27T15:14:32Z: an operator can make it a peer again"},
	}}
	settled := func(s *fakeSite) {
		gives[clearing.CycleRequest](messages.Bank, clearing.VerbNet, someNet())(s)
		gives[messages.Empty](messages.Bank, clearing.VerbPeers, peers)(s)
	}
	checkViews(t, map[string]view{
		"peers":      {"peer list", gives[messages.Empty](messages.Bank, clearing.VerbPeers, peers)},
		"peers_none": {"peer list", gives[messages.Empty](messages.Bank, clearing.VerbPeers, clearing.PeersReply{Site: "west", Key: "ADKEY"})},
		"parted":     {"peer part a --loss 5 --reason gone", gives[clearing.PartRequest](messages.Bank, clearing.VerbPart, clearing.PartReply{Peer: parted.Peers[0], Returned: 2 * credit})},
		"parting":    {"peer part c", gives[clearing.PartRequest](messages.Bank, clearing.VerbPart, clearing.PartReply{Peer: parted.Peers[2], Authorised: 1, Visits: 2})},
		"standings":  {"peer list", gives[messages.Empty](messages.Bank, clearing.VerbPeers, parted)},
		"reconciled": {"peer reconcile east", gives[clearing.ReconcileRequest](messages.Bank, clearing.VerbReconcile, differ)},
		"settled":    {"settle", settled},
	})
}

// TestPeerRequests checks the requests that the commands about peers send to the bank, and their exit codes.
func TestPeerRequests(t *testing.T) {
	s := newSite(t)
	var peer clearing.PeerRequest
	answer(s, messages.Bank, clearing.VerbPeer, func(r clearing.PeerRequest) (clearing.PeerReply, error) {
		peer = r
		return clearing.PeerReply{Peer: r.Peer, Limit: r.Limit}, nil
	})
	answer(s, messages.Bank, clearing.VerbPeers, func(messages.Empty) (clearing.PeersReply, error) { return somePeers(), nil })
	var reserve clearing.ReserveRequest
	answer(s, messages.Bank, clearing.VerbReserve, func(r clearing.ReserveRequest) (money.AccountReply, error) { reserve = r; return someAccount(), nil })
	var closed clearing.CloseRequest
	answer(s, messages.Bank, clearing.VerbClose, func(r clearing.CloseRequest) (clearing.SignedPosition, error) {
		closed = r
		return clearing.SignedPosition{}, nil
	})
	report := someNet()
	answer(s, messages.Bank, clearing.VerbNet, func(clearing.CycleRequest) (clearing.NettingReport, error) { return report, nil })
	books := clearing.ReconcileReply{Books: []clearing.ReconciledBook{{Sender: "west", Difference: &clearing.BookDifference{Number: 2}}}}
	answer(s, messages.Bank, clearing.VerbReconcile, func(r clearing.ReconcileRequest) (clearing.ReconcileReply, error) {
		books.Peer = r.Peer
		return books, nil
	})
	var confirm clearing.ConfirmRequest
	answer(s, messages.Bank, clearing.VerbConfirm, func(r clearing.ConfirmRequest) (clearing.SignedTotals, error) {
		confirm = r
		return clearing.SignedTotals{Totals: r.Totals}, nil
	})
	var adopt clearing.AdoptRequest
	answer(s, messages.Bank, clearing.VerbAdopt, func(r clearing.AdoptRequest) (clearing.Adoption, error) {
		adopt = r
		a := *books.Adoption
		books.Adoption = nil
		return a, nil
	})
	run := func(code int, line, out, err string) {
		t.Helper()
		s.run(strings.Fields(line)...).expect(t, code, out, err)
	}
	run(cli.CodeOK, "peer add east --key A --key B --limit 7", "up to 7 credits", "")
	if peer.Peer != "east" || strings.Join(peer.Keys, ",") != "A,B" || peer.Limit != 7*credit {
		t.Errorf("asked for %+v", peer)
	}
	run(cli.CodeOK, "peer limit east 9", "up to 9 credits", "")
	if strings.Join(peer.Keys, ",") != "AEAST" || peer.Limit != 9*credit {
		t.Errorf("asked for %+v", peer)
	}
	run(cli.CodeNotFound, "peer limit nowhere 9", "", "candor peer add")
	run(cli.CodeUsage, "peer add east --limit 7", "", "key")
	run(cli.CodeUsage, "peer", "", "reconcile")
	run(cli.CodeOK, "peer reserve 11", "", "")
	if reserve.Limit != 11*credit {
		t.Errorf("asked for %+v", reserve)
	}
	run(cli.CodeOK, "peer list", "silent after 9 messages: nobody answers", "")
	run(cli.CodeOK, "peer list --json", `"key":"ADKEY"`, "")
	run(cli.CodeFailed, "peer reconcile east", "first at number 2", "")
	books.Books[0].Difference = nil
	run(cli.CodeOK, "peer reconcile east", "the books agree", "")
	run(cli.CodeOK, "peer reconcile east --adopt", "the books agree", "")
	run(cli.CodeUsage, "peer reconcile east --adopt --confirm", "", "confirm")
	books.Totals = clearing.Totals{Site: "west", Sent: clearing.RunningTotal{Number: 12}, Authorised: 3 * credit}
	run(cli.CodeOK, "peer reconcile east --confirm", "candor peer reconcile west --adopt", "")
	if !reflect.DeepEqual(confirm.Totals, books.Totals) {
		t.Errorf("confirmed %+v", confirm)
	}
	books.Adoption = &clearing.Adoption{Numbers: 10_000, Correction: -2 * credit, Returned: credit}
	books.Theirs = clearing.SignedTotals{Totals: clearing.Totals{Site: "east", Confirmed: true}, Signature: []byte("east")}
	run(cli.CodeFailed, "peer reconcile east", "To go on from the totals of east: candor peer reconcile east --adopt", "")
	run(cli.CodeRepaired, "peer reconcile east --adopt", "For clearing--correction  -2", "")
	if !reflect.DeepEqual(adopt, clearing.AdoptRequest{Totals: books.Theirs, Correction: -2 * credit}) {
		t.Errorf("asked for %+v", adopt)
	}
	books.Books[0].LostHere = 1 // the totals of east do not contain it
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

// TestClearingAccountsSayWhoOwes checks the account of a peer's settled debts. It has no credits to spend; the rest
// after a payment is a debt.
func TestClearingAccountsSayWhoOwes(t *testing.T) {
	for balance, want := range map[messages.Credits]string{
		3 * credit:  "Withdrew 5 credits from clearing--west; this site still owes 3 credits on clearing--west\n",
		0:           "Withdrew 5 credits from clearing--west; nothing is owed on clearing--west now\n",
		-3 * credit: "Withdrew 5 credits from clearing--west; this site is still owed 3 credits on clearing--west\n",
	} {
		s := newSite(t)
		gives[money.WithdrawRequest](messages.Bank, money.VerbWithdraw, money.AccountReply{Account: "clearing--west", Balance: balance, Available: balance})(s)
		s.run("withdraw", "clearing--west", "5", "--reason", "paid", "--account", "operator").expect(t, cli.CodeOK, want, "")
	}
}

// TestTermsOfAPartedPeer checks that only candor peer add makes a parted site a peer again. Setting new terms for a
// site that is being parted must not stop the parting.
func TestTermsOfAPartedPeer(t *testing.T) {
	s := newSite(t)
	var asked int
	standing := clearing.PeerParted
	answer(s, messages.Bank, clearing.VerbPeer, func(r clearing.PeerRequest) (clearing.PeerReply, error) {
		asked++
		return clearing.PeerReply{Peer: r.Peer, Limit: r.Limit, Standing: standing}, nil
	})
	answer(s, messages.Bank, clearing.VerbPeers, func(messages.Empty) (clearing.PeersReply, error) {
		return clearing.PeersReply{Peers: []clearing.PeerReply{{Peer: "east", Keys: []string{"AEAST"}, Standing: standing}}}, nil
	})
	for _, line := range []string{"peer limit east 0", "peer key east ANEW --now"} {
		s.run(strings.Fields(line)...).expect(t, cli.CodeFailed, "", "candor peer add makes it a peer again")
	}
	if asked > 0 {
		t.Error("a limit made a site a peer that was parted from")
	}
	standing = clearing.PeerParting
	s.run("peer", "limit", "east", "9").expect(t, cli.CodeOK, "is still parting from east", "")
}
