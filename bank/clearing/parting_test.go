package clearing

import (
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
)

func parting(peer messages.Name) Command {
	return Command{By: "ops", Part: &clearing.PartRequest{Peer: peer}}
}

func abandoning(peer messages.Name, loss messages.Credits) Command {
	loss *= messages.Credit
	return Command{By: "ops", Part: &clearing.PartRequest{Peer: peer, Loss: &loss, Reason: "it is gone"}}
}

func (s *side) standing(other *side) clearing.PeerStanding {
	return s.state.terms.describe(s.state.peers.byName[other.name]).Standing
}

// stands checks that each of two sites has the standing `want` at the other site.
func stands(t *testing.T, a, b *side, want clearing.PeerStanding) {
	t.Helper()
	if x, y := a.standing(b), b.standing(a); x != want || y != want {
		t.Fatalf("%s has %v and %s has %v, want %v", a.name, x, b.name, y, want)
	}
}

// TestAnAgreedParting: two sites agree to part. They may still have open authorisations and debts from before. The
// sites must still accept charges for these authorisations, and pay these debts. They must accept nothing new.
func TestAnAgreedParting(t *testing.T) {
	east, west := pair(t)
	a := east.authorise(west, "k", 30)
	west.must(accepting(a))
	east.pay(west, "p", 10)
	later := east.authorise(west, "later", 5)

	east.must(parting("west"))
	if r := west.must(parting("east")); r.Parted.Visits != 1 {
		t.Errorf("west waits for %+v", r.Parted)
	}
	east.refuse(Parted, messages.PermissionDenied, Command{By: "ada", Remit: &clearing.RemitRequest{Key: "q", Peer: "west", Payee: "ada", Amount: 1}})
	west.refuse(Parted, messages.PermissionDenied, accepting(later))
	east.must(Command{By: "ada", Revoke: &clearing.RevokeRequest{ID: later.Authorisation.ID}})
	west.must(charging(a, 20))
	for range 2 {
		east.exchange(west)
		west.exchange(east)
	}
	stands(t, east, west, clearing.PeerParting) // east owes 30, so the parting is not complete
	east.has("ada", 70, 0)

	for _, s := range []*side{east, west} {
		s.close(1)
	}
	east.exchange(west)
	west.exchange(east)
	stands(t, east, west, clearing.PeerParting) // east has not paid, so the parting is still not complete
	west.grant(SettledAccount("east"), 30)
	if due := west.state.Due(); due == 0 || due > west.at {
		t.Errorf("the parting goes on at %v, want at once", due)
	}
	west.must(Command{})
	east.exchange(west)
	west.exchange(east)
	stands(t, east, west, clearing.PeerParted)
	east.has(PeerAccount("west"), 0, 0)
	for _, s := range []*side{east, west} {
		if len(s.state.Names()) != 0 || s.state.Outstanding() != 0 {
			t.Errorf("%s sends still", s.name)
		}
	}
	east.refuse(Parted, messages.PermissionDenied, Command{By: "ada", Authorise: &clearing.AuthoriseRequest{Key: "n", Peer: "west", Amount: 1, Interval: 3600 * span}})

	east.know(west, 100)
	west.know(east, 100)
	east.pay(west, "again", 10)
	west.has("ada", 120, 0)
}

// TestALostAnswerToAParting: a peer repeats its last instruction, because the answer was lost. It must get the answer,
// although this site has parted.
func TestALostAnswerToAParting(t *testing.T) {
	east, west := pair(t)
	east.must(parting("west"))
	west.must(parting("east"))
	east.exchange(west)
	m := west.outgoing(east)
	east.answer(m)
	if east.standing(west) != clearing.PeerParted || west.standing(east) != clearing.PeerParting {
		t.Fatalf("east has %v, west %v", east.standing(west), west.standing(east))
	}
	receipt, refused, ok := east.state.Answered(&m)
	if !ok || refused != nil {
		t.Fatal("not answered")
	}
	signed, err := SignReceipt(east.keys, *receipt)
	if err != nil {
		t.Fatal(err)
	}
	west.must(Command{Receipt: &signed})
	stands(t, east, west, clearing.PeerParted)
}

// TestAOneSidedParting parts from a site that is gone. The debt of the gone site is written off, users get their
// credits back, and the keys of the gone site are refused for ever.
func TestAOneSidedParting(t *testing.T) {
	sides := ring(t)
	east, north, west := sides[0], sides[1], sides[2]
	west.pay(east, "p", 40)
	a := west.authorise(east, "k", 30)
	east.must(accepting(a))
	east.must(charging(a, 20))
	b := west.authorise(east, "open", 5)
	east.must(accepting(b))
	east.authorise(west, "mine", 15)
	east.must(Command{By: "ada", Remit: &clearing.RemitRequest{Key: "q", Peer: "west", Payee: "ada", Amount: 10 * messages.Credit}})
	east.close(1)
	stale := west.outgoing(east)

	if words := east.refuse(Ordinary, messages.Conflict, abandoning("west", 39)); !strings.Contains(words, "owes 40") {
		t.Errorf("it says %q", words)
	}
	east.refuse(Ordinary, messages.Insufficient, abandoning("west", 40))
	east.grant("ops", 100)
	free, err := east.ledger.Account("ada")
	if err != nil {
		t.Fatal(err)
	}
	r := east.must(abandoning("west", 40)).Parted
	if r.Peer.Standing != clearing.PeerParted || r.Peer.Lost != 40*messages.Credit || r.Returned != 25*messages.Credit || r.Forgone != 20*messages.Credit || r.Peer.Outstanding != 0 {
		t.Errorf("it came to %+v", r)
	}
	if now, _ := east.ledger.Account("ada"); now.Reserved != 0 || now.Balance != free.Balance {
		t.Errorf("ada has %+v", now)
	}
	east.has("ops", 60, 0)
	east.has(PeerAccount("west"), 0, 0)
	east.has(SettledAccount("west"), 0, 0)
	east.exchange(north)
	north.close(1)
	north.exchange(east)
	if p, err := east.state.Position(1); err != nil || !p.Complete || len(p.Legs) != 1 {
		t.Errorf("the cycle is %+v, %v", p, err)
	}

	east.refuse(Ordinary, messages.NotFound, charging(b, 5))
	east.refuse(Parted, messages.PermissionDenied, Command{Instructions: &stale})
	east.refuse(Ordinary, messages.Invalid, Command{Peer: &clearing.PeerRequest{Peer: "west", Keys: []string{west.public()}, Limit: messages.Credit}})
	if again := east.must(abandoning("west", 40)).Parted; again.Peer.Lost != 40*messages.Credit {
		t.Errorf("again: %+v", again)
	}
	if fault := east.state.Fault(); fault != "" {
		t.Errorf("the fault is %q", fault)
	}
}

// TestAPartingFromWhomWeOwe: this site owes credits to a peer, and parts from the peer without its consent. The debt
// must stay. If the two sites join again later, they must begin new books.
func TestAPartingFromWhomWeOwe(t *testing.T) {
	east, west := pair(t)
	east.pay(west, "p", 30)
	west.pay(east, "p", 10)
	old := west.outgoing(east)
	east.must(abandoning("west", 0))
	west.grant("ops", 100)
	west.must(abandoning("east", 20))
	east.has(SettledAccount("west"), 20, 0)
	west.has(SettledAccount("east"), 0, 0)

	east.keys, west.keys = newSide(t, "east2").keys, newSide(t, "west2").keys
	east.know(west, 100)
	west.know(east, 100)
	stands(t, east, west, clearing.PeerOpen)
	east.refuse(Signature, messages.PermissionDenied, Command{Instructions: &old})
	east.pay(west, "new", 10)
	west.pay(east, "new", 10)
	if n := east.state.peers.byName["west"].Out.Total.Number; n != 1 {
		t.Errorf("the new books begin with %d", n)
	}
}

// TestASilentPeerIsSuspended checks that nothing new begins with a suspended peer. If the peer owes no answer, any
// signed message of the peer ends the suspension. If the peer owes an answer, only an answer or a request ends it.
func TestASilentPeerIsSuspended(t *testing.T) {
	east, west := pair(t)
	a := west.authorise(east, "k", 5)
	east.must(Command{Silent: "west"})
	pay := Command{By: "ada", Remit: &clearing.RemitRequest{Key: "p", Peer: "west", Payee: "ada", Amount: messages.Credit}}
	east.refuse(Ordinary, messages.Unavailable, pay)
	east.refuse(Ordinary, messages.Unavailable, accepting(a))
	east.exchange(west)
	if s := east.standing(west); s != clearing.PeerOpen {
		t.Errorf("it is %v", s)
	}
	east.must(pay)
	east.must(accepting(a))
	east.must(Command{Silent: "west"})
	east.answer(west.outgoing(east))
	if s := east.standing(west); s != clearing.PeerSuspended {
		t.Errorf("it owes an answer, and is %v", s)
	}
	east.exchange(west)
	if s := east.standing(west); s != clearing.PeerOpen {
		t.Errorf("it is %v", s)
	}
	east.must(Command{Silent: "west"})
	east.answer(west.outgoing(east))
	if s := east.standing(west); s != clearing.PeerOpen {
		t.Errorf("it owes no answer, and is %v", s)
	}
}

// TestAPeerThatPartsOwesStill checks a peer that ends its trade with this site while it owes credits. The peer must
// keep its debt, even after a restore.
func TestAPeerThatPartsOwesStill(t *testing.T) {
	east, west := pair(t)
	east.answer(west.forge(east, clearing.Instruction{Kind: clearing.InstructPay, Account: "ada", Amount: 90 * messages.Credit}))
	east.answer(west.forge(east, clearing.Instruction{Kind: clearing.InstructPart}))
	o := east.answer(west.forge(east, clearing.Instruction{Kind: clearing.InstructPay, Account: "ada", Amount: messages.Credit})).Receipt.Outcomes[0]
	if o.Error == nil || o.Amount != 0 {
		t.Errorf("a payment after it came to %+v", o)
	}
	east.must(parting("west"))
	east.answer(west.forge(east, clearing.Instruction{Kind: clearing.InstructPart}))
	east.must(Command{})
	if s := east.standing(west); s != clearing.PeerParting {
		t.Errorf("it owes 90, and is %v", s)
	}
	east.has(PeerAccount("west"), -90, 0)
	east.grant("ops", 90)
	lie := west.forge(east, clearing.Instruction{Kind: clearing.InstructPart})
	east.must(abandoning("west", 90))
	hash := east.state.Hash()
	east.backup()()
	if east.state.Hash() != hash || east.standing(west) != clearing.PeerParted {
		t.Error("the restored bank is another")
	}
	east.refuse(Parted, messages.PermissionDenied, Command{Instructions: &lie})
}
