package clearing

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nkeys"

	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	moneymsg "github.com/candor-grid/candor/messages/money"
)

// TestStatementsThatAreRefused sends authorisations that the bank must refuse. Some were altered, some are for another
// site, some were made by strangers, and some come too late.
func TestStatementsThatAreRefused(t *testing.T) {
	east, west := pair(t)
	north := newSide(t, "north")
	a := east.authorise(west, "k", 30)
	altered := func(change func(*clearing.Authorisation)) Command {
		b := a
		change(&b.Authorisation)
		return accepting(b)
	}
	sealed := func(by nkeys.KeyPair, change func(*clearing.Authorisation)) Command {
		b := a.Authorisation
		change(&b)
		signed, err := SignAuthorisation(by, b)
		if err != nil {
			t.Fatal(err)
		}
		return accepting(signed)
	}
	nothing := func(*clearing.Authorisation) {}

	west.refuse(Signature, messages.PermissionDenied, altered(func(b *clearing.Authorisation) { b.Amount *= 2 }))
	west.refuse(Signature, messages.PermissionDenied, altered(func(b *clearing.Authorisation) { b.Account = "bob" }))
	west.refuse(Signature, messages.PermissionDenied, altered(func(b *clearing.Authorisation) { b.Interval *= 2 }))
	west.refuse(Signature, messages.PermissionDenied, altered(func(b *clearing.Authorisation) { b.ID = "ada/other" }))
	west.refuse(Misaddressed, messages.PermissionDenied, altered(func(b *clearing.Authorisation) { b.Peer = "north" }))
	west.refuse(Stranger, messages.Unavailable, altered(func(b *clearing.Authorisation) { b.Issuer = "north" }))
	west.refuse(Signature, messages.PermissionDenied, sealed(north.keys, nothing))
	west.refuse(Signature, messages.PermissionDenied, sealed(west.keys, nothing))
	west.refuse(Amount, messages.Invalid, sealed(east.keys, func(b *clearing.Authorisation) { b.Amount = -1 }))
	west.refuse(Amount, messages.Invalid, sealed(east.keys, func(b *clearing.Authorisation) { b.Amount = math.MinInt64 }))
	west.refuse(Amount, messages.TooLarge, sealed(east.keys, func(b *clearing.Authorisation) { b.Amount = math.MaxInt64 }))
	west.refuse(Malformed, messages.Invalid, sealed(east.keys, func(b *clearing.Authorisation) { b.Issued = math.MaxInt64 }))
	west.refuse(Malformed, messages.Invalid, sealed(east.keys, func(b *clearing.Authorisation) { b.Margin = 0 }))
	west.refuse(Future, messages.Invalid, sealed(east.keys, func(b *clearing.Authorisation) { b.Issued = west.at + hour + 1 }))

	west.must(accepting(a))
	west.refuse(Rewritten, messages.Conflict, sealed(east.keys, func(b *clearing.Authorisation) { b.Amount *= 2 }))
	replay := accepting(a)
	replay.Accept.Purpose = "another job"
	west.refuse(Replayed, messages.Conflict, replay)
	west.must(charging(a, 30))
	west.refuse(Recharged, messages.Ended, accepting(a))
	west.refuse(Replayed, messages.Conflict, replay)
	west.at = a.Authorisation.Ends()
	west.must(Command{})
	west.refuse(Stale, messages.Expired, accepting(a))
}

// TestStatementEndsByTheClockThatIsAhead: by the clock of the issuer, an authorisation has ended. The clock of the
// other bank is behind. The other bank must refuse the authorisation as soon as it has seen a later time of the issuer.
func TestStatementEndsByTheClockThatIsAhead(t *testing.T) {
	east, west := pair(t)
	a := east.authorise(west, "k", 30)
	east.at = a.Authorisation.Ends()
	east.must(Command{By: "ada", Remit: &clearing.RemitRequest{Key: "p", Peer: "west", Payee: "ada", Amount: 1}})
	east.exchange(west)
	west.refuse(Stale, messages.Expired, accepting(a))
}

// TestClockThatWasFarAhead sets the clock of a peer far ahead, and then right. After that, the bank must accept the
// times in the peer's messages again.
func TestClockThatWasFarAhead(t *testing.T) {
	east, west := pair(t)
	a := east.authorise(west, "k", 30)
	west.exchange(east)
	east.at += 1000 * day
	east.exchange(west)
	east.at -= 1000 * day
	a.Authorisation.Interval = 2 * 3600 * span
	a, err := SignAuthorisation(east.keys, a.Authorisation)
	if err != nil {
		t.Fatal(err)
	}
	west.must(accepting(a))
}

func TestChargesThatAreRefused(t *testing.T) {
	east, west := pair(t)
	north := newSide(t, "north")
	north.know(east, 100)
	east.know(north, 100)
	a := east.authorise(west, "k", 30)
	west.must(accepting(a))
	west.refuse(Amount, messages.Insufficient, charging(a, 31))
	west.refuse(Amount, messages.Invalid, charging(a, -1))
	west.must(charging(a, 20))
	west.refuse(Recharged, messages.Conflict, charging(a, 10))
	west.refuse(Ordinary, messages.NotFound, charging(clearing.SignedAuthorisation{Authorisation: clearing.Authorisation{Issuer: "east", ID: "ada/none"}}, 10))

	// A bank that breaks the rules may also send the charges below. The home bank must refuse each of them.
	charge := func(from *side, amount messages.Credits, id string) (messages.Kind, bool) {
		m := from.forge(east, clearing.Instruction{Kind: clearing.InstructCharge, ID: id, Amount: amount})
		o := east.answer(m).Receipt.Outcomes
		return o[len(o)-1].Error.Kind, strings.Contains(o[len(o)-1].Error.Message, ":")
	}
	for _, attempt := range []struct {
		from   *side
		amount messages.Credits
		reason Refusal
		kind   messages.Kind
	}{
		{north, 10 * messages.Credit, Poached, messages.PermissionDenied},
		{west, 31 * messages.Credit, Amount, messages.Insufficient},
		{west, -1, Amount, messages.Invalid},
		{west, math.MaxInt64, Amount, messages.TooLarge},
		{west, math.MinInt64, Amount, messages.Invalid},
	} {
		before := east.state.Refused(attempt.reason)
		kind, named := charge(attempt.from, attempt.amount, a.Authorisation.ID)
		if kind != attempt.kind || !named || east.state.Refused(attempt.reason) != before+1 {
			t.Errorf("%s charging %v: got %v, counted %d times, want %v, once more than %d", attempt.from.name, attempt.amount,
				kind, east.state.Refused(attempt.reason), attempt.kind, before)
		}
		east.has("ada", 100, 30)
	}
	east.answer(west.forge(east, clearing.Instruction{Kind: clearing.InstructCharge, ID: a.Authorisation.ID, Amount: 30 * messages.Credit}))
	east.has("ada", 70, 0)
	if kind, _ := charge(west, 30*messages.Credit, a.Authorisation.ID); kind != messages.Ended || east.state.Refused(Recharged) != 1 {
		t.Errorf("a second capture came to %v", kind)
	}
	east.has("ada", 70, 0)
}

// forge signs an instruction with the next number that the receiver expects, whatever the sender's own books say.
func (s *side) forge(to *side, i clearing.Instruction) clearing.SignedInstructions {
	in := &to.state.peers.byName[s.name].In
	return s.sign(clearing.Instructions{From: s.name, To: to.name, First: in.Total.Number + 1, List: []clearing.Instruction{i}, Known: in.Base, At: s.at})
}

// TestAmountBeyondTheType sends amounts of 2^63, which do not fit the type. The message must be refused as unreadable.
func TestAmountBeyondTheType(t *testing.T) {
	east, west := pair(t)
	c := Command{At: west.at, Instructions: &clearing.SignedInstructions{Instructions: clearing.Instructions{
		From: "east", To: "west", First: 1, List: []clearing.Instruction{{Kind: clearing.InstructPay, Account: "ada", Amount: math.MaxInt64}}}}}
	data, err := c.Encode()
	if err != nil {
		t.Fatal(err)
	}
	largest := []byte{0xcf, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	at := bytes.Index(data, largest)
	if at < 0 {
		t.Fatal("the amount is not where it was looked for")
	}
	copy(data[at:], []byte{0xcf, 0x80, 0, 0, 0, 0, 0, 0, 0})
	hash := west.state.Capture()
	r := west.state.Apply(data)
	if r.Error == nil || r.Refused != Malformed || west.state.Refused(Malformed) != 1 {
		t.Errorf("got %+v", r)
	}
	if west.state.Capture().head.Serial != hash.head.Serial || east.ledger.Now() == 0 {
		t.Error("something changed")
	}
}

// TestMessagesThatAreRefused sends wrong messages between banks. They are altered, addressed to another site, or
// repeated, or they skip numbers. Each must be refused.
func TestMessagesThatAreRefused(t *testing.T) {
	east, west := pair(t)
	for _, key := range []string{"a", "b", "c"} {
		east.must(Command{By: "ada", Remit: &clearing.RemitRequest{Key: key, Peer: "west", Payee: "ada", Amount: messages.Credit}})
	}
	whole := east.outgoing(west)
	with := func(change func(*clearing.Instructions)) Command {
		m := whole.Instructions
		m.List = slices.Clone(m.List)
		change(&m)
		signed := east.sign(m)
		return Command{Instructions: &signed}
	}
	altered := whole
	altered.Instructions.At++
	west.refuse(Signature, messages.PermissionDenied, Command{Instructions: &altered})
	west.refuse(Misaddressed, messages.PermissionDenied, with(func(m *clearing.Instructions) { m.To = "north" }))
	west.refuse(Stranger, messages.PermissionDenied, with(func(m *clearing.Instructions) { m.From = "north" }))
	west.refuse(Gap, messages.Unavailable, with(func(m *clearing.Instructions) { m.First = 2 }))
	west.refuse(Malformed, messages.Invalid, with(func(m *clearing.Instructions) { m.First = 0 }))
	west.refuse(Malformed, messages.Invalid, with(func(m *clearing.Instructions) { m.First = math.MaxUint64 }))
	west.refuse(Malformed, messages.Invalid, with(func(m *clearing.Instructions) { m.List = make([]clearing.Instruction, clearing.MaxInstructions+1) }))

	receipt := west.answer(whole)
	west.has("ada", 103, 0)
	west.answer(whole) // a repeated message is answered, and not carried out again
	west.has("ada", 103, 0)
	west.refuse(Rewritten, messages.Conflict, with(func(m *clearing.Instructions) { m.List[1].Amount *= 2 }))
	west.refuse(Rewritten, messages.Conflict, with(func(m *clearing.Instructions) { m.List[0], m.List[1] = m.List[1], m.List[0]; m.List[0].Reason = "x" }))

	east.refuse(Misaddressed, messages.PermissionDenied, forged(west, receipt, func(r *clearing.Receipt) { r.To = "north" }))
	tampered := receipt
	tampered.Receipt.At++
	east.refuse(Signature, messages.PermissionDenied, Command{Receipt: &tampered})
	east.must(Command{Receipt: &receipt})
	east.refuse(Repeated, messages.Expired, Command{Receipt: &receipt})
	west.answer(east.outgoing(west)) // this message says that east knows the outcomes
	west.refuse(Repeated, messages.Expired, Command{Instructions: &whole})
	east.has("ada", 97, 0)
}

// forged returns a receipt that was changed by the function `change` and signed again by the bank that issued it.
func forged(by *side, r clearing.SignedReceipt, change func(*clearing.Receipt)) Command {
	m := r.Receipt
	m.Outcomes = slices.Clone(m.Outcomes)
	change(&m)
	signed, err := SignReceipt(by.keys, m)
	if err != nil {
		by.Fatal(err)
	}
	return Command{Receipt: &signed}
}

// TestTotalsThatDoNotMatch checks that a wrong running total is recorded as a dispute and changes nothing, whichever
// bank is wrong.
func TestTotalsThatDoNotMatch(t *testing.T) {
	east, west := pair(t)
	east.must(Command{By: "ada", Remit: &clearing.RemitRequest{Key: "a", Peer: "west", Payee: "ada", Amount: messages.Credit}})
	receipt := west.answer(east.outgoing(west))

	east.refuse(Totals, messages.Conflict, forged(west, receipt, func(r *clearing.Receipt) { r.Total.Owed++ }))
	east.refuse(Totals, messages.Conflict, forged(west, receipt, func(r *clearing.Receipt) { r.Total.Volume++ }))
	east.refuse(Totals, messages.Conflict, forged(west, receipt, func(r *clearing.Receipt) { r.Total.Digest = make([]byte, 32) }))
	refused := moneymsg.TransferResult{Error: messages.Errorf(messages.NotFound, "no")}
	east.refuse(Totals, messages.Conflict, forged(west, receipt, func(r *clearing.Receipt) { r.Outcomes[0] = refused }))
	east.refuse(Amount, messages.Conflict, forged(west, receipt, func(r *clearing.Receipt) { r.Outcomes[0].Amount++ }))
	east.refuse(Amount, messages.Conflict, forged(west, receipt, func(r *clearing.Receipt) { r.Outcomes[0].Amount = math.MinInt64 }))
	if d := east.state.Peers().Peers[0].Dispute; !strings.HasPrefix(d, "totals: ") {
		t.Errorf("the dispute is %q", d)
	}
	east.must(Command{Receipt: &receipt})

	m := east.outgoing(west).Instructions
	m.Known.Owed++
	wrong := east.sign(m)
	west.refuse(Totals, messages.Conflict, Command{Instructions: &wrong})
	west.know(east, 100)
	if d := west.state.Peers().Peers[0].Dispute; d != "" {
		t.Errorf("the dispute is still %q after the operator set the terms", d)
	}
}

// TestLostBooksAreNoticed: a bank has lost its answers or its instructions. It must then refuse the messages of its
// peer with the reason Lost.
func TestLostBooksAreNoticed(t *testing.T) {
	east, west := pair(t)
	east.must(Command{By: "ada", Remit: &clearing.RemitRequest{Key: "a", Peer: "west", Payee: "ada", Amount: messages.Credit}})
	sent := east.outgoing(west)
	receipt := west.answer(sent)
	east.must(Command{Receipt: &receipt})

	_, amnesiac := pair(t)
	next := east.outgoing(west)
	amnesiac.refuse(Lost, messages.Conflict, Command{Instructions: &next})
	forgetful, _ := pair(t)
	forgetful.refuse(Lost, messages.Conflict, Command{Receipt: &receipt})
}

// TestFlood checks that a peer cannot make a bank remember more outcomes than the limit.
func TestFlood(t *testing.T) {
	east, west := pair(t)
	m := clearing.Instructions{From: "east", To: "west", First: 1, At: east.at, Known: west.state.peers.byName["east"].In.Base}
	for range clearing.MaxInstructions {
		m.List = append(m.List, clearing.Instruction{Kind: clearing.InstructCharge, ID: "ada/x", Amount: 1})
	}
	for range MaxOutstanding / clearing.MaxInstructions {
		signed := east.sign(m)
		west.must(Command{Instructions: &signed})
		m.First += clearing.MaxInstructions
	}
	signed := east.sign(m)
	west.refuse(Flood, messages.Exhausted, Command{Instructions: &signed})
}

// TestFullOutbox fills an outbox. Users must be refused, but charges, releases and closed cycles must still be
// possible.
func TestFullOutbox(t *testing.T) {
	east, west := barePair(t)
	a := west.authorise(east, "k", 10)
	east.must(accepting(a))
	for i := range MaxOutstanding {
		east.must(Command{By: "ada", Remit: &clearing.RemitRequest{Key: fmt.Sprint(i), Peer: "west", Payee: "ada", Amount: 1}})
	}
	one := Command{By: "ada", Remit: &clearing.RemitRequest{Key: "more", Peer: "west", Payee: "ada", Amount: 1}}
	east.refuse(Ordinary, messages.Exhausted, one)
	b := west.authorise(east, "l", 10)
	east.must(accepting(b))
	east.must(charging(a, 5))
	east.must(Command{Close: &clearing.CloseRequest{Cycle: 1}})
	east.at = b.Authorisation.Ends()
	east.must(Command{})
	if due := east.state.Due(); due != 0 {
		t.Errorf("something is due at %v, after all has ended", due)
	}
	for range MaxOutstanding / clearing.MaxInstructions {
		east.exchange(west)
	}
	east.must(one)
	if out := &east.state.peers.byName["west"].outbox; len(*out) != 4 || (*out)[0].Instruction.Kind != clearing.InstructCharge || (*out)[1].Instruction.Kind != clearing.InstructSettle {
		t.Errorf("what waits is %+v", *out)
	}
	if in := &west.state.peers.byName["east"].In; in.Total.Number != MaxOutstanding || in.Total.Owed != MaxOutstanding {
		t.Errorf("west has %+v", in.Total)
	}
}

func TestManyTinyAuthorisations(t *testing.T) {
	east, _ := barePair(t)
	tiny := func(n int) Command {
		return Command{By: "ada", Authorise: &clearing.AuthoriseRequest{Key: fmt.Sprint(n), Peer: "west", Amount: 1, Interval: span}}
	}
	for n := range maxOwned {
		east.must(tiny(n))
	}
	east.refuse(Flood, messages.Exhausted, tiny(maxOwned))
	east.at += 30 * day
	east.must(tiny(maxOwned))
	if n := len(east.state.issuer.issued.byID); n != 1 || len(east.state.issuer.issued.queue) != 1 || east.state.issuer.issued.owned["ada"] != 1 {
		t.Errorf("%d are left in %d places", n, len(east.state.issuer.issued.queue))
	}
}

// TestHostileText checks that a peer's text appears in this bank's statements only as one printable line.
func TestHostileText(t *testing.T) {
	east, west := pair(t)
	east.must(Command{By: "ada", Remit: &clearing.RemitRequest{Key: "p", Peer: "west", Payee: "bob", Amount: messages.Credit}})
	m := east.outgoing(west)
	why := &messages.Error{Kind: messages.NotFound, Message: "no\n\x00\xff" + strings.Repeat("ü", 120)}
	o := moneymsg.TransferResult{Error: why}
	total := After(m.Instructions.Known, &m.Instructions.List[0], &o)
	r, err := SignReceipt(west.keys, clearing.Receipt{From: "west", To: "east", First: 1, Outcomes: []moneymsg.TransferResult{o}, Total: total, At: west.at})
	if err != nil {
		t.Fatal(err)
	}
	east.must(Command{Receipt: &r})
	east.has("ada", 100, 0)
	if fault := east.state.Fault(); fault != "" {
		t.Errorf("a step was refused by the ledger: %s", fault)
	}
}

// TestMeddlingShows resolves a hold of the clearing from outside. The clearing must report a fault.
func TestMeddlingShows(t *testing.T) {
	east, west := pair(t)
	east.must(Command{By: "ada", Remit: &clearing.RemitRequest{Key: "p", Peer: "west", Payee: "ada", Amount: messages.Credit}})
	void := ledger.Command{Verb: ledger.Transfers, At: east.at, By: "ops", Rank: ledger.Clearing, Transfers: []moneymsg.Transfer{
		{ID: "meddling", Kind: moneymsg.Void, Pending: remittanceHold + "ada/p"}}}
	east.meddled = true
	if r := east.ledger.ApplyOwn(void.Encode()); r.Error != nil || r.Transfers[0].Error != nil {
		t.Fatalf("got %+v", r)
	}
	east.exchange(west)
	if fault := east.state.Fault(); !strings.Contains(fault, "voided") {
		t.Errorf("the fault is %q", fault)
	}
}
