package client

import (
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
)

func somePeers() messages.PeersReply {
	return messages.PeersReply{
		Site: "west", Key: "ADKEY", Settled: -30 * credit, Reserve: 500 * credit, Cycle: 6,
		Refused: []messages.RefusalTally{{Reason: "signature", Count: 2}, {Reason: "gap", Count: 1}},
		Peers: []messages.PeerReply{
			{Peer: "east", Keys: []string{"AEAST"}, Limit: 100 * credit, Owed: 12 * credit, Held: 3 * credit, Share: 100 * credit, Settled: 40 * credit, Sent: messages.RunningTotal{Number: 1041},
				Received: messages.RunningTotal{Number: 7}, Heard: at(3590)},
			{Peer: "north", Limit: 50 * credit, Share: 50 * credit, Owed: -5 * credit, Outstanding: 3, Waiting: 6 * credit, Tries: 9, Failure: "nobody answers", Heard: at(100)},
			{Peer: "south", Dispute: "totals: compare the lines"},
		},
	}
}

func someNet() messages.NettingReport {
	return messages.NettingReport{
		Cycle: 6, Volume: 90 * credit, Bilateral: 40 * credit, Multilateral: 30 * credit,
		Positions: []messages.Position{
			{Site: "east", Cycle: 6, Net: -30 * credit, Legs: []messages.Leg{{Peer: "west", Paid: 35 * credit, Received: 5 * credit}}},
			{Site: "west", Cycle: 6, Net: 30 * credit, Legs: []messages.Leg{{Peer: "east", Paid: 5 * credit, Received: 35 * credit}}},
		},
		Payments: []messages.NetPayment{{From: "east", To: "west", Amount: 30 * credit}},
		Missing:  []messages.Name{"north"}, Faults: []string{"west says otherwise"},
	}
}

func TestPeerViews(t *testing.T) {
	peers := somePeers()
	peers.Peers = append(peers.Peers, messages.PeerReply{Peer: "wells", Limit: 10 * credit, Share: 10 * credit, Settled: 10 * credit, Owed: -4 * credit})
	differ := messages.ReconcileReply{Peer: "east", Books: []messages.ReconciledBook{
		{Sender: "west", Ours: 9, Theirs: 8},
		{Sender: "east", Ours: 4, Theirs: 4, Difference: &messages.BookDifference{Number: 3, Earlier: true,
			Ours:   messages.ClearingLine{Number: 3, Kind: messages.InstructCharge, Asked: credit, Moved: credit, Digest: []byte("abcdefghi")},
			Theirs: messages.ClearingLine{Number: 3, Kind: messages.InstructCharge, Asked: credit, Refused: true, Digest: []byte("ABCDEFGHI")}}},
	}}
	for name, view := range map[string]func(*page){
		"peers":      func(p *page) { p.peers(peers) },
		"peers_none": func(p *page) { p.peers(messages.PeersReply{Site: "west", Key: "ADKEY"}) },
		"reconciled": func(p *page) { p.reconciled(differ) },
		"net":        func(p *page) { p.net(someNet()) },
		"left":       func(p *page) { p.left(peers.Peers) },
	} {
		p := &page{now: at(3600), zone: time.UTC, columns: 80}
		view(p)
		golden(t, name+".txt", p.String())
	}
}

// TestPeerRequests: what the commands ask the bank for, and how they end.
func TestPeerRequests(t *testing.T) {
	s := newSite(t)
	var peer messages.PeerRequest
	answer(s, messages.Bank, messages.VerbPeer, func(r messages.PeerRequest) (messages.PeerReply, error) {
		peer = r
		return messages.PeerReply{Peer: r.Peer, Limit: r.Limit}, nil
	})
	answer(s, messages.Bank, messages.VerbPeers, func(messages.Empty) (messages.PeersReply, error) { return somePeers(), nil })
	var reserve messages.ReserveRequest
	answer(s, messages.Bank, messages.VerbReserve, func(r messages.ReserveRequest) (messages.AccountReply, error) { reserve = r; return someAccount(), nil })
	var closed messages.CloseRequest
	answer(s, messages.Bank, messages.VerbClose, func(r messages.CloseRequest) (messages.SignedPosition, error) {
		closed = r
		return messages.SignedPosition{}, nil
	})
	report := someNet()
	answer(s, messages.Bank, messages.VerbNet, func(messages.CycleRequest) (messages.NettingReport, error) { return report, nil })
	book := messages.ReconciledBook{Sender: "west", Difference: &messages.BookDifference{Number: 2}}
	answer(s, messages.Bank, messages.VerbReconcile, func(r messages.ReconcileRequest) (messages.ReconcileReply, error) {
		return messages.ReconcileReply{Peer: r.Peer, Books: []messages.ReconciledBook{book}}, nil
	})
	run := func(code int, line, out, err string) {
		t.Helper()
		s.run(strings.Fields(line)...).expect(t, code, out, err)
	}
	run(codeOK, "peer add east --key A --key B --limit 7", "up to 7 credits", "")
	if peer.Peer != "east" || strings.Join(peer.Keys, ",") != "A,B" || peer.Limit != 7*credit {
		t.Errorf("asked for %+v", peer)
	}
	run(codeOK, "peer limit east 9", "up to 9 credits", "")
	if strings.Join(peer.Keys, ",") != "AEAST" || peer.Limit != 9*credit {
		t.Errorf("asked for %+v", peer)
	}
	run(codeNotFound, "peer limit nowhere 9", "", "candor peer add")
	run(codeUsage, "peer add east --limit 7", "", "key")
	run(codeUsage, "peer", "", "reconcile")
	run(codeOK, "peer reserve 11", "", "")
	if reserve.Limit != 11*credit {
		t.Errorf("asked for %+v", reserve)
	}
	run(codeOK, "peer list", "silent after 9 messages: nobody answers", "")
	run(codeOK, "peer list --json", `"key":"ADKEY"`, "")
	run(codeFailed, "peer reconcile east", "first at number 2", "")
	book.Difference = nil
	run(codeOK, "peer reconcile east", "the books agree", "")
	run(codeFailed, "settle", "NOT complete", "")
	if closed.Cycle != 0 {
		t.Error("a look closed a cycle")
	}
	report.Balanced = true
	run(codeOK, "settle --cycle 6", "east pays 30 credits to west", "")
	if closed.Cycle != 6 {
		t.Errorf("closed %+v", closed)
	}
	run(codeUsage, "settle --cycle none", "", "--cycle")
}
