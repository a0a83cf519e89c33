package clearing

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	moneymsg "github.com/candor-grid/candor/messages/money"
	"github.com/candor-grid/candor/messages/proof"
)

func (s *side) pay(other *side, key string, credits messages.Credits) {
	s.Helper()
	s.must(Command{By: "ada", Remit: &clearing.RemitRequest{Key: key, Peer: other.name, Payee: "ada", Amount: credits * messages.Credit}})
	s.exchange(other)
}

func (s *side) close(cycle uint64) clearing.Position {
	s.Helper()
	return *s.must(Command{Close: &clearing.CloseRequest{Cycle: cycle}}).Position
}

func ring(t *testing.T) [3]*side {
	sides := [3]*side{newSide(t, "east"), newSide(t, "north"), newSide(t, "west")}
	for _, s := range sides {
		for _, other := range sides {
			if s != other {
				s.know(other, 100)
			}
		}
		s.grant("ada", 100)
	}
	return sides
}

// TestNetSettlementOfACircle: each of three sites owes the next one the same amount, in a circle. These debts cancel,
// so no site may have to pay.
func TestNetSettlementOfACircle(t *testing.T) {
	sides := ring(t)
	east, north, west := sides[0], sides[1], sides[2]
	east.pay(north, "a", 30)
	north.pay(west, "b", 30)
	west.pay(east, "c", 40)
	var positions []clearing.Position
	for _, s := range sides {
		if p := s.close(1); p.Complete {
			t.Errorf("%s is complete before anybody answered", s.name)
		}
	}
	for _, s := range sides {
		for _, other := range sides {
			if s != other {
				s.exchange(other)
			}
		}
	}
	for _, s := range sides {
		positions = append(positions, s.close(0))
		for _, other := range sides {
			if s != other {
				s.has(PeerAccount(other.name), 0, 0)
			}
		}
	}
	east.has(SettledAccount("west"), -40, 0)
	east.has(SettlementAccount, 30, 0)
	north.has(SettledAccount("east"), -30, 0)
	north.has(SettlementAccount, 30, 0)
	west.has(SettledAccount("north"), -30, 0)
	west.has(SettlementAccount, 40, 0)
	// Now the operators make the net payments outside the ledgers. For a payment, one site withdraws the amount, and
	// the other site grants it. So credits move from one issuer to another. If a site both pays and receives the same
	// amount, no payment is made: the site withdraws and grants the amount itself.
	for i, s := range sides {
		paid, debtor := []messages.Credits{30, 30, 40}[i], []*side{west, east, north}[i]
		received := []messages.Credits{40, 30, 30}[i]
		s.apply(ledger.Command{Verb: ledger.Withdraw, Withdraw: moneymsg.WithdrawRequest{Key: "w", Account: SettlementAccount, Amount: paid * messages.Credit, Reason: "cycle 1"}})
		s.apply(ledger.Command{Verb: ledger.Grant, Grant: moneymsg.GrantRequest{Key: "w", Account: SettledAccount(debtor.name), Amount: received * messages.Credit, Reason: "cycle 1"}})
		s.has(SettlementAccount, 0, 0)
		s.has(SettledAccount(debtor.name), 0, 0)
	}
	if issued := east.ledger.Totals().Issued + north.ledger.Totals().Issued + west.ledger.Totals().Issued; issued != 300*messages.Credit {
		t.Errorf("%v are issued over all sites, want 300", issued)
	}
	got := Net(1, positions)
	want := []clearing.NetPayment{{From: "west", To: "east", Amount: 10 * messages.Credit}}
	if !got.Balanced || !reflect.DeepEqual(got.Payments, want) {
		t.Errorf("got %+v, want payments %+v", got, want)
	}
	if got.Volume != 100*messages.Credit || got.Bilateral != 100*messages.Credit || got.Multilateral != 10*messages.Credit {
		t.Errorf("volume %v, bilateral %v, multilateral %v; want 100, 100, 10", got.Volume, got.Bilateral, got.Multilateral)
	}
}

func TestBilateralNetting(t *testing.T) {
	east, west := pair(t)
	east.pay(west, "a", 30)
	west.pay(east, "b", 50)
	east.close(1)
	west.close(1)
	east.exchange(west)
	west.exchange(east)
	e, w := east.close(0), west.close(0)
	if e.Legs[0].Received != 20*messages.Credit || e.Legs[0].Paid != 0 || e.Net != 20*messages.Credit || !e.Complete {
		t.Errorf("east has %+v", e)
	}
	if w.Legs[0].Paid != 20*messages.Credit || w.Net != -20*messages.Credit || w.Legs[0].Volume != 50*messages.Credit {
		t.Errorf("west has %+v", w)
	}
}

// TestSettlementTakesWhatIsOwed checks what a creditor accepts in a settlement. The amount must not be more than the
// debt in the creditor's own book, and not more than the creditor's reserve for settled debts.
func TestSettlementTakesWhatIsOwed(t *testing.T) {
	east, west := pair(t)
	east.pay(west, "a", 30)
	east.must(Command{Close: &clearing.CloseRequest{Cycle: 1}})
	west.must(Command{By: "ada", Remit: &clearing.RemitRequest{Key: "b", Peer: "east", Payee: "ada", Amount: 20 * messages.Credit}})
	west.exchange(east)
	east.exchange(west) // east offers 30, and meanwhile owes only 10
	east.has(PeerAccount("west"), 0, 0)
	west.has(PeerAccount("east"), 0, 0)
	west.has(SettledAccount("east"), -10, 0)

	east.pay(west, "c", 30)
	west.must(Command{Reserve: &clearing.ReserveRequest{Limit: 15 * messages.Credit}})
	east.close(2)
	east.exchange(west)
	west.has(SettledAccount("east"), -15, 0)
	east.has(PeerAccount("west"), 25, 0)
}

func TestSettlementsThatAreRefused(t *testing.T) {
	east, west := pair(t)
	settle := func(cycle uint64, amount messages.Credits) moneymsg.TransferResult {
		t.Helper()
		return west.answer(east.forge(west, clearing.Instruction{Kind: clearing.InstructSettle, Cycle: cycle, Amount: amount})).Receipt.Outcomes[0]
	}
	if o := settle(1, 50*messages.Credit); o.Error != nil || o.Amount != 0 {
		t.Errorf("took %+v of a peer that owes nothing", o)
	}
	if o := settle(1, 1); o.Error == nil || o.Error.Kind != messages.Conflict {
		t.Errorf("a cycle twice came to %+v", o)
	}
	if o := settle(1000, 1); o.Error == nil || o.Error.Kind != messages.Invalid {
		t.Errorf("a cycle far ahead came to %+v", o)
	}
	if o := settle(2, -1); o.Error == nil || o.Error.Kind != messages.Invalid {
		t.Errorf("a negative amount came to %+v", o)
	}
	west.has(SettlementAccount, 0, 0)
}

func TestOldCyclesAreForgotten(t *testing.T) {
	east, west := pair(t)
	for n := uint64(1); n <= keptCycles+10; n++ {
		east.close(n)
		west.close(n)
		east.exchange(west)
		west.exchange(east)
	}
	if n := len(west.state.peers.byName["east"].Cycles); n != keptCycles {
		t.Errorf("%d cycles are kept, want %d", n, keptCycles)
	}
	o := west.answer(east.forge(west, clearing.Instruction{Kind: clearing.InstructSettle, Cycle: 1, Amount: 1})).Receipt.Outcomes[0]
	if o.Error == nil || o.Error.Kind != messages.Expired {
		t.Errorf("an old cycle came to %+v", o)
	}
}

// TestNetReportsWhatDoesNotFit checks that the report names the sites that disagree and the sites that are missing.
func TestNetReportsWhatDoesNotFit(t *testing.T) {
	leg := func(peer messages.Name, paid, received messages.Credits) clearing.Leg {
		return clearing.Leg{Peer: peer, Paid: paid, Received: received, Final: true}
	}
	a := clearing.Position{Site: "a", Cycle: 1, Legs: []clearing.Leg{leg("b", 5, 0), leg("c", 0, 0)}, Net: -5}
	b := clearing.Position{Site: "b", Cycle: 1, Legs: []clearing.Leg{leg("a", 0, 5)}, Net: 5}
	lies := b
	lies.Legs = []clearing.Leg{leg("a", 0, 4)}
	lies.Net = 4
	late := b
	late.Cycle = 2
	wrong := b
	wrong.Net = 7
	for name, c := range map[string]struct {
		given []clearing.Position
		fault string
	}{
		"a lie":            {[]clearing.Position{a, lies}, "a says it settled 0.000005 with b"},
		"another cycle":    {[]clearing.Position{a, late}, "of cycle 2"},
		"a wrong sum":      {[]clearing.Position{a, wrong}, "sum to 0.000005"},
		"a site twice":     {[]clearing.Position{a, b, b}, "two positions of b"},
		"nothing but gaps": {[]clearing.Position{a, b}, ""},
	} {
		got := Net(1, c.given)
		if got.Balanced || !strings.Contains(strings.Join(got.Faults, "; "), c.fault) {
			t.Errorf("%s: got %+v, want a fault like %q", name, got, c.fault)
		}
		if !reflect.DeepEqual(got.Missing, []messages.Name{"c"}) {
			t.Errorf("%s: missing %v, want c", name, got.Missing)
		}
	}
}

// A position is what a site owes and is owed when a cycle is closed. TestPositionsAreSigned checks that a site's
// signature of a position is not valid for a changed position.
func TestPositionsAreSigned(t *testing.T) {
	east, west := pair(t)
	signed, err := SignPosition(east.keys, east.close(1))
	if err != nil {
		t.Fatal(err)
	}
	keys := []string{west.public(), east.public()}
	if !VerifyPosition(proof.Verified, keys, &signed) || VerifyPosition(proof.Verified, keys[:1], &signed) {
		t.Error("a position is verified with the wrong keys")
	}
	signed.Position.Net++
	if VerifyPosition(proof.Verified, keys, &signed) {
		t.Error("an altered position is verified")
	}
}

// TestNettingDoesNotOverflow: a site may sign any amounts. If their sum overflows, the report must have a fault, and no
// payment may be larger than a debt.
func TestNettingDoesNotOverflow(t *testing.T) {
	var wraps messages.Credits
	huge := clearing.Position{Site: "west", Cycle: 1}
	for i := range 40 {
		huge.Legs = append(huge.Legs, clearing.Leg{Peer: fmt.Sprint("p", i), Received: messages.MaxCredits, Volume: messages.MaxCredits, Final: true})
		wraps += messages.MaxCredits
	}
	huge.Net = wraps // with this value, the sum overflows
	least := clearing.Position{Site: "north", Cycle: 1, Net: math.MinInt64}
	for what, p := range map[string]clearing.Position{"forty times the most": huge, "the least number": least} {
		r := Net(1, []clearing.Position{p, {Site: "east", Cycle: 1}})
		if len(r.Faults) == 0 || r.Balanced || len(r.Payments) > 0 || r.Volume < 0 {
			t.Errorf("%s: %+v", what, r)
		}
	}
}
