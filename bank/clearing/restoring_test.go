package clearing

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
)

// confirmed returns the totals of what this side and another side have exchanged, signed after this side's operator has
// confirmed them.
func (s *side) confirmed(other *side) clearing.SignedTotals {
	s.Helper()
	t, err := s.state.Totals(other.name)
	if err != nil {
		s.Fatal(err)
	}
	r := s.must(Command{By: "ops", Confirm: &clearing.ConfirmRequest{Totals: t}})
	return s.totals(*r.Totals)
}

func (s *side) totals(t clearing.Totals) clearing.SignedTotals {
	s.Helper()
	signed, err := SignTotals(s.keys, t)
	if err != nil {
		s.Fatal(err)
	}
	return signed
}

func (s *side) adopting(t clearing.SignedTotals) (Command, *clearing.Adoption) {
	s.Helper()
	a, refusal := s.state.Adoption(&t.Totals)
	if refusal != nil {
		s.Fatal(refusal)
	}
	if a == nil {
		return Command{}, nil
	}
	return Command{By: "ops", Adopt: &clearing.AdoptRequest{Totals: t, Correction: a.Correction}}, a
}

func (s *side) of(account messages.Name) messages.Credits {
	a, _ := s.ledger.Account(account)
	return a.Balance
}

func (s *side) mirrored(other *side) {
	s.Helper()
	if ours, theirs := s.of(PeerAccount(other.name)), other.of(PeerAccount(s.name)); ours != -theirs {
		s.Errorf("%s owes %v, and %s is owed %v", s.name, ours, other.name, theirs)
	}
	if d := s.state.peers.byName[other.name].Dispute + other.state.peers.byName[s.name].Dispute + s.state.Fault() + other.state.Fault(); d != "" {
		s.Errorf("disputed: %s", d)
	}
	for _, sender := range []messages.Name{s.name, other.name} {
		if here, there := s.lost(other, sender), other.lost(s, sender); here != "0 0" || there != "0 0" {
			s.Errorf("of %s: %s, %s", sender, here, there)
		}
	}
}

// busy makes two sides send each other all kinds of instructions. The argument `keys` makes the keys of the requests
// unique.
func busy(east, west *side, keys string) {
	east.pay(west, keys+"-p", 3)
	west.pay(east, keys+"-q", 2)
	for _, by := range [][2]*side{{east, west}, {west, east}} {
		home, host := by[0], by[1]
		a, b, c := home.authorise(host, keys+"-a", 8), home.authorise(host, keys+"-b", 5), home.authorise(host, keys+"-c", 4)
		for _, it := range []clearing.SignedAuthorisation{a, b, c} {
			host.must(accepting(it))
		}
		host.must(charging(a, 6))
		host.must(charging(b, 0))
		home.must(Command{By: "ada", Revoke: &clearing.RevokeRequest{ID: c.Authorisation.ID}})
	}
	for range 2 {
		east.exchange(west)
		west.exchange(east)
	}
}

func cycled(east, west *side, cycle uint64) {
	for _, s := range []*side{east, west} {
		s.close(cycle)
	}
	for range 2 {
		east.exchange(west)
		west.exchange(east)
	}
}

// TestARestoredBankAdoptsTheTotalsOfItsPeer restores a bank from an old backup. Until the bank has adopted the peer's
// totals, it must send no instructions and carry out none. After that, the books of both sides must agree, and the
// sides must trade again.
func TestARestoredBankAdoptsTheTotalsOfItsPeer(t *testing.T) {
	for _, aware := range []bool{true, false} {
		t.Run(fmt.Sprint("aware ", aware), func(t *testing.T) {
			east, west := pair(t)
			busy(east, west, "one")
			restore := west.backup()
			users := west.of("ada")
			busy(east, west, "two")
			cycled(east, west, 1)
			east.pay(west, "after", 1)
			want := west.of(PeerAccount("east"))
			restore()
			before := west.of(PeerAccount("east"))
			if aware {
				west.must(Command{Incarnation: 5, Since: west.at})
				west.refuse(Restored, messages.Unavailable, Command{By: "ada", Remit: &clearing.RemitRequest{Key: "again", Peer: "east", Payee: "ada", Amount: 1}})
				east.must(Command{By: "ada", Remit: &clearing.RemitRequest{Key: "next", Peer: "west", Payee: "ada", Amount: messages.Credit}})
				m := east.outgoing(west)
				west.refuse(Restored, messages.Unavailable, Command{Instructions: &m})
				if _, sends := west.state.Outgoing("east", west.at); sends {
					t.Error("west asks for something")
				}
			} else { // west does not know that it was restored: it uses a number again, which begins a dispute
				west.must(Command{By: "ada", Remit: &clearing.RemitRequest{Key: "again", Peer: "east", Payee: "ada", Amount: messages.Credit}})
				m := west.outgoing(east)
				if r := east.do(Command{Instructions: &m}); r.Error == nil {
					t.Fatalf("it came to %+v", r)
				}
			}
			adopt, a := west.adopting(east.confirmed(west))
			if a == nil || a.Numbers == 0 || a.Correction != before-want || aware == (a.Returned != 0) {
				t.Fatalf("the adoption is %+v, and west owed %v and then %v", a, before, want)
			}
			west.must(adopt)
			west.refuse(Ordinary, messages.Conflict, adopt)
			if got := west.of(CorrectionAccount); got != a.Correction || west.of("ada") != users || west.of(PeerAccount("east")) != want {
				t.Errorf("the correction is %v of %v, ada has %v of %v, and west owes %v of %v", got, a.Correction, west.of("ada"), users, west.of(PeerAccount("east")), want)
			}
			if aware {
				users += messages.Credit // east sends again the payment that west refused before
			}
			for range 2 {
				west.exchange(east)
				east.exchange(west)
			}
			west.mirrored(east)
			if west.of("ada") != users {
				t.Errorf("ada has %v of %v", west.of("ada"), users)
			}
			busy(east, west, "three")
			cycled(east, west, 2)
			cycled(east, west, 3) // one more cycle, for the debts of a cycle that west had already closed
			for _, s := range []*side{east, west} {
				if p, err := s.state.Position(3); err != nil || !p.Complete {
					t.Errorf("%s: cycle 3 is %+v, %v", s.name, p, err)
				}
				s.has(PeerAccount(map[*side]messages.Name{east: "west", west: "east"}[s]), 0, 0)
			}
		})
	}
}

// TestAnAdoptionNeedsBothSides checks that an adoption needs the signatures of both sides on the same totals.
func TestAnAdoptionNeedsBothSides(t *testing.T) {
	east, west := pair(t)
	restore := west.backup()
	west.pay(east, "k", 5)
	restore()
	west.must(Command{Incarnation: 5, Since: west.at})
	alone, err := east.state.Totals("west")
	if err != nil {
		t.Fatal(err)
	}
	adopt, _ := west.adopting(east.totals(alone))
	west.refuse(Ordinary, messages.Conflict, adopt) // east's operator has not confirmed the totals
	alone.Confirmed = true
	adopt, _ = west.adopting(west.totals(alone)) // west has signed the totals in place of east
	west.refuse(Signature, messages.PermissionDenied, adopt)
	adopt, _ = west.adopting(east.confirmed(west))
	other := *adopt.Adopt
	other.Correction++
	west.refuse(Ordinary, messages.Conflict, Command{By: "ops", Adopt: &other})
	other = *adopt.Adopt
	other.Totals.Totals.Received.Owed--
	other.Correction++
	west.refuse(Signature, messages.PermissionDenied, Command{By: "ops", Adopt: &other})
	seen := adopt.Adopt.Totals.Totals
	east.must(Command{By: "ada", Remit: &clearing.RemitRequest{Key: "k", Peer: "west", Payee: "ada", Amount: messages.Credit}})
	seen.Authorised++
	east.refuse(Ordinary, messages.Conflict, Command{By: "ops", Confirm: &clearing.ConfirmRequest{Totals: seen}})
	west.must(adopt)
	west.refuse(Ordinary, messages.Conflict, adopt)
	for _, it := range []clearing.RunningTotal{{Number: maxNumber + 1}, {Number: 9, Owed: maxOwed + 1}, {Number: 9, Owed: 2 * messages.MaxCredits}, {Number: 9, Volume: -1}} {
		bad := seen
		bad.Received = it
		if a, err := west.state.Adoption(&bad); err == nil {
			t.Errorf("%+v comes to %+v", it, a)
		}
	}
	west.exchange(east)
	east.exchange(west)
	west.mirrored(east)
}

// A site is restored from a backup that lacks an authorisation. It then adopts the peer's totals, which say how much
// lost authorisations may still cost. Up to this amount, the correction account must pay the charge of the lost
// authorisation.
func TestAuthorisationsThatWereLostArePaid(t *testing.T) {
	east, west := pair(t)
	kept := west.authorise(east, "kept", 5)
	east.must(accepting(kept))
	restore := west.backup()
	west.at++
	lost := west.authorise(east, "lost", 20)
	east.must(accepting(lost))
	restore()
	west.must(Command{Incarnation: 5, Since: west.at - 1})
	if none, err := east.state.Totals("west"); err != nil || !west.state.Forgot(&none) {
		t.Fatalf("nothing is missed of %+v, %v", none, err)
	}
	adopt, a := west.adopting(east.confirmed(west))
	if a == nil || a.Numbers != 0 || a.Authorised != 25*messages.Credit || a.Correction != 0 {
		t.Fatalf("the adoption is %+v", a)
	}
	west.must(adopt)
	east.must(charging(lost, 15))
	east.must(charging(kept, 2))
	east.exchange(west)
	west.has("ada", 98, 0)
	west.has(CorrectionAccount, -15, 0)
	m := east.outgoing(west).Instructions
	// the first is above the remaining amount; the second was charged before
	for n, id := range []string{"lost2", "ada/kept"} {
		m.List = append(m.List, clearing.Instruction{Kind: clearing.InstructCharge, ID: id, Amount: messages.Credits(6-2*n) * messages.Credit})
	}
	receipt := west.answer(east.sign(m))
	for i, o := range receipt.Receipt.Outcomes {
		if o.Error == nil {
			t.Errorf("charge %d came to %+v", i, o)
		}
	}
	west.has(CorrectionAccount, -15, 0)
}

func TestTenThousandLostNumbersAreAdopted(t *testing.T) {
	east, west := barePair(t)
	restore := west.backup()
	const lost = 10_000 // more than the lines of a book
	for n := range lost {
		east.must(Command{By: "ada", Remit: &clearing.RemitRequest{Key: fmt.Sprint(n), Peer: "west", Payee: "ada", Amount: messages.Credits(1 + n%3)}})
		if n%250 == 249 {
			east.exchange(west)
		}
	}
	west.pay(east, "k", 5)
	want := west.of(PeerAccount("east"))
	restore()
	west.must(Command{Incarnation: 5, Since: west.at})
	adopt, a := west.adopting(east.confirmed(west))
	if a == nil || a.Numbers != lost+1 {
		t.Fatalf("the adoption is %+v", a)
	}
	if data, err := adopt.Encode(); err != nil || len(data) > 1024 {
		t.Errorf("the command has %d bytes, %v", len(data), err)
	}
	west.must(adopt)
	for range 2 {
		east.exchange(west)
		west.exchange(east)
	}
	if got := west.of(PeerAccount("east")); got != want {
		t.Errorf("west owes %v of %v", got, want)
	}
	west.mirrored(east)
}

func TestWhatWasSignedBeforeARestorationCountsNoMore(t *testing.T) {
	east, west := pair(t)
	restore := west.backup()
	west.must(Command{By: "ada", Remit: &clearing.RemitRequest{Key: "k", Peer: "east", Payee: "ada", Amount: messages.Credit}})
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

// gamble is a random test of two sides. In each step, a side takes a random action that concerns the other side. Some
// answers are lost.
type gamble struct {
	*rand.Rand
	east, west *side
	open       map[*side][]clearing.SignedAuthorisation // by side: authorisations that it accepted and has not charged
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
		s.do(Command{By: "ada", Remit: &clearing.RemitRequest{Key: key, Peer: other.name, Payee: "ada", Amount: messages.Credits(1+g.IntN(3)) * messages.Credit}})
	case 1:
		r := s.do(Command{By: "ada", Authorise: &clearing.AuthoriseRequest{Key: key, Peer: other.name, Amount: 3 * messages.Credit, Interval: 3600 * span}})
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
			s.do(Command{By: "ada", Revoke: &clearing.RevokeRequest{ID: list[g.IntN(len(list))].Authorisation.ID}})
		}
	case 4:
		if g.IntN(4) == 0 {
			g.cycle++
			g.east.do(Command{By: "ops", Close: &clearing.CloseRequest{Cycle: g.cycle}})
			g.west.do(Command{By: "ops", Close: &clearing.CloseRequest{Cycle: g.cycle}})
		}
	default:
		g.ask(s, other, g.IntN(3) > 0)
	}
}

// The method ask sends the message that a side has for the other side. If `heard` is true, the answer arrives. If it is
// false, the answer is lost.
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

// TestAnyRestorationIsAdopted backs up and restores banks at random times. After each adoption both sides must have the
// same books.
func TestAnyRestorationIsAdopted(t *testing.T) {
	adoptions := 0
	for seed := range uint64(60) {
		east, west := pair(t)
		g := &gamble{Rand: rand.New(rand.NewPCG(seed, 7)), east: east, west: west, open: map[*side][]clearing.SignedAuthorisation{}}
		n, end := 0, g.IntN(60)
		for ; n < end; n++ {
			g.step(n)
		}
		restore, since := west.backup(), west.at
		west.at++
		for end += 1 + g.IntN(60); n < end; n++ {
			g.step(n)
		}
		restore()
		aware := seed%2 == 0
		if aware {
			west.must(Command{Incarnation: seed + 1, Since: since})
		}
		g.open[west] = nil // after the restore, west does not know which authorisations it still has
		for end += g.IntN(20); n < end; n++ {
			g.step(n)
		}
		if adopt, a := west.adopting(east.confirmed(west)); a != nil {
			west.must(adopt)
			adoptions++
		} else if aware {
			west.must(Command{Compared: "east"})
		}
		for range 3 {
			g.ask(west, east, true)
			g.ask(east, west, true)
		}
		for _, a := range g.open[east] {
			east.do(charging(a, 1))
		}
		refused := west.state.Refused(Recharged)
		for range 3 {
			g.ask(west, east, true)
			g.ask(east, west, true)
		}
		if now := west.state.Refused(Recharged); aware && now != refused {
			t.Errorf("%d charges that were authorised are refused", now-refused)
		}
		west.mirrored(east)
		if west.state.Outstanding()+east.state.Outstanding() > 0 {
			t.Errorf("%d and %d wait", west.state.Outstanding(), east.state.Outstanding())
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if adoptions < 40 {
		t.Errorf("%d restorations lost something", adoptions)
	}
}

// TestABackupIsRestoredAgainWithTheClockBehind restores a backup twice, the second time with the clock behind. Each
// restore gives the bank a new incarnation number. The new number must be above the number that the peer knows.
func TestABackupIsRestoredAgainWithTheClockBehind(t *testing.T) {
	for name, second := range map[string]uint64{"behind": 3, "the same": 5} {
		t.Run(name, func(t *testing.T) {
			east, west := pair(t)
			backups := []func(){west.backup(), west.backup()} // two backups of the same moment
			restored := func(incarnation uint64) {
				backups[0]()
				backups = backups[1:]
				known, err := east.state.Totals("west")
				if err != nil {
					t.Fatal(err)
				}
				west.must(Command{Incarnation: incarnation, Since: 1})
				west.must(Command{Compared: "east", Known: known.Incarnation})
				west.exchange(east)
			}
			restored(5)
			late := west.outgoing(east)
			restored(second)
			east.refuse(Restored, messages.Expired, Command{Instructions: &late})
			busy(east, west, "since")
			west.mirrored(east)
			if got := east.state.peers.byName["west"].Incarnation; got != 6 {
				t.Errorf("east knows incarnation %d of west", got)
			}
		})
	}
}
