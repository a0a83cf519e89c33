package clearing

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nkeys"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	moneymsg "github.com/candor-grid/candor/messages/money"
)

// TestAuthorisationIsChargedWhileCutOff: a site is cut off and charges an authorisation. Later, the home bank must pay
// the charge, and free the part of the authorisation that was not charged.
func TestAuthorisationIsChargedWhileCutOff(t *testing.T) {
	east, west := pair(t)
	a := east.authorise(west, "k", 30)
	east.has("ada", 100, 30)

	west.must(accepting(a))
	west.has(PeerAccount("east"), 0, 30)
	west.must(charging(a, 20))
	west.has(PeerAccount("east"), 0, 30)
	west.has(moneymsg.SiteAccount, 0, 0)

	west.exchange(east)
	east.has("ada", 80, 0)
	east.has(PeerAccount("west"), 20, 0)
	west.has(PeerAccount("east"), -20, 0)
	west.has(moneymsg.SiteAccount, 20, 0)
}

func TestRequestsAreIdempotent(t *testing.T) {
	east, west := pair(t)
	a, again := east.authorise(west, "k", 30), east.authorise(west, "k", 30)
	if a.Authorisation != again.Authorisation {
		t.Errorf("got %+v, then %+v", a, again)
	}
	east.at += minute
	if later := east.authorise(west, "k", 30); a.Authorisation != later.Authorisation {
		t.Errorf("got %+v, later %+v", a, later)
	}
	other := Command{By: "ada", Authorise: &clearing.AuthoriseRequest{Key: "k", Peer: "west", Amount: 1, Interval: 3600 * span}}
	east.refuse(Ordinary, messages.Conflict, other)

	west.must(accepting(a))
	west.must(accepting(a))
	first, second := west.must(charging(a, 20)), west.must(charging(a, 20))
	if first.Answer.Number != 1 || second.Answer.Number != 1 {
		t.Errorf("charged as numbers %d and %d, want 1", first.Answer.Number, second.Answer.Number)
	}

	pay := Command{By: "ada", Remit: &clearing.RemitRequest{Key: "p", Peer: "west", Payee: "ada", Amount: messages.Credit}}
	for range 2 {
		if r := east.must(pay); r.Answer.Number != 1 {
			t.Errorf("remitted as number %d, want 1", r.Answer.Number)
		}
	}
	east.exchange(west)
	if r := east.must(pay); r.Answer.Number != 0 {
		t.Errorf("remitted as number %d, want 0: it was answered", r.Answer.Number)
	}
	west.has("ada", 101, 0)
	west.exchange(east)
	east.refuse(Ordinary, messages.Ended, Command{By: "ada", Authorise: &clearing.AuthoriseRequest{Key: "k", Peer: "west", Amount: 30 * messages.Credit, Interval: 3600 * span}})
}

// TestRejectionIsDurable checks two things: a refusal frees the credits that were set aside, and the same instruction
// is refused each time that it is sent again.
func TestRejectionIsDurable(t *testing.T) {
	east, west := pair(t)
	east.must(Command{By: "ada", Remit: &clearing.RemitRequest{Key: "p", Peer: "west", Payee: "bob", Amount: 5 * messages.Credit}})
	east.has("ada", 100, 5)
	m := east.outgoing(west)
	first := west.answer(m)
	west.grant("bob", 1)
	second := west.answer(m)
	for _, r := range []clearing.SignedReceipt{first, second} {
		if o := r.Receipt.Outcomes; len(o) != 1 || o[0].Error == nil || o[0].Error.Kind != messages.NotFound {
			t.Fatalf("got outcomes %+v, want a refusal", o)
		}
	}
	east.must(Command{Receipt: &second})
	east.has("ada", 100, 0)
	west.has("bob", 1, 0)
}

func TestSilenceRefundsNobody(t *testing.T) {
	east, west := pair(t)
	east.must(Command{By: "ada", Remit: &clearing.RemitRequest{Key: "p", Peer: "west", Payee: "ada", Amount: 5 * messages.Credit}})
	a := west.authorise(east, "k", 30)
	east.must(accepting(a))
	east.must(charging(a, 30))
	east.at += 1000 * day
	east.must(Command{})
	east.has("ada", 100, 5)
	east.has(PeerAccount("west"), 0, 30)
}

// An authorisation has an end. After the end comes a margin, in which the credits are still held. If the peer has not
// charged the authorisation, the peer must release the authorisation at the end, and not only after the margin.
func TestReleaseAtTheEnd(t *testing.T) {
	east, west := pair(t)
	a := east.authorise(west, "k", 30)
	west.must(accepting(a))
	if due := west.state.Due(); due != a.Authorisation.Ends() {
		t.Errorf("due at %v, want %v", due, a.Authorisation.Ends())
	}
	west.at = a.Authorisation.Ends()
	west.must(Command{})
	west.refuse(Ordinary, messages.NotFound, charging(a, 20))
	west.has(PeerAccount("east"), 0, 0)
	west.exchange(east)
	east.has("ada", 100, 0)
}

// TestAnAuthorisationAcceptedAsItEnds accepts an authorisation in its last instant. Nothing may stay reserved at either
// site.
func TestAnAuthorisationAcceptedAsItEnds(t *testing.T) {
	east, west := pair(t)
	a := east.authorise(west, "k", 30)
	west.at = a.Authorisation.Ends() - 1
	west.must(accepting(a))
	west.at++
	west.must(Command{})
	west.refuse(Stale, messages.Expired, accepting(a))
	west.refuse(Ordinary, messages.NotFound, charging(a, 20))
	west.exchange(east)
	east.has("ada", 100, 0)
	west.has(PeerAccount("east"), 0, 0)
}

// The home site keeps the credits of an authorisation for some time after the authorisation ends. This time is the
// margin. Here both sites are cut off from each other for longer than the margin. The home site then frees the credits,
// and a later charge is refused. The loss belongs to the site that charged, because it knew when its charge had to
// arrive.
func TestChargeAfterTheMarginIsTheForeignSitesLoss(t *testing.T) {
	east, west := pair(t)
	a := east.authorise(west, "k", 30)
	west.must(accepting(a))
	west.must(charging(a, 20))
	east.at = a.Authorisation.Frees() - 1
	east.must(Command{})
	east.has("ada", 100, 30)
	if due := east.state.Due(); due != a.Authorisation.Frees() {
		t.Errorf("due at %v, want %v", due, a.Authorisation.Frees())
	}
	east.at++
	east.must(Command{})
	east.has("ada", 100, 0)
	west.exchange(east)
	east.has("ada", 100, 0)
	west.has(moneymsg.SiteAccount, 0, 0)
	west.has(PeerAccount("east"), 0, 0)
}

// TestAnEndedJobIsChargedWithinADay: a site that reports the end of a job must charge within a day. Only the service
// that asked for the authorisation may report it to the bank.
func TestAnEndedJobIsChargedWithinADay(t *testing.T) {
	for _, late := range []messages.Time{0, 1} {
		east, west := pair(t)
		a := east.onBehalf(west, 30)
		west.must(accepting(a))
		ended := Command{By: "ada", Revoke: &clearing.RevokeRequest{ID: a.Authorisation.ID, Ended: true}}
		east.refuse(Ordinary, messages.PermissionDenied, ended)
		ended.By = "$auctioneer"
		east.must(ended)
		by := east.at.Add(clearing.ChargeWithin)
		east.at += hour
		east.must(ended) // a repeated report of the end must change nothing
		if freed := east.state.Freed(authorisationHold + a.Authorisation.ID); freed != by || east.state.Due() != by {
			t.Errorf("freed at %v and due at %v, want %v", freed, east.state.Due(), by)
		}
		east.restored(t)
		west.must(charging(a, 20))
		east.at = by - 1 + late
		east.must(Command{})
		west.exchange(east)
		if late == 0 {
			east.has("ada", 80, 0)
			continue
		}
		east.has("ada", 100, 0)
		west.has(moneymsg.SiteAccount, 0, 0)
		if fault := east.state.Fault(); fault != "" {
			t.Error(fault)
		}
	}
}

func (s *side) restored(t *testing.T) {
	t.Helper()
	var image bytes.Buffer
	if _, err := s.state.Capture().WriteTo(&image); err != nil {
		t.Fatal(err)
	}
	if err := s.state.Restore(&image); err != nil {
		t.Fatal(err)
	}
}

// TestMarginCoversClocksApart sets the clock of a peer an hour back. A charge that is in time by the peer's clock must
// be paid.
func TestMarginCoversClocksApart(t *testing.T) {
	east, west := pair(t)
	a := east.authorise(west, "k", 30)
	west.at = a.Authorisation.Issued - hour
	west.state, west.ledger = nil, nil
	fresh := newSide(t, "west")
	fresh.at = a.Authorisation.Issued - hour
	fresh.know(east, 100)
	fresh.must(accepting(a))
	fresh.at = a.Authorisation.Ends() - 1
	fresh.must(charging(a, 30))
	east.at = fresh.at + hour + 6*day
	fresh.exchange(east)
	east.has("ada", 70, 0)
}

func TestRevoke(t *testing.T) {
	east, west := pair(t)
	revoke := func(a clearing.SignedAuthorisation) Command {
		return Command{By: "ada", Revoke: &clearing.RevokeRequest{ID: a.Authorisation.ID}}
	}
	accepted, never, taken := east.authorise(west, "a", 10), east.authorise(west, "b", 10), east.authorise(west, "c", 10)
	west.must(accepting(accepted))
	west.must(accepting(taken))
	west.must(charging(taken, 10))
	east.refuse(Ordinary, messages.NotFound, Command{By: "bob", Revoke: &clearing.RevokeRequest{ID: accepted.Authorisation.ID}})
	for _, a := range []clearing.SignedAuthorisation{accepted, never, taken} {
		east.must(revoke(a))
	}
	east.has("ada", 100, 30)
	east.exchange(west)
	east.has("ada", 100, 10)
	west.has(PeerAccount("east"), 0, 10)
	west.refuse(Recharged, messages.Ended, accepting(never))
	west.refuse(Recharged, messages.Conflict, charging(accepted, 5))
	west.exchange(east)
	east.has("ada", 90, 0)
	west.at += 2 * hour
	west.must(Command{})
	if n := len(west.state.acceptor.accepted.byID); n != 0 {
		t.Errorf("%d authorisations are remembered after they ended", n)
	}
}

// TestCreditLimit checks the limit of a peer's debt. Open authorisations and unanswered charges must count towards the
// limit.
func TestCreditLimit(t *testing.T) {
	east, west := pair(t)
	east.grant("bob", 100)
	a := east.authorise(west, "k", 90)
	west.must(accepting(a))
	b := east.must(Command{By: "bob", Authorise: &clearing.AuthoriseRequest{Key: "k", Peer: "west", Amount: 11 * messages.Credit, Interval: 3600 * span}})
	signed, err := SignAuthorisation(east.keys, *b.Authorisation)
	if err != nil {
		t.Fatal(err)
	}
	if r := west.do(accepting(signed)); r.Error == nil || r.Error.Kind != messages.Insufficient {
		t.Fatalf("got %v, want a refusal as Insufficient", r.Error)
	}
	west.know(east, 101)
	west.must(accepting(signed))
	west.know(east, 10) // authorisations that were accepted before stay valid
	west.must(charging(a, 90))
	west.exchange(east)
	east.must(Command{By: "bob", Remit: &clearing.RemitRequest{Key: "p", Peer: "west", Payee: "ada", Amount: messages.Credit}})
	east.exchange(west)
	east.has("bob", 100, 11)
}

func TestPeers(t *testing.T) {
	east, west := pair(t)
	a := east.authorise(west, "k", 30)
	west.must(accepting(a))
	west.must(charging(a, 20))
	east.must(Command{By: "ada", Remit: &clearing.RemitRequest{Key: "p", Peer: "west", Payee: "ada", Amount: 5 * messages.Credit}})
	west.exchange(east)
	got := west.state.Peers()
	if len(got.Peers) != 1 {
		t.Fatalf("got %d peers, want 1", len(got.Peers))
	}
	p := got.Peers[0]
	if p.Peer != "east" || p.Limit != 100*messages.Credit || p.Owed != -20*messages.Credit || p.Outstanding != 0 || p.Sent.Number != 1 || p.Sent.Volume != 20*messages.Credit {
		t.Errorf("got %+v", p)
	}
	if p := east.state.Peers().Peers[0]; p.Owed != 20*messages.Credit || p.Outstanding != 1 || p.Received.Owed != -20*messages.Credit {
		t.Errorf("got %+v", p)
	}
}

func TestOperatorsRequestsAreChecked(t *testing.T) {
	east, west := pair(t)
	east.refuse(Malformed, messages.Invalid, Command{Peer: &clearing.PeerRequest{Peer: "east", Keys: []string{"k"}, Limit: 1}})
	east.refuse(Malformed, messages.Invalid, Command{Peer: &clearing.PeerRequest{Peer: "west", Limit: 1}})
	east.refuse(Malformed, messages.TooLarge, Command{Peer: &clearing.PeerRequest{Peer: "w" + strings.Repeat("x", 60), Keys: []string{"k"}, Limit: 1}})
	east.refuse(Malformed, messages.Invalid, Command{Reserve: &clearing.ReserveRequest{Limit: -1}})
	east.grant("clearing-north", 1)
	east.refuse(Ordinary, messages.Conflict, Command{Peer: &clearing.PeerRequest{Peer: "north", Keys: []string{west.public()}, Limit: 1}})
	east.refuse(Ordinary, messages.NotFound, Command{By: "ada", Remit: &clearing.RemitRequest{Key: "p", Peer: "south", Payee: "ada", Amount: 1}})
	east.refuse(Ordinary, messages.NotFound, Command{Close: &clearing.CloseRequest{}})
}

func TestOwnAccountsAreOutOfReach(t *testing.T) {
	east, west := pair(t)
	own := PeerAccount("west")
	east.refuse(Ordinary, messages.PermissionDenied, Command{By: own, Remit: &clearing.RemitRequest{Key: "p", Peer: "west", Payee: "ada", Amount: 1}})
	east.refuse(Ordinary, messages.PermissionDenied, Command{By: own, Authorise: &clearing.AuthoriseRequest{Key: "p", Peer: "west", Amount: 1, Interval: span}})
	east.refuse(Ordinary, messages.PermissionDenied, Command{By: "$auctioneer", Remit: &clearing.RemitRequest{Key: "p", Account: "ada", Peer: "west", Payee: "ada", Amount: 1}})
	east.refuse(Ordinary, messages.PermissionDenied, Command{By: "bob", Remit: &clearing.RemitRequest{Key: "p", Account: "ada", Peer: "west", Payee: "ada", Amount: 1}})
	a := west.authorise(east, "k", 10)
	east.must(accepting(a))
	c := charging(a, 10)
	c.Charge.Payee = own
	east.refuse(Ordinary, messages.PermissionDenied, c)
	east.must(Command{By: "ada", Remit: &clearing.RemitRequest{Key: "q", Peer: "west", Payee: PeerAccount("east"), Amount: 1}})
	east.exchange(west)
	east.has("ada", 100, 0)
}

// TestARetiredKeyNeverReturns gives a peer a new key. The old key must end an hour after the peer first signs with the
// new one, and never return.
func TestARetiredKeyNeverReturns(t *testing.T) {
	east, west := pair(t)
	first, old := west.keys, west.public()
	second := newSide(t, "north").keys
	fresh, err := second.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	terms := func(retire bool, keys ...string) Command {
		return Command{Peer: &clearing.PeerRequest{Peer: "west", Keys: keys, Limit: 100 * messages.Credit, Retire: retire}}
	}
	east.refuse(Ordinary, messages.Conflict, terms(false, fresh))
	east.must(terms(false, old, fresh))
	pay := func(key string) {
		west.must(Command{By: "ada", Remit: &clearing.RemitRequest{Key: key, Peer: "east", Payee: "ada", Amount: 1}})
	}
	sends := func() { m := west.outgoing(east); east.must(Command{Instructions: &m}) }
	refused := func() {
		m := west.outgoing(east)
		east.refuse(Signature, messages.PermissionDenied, Command{Instructions: &m})
	}
	for i, k := range []nkeys.KeyPair{first, second, first} { // messages that were signed before the change of keys may still arrive
		west.keys = k
		pay(fmt.Sprint(i))
		sends()
	}
	east.at = east.at.Add(turnsWithin + span)
	east.must(Command{}) // an empty command only sets the time
	pay("late")
	refused()
	west.keys = second
	sends()
	if p := east.state.Peers().Peers[0]; !slices.Equal(p.Keys, []string{fresh}) || !slices.Equal(p.Retired, []string{old}) {
		t.Errorf("keys are %v, retired are %v", p.Keys, p.Retired)
	}
	east.refuse(Ordinary, messages.Invalid, terms(true, old))
	east.refuse(Ordinary, messages.Invalid, terms(false, old, fresh))
}

// TestAStrangersJobWaits: a site that this bank does not know sends a job. The error must tell the site to try again
// later, because the two sites may just be becoming peers.
func TestAStrangersJobWaits(t *testing.T) {
	east, west := newSide(t, "east"), newSide(t, "west")
	east.know(west, 100)
	east.grant("ada", 100)
	a := east.authorise(west, "k", 30)
	west.refuse(Stranger, messages.Unavailable, accepting(a))
	west.know(east, 100)
	west.must(accepting(a))
}
