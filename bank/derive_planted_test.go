package bank

import (
	"testing"

	"github.com/candor-grid/candor/bank/clearing"
	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	clearingmsg "github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/money"
	"github.com/candor-grid/candor/messages/wire"
)

// plant is a copy of a bank's ledger to which a test adds records, like an attacker who can write the bank's disk.
type plant struct {
	*testing.T
	*ledger.Ledger
}

func (p *plant) says(by messages.Name, verb string, statement any, commands ...ledger.Command) {
	p.Helper()
	payload, raw := statement.([]byte)
	if !raw {
		var err error
		if payload, err = wire.Marshal(statement, wire.Msgpack); err != nil {
			p.Fatal(err)
		}
	}
	p.Hear(by, verb, payload)
	p.does(commands)
}

func (p *plant) asks(by messages.Name, verb string, signed *messages.SignedRequest, commands ...ledger.Command) {
	p.Helper()
	if _, err := p.Asked(verb, by, signed, p.Now()); err != nil {
		p.Fatal(err)
	}
	p.does(commands)
}

func (p *plant) does(commands []ledger.Command) {
	p.Helper()
	for _, c := range commands {
		c.At, c.Within = p.Now(), true
		if r := p.ApplyOwn(c.Encode()); r.Error != nil || len(r.Transfers) > 0 && r.Transfers[0].Error != nil {
			p.Fatalf("%+v", r)
		}
	}
	p.Finish(true)
}

// moves returns a command of the clearing with transfers.
func moves(t ...money.Transfer) ledger.Command {
	return ledger.Command{Verb: ledger.Transfers, By: "$clearing", Rank: ledger.Clearing, Transfers: t}
}

// TestOtherThanSignedIsFound inserts requests whose records differ from what the user signed. It also inserts
// statements that nobody signed. The check must find each of them, and must accept a correct request.
func TestOtherThanSignedIsFound(t *testing.T) {
	b, k := provenBed(t)
	propose := func(by messages.Name, rank ledger.Rank, verb ledger.Verb, signed *messages.SignedRequest) {
		t.Helper()
		m := b.bank.machine
		m.mu.Lock()
		r := m.ledger.Apply((&ledger.Command{Verb: verb, At: b.clock(), By: by, Rank: rank, Asked: signed}).Encode())
		m.mu.Unlock()
		if r.Error != nil {
			t.Fatal(r.Error)
		}
	}
	ops := b.as(k.issue("operator", "ops"), "ops")
	ops.grant("1", "alice", 1000*c)
	ops.grant("2", "bob", 10*c)
	pay := money.PayRequest{Key: "a", From: "alice", To: "bob", Amount: 5 * c, Reason: "lunch"}
	paid := b.signed(k, "user", "alice", money.VerbPay, pay)
	propose("alice", ledger.User, ledger.Pay, paid)
	back := money.CorrectRequest{Transfer: "$pay/alice/a", Reason: "r"}
	propose("ops", ledger.Operator, ledger.Correct, b.signed(k, "operator", "ops", money.VerbCorrect, back))

	east, do := peered(b, k)
	a, err := clearing.SignAuthorisation(east, clearingmsg.Authorisation{Issuer: "east", Peer: "here", ID: "eve/1", Account: "eve", Member: "eve", Amount: 8 * c, Issued: b.clock(), Interval: clearingmsg.MinInterval, Margin: clearingmsg.MaxClockSkew})
	if err != nil {
		t.Fatal(err)
	}
	accept := clearingmsg.AcceptRequest{Purpose: "job", Authorisation: a}
	do(clearing.Command{By: "$auctioneer", Accept: &accept, Asked: b.signed(k, "service", "$auctioneer", clearingmsg.VerbAccept, accept)})
	charge := clearingmsg.ChargeRequest{Issuer: "east", ID: "eve/1", Amount: 8 * c}
	do(clearing.Command{By: "$auctioneer", Charge: &charge, Asked: b.signed(k, "service", "$auctioneer", clearingmsg.VerbCharge, charge)})
	confirmed := b.confirmed(east)
	held := read(b.bank.machine, func(l *ledger.Ledger) string { return l.Holds(clearing.PeerAccount("east"))[0].ID })
	takes := func(payee messages.Name) ledger.Command {
		return moves(money.Transfer{ID: clearing.TransferPrefix + "2", Kind: money.Post, Pending: held, Credit: payee, Amount: 8 * c, Reason: "charge confirmed by site east: "})
	}

	freeze := money.FreezeRequest{Account: "bob", Frozen: true, Reason: "r"}
	frozen := b.signed(k, "operator", "ops", money.VerbFreeze, freeze)
	grant := money.CorrectRequest{Transfer: "$grant/ops/2", Reason: "r"}
	all := b.signed(k, "operator", "ops", money.VerbCorrect, grant)
	freezes := func(reason string) ledger.Command {
		return ledger.Command{Verb: ledger.Freeze, By: "ops", Freeze: money.FreezeRequest{Account: "bob", Frozen: true, Reason: reason}}
	}
	corrects := func(amount messages.Credits) ledger.Command {
		return ledger.Command{Verb: ledger.Correct, By: "ops", Correct: money.CorrectRequest{Transfer: grant.Transfer, Amount: amount, Reason: "r"}}
	}
	stranger, err := clearing.SignInstructions(accountKey(t), clearingmsg.Instructions{From: "nowhere", To: "here", First: 1, Known: clearing.Beginning("nowhere", "here"), At: b.clock()})
	if err != nil {
		t.Fatal(err)
	}
	b.honest(k, "a freeze", func(p *plant) { p.asks("ops", money.VerbFreeze, frozen, freezes("r")) })
	b.honest(k, "a correction", func(p *plant) { p.asks("ops", money.VerbCorrect, all, corrects(10*c)) })
	b.honest(k, "a confirmed charge", func(p *plant) {
		p.says(messages.ServiceIdentity("east"), "receipt", confirmed, takes(money.SiteAccount))
	})
	for name, put := range map[string]func(*plant){
		"a freeze for another reason": func(p *plant) { p.asks("ops", money.VerbFreeze, frozen, freezes("another")) },
		"all of it as a microcredit":  func(p *plant) { p.asks("ops", money.VerbCorrect, all, corrects(1)) },
		"a charge to another payee":   func(p *plant) { p.says(messages.ServiceIdentity("east"), "receipt", confirmed, takes("bob")) },
		"what was taken back again": func(p *plant) {
			again := pay
			again.Key = "b"
			p.asks("alice", money.VerbPay, paid, ledger.Command{Verb: ledger.Pay, By: "alice", Rank: ledger.User, Pay: again})
		},
		"garbage of an unknown site": func(p *plant) {
			p.says(messages.ServiceIdentity("nowhere"), clearingmsg.VerbInstruct, []byte("garbage"))
		},
		"a message of nowhere": func(p *plant) { p.says(messages.ServiceIdentity("nowhere"), clearingmsg.VerbInstruct, &stranger) },
		"garbage of a peer":    func(p *plant) { p.says(messages.ServiceIdentity("east"), "receipt", []byte("garbage")) },
	} {
		b.dishonest(k, name, put)
	}
}

// TestAdoptionsOtherThanSignedAreFound inserts adoptions that are not fully signed, have another amount than was
// signed, or were already carried out. The check must find each of them.
func TestAdoptionsOtherThanSignedAreFound(t *testing.T) {
	b, k := provenBed(t)
	b.as(k.issue("operator", "ops"), "ops").grant("1", "bob", 10*c)
	east, do := peered(b, k)
	stranger := accountKey(t)
	adopts := func(by clearing.Signer, sent clearingmsg.RunningTotal, correction messages.Credits) clearingmsg.AdoptRequest {
		signed, err := clearing.SignTotals(by, clearingmsg.Totals{Site: "east", Peer: "here", Sent: sent, Received: clearing.Beginning("here", "east"), Confirmed: true})
		if err != nil {
			t.Fatal(err)
		}
		return clearingmsg.AdoptRequest{Totals: signed, Correction: correction}
	}
	pays := clearingmsg.Instruction{Kind: clearingmsg.InstructPay, Account: "bob", Amount: 7 * c}
	first := clearing.After(clearing.Beginning("east", "here"), &pays, &money.TransferResult{Amount: 7 * c})
	once := adopts(east, first, 7*c)
	do(clearing.Command{By: "ops", Adopt: &once, Asked: b.signed(k, "operator", "ops", clearingmsg.VerbAdopt, once)})
	b.setClock(b.clock() + 1)
	asked := func(r clearingmsg.AdoptRequest) *messages.SignedRequest {
		return b.signed(k, "operator", "ops", clearingmsg.VerbAdopt, r)
	}
	limits := func(limit messages.Credits, reason string) ledger.Command {
		return ledger.Command{Verb: ledger.Credit, By: "$clearing", Rank: ledger.Clearing, Credit: money.CreditRequest{Account: "clearing-east", Credit: limit, Reason: reason}}
	}
	books := func(amount messages.Credits) []ledger.Command {
		return []ledger.Command{limits(messages.MaxCredits, "while lost numbers are booked"),
			moves(money.Transfer{ID: clearing.TransferPrefix + "2", Kind: money.Posted, Debit: "clearing-east", Credit: clearing.CorrectionAccount, Amount: amount, Reason: "lost numbers of site east"}),
			limits(20*c, "as before lost numbers were booked")}
	}
	further := clearing.After(first, &pays, &money.TransferResult{Amount: 7 * c})
	more, forged, again := asked(adopts(east, further, 7*c)), asked(adopts(stranger, further, 7*c)), asked(once)
	b.honest(k, "an adoption", func(p *plant) { p.asks("ops", clearingmsg.VerbAdopt, more, books(7*c)...) })
	for name, put := range map[string]func(*plant){
		"by the operator alone": func(p *plant) { p.asks("ops", clearingmsg.VerbAdopt, forged, books(7*c)...) },
		"by nobody":             func(p *plant) { p.does(books(7 * c)) },
		"of another amount":     func(p *plant) { p.asks("ops", clearingmsg.VerbAdopt, more, books(8*c)...) },
		"twice":                 func(p *plant) { p.asks("ops", clearingmsg.VerbAdopt, again, books(7*c)...) },
	} {
		b.dishonest(k, name, put)
	}
}

func TestAfterAPartingNothingMoves(t *testing.T) {
	b, k := provenBed(t)
	b.as(k.issue("operator", "ops"), "ops").grant("1", "bob", 10*c)
	east, do := peered(b, k)
	part := clearingmsg.PartRequest{Peer: "east"}
	do(clearing.Command{By: "ops", Part: &part, Asked: b.signed(k, "operator", "ops", clearingmsg.VerbPart, part)})
	begin := clearing.Beginning("east", "here")
	leave := clearingmsg.Instruction{Kind: clearingmsg.InstructPart}
	says := func(first uint64, known clearingmsg.RunningTotal, i clearingmsg.Instruction) *clearingmsg.SignedInstructions {
		m, err := clearing.SignInstructions(east, clearingmsg.Instructions{From: "east", To: "here", First: first, List: []clearingmsg.Instruction{i}, Known: known, At: b.clock()})
		if err != nil {
			t.Fatal(err)
		}
		return &m
	}
	confirmed := b.confirmed(east)
	do(clearing.Command{Instructions: says(1, begin, leave)})
	do(clearing.Command{Receipt: confirmed})
	if is := b.bank.machine.clearing.Standing("east"); is != clearingmsg.PeerParted {
		t.Fatalf("east is %v", is)
	}
	pays := says(2, clearing.After(begin, &leave, &money.TransferResult{}), clearingmsg.Instruction{Kind: clearingmsg.InstructPay, ID: "x", Account: "bob", Amount: 5 * c, Reason: "r"})
	limit := ledger.Command{Verb: ledger.Credit, By: "$clearing", Rank: ledger.Clearing, Credit: money.CreditRequest{Account: "clearing-east", Credit: 5 * c, Reason: "r"}}
	paid := moves(money.Transfer{ID: clearing.TransferPrefix + "90", Kind: money.Posted, Debit: "clearing-east", Credit: "bob", Amount: 5 * c, Reason: "from site east: r"})
	lost := moves(money.Transfer{ID: clearing.TransferPrefix + "91", Kind: money.Posted, Debit: "bob", Credit: clearing.SettledAccount("east"), Amount: 3 * c, Reason: "parted from site east: "})
	b.setClock(b.clock() + 1)
	asked := b.signed(k, "operator", "ops", clearingmsg.VerbPart, part)
	for name, put := range map[string]func(*plant){
		"a payment that the peer signed": func(p *plant) { p.says(messages.ServiceIdentity("east"), clearingmsg.VerbInstruct, pays, limit, paid) },
		"a payment without a statement":  func(p *plant) { p.does([]ledger.Command{limit, paid}) },
		"a loss that nobody stated":      func(p *plant) { p.asks("ops", clearingmsg.VerbPart, asked, lost) },
	} {
		b.dishonest(k, name, put)
	}
}

// confirmed returns the receipt of a peer that has carried out all outgoing instructions.
func (b *bed) confirmed(east clearing.Signer) *clearingmsg.SignedReceipt {
	b.Helper()
	m, _ := b.bank.machine.clearing.Outgoing("east", b.clock())
	r := clearingmsg.Receipt{From: "east", To: "here", First: m.First, Total: m.Known, At: b.clock()}
	for i := range m.List {
		o := money.TransferResult{Amount: m.List[i].Amount}
		r.Outcomes, r.Total = append(r.Outcomes, o), clearing.After(r.Total, &m.List[i], &o)
	}
	signed, err := clearing.SignReceipt(east, r)
	if err != nil {
		b.Fatal(err)
	}
	return &signed
}

// dishonest lets the function `put` insert records into a copy of the log. Then it checks that a verifier, and a
// replica that starts, find these records.
func (b *bed) dishonest(k *siteKeys, name string, put func(*plant)) {
	b.Helper()
	l := b.copied()
	put(&plant{b.T, l})
	if _, err := standings(b.T, k, recordsOf(b.T, l, 1)); err == nil {
		b.Errorf("%s: it verifies", name)
	} else {
		b.Logf("%s: %v", name, err)
	}
	if b.restarts(b.imageOf(l)) == nil {
		b.Errorf("%s: a replica starts with it", name)
	}
}

// The audit must accept a correct journal. To test this, honest takes a copy of the journal. The function `put` inserts
// records into the copy, and for each of them a request with a valid signature. The audit must accept the copy.
func (b *bed) honest(k *siteKeys, name string, put func(*plant)) {
	b.Helper()
	l := b.copied()
	put(&plant{b.T, l})
	if _, err := standings(b.T, k, recordsOf(b.T, l, 1)); err != nil {
		b.Errorf("%s: a false alarm: %v", name, err)
	}
}
