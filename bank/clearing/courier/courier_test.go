package courier

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/candor-grid/candor/bank/clearing"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	clearingmsg "github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/mailbox"
	"github.com/candor-grid/candor/messages/money"
	"github.com/candor-grid/candor/messages/proof"
)

const hour = messages.Duration(3600_000_000_000)

// TestAuthorisationsOverTheBus takes authorisations from the request to the settlement, while the bus loses a third of
// the messages.
func TestAuthorisationsOverTheBus(t *testing.T) {
	east, west := pair(t)
	east.road.set(0.3)
	west.road.set(0.3)
	for i := range 20 {
		if i == 10 {
			west.road.set(1) // west continues to charge, and cannot be reached
		}
		a := must[clearingmsg.SignedAuthorisation](east, "ada", clearingmsg.VerbAuthorise,
			clearingmsg.AuthoriseRequest{Key: fmt.Sprint(i), Peer: "west", Amount: 3 * messages.Credit, Interval: hour})
		must[clearingmsg.ClearingReply](west, "$auctioneer", clearingmsg.VerbAccept, clearingmsg.AcceptRequest{Purpose: "job", Authorisation: a})
		must[clearingmsg.ClearingReply](west, "$auctioneer", clearingmsg.VerbCharge,
			clearingmsg.ChargeRequest{Issuer: "east", ID: a.Authorisation.ID, Amount: 2 * messages.Credit, Job: messages.JobID(i + 1)})
		must[clearingmsg.ClearingReply](west, "ada", clearingmsg.VerbRemit,
			clearingmsg.RemitRequest{Key: fmt.Sprint(i), Peer: "east", Payee: "ada", Amount: messages.Credit / 2})
	}
	if got := west.account("ada"); got.Reserved < 5*messages.Credit {
		t.Errorf("cut off, west has %v reserved: nobody may be refunded", got.Reserved)
	}
	await.Until(west, "west tries in vain", func() bool { return west.count("candor_bank_clearing_messages_total", "again") > 3 })
	west.road.set(0.3)
	west.settled()
	east.settled()
	if got := east.account("ada"); got.Balance != 70*messages.Credit || got.Reserved != 0 {
		t.Errorf("ada has %v at home with %v reserved, want 70", got.Balance, got.Reserved)
	}
	if got := west.account(money.SiteAccount).Balance; got != 40*messages.Credit {
		t.Errorf("west earned %v, want 40", got)
	}
	for _, s := range []*site{east, west} {
		s.road.set(0)
		other := messages.Name("east")
		if s == east {
			other = "west"
		}
		found, err := s.courier.peers.reconcile(context.Background(), other)
		want := []clearingmsg.ReconciledBook{{Sender: "east"}, {Sender: "west", Ours: 40, Theirs: 40}} // 20 charges, 20 payments
		if s == west {
			want[0], want[1] = want[1], want[0]
		}
		if err != nil || !reflect.DeepEqual(found.Books, want) {
			t.Errorf("%s: reconciled to %v, %v", s.name, found, err)
		}
	}
	settle(t, east, west)
}

// settle closes cycle 1 at all sites, and checks the debts between them afterwards.
func settle(t *testing.T, sides ...*site) {
	t.Helper()
	var positions []clearingmsg.Position
	for _, s := range sides {
		must[clearingmsg.SignedPosition](s, "ops", clearingmsg.VerbClose, clearingmsg.CloseRequest{Cycle: 1})
	}
	for _, s := range sides {
		await.Until(s, "the position is complete", func() bool {
			return must[clearingmsg.SignedPosition](s, "ops", clearingmsg.VerbClose, clearingmsg.CloseRequest{}).Position.Complete
		})
		p := must[clearingmsg.SignedPosition](s, "ops", clearingmsg.VerbClose, clearingmsg.CloseRequest{Cycle: 1})
		public, err := s.keys.PublicKey()
		if err != nil || !clearing.VerifyPosition(proof.Verified, []string{public}, &p) {
			t.Errorf("%s: its position does not verify: %v", s.name, err)
		}
		positions = append(positions, p.Position)
	}
	report := clearing.Net(1, positions)
	if !report.Balanced || len(report.Payments) != 1 || report.Payments[0].Amount != 30*messages.Credit || report.Payments[0].From != "east" {
		t.Errorf("got %+v, want east to pay 30", report)
	}
}

// TestUnknownOutcomes loses either commands of the courier or the answers to them, so their outcomes are unknown. Each
// command must be sent again, and be carried out only once.
func TestUnknownOutcomes(t *testing.T) {
	east, west := pair(t)
	for _, loss := range []mailbox.Loss{mailbox.LoseAnswer, mailbox.LoseCommand} {
		for _, s := range []*site{east, west} {
			s.host.box.LoseNext(loss)
			must[clearingmsg.ClearingReply](east, "ada", clearingmsg.VerbRemit,
				clearingmsg.RemitRequest{Key: fmt.Sprint(s.name, loss), Peer: "west", Payee: "ada", Amount: messages.Credit})
		}
	}
	east.settled()
	if got := west.account("ada").Balance; got != 104*messages.Credit {
		t.Errorf("ada has %v at west, want 104", got)
	}
}

func TestTickReleases(t *testing.T) {
	east, west := pair(t)
	a := must[clearingmsg.SignedAuthorisation](east, "ada", clearingmsg.VerbAuthorise,
		clearingmsg.AuthoriseRequest{Key: "k", Peer: "west", Amount: 30 * messages.Credit, Interval: hour})
	must[clearingmsg.ClearingReply](west, "$auctioneer", clearingmsg.VerbAccept, clearingmsg.AcceptRequest{Purpose: "job", Authorisation: a})
	west.pass(hour)
	await.Until(east, "the credits are free", func() bool { return east.account("ada").Reserved == 0 })
}

// TestTrivialAuthorisationsAreRefused checks that a very small authorisation is refused, because it costs as much work
// as any other.
func TestTrivialAuthorisationsAreRefused(t *testing.T) {
	east, west := pair(t)
	of := func(key string, amount messages.Credits) clearingmsg.AcceptRequest {
		return clearingmsg.AcceptRequest{Purpose: key, Authorisation: must[clearingmsg.SignedAuthorisation](east, "ada", clearingmsg.VerbAuthorise,
			clearingmsg.AuthoriseRequest{Key: key, Peer: "west", Amount: amount, Interval: hour})}
	}
	west.refused(messages.Insufficient, "$auctioneer", clearingmsg.VerbAccept, of("less", messages.Credit/100-1))
	must[clearingmsg.ClearingReply](west, "$auctioneer", clearingmsg.VerbAccept, of("least", messages.Credit/100))
}

// TestWhoMayAsk checks that only permitted callers are answered, and that nothing forged reaches the log.
func TestWhoMayAsk(t *testing.T) {
	east, west := pair(t)
	a := must[clearingmsg.SignedAuthorisation](east, "ada", clearingmsg.VerbAuthorise,
		clearingmsg.AuthoriseRequest{Key: "k", Peer: "west", Amount: 30 * messages.Credit, Interval: hour})
	west.refused(messages.PermissionDenied, "ada", clearingmsg.VerbAccept, clearingmsg.AcceptRequest{Purpose: "job", Authorisation: a})
	west.refused(messages.PermissionDenied, "ada", clearingmsg.VerbCharge, clearingmsg.ChargeRequest{Issuer: "east", ID: "x"})
	west.refused(messages.PermissionDenied, "ada", clearingmsg.VerbPeer, clearingmsg.PeerRequest{})
	west.refused(messages.PermissionDenied, "ada", clearingmsg.VerbReserve, clearingmsg.ReserveRequest{})
	west.refused(messages.PermissionDenied, "$auctioneer", clearingmsg.VerbClose, clearingmsg.CloseRequest{Cycle: 1})
	west.refused(messages.PermissionDenied, "ada", clearingmsg.VerbPeers, messages.Empty{})
	west.refused(messages.PermissionDenied, "east", clearingmsg.VerbLines, clearingmsg.LinesRequest{Sender: "east"})
	west.refused(messages.NotFound, "$north", clearingmsg.VerbLines, clearingmsg.LinesRequest{Sender: "east"})

	m := clearingmsg.SignedInstructions{Instructions: clearingmsg.Instructions{From: "east", To: "west", First: 1}, Signature: make([]byte, 64)}
	west.refused(messages.PermissionDenied, "$north", clearingmsg.VerbInstruct, m)
	west.refused(messages.PermissionDenied, "$east", clearingmsg.VerbInstruct, m)
	forged := a
	forged.Authorisation.Amount *= 2
	west.refused(messages.PermissionDenied, "$auctioneer", clearingmsg.VerbAccept, clearingmsg.AcceptRequest{Purpose: "job", Authorisation: forged})
	if got := west.count("candor_bank_clearing_refusals_total", "signature"); got != 2 {
		t.Errorf("%v forgeries were counted, want 2", got)
	}
	for account, balance := range map[messages.Name]messages.Credits{clearing.PeerAccount("east"): 0, "ada": 100 * messages.Credit} {
		if a := west.account(account); a.Balance != balance || a.Reserved != 0 {
			t.Errorf("after what was refused %s has %v with %v reserved, want %v", account, a.Balance, a.Reserved, balance)
		}
	}
	if got := must[clearingmsg.PeersReply](west, "$auctioneer", clearingmsg.VerbPeers, messages.Empty{}); len(got.Peers) != 1 {
		t.Errorf("got %+v", got)
	}
}

func TestReconcileRefusesForgedPages(t *testing.T) {
	east, _ := pair(t)
	must[clearingmsg.ClearingReply](east, "ada", clearingmsg.VerbRemit, clearingmsg.RemitRequest{Key: "k", Peer: "west", Payee: "ada", Amount: messages.Credit})
	east.settled()
	public, err := east.keys.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	must[clearingmsg.PeerReply](east, "ops", clearingmsg.VerbPeer, clearingmsg.PeerRequest{Peer: "west", Keys: []string{public}, Limit: 1, Retire: true})
	if _, err := east.courier.peers.reconcile(context.Background(), "west"); messages.KindOf(err) != messages.PermissionDenied {
		t.Errorf("got %v", err)
	}
	if _, err := east.courier.peers.reconcile(context.Background(), "north"); messages.KindOf(err) != messages.NotFound {
		t.Errorf("got %v", err)
	}
}

// TestNetSaysWhoIsMissing checks that a silent peer is reported as missing, and a position without a valid signature as
// a fault.
func TestNetSaysWhoIsMissing(t *testing.T) {
	east, west := pair(t)
	for _, s := range []*site{east, west} {
		must[clearingmsg.SignedPosition](s, "ops", clearingmsg.VerbClose, clearingmsg.CloseRequest{Cycle: 1})
	}
	east.settled()
	west.settled()
	net := func() clearingmsg.NettingReport {
		return must[clearingmsg.NettingReport](east, "ops", clearingmsg.VerbNet, clearingmsg.CycleRequest{})
	}
	if r := net(); !r.Balanced || len(r.Positions) != 2 || r.Cycle != 1 {
		t.Errorf("got %+v", r)
	}
	east.road.set(1)
	if r := net(); r.Balanced || len(r.Missing) != 1 || r.Missing[0] != "west" || len(r.Faults) != 0 {
		t.Errorf("cut off: %+v", r)
	}
	public, err := east.keys.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	must[clearingmsg.PeerReply](east, "ops", clearingmsg.VerbPeer, clearingmsg.PeerRequest{Peer: "west", Keys: []string{public}, Limit: 1, Retire: true})
	east.road.set(0)
	if r := net(); r.Balanced || len(r.Missing) != 1 || len(r.Faults) != 1 {
		t.Errorf("signed by somebody else: %+v", r)
	}
	east.refused(messages.NotFound, "ops", clearingmsg.VerbNet, clearingmsg.CycleRequest{Cycle: 2})
}

// TestRevokeOverTheBus: the peer's bank gives up an authorisation. The user must get the credits back at once.
func TestRevokeOverTheBus(t *testing.T) {
	east, west := pair(t)
	a := must[clearingmsg.SignedAuthorisation](east, "ada", clearingmsg.VerbAuthorise,
		clearingmsg.AuthoriseRequest{Key: "k", Peer: "west", Amount: 30 * messages.Credit, Interval: hour})
	must[clearingmsg.ClearingReply](east, "ada", clearingmsg.VerbRevoke, clearingmsg.RevokeRequest{ID: a.Authorisation.ID})
	await.Until(east, "the credits are free", func() bool { return east.account("ada").Reserved == 0 })
	west.refused(messages.Ended, "$auctioneer", clearingmsg.VerbAccept, clearingmsg.AcceptRequest{Purpose: "job", Authorisation: a})
	if got := west.count("candor_bank_clearing_refusals_total", "recharged"); got != 1 {
		t.Errorf("%v were counted, want 1", got)
	}
}

func TestConfigIsChecked(t *testing.T) {
	east, _ := pair(t)
	good := east.courier.config
	good.Metrics = nil
	if _, err := New(good); err != nil {
		t.Errorf("refused: %v", err)
	}
	for field, spoil := range map[string]func(*Config){
		"Site":     func(c *Config) { c.Site = "East" },
		"Bus":      func(c *Config) { c.Bus = nil },
		"Host":     func(c *Config) { c.Host = nil },
		"Signer":   func(c *Config) { c.Signer = nil },
		"Operator": func(c *Config) { c.Operator = nil },
		"Attempt":  func(c *Config) { c.Attempt = -1 },
		"metrics":  func(c *Config) { c.Metrics = east.metrics }, // these metrics are registered already
	} {
		bad := good
		spoil(&bad)
		if _, err := New(bad); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: got %v", field, err)
		}
	}
}

// TestAuthoriseOnBehalfOverTheBus checks that only services can reserve credits in another user's name.
func TestAuthoriseOnBehalfOverTheBus(t *testing.T) {
	east, _ := pair(t)
	r := clearingmsg.AuthoriseRequest{Key: "k", Member: "ada", Peer: "west", Amount: 30 * messages.Credit, Interval: hour}
	east.refused(messages.PermissionDenied, "bob", clearingmsg.VerbAuthorise, r)
	if a := must[clearingmsg.SignedAuthorisation](east, "$auctioneer", clearingmsg.VerbAuthorise, r); a.Authorisation.Member != "ada" {
		t.Errorf("got %+v", a)
	}
}

// TestASilentPeerIsSuspendedAndResumes: a suspended peer must resume when it answers, even if there is nothing to send
// to it.
func TestASilentPeerIsSuspendedAndResumes(t *testing.T) {
	east, west := pair(t)
	stands := func(want clearingmsg.PeerStanding) func() bool {
		return func() bool {
			found := must[clearingmsg.PeersReply](east, "ops", clearingmsg.VerbPeers, messages.Empty{}).Peers
			return len(found) == 1 && found[0].Standing == want
		}
	}
	east.road.set(1)
	must[clearingmsg.ClearingReply](east, "ada", clearingmsg.VerbRemit, clearingmsg.RemitRequest{Key: "k", Peer: "west", Payee: "ada", Amount: messages.Credit})
	await.Until(t, "a message was sent in vain", func() bool {
		return must[clearingmsg.PeersReply](east, "ops", clearingmsg.VerbPeers, messages.Empty{}).Peers[0].Tries > 1
	})
	if !stands(clearingmsg.PeerOpen)() {
		t.Error("it is suspended before its time")
	}
	east.pass(2 * hour)
	await.Until(t, "the peer is suspended", stands(clearingmsg.PeerSuspended))
	east.refused(messages.Unavailable, "ada", clearingmsg.VerbRemit, clearingmsg.RemitRequest{Key: "n", Peer: "west", Payee: "ada", Amount: messages.Credit})
	east.road.set(0)
	await.Until(t, "the peer is open", stands(clearingmsg.PeerOpen))
	if got := west.account("ada").Balance; got != 101*messages.Credit {
		t.Errorf("ada has %v at west, want 101", got)
	}
}

// TestOperatorsPart checks that an operator can part from a peer by one request, and that nobody else can.
func TestOperatorsPart(t *testing.T) {
	east, west := pair(t)
	none := messages.Credits(0)
	east.refused(messages.PermissionDenied, "ada", clearingmsg.VerbPart, clearingmsg.PartRequest{Peer: "west"})
	east.refused(messages.Invalid, "ops", clearingmsg.VerbPart, clearingmsg.PartRequest{Peer: "west", Loss: &none})
	for _, s := range []*site{east, west} {
		other := messages.Name("west")
		if s == west {
			other = "east"
		}
		must[clearingmsg.PartReply](s, "ops", clearingmsg.VerbPart, clearingmsg.PartRequest{Peer: other})
	}
	for _, s := range []*site{east, west} {
		await.Until(t, "the sites have parted", func() bool {
			return must[clearingmsg.PeersReply](s, "ops", clearingmsg.VerbPeers, messages.Empty{}).Peers[0].Standing == clearingmsg.PeerParted
		})
	}
}
