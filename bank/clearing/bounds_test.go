package clearing

import (
	"fmt"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	moneymsg "github.com/candor-grid/candor/messages/money"
)

// authoriseAs returns a signed authorisation for a user. The side may have invented the user's name.
func (s *side) authoriseAs(user messages.Name, other *side, amount messages.Credits) clearing.SignedAuthorisation {
	s.Helper()
	signed, err := SignAuthorisation(s.keys, clearing.Authorisation{Issuer: s.name, Peer: other.name, ID: user + "/k", Account: user, Member: user,
		Amount: amount, Issued: s.at, Interval: 3600 * span, Margin: margin})
	if err != nil {
		s.Fatal(err)
	}
	return signed
}

// TestASilentPeerStopsNobody: a peer runs thousands of jobs and answers nothing. Every charge must find room in the
// outbox.
func TestASilentPeerStopsNobody(t *testing.T) {
	sides := ring(t)
	east, north, west := sides[0], sides[1], sides[2]
	const jobs = 2500
	for i := range jobs {
		a := north.authoriseAs(fmt.Sprint("v", i), east, 1)
		east.must(accepting(a))
		if i%2 == 0 {
			east.must(Command{By: "$auctioneer", Charge: &clearing.ChargeRequest{Issuer: "north", ID: a.Authorisation.ID, Amount: 1}})
		}
	}
	a := west.authorise(east, "k", 30)
	east.must(accepting(a))
	east.must(charging(a, 20))
	east.exchange(west)
	west.pay(east, "p", 30)
	east.close(1)
	west.close(1)
	east.exchange(west)
	west.exchange(east)
	east.has(PeerAccount("west"), 0, 0)
	east.has(SettledAccount("west"), -50, 0)

	b := west.authorise(east, "ends", 5)
	east.must(accepting(b))
	east.at = b.Authorisation.Ends()
	east.must(Command{})
	if due := east.state.Due(); due != 0 {
		t.Errorf("something is due at %v, after all has ended", due)
	}
	if n := east.state.peers.byName["north"].charges; n != jobs {
		t.Errorf("%d charges and releases wait for north, want %d", n, jobs)
	}
	for len(east.state.peers.byName["north"].outbox) > 0 { // the peer answers again
		east.exchange(north)
	}
	if fault := east.state.Fault(); fault != "" {
		t.Errorf("the fault is %q", fault)
	}
}

// TestVisitsAreBoundedPerPeer checks that the limit of jobs applies to a peer as a whole: a peer cannot pass the limit
// with more names of users.
func TestVisitsAreBoundedPerPeer(t *testing.T) {
	sides := ring(t)
	east, north, west := sides[0], sides[1], sides[2]
	last := func(n int) clearing.SignedAuthorisation { return north.authoriseAs(fmt.Sprint("v", n), east, 1) }
	const some = 100
	for i := range some {
		east.must(accepting(last(i)))
	}
	east.state.peers.byName["north"].open += MaxVisits - some // as if the peer had this many further jobs
	east.refuse(Flood, messages.Exhausted, accepting(last(MaxVisits)))
	east.must(accepting(west.authorise(east, "k", 30)))
	east.must(charging(last(0), 0))
	east.refuse(Flood, messages.Exhausted, accepting(last(MaxVisits))) // north has not answered
	east.exchange(north)
	east.must(accepting(last(MaxVisits)))
}

// TestNoPeerFillsTheRegister checks that a peer cannot fill the register with authorisations that it never issued.
func TestNoPeerFillsTheRegister(t *testing.T) {
	east, west := pair(t)
	m := clearing.Instructions{From: "east", To: "west", First: 1, At: east.at, Known: west.state.peers.byName["east"].In.Base}
	m.List = []clearing.Instruction{{Kind: clearing.InstructRevoke, ID: "ada/one", Expires: east.at + hour}}
	west.meddled = true
	west.state.peers.byName["east"].remembered = maxRegistered / 8
	o := west.answer(east.sign(m)).Receipt.Outcomes[0]
	if o.Error == nil || o.Error.Kind != messages.Exhausted {
		t.Errorf("one more came to %+v", o)
	}
}

// TestEachPeerHasItsShare checks that a peer's debt by settlements is at most its share, whatever other peers owe.
func TestEachPeerHasItsShare(t *testing.T) {
	sides := ring(t)
	east, north, west := sides[0], sides[1], sides[2]
	take := func(from *side, cycle uint64) {
		t.Helper()
		east.answer(from.forge(east, clearing.Instruction{Kind: clearing.InstructPay, Account: "ada", Amount: 90 * messages.Credit}))
		east.answer(from.forge(east, clearing.Instruction{Kind: clearing.InstructSettle, Cycle: cycle, Amount: 90 * messages.Credit}))
	}
	for cycle := range uint64(8) { // cycles that east has not closed
		take(north, cycle+1)
	}
	east.has(SettledAccount("north"), -100, 0)
	east.has(PeerAccount("north"), -80, 0)
	take(west, 1)
	east.has(SettledAccount("west"), -90, 0)
	east.has(PeerAccount("west"), 0, 0)

	share := 30 * messages.Credit
	terms := func(limit messages.Credits, share *messages.Credits) *clearing.PeerReply {
		return east.must(Command{Peer: &clearing.PeerRequest{Peer: "west", Keys: []string{west.public()}, Limit: limit * messages.Credit, Share: share}}).Peer
	}
	if p := terms(100, &share); p.Share != share || p.Settled != 90*messages.Credit {
		t.Errorf("got %+v", p)
	}
	if p := terms(200, nil); p.Share != share {
		t.Errorf("another limit changed the stated share to %v", p.Share)
	}
}

// TestAShareOnlyGrowsWithItsTerms lowers the limit of a peer, which also determines its share of the reserve. The share
// must not fall below the debts that are settled.
func TestAShareOnlyGrowsWithItsTerms(t *testing.T) {
	sides := ring(t)
	east, north, west := sides[0], sides[1], sides[2]
	north.pay(east, "p", 60)
	terms := func(other *side, limit messages.Credits) *clearing.PeerReply {
		return east.must(Command{Peer: &clearing.PeerRequest{Peer: other.name, Keys: []string{other.public()}, Limit: limit * messages.Credit}}).Peer
	}
	if p := terms(north, 0); p.Share != 60*messages.Credit {
		t.Errorf("the share is %v, want what it owes, 60", p.Share)
	}
	if p := terms(west, 50); p.Share != 50*messages.Credit {
		t.Errorf("the share of who owes nothing is %v, want the limit, 50", p.Share)
	}
	terms(north, 100)
	for cycle := range uint64(3) {
		east.answer(north.forge(east, clearing.Instruction{Kind: clearing.InstructPay, Account: "ada", Amount: 90 * messages.Credit}))
		east.answer(north.forge(east, clearing.Instruction{Kind: clearing.InstructSettle, Cycle: cycle + 1, Amount: 150 * messages.Credit}))
		terms(west, 50)
	}
	if p := terms(north, 100); p.Share != 100*messages.Credit {
		t.Errorf("the share is %v, want 100", p.Share)
	}
}

func TestADisputeStopsCredit(t *testing.T) {
	east, west := pair(t)
	kept, open := west.authorise(east, "kept", 10), west.authorise(east, "open", 10)
	east.must(accepting(kept))
	first := east.authorise(west, "first", 10)
	west.pay(east, "p", 20)
	lie := west.forge(east, clearing.Instruction{Kind: clearing.InstructPay, Account: "ada", Amount: 1}).Instructions
	lie.Known = clearing.RunningTotal{Number: 1, Owed: 7, Digest: make([]byte, 32)}
	signed := west.sign(lie)
	east.refuse(Totals, messages.Conflict, Command{Instructions: &signed})

	outcome := func(i clearing.Instruction) moneymsg.TransferResult {
		t.Helper()
		return east.answer(west.forge(east, i)).Receipt.Outcomes[0]
	}
	if o := outcome(clearing.Instruction{Kind: clearing.InstructPay, Account: "ada", Amount: messages.Credit}); o.Error == nil || o.Error.Kind != messages.PermissionDenied {
		t.Errorf("a payment on credit came to %+v", o)
	}
	if o := outcome(clearing.Instruction{Kind: clearing.InstructSettle, Cycle: 1, Amount: 20 * messages.Credit}); o.Error != nil || o.Amount != 0 {
		t.Errorf("a settlement came to %+v", o)
	}
	east.refuse(Disputed, messages.PermissionDenied, accepting(open))
	east.refuse(Disputed, messages.PermissionDenied, Command{By: "ada", Authorise: &clearing.AuthoriseRequest{Key: "more", Peer: "west", Amount: 1, Interval: span}})
	east.refuse(Disputed, messages.PermissionDenied, Command{By: "ada", Remit: &clearing.RemitRequest{Key: "more", Peer: "west", Payee: "ada", Amount: 1}})
	if p := east.close(1); p.Legs[0].Peer != "west" || east.state.peers.byName["west"].outbox[0].Instruction.Amount != 0 {
		t.Errorf("east offers a settlement: %+v", p)
	}
	east.must(accepting(kept)) // earlier agreements are carried out
	east.must(charging(kept, 5))
	if again := east.authorise(west, "first", 10); again.Authorisation != first.Authorisation {
		t.Errorf("got %+v, before %+v", again, first)
	}
	east.has(PeerAccount("west"), -20, 10)

	limit := func(credits messages.Credits) {
		east.must(Command{Peer: &clearing.PeerRequest{Peer: "west", Keys: []string{west.public()}, Limit: credits * messages.Credit}})
	}
	limit(50)
	east.refuse(Disputed, messages.PermissionDenied, accepting(open))
	limit(50)
	east.must(accepting(open))
}

// TestAWrongCycleIsRefusedOrCorrected checks that a wrong cycle number is refused. The first cycle may have any number,
// and can be corrected while no peer has accepted anything in it.
func TestAWrongCycleIsRefusedOrCorrected(t *testing.T) {
	east, west := pair(t)
	closing := func(cycle uint64, correct bool) Command {
		return Command{Close: &clearing.CloseRequest{Cycle: cycle, Correct: correct}}
	}
	east.pay(west, "a", 30)
	east.close(700)
	east.refuse(Ordinary, messages.Conflict, closing(1, true)) // west may have got the offer
	east.exchange(west)
	east.refuse(Ordinary, messages.Invalid, closing(701, true))
	east.must(closing(1, true))
	west.close(1)
	east.refuse(Ordinary, messages.Invalid, closing(3, false))
	east.exchange(west)
	west.exchange(east)
	if p := east.close(0); p.Cycle != 1 || !p.Complete || p.Legs[0].Paid != 30*messages.Credit || p.Legs[0].Volume != 30*messages.Credit {
		t.Errorf("cycle 1 came to %+v", p)
	}
	west.close(2)
	west.exchange(east)
	east.close(3) // the cycle after the last one that west has closed
	east.refuse(Ordinary, messages.Conflict, closing(1, true))
	west.has(SettledAccount("east"), -30, 0)
}

// TestARepeatedPaymentIsNotRefused repeats a payment when there is no room for a new one. The repeated payment must get
// its first answer, and not a refusal.
func TestARepeatedPaymentIsNotRefused(t *testing.T) {
	east, west := barePair(t)
	pay := func(key string) Command {
		return Command{By: "ada", Remit: &clearing.RemitRequest{Key: key, Peer: "west", Payee: "ada", Amount: 1}}
	}
	east.must(pay("answered"))
	east.exchange(west)
	for i := range MaxOutstanding {
		east.must(pay(fmt.Sprint(i)))
	}
	east.refuse(Ordinary, messages.Exhausted, pay("new"))
	if r := east.must(pay("0")); r.Answer.Number != 2 {
		t.Errorf("the first that waits is number %d, want 2", r.Answer.Number)
	}
	if r := east.must(pay("answered")); r.Answer.Number != 0 {
		t.Errorf("what was answered has number %d, want 0", r.Answer.Number)
	}
}

// TestAChargeIsRememberedAfterTheEnd repeats a charge after its authorisation has ended. The answer must be the first
// one.
func TestAChargeIsRememberedAfterTheEnd(t *testing.T) {
	east, west := pair(t)
	a := east.authorise(west, "k", 30)
	west.must(accepting(a))
	west.must(charging(a, 20))
	west.at = a.Authorisation.Ends()
	west.must(Command{})
	if r := west.must(charging(a, 20)); r.Answer.Number != 1 {
		t.Errorf("it waits as number %d, want 1", r.Answer.Number)
	}
	west.exchange(east)
	west.at += 100 * day
	if r := west.must(charging(a, 20)); r.Answer.Number != 0 {
		t.Errorf("it was answered, and has number %d", r.Answer.Number)
	}
	west.refuse(Ordinary, messages.NotFound, charging(a, 21))
	west.has(moneymsg.SiteAccount, 20, 0)
}

// TestRefusalsOfPeersLeaveNoTrace checks that refused instructions of a peer do not change the ledger. The banks of
// this test have no keys. A bank with keys also records what the peer signed.
func TestRefusalsOfPeersLeaveNoTrace(t *testing.T) {
	east, west := barePair(t)
	west.must(Command{})
	before := west.ledger.Hash()
	for _, pay := range []clearing.Instruction{
		{Kind: clearing.InstructPay, Account: "ada", Amount: 101 * messages.Credit},
		{Kind: clearing.InstructPay, Account: "nobody", Amount: messages.Credit},
		{Kind: clearing.InstructSettle, Cycle: 1, Amount: messages.Credit},
		{Kind: clearing.InstructCharge, ID: "ada/none", Amount: messages.Credit},
	} {
		if o := west.answer(east.forge(west, pay)).Receipt.Outcomes[0]; o.Amount != 0 {
			t.Errorf("%+v came to %+v", pay, o)
		}
	}
	west.refuse(Ordinary, messages.Insufficient, accepting(east.authoriseAs("eve", west, 101*messages.Credit)))
	if west.ledger.Hash() != before {
		t.Error("the ledger is another than before")
	}
}
