package clearing

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
)

// statements are what a side has of what another lost, with the plan to enter it.
func (s *side) statements(from *side) (*messages.Statements, messages.RepairPlan) {
	s.Helper()
	p := s.state.peers.byName[from.name]
	st, err := from.state.Statements(s.name, messages.StatementsRequest{Received: p.In.Total.Number, Sent: p.Out.Total.Number})
	if err != nil {
		s.Fatal(err)
	}
	if err := s.state.ScreenStatements(&st, from.name, []string{s.public()}); err != nil {
		s.Fatal(err)
	}
	plan, refusal := s.state.Plan("ops", &st)
	if refusal != nil {
		s.Fatal(refusal)
	}
	return &st, plan
}

func mending(peer messages.Name, st *messages.Statements, plan messages.RepairPlan) Command {
	return Command{By: "ops", Repair: &messages.RepairRequest{Peer: peer, Digest: plan.Digest}, Statements: st}
}

// books are the balances of a side's accounts, of which nothing is set aside.
func (s *side) books() map[messages.Name]messages.Credits {
	all := map[messages.Name]messages.Credits{}
	for _, a := range s.ledger.Accounts() {
		if all[a.Account] = a.Balance; a.Reserved != 0 {
			s.Errorf("%s: %v of %s are reserved", s.name, a.Reserved, a.Account)
		}
	}
	return all
}

// busy has two sides trade in every way, with unlike keys.
func busy(east, west *side, keys string) {
	east.pay(west, keys+"-p", 3)
	west.pay(east, keys+"-q", 2)
	for _, by := range [][2]*side{{east, west}, {west, east}} {
		home, host := by[0], by[1]
		a, b, c := home.authorise(host, keys+"-a", 8), home.authorise(host, keys+"-b", 5), home.authorise(host, keys+"-c", 4)
		for _, it := range []messages.SignedAuthorisation{a, b, c} {
			host.must(accepting(it))
		}
		host.must(charging(a, 6))
		host.must(charging(b, 0))
		home.must(Command{By: "ada", Revoke: &messages.RevokeRequest{ID: c.Authorisation.ID}})
	}
	for range 2 {
		east.exchange(west)
		west.exchange(east)
	}
}

// cycled closes a cycle at both sides.
func cycled(east, west *side, cycle uint64) {
	for _, s := range []*side{east, west} {
		s.close(cycle)
	}
	for range 2 {
		east.exchange(west)
		west.exchange(east)
	}
}

// A bank that was restored from an old backup neither asks for anything nor carries
// anything out before it has entered again what it lost, as the other side proves it. All
// accounts are then as they were, and the two trade and settle on.
func TestARestoredBankIsRepaired(t *testing.T) {
	for _, aware := range []bool{true, false} {
		t.Run(fmt.Sprint("aware ", aware), func(t *testing.T) {
			east, west := pair(t)
			busy(east, west, "one")
			restore := west.backup()
			busy(east, west, "two")
			cycled(east, west, 1)
			east.pay(west, "after", 1)
			want := west.books()
			restore()
			if aware {
				west.must(Command{Incarnation: 5})
				west.refuse(Restored, messages.Unavailable, Command{By: "ada", Remit: &messages.RemitRequest{Key: "again", Peer: "east", Payee: "ada", Amount: 1}})
				east.must(Command{By: "ada", Remit: &messages.RemitRequest{Key: "next", Peer: "west", Payee: "ada", Amount: messages.Credit}})
				m := east.outgoing(west)
				west.refuse(Restored, messages.Unavailable, Command{Instructions: &m})
				if _, sends := west.state.Outgoing("east", west.at); sends {
					t.Error("west asks for something")
				}
			} else { // it gives a number again, which is disputed
				west.must(Command{By: "ada", Remit: &messages.RemitRequest{Key: "again", Peer: "east", Payee: "ada", Amount: messages.Credit}})
				m := west.outgoing(east)
				if r := east.do(Command{Instructions: &m}); r.Error == nil {
					t.Fatalf("it came to %+v", r)
				}
			}
			st, plan := west.statements(east)
			if plan.Borne != 0 || len(plan.Unproven) != 0 || plan.Numbers == 0 {
				t.Fatalf("the plan is %+v", plan)
			}
			west.must(mending("east", st, plan))
			if _, again := west.statements(east); again.Numbers != 0 || len(again.Changes) != 0 {
				t.Errorf("what is left to repair is %+v", again)
			}
			for range 2 {
				west.exchange(east)
				east.exchange(west)
			}
			for _, sender := range []messages.Name{"east", "west"} {
				if here, there := west.lost(east, sender), east.lost(west, sender); here != "[] []" || there != "[] []" {
					t.Errorf("of %s: %s, %s", sender, here, there)
				}
			}
			sum := map[bool]messages.Credits{true: 1, false: -1}[aware] * messages.Credit // what was asked for meanwhile
			want["ada"], want[PeerAccount("east")] = want["ada"]+sum, want[PeerAccount("east")]-sum
			if got := west.books(); !reflect.DeepEqual(got, want) {
				t.Errorf("west has %v\nand had %v", got, want)
			}
			if d := east.state.peers.byName["west"].Dispute + west.state.peers.byName["east"].Dispute; d != "" {
				t.Errorf("disputed: %s", d)
			}
			busy(east, west, "three")
			cycled(east, west, 2)
			for _, s := range []*side{east, west} {
				if p, err := s.state.Position(2); err != nil || !p.Complete {
					t.Errorf("%s: cycle 2 is %+v, %v", s.name, p, err)
				}
				if fault := s.state.Fault(); fault != "" {
					t.Errorf("%s: %s", s.name, fault)
				}
				s.has(PeerAccount(map[*side]messages.Name{east: "west", west: "east"}[s]), 0, 0)
			}
		})
	}
}

// What the peer carried out and was not heard of is asked again under the same numbers,
// and what it may still charge is set aside again.
func TestWhatWasUnderWayIsRepaired(t *testing.T) {
	east, west := pair(t)
	restore := west.backup()
	west.must(Command{By: "ada", Remit: &messages.RemitRequest{Key: "k", Peer: "east", Payee: "ada", Amount: 7 * messages.Credit}})
	b := east.authorise(west, "b", 9)
	west.must(accepting(b))
	west.must(charging(b, 4))
	a := west.authorise(east, "a", 20)
	east.must(accepting(a))
	east.answer(west.outgoing(east)) // the receipt is lost, and then west's disk
	restore()
	west.must(Command{Incarnation: 5})
	st, plan := west.statements(east)
	want := []messages.RepairChange{
		{Sender: "west", Number: 1, Kind: messages.InstructPay, Account: "ada", Amount: -7 * messages.Credit, Held: true},
		{Sender: "west", Number: 2, Kind: messages.InstructCharge, Account: messages.SiteAccount, Amount: 4 * messages.Credit, Held: true},
		{Sender: "east", Kind: messages.InstructCharge, Account: "ada", Amount: -20 * messages.Credit, Held: true},
	}
	if !reflect.DeepEqual(plan.Changes, want) {
		t.Errorf("the plan is %+v", plan.Changes)
	}
	west.must(mending("east", st, plan))
	west.has("ada", 100, 27)
	west.exchange(east)
	west.has("ada", 93, 20)
	west.has(messages.SiteAccount, 4, 0)
	east.must(charging(a, 15))
	east.exchange(west)
	west.has("ada", 78, 0)
	west.refuse(Ordinary, messages.Conflict, Command{By: "ada", Authorise: &messages.AuthoriseRequest{Key: "a", Peer: "east", Amount: 20 * messages.Credit, Interval: 3600 * span}})
	r := west.must(Command{By: "ada", Remit: &messages.RemitRequest{Key: "k", Peer: "east", Payee: "ada", Amount: 7 * messages.Credit}})
	if r.Answer.Number != 0 {
		t.Errorf("the payment is made again: %+v", r.Answer)
	}
}

// Where a user's account is not there any more, or has not enough, the operator's account
// stands in; if that has not enough either, nothing is entered.
func TestTheOperatorBearsWhatUsersCannot(t *testing.T) {
	east, west := pair(t)
	restore := west.backup()
	west.grant("bob", 50)
	west.must(Command{By: "bob", Remit: &messages.RemitRequest{Key: "k", Peer: "east", Payee: "ada", Amount: 30 * messages.Credit}})
	east.must(Command{By: "ada", Remit: &messages.RemitRequest{Key: "k", Peer: "west", Payee: "bob", Amount: 4 * messages.Credit}})
	west.exchange(east)
	west.exchange(east)
	east.exchange(west)
	restore()
	west.must(Command{Incarnation: 5})
	st, plan := west.statements(east)
	if plan.Borne != 30*messages.Credit {
		t.Fatalf("the plan is %+v", plan)
	}
	west.refuse(Ordinary, messages.Insufficient, mending("east", st, plan))
	west.grant("ops", 30)
	west.refuse(Ordinary, messages.Conflict, Command{By: "ops", Repair: &messages.RepairRequest{Peer: "east", Digest: make([]byte, 32)}, Statements: st})
	west.must(mending("east", st, plan))
	west.has("ops", 4, 0)
	west.has(PeerAccount("east"), 26, 0)
}

// What this site did not sign, or what its signature does not cover, is not entered.
func TestForgedStatementsAreNotEntered(t *testing.T) {
	east, west := pair(t)
	restore := west.backup()
	west.pay(east, "k", 5)
	east.pay(west, "k", 5)
	east.pay(west, "l", 5)
	west.exchange(east)
	restore()
	st, _ := west.statements(east)
	east.meddled = true // what it shows is its own state
	st.To[0].Instruction.Amount++
	st.From = append(st.From, st.From...)
	if plan, _ := west.state.Plan("ops", st); len(plan.Unproven) != 2 || plan.Numbers != 0 || len(plan.Changes) != 0 {
		t.Errorf("the plan is %+v", plan)
	}
	if err := west.state.ScreenStatements(st, "east", []string{east.public()}); err == nil || err.Reason != Signature {
		t.Errorf("got %v", err)
	}
	st.Instructions.Instructions.Known.Owed++
	if err := west.state.ScreenStatements(st, "east", []string{west.public()}); err == nil || !strings.Contains(err.Error(), "none of its keys") {
		t.Errorf("got %v", err)
	}
}

// What was signed before a peer was restored is not carried out after it.
func TestWhatWasSignedBeforeARestorationCountsNoMore(t *testing.T) {
	east, west := pair(t)
	restore := west.backup()
	west.must(Command{By: "ada", Remit: &messages.RemitRequest{Key: "k", Peer: "east", Payee: "ada", Amount: messages.Credit}})
	late := west.outgoing(east)
	restore()
	west.must(Command{Incarnation: 5})
	west.must(Command{Compared: "east"})
	west.exchange(east)
	east.refuse(Restored, messages.Expired, Command{Instructions: &late})
	if got := east.state.terms.describe(east.state.peers.byName["west"]).Incarnation; got != 5 {
		t.Errorf("west is at incarnation %d", got)
	}
}

// gamble has two sides do anything that they may to one another, and loses answers.
type gamble struct {
	*rand.Rand
	east, west *side
	open       map[*side][]messages.SignedAuthorisation // that a side accepted, and has not charged
	cycle      uint64
}

func (g *gamble) step(n int) {
	s, other := g.east, g.west
	if g.IntN(2) == 0 {
		s, other = other, s
	}
	key := fmt.Sprint(s.name, n)
	switch g.IntN(7) {
	case 0:
		s.do(Command{By: "ada", Remit: &messages.RemitRequest{Key: key, Peer: other.name, Payee: "ada", Amount: messages.Credits(1+g.IntN(3)) * messages.Credit}})
	case 1:
		r := s.do(Command{By: "ada", Authorise: &messages.AuthoriseRequest{Key: key, Peer: other.name, Amount: 3 * messages.Credit, Interval: 3600 * span}})
		if r.Error != nil {
			return
		}
		a, err := SignAuthorisation(s.keys, *r.Authorisation)
		if err != nil {
			s.Fatal(err)
		}
		if other.do(accepting(a)).Error == nil {
			g.open[other] = append(g.open[other], a)
		}
	case 2:
		if list := g.open[s]; len(list) > 0 {
			s.do(charging(list[0], messages.Credits(g.IntN(4))))
			g.open[s] = list[1:]
		}
	case 3:
		if list := g.open[other]; len(list) > 0 {
			s.do(Command{By: "ada", Revoke: &messages.RevokeRequest{ID: list[g.IntN(len(list))].Authorisation.ID}})
		}
	case 4:
		if g.IntN(4) == 0 {
			g.cycle++
			g.east.do(Command{By: "ops", Close: &messages.CloseRequest{Cycle: g.cycle}})
			g.west.do(Command{By: "ops", Close: &messages.CloseRequest{Cycle: g.cycle}})
		}
	default:
		g.ask(s, other, g.IntN(3) > 0)
	}
}

// ask sends what a side has to say, and brings the answer back, or loses it.
func (g *gamble) ask(s, other *side, heard bool) {
	m, sends := s.state.Outgoing(other.name, s.at)
	if !sends {
		return
	}
	signed := s.sign(m)
	r := other.do(Command{Instructions: &signed})
	if r.Error != nil || !heard {
		return
	}
	receipt, err := SignReceipt(other.keys, *r.Receipt)
	if err != nil {
		s.Fatal(err)
	}
	s.do(Command{Receipt: &receipt})
}

// Whenever a bank is backed up, and whenever it is put back to that: after a repair both
// have the same books, each owes what the other is owed, and what was authorised is paid.
func TestAnyRestorationIsRepaired(t *testing.T) {
	for seed := range uint64(150) {
		east, west := pair(t)
		for _, s := range []*side{east, west} {
			s.grant("ops", 1000)
		}
		g := &gamble{Rand: rand.New(rand.NewPCG(seed, 7)), east: east, west: west, open: map[*side][]messages.SignedAuthorisation{}}
		n, end := 0, g.IntN(60)
		for ; n < end; n++ {
			g.step(n)
		}
		restore := west.backup()
		for end += 1 + g.IntN(60); n < end; n++ {
			g.step(n)
		}
		restore()
		aware := seed%2 == 0
		if aware {
			west.must(Command{Incarnation: seed + 1})
		}
		g.open[west] = nil // which of them it has yet, it must find out
		for end += g.IntN(20); n < end; n++ {
			g.step(n)
		}
		st, plan := west.statements(east)
		if len(plan.Unproven) > 0 {
			t.Fatalf("seed %d: %v", seed, plan.Unproven)
		}
		west.must(mending("east", st, plan))
		if !aware { // it may have given numbers again: east's operator decides
			east.know(west, 100)
		}
		for range 3 {
			g.ask(west, east, true)
			g.ask(east, west, true)
		}
		for _, sender := range []messages.Name{"east", "west"} {
			if here, there := west.lost(east, sender), east.lost(west, sender); here != "[] []" || there != "[] []" {
				t.Fatalf("seed %d: of %s: %s, %s", seed, sender, here, there)
			}
		}
		for _, a := range g.open[east] {
			east.do(charging(a, 1))
		}
		refused := west.state.Refused(Recharged)
		for range 3 {
			g.ask(west, east, true)
			g.ask(east, west, true)
		}
		if now := west.state.Refused(Recharged); now != refused {
			t.Errorf("seed %d: %d charges that were authorised are refused", seed, now-refused)
		}
		ours, _ := west.ledger.Account(PeerAccount("east"))
		theirs, _ := east.ledger.Account(PeerAccount("west"))
		if ours.Balance != -theirs.Balance || west.state.Outstanding()+east.state.Outstanding() > 0 {
			t.Errorf("seed %d: west owes %v, and east is owed %v; %d and %d wait", seed, ours.Balance, -theirs.Balance, west.state.Outstanding(), east.state.Outstanding())
		}
		for _, s := range []*side{east, west} {
			if p := s.state.Peers(); p.Fault != "" || p.Peers[0].Dispute != "" {
				t.Errorf("seed %d: %s: %q, %q", seed, s.name, p.Fault, p.Peers[0].Dispute)
			}
		}
		if t.Failed() {
			return
		}
	}
}
