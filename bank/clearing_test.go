package bank

import (
	"bytes"
	"testing"

	"github.com/candor-grid/candor/bank/clearing"
	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	clearingmsg "github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/money"
	"github.com/candor-grid/candor/messages/proof"
	"github.com/candor-grid/candor/messages/siteclock"
)

// TestTwoSites runs jobs of ada, a user of the site east, at the site west. At first both sites can be reached. Then
// they are cut off from each other, and then their leaders are replaced. Each charge must be paid once.
func TestTwoSites(t *testing.T) {
	east, west := twoSites(t)
	jobs := 0
	work := func() {
		for range 5 {
			jobs++
			east.work(west, jobs)
		}
	}
	work()
	east.cut.Store(true)
	west.cut.Store(true)
	work()
	if p := west.peer(); p.Outstanding < 5 || p.Waiting < 10*c {
		t.Errorf("cut off, west's charges are %+v", p)
	}
	await.Until(west, "tries in vain", func() bool { return west.peer().Tries > 2 && west.peer().Failure != "" })
	lost := map[*settler]string{}
	for _, s := range []*settler{west, east} {
		lost[s] = s.leader()
		s.stop(lost[s])
	}
	work()
	east.cut.Store(false)
	west.cut.Store(false)
	for s, id := range lost {
		s.start(id)
	}
	work()
	for _, s := range []*settler{west, east} {
		await.Until(s, "answers", func() bool { return s.peer().Outstanding == 0 && s.peer().Tries == 0 })
	}
	want := messages.Credits(jobs) * 2 * c
	await.Until(east, "the receipts", func() bool { return east.peer().Owed == want && west.peer().Owed == -want })
	if a := east.account("ada"); a.Balance != 100*c-want || a.Reserved != 0 {
		t.Errorf("ada has %+v, want %v less", a, want)
	}
	if got := west.account(money.SiteAccount).Balance; got != want {
		t.Errorf("west earned %v, want %v", got, want)
	}
	reconciled(t, east, west)
	settled(t, want, east, west)
	for _, s := range []*settler{east, west} {
		if books := s.books(); !books.Balanced {
			t.Errorf("%s: %+v", s.site, books)
		}
		s.agree()
	}
}

func reconciled(t *testing.T, sides ...*settler) {
	t.Helper()
	for i, s := range sides {
		r := send[clearingmsg.ReconcileReply](s.cluster, "ops", clearingmsg.VerbReconcile, clearingmsg.ReconcileRequest{Peer: sides[1-i].site})
		for _, b := range r.Books {
			if b.Difference != nil || b.Ours != b.Theirs || b.Sender == "west" && b.Ours == 0 {
				t.Errorf("%s: %+v", s.site, b)
			}
		}
	}
}

// settled closes a cycle at both sites, and pays what is owed. In this cycle, the site `from` owes the site `to` the
// amount `owed`.
func settled(t *testing.T, owed messages.Credits, from, to *settler) {
	t.Helper()
	from.refuses(messages.NotFound, "ops", clearingmsg.VerbNet, clearingmsg.CycleRequest{})
	for _, s := range []*settler{from, to} {
		send[clearingmsg.SignedPosition](s.cluster, "ops", clearingmsg.VerbClose, clearingmsg.CloseRequest{Cycle: 1})
	}
	var report clearingmsg.NettingReport
	await.Until(to, "the net of the cycle", func() bool {
		report = send[clearingmsg.NettingReport](to.cluster, "ops", clearingmsg.VerbNet, clearingmsg.CycleRequest{})
		return report.Balanced
	})
	if len(report.Payments) != 1 || report.Payments[0] != (clearingmsg.NetPayment{From: from.site, To: to.site, Amount: owed}) || report.Bilateral != owed {
		t.Errorf("%+v, want one payment of %v", report, owed)
	}
	if p := from.peer(); p.Owed != 0 {
		t.Errorf("settled, %s still owes %v", from.site, p.Owed)
	}
	// The operators enter the payment that was made outside the ledgers.
	send[money.AccountReply](from.cluster, "ops", money.VerbWithdraw, money.WithdrawRequest{Key: "1", Account: clearing.SettlementAccount, Amount: owed, Reason: "cycle 1"})
	send[money.AccountReply](to.cluster, "ops", messages.VerbGrant, money.GrantRequest{Key: "c1", Account: clearing.SettledAccount(from.site), Amount: owed})
	if a, b := from.account(clearing.SettlementAccount), to.account(clearing.SettledAccount(from.site)); a.Balance != 0 || b.Balance != 0 {
		t.Errorf("paid, the settlement accounts have %v and %v", a.Balance, b.Balance)
	}
}

// TestForgeriesAtTheActor sends forged requests to a bank over the bus. No account may change.
func TestForgeriesAtTheActor(t *testing.T) {
	east, west := twoSites(t)
	a := east.work(west, 1)
	await.Until(east, "the receipt", func() bool { return east.peer().Owed == 2*c && west.peer().Outstanding == 0 })
	before := west.refusals()
	stranger, _ := newKeys(t)
	sign := func(m clearingmsg.Instructions) clearingmsg.SignedInstructions {
		t.Helper()
		signed, err := clearing.SignInstructions(stranger, m)
		if err != nil {
			t.Fatal(err)
		}
		return signed
	}
	pay := clearingmsg.Instructions{From: "east", To: "west", First: 1, At: 1,
		List: []clearingmsg.Instruction{{Kind: clearingmsg.InstructPay, Account: "ada", Amount: 50 * c}}}
	west.refuses(messages.PermissionDenied, "$east", clearingmsg.VerbInstruct, sign(pay))
	west.refuses(messages.PermissionDenied, "ada", clearingmsg.VerbInstruct, sign(pay))
	west.refuses(messages.PermissionDenied, "$north", clearingmsg.VerbInstruct, sign(pay))
	pay.From = "north"
	west.refuses(messages.PermissionDenied, "$north", clearingmsg.VerbInstruct, sign(pay))
	pay.From, pay.To = "east", "south"
	west.refuses(messages.PermissionDenied, "$east", clearingmsg.VerbInstruct, sign(pay))

	accept := clearingmsg.AcceptRequest{Purpose: "another job", Authorisation: a}
	west.refuses(messages.Conflict, "$auctioneer", clearingmsg.VerbAccept, accept)
	accept.Purpose = "1"
	west.refuses(messages.Ended, "$auctioneer", clearingmsg.VerbAccept, accept)
	accept.Authorisation.Authorisation.Amount *= 10
	west.refuses(messages.PermissionDenied, "$auctioneer", clearingmsg.VerbAccept, accept)
	west.refuses(messages.Conflict, "$auctioneer", clearingmsg.VerbCharge, clearingmsg.ChargeRequest{Issuer: "east", ID: a.Authorisation.ID, Amount: c})
	for _, verb := range []string{clearingmsg.VerbAccept, clearingmsg.VerbCharge, clearingmsg.VerbPeer, clearingmsg.VerbPart, clearingmsg.VerbReserve, clearingmsg.VerbClose,
		clearingmsg.VerbPeers, clearingmsg.VerbNet, clearingmsg.VerbReconcile, clearingmsg.VerbLines, clearingmsg.VerbPosition} {
		west.refuses(messages.PermissionDenied, "ada", verb, messages.Empty{})
	}
	west.refuses(messages.PermissionDenied, "$north", clearingmsg.VerbPosition, clearingmsg.CycleRequest{})

	for account, balance := range map[messages.Name]messages.Credits{"ada": 100 * c, money.SiteAccount: 2 * c, clearing.PeerAccount("east"): -2 * c} {
		if a := west.account(account); a.Balance != balance || a.Reserved != 0 {
			t.Errorf("after the attacks %s has %v with %v reserved, want %v", account, a.Balance, a.Reserved, balance)
		}
	}
	counts := west.refusals()
	for reason, want := range map[string]uint64{"signature": 2, "stranger": 1, "misaddressed": 1, "replayed": 1, "recharged": 2} {
		if got := counts[reason] - before[reason]; got != want {
			t.Errorf("%d refusals for %q were counted, want %d", got, reason, want)
		}
	}
}

func TestPeersAccountsAreGuarded(t *testing.T) {
	keys, public := newKeys(t)
	b := startWith(t, func(c *Config) { c.Signer = keys })
	b.grant("g", "ada", 100*c)
	must[clearingmsg.PeerReply](b, "ops", clearingmsg.VerbPeer, clearingmsg.PeerRequest{Peer: "east", Keys: []string{public}, Limit: 50 * c})
	b.refused(messages.Invalid, "ops", clearingmsg.VerbPeer, clearingmsg.PeerRequest{Peer: "east", Keys: []string{public[1:]}, Limit: 50 * c})
	must[clearingmsg.SignedAuthorisation](b, "ada", clearingmsg.VerbAuthorise, clearingmsg.AuthoriseRequest{Key: "k", Peer: "east", Amount: 3 * c, Interval: clearingmsg.MinInterval})
	const held = clearing.TransferPrefix + "authorisation/ada/k"
	before := b.bank.Hash()
	account := clearing.PeerAccount("east")
	for verb, request := range map[string]any{
		messages.VerbGrant:  money.GrantRequest{Key: "x", Account: account, Amount: c},
		money.VerbWithdraw:  money.WithdrawRequest{Key: "x", Account: account, Amount: c, Reason: "x"},
		money.VerbCorrect:   money.CorrectRequest{Transfer: held, Reason: "x"},
		money.VerbCredit:    money.CreditRequest{Account: account, Credit: 1000 * c},
		money.VerbFreeze:    money.FreezeRequest{Account: account, Frozen: true},
		money.VerbProject:   money.ProjectRequest{Account: clearing.PeerAccount("new")},
		messages.VerbMember: money.MemberRequest{Account: account, Member: "ada"},
		money.VerbPay:       money.PayRequest{Key: "x", From: "ada", To: account, Amount: c},
	} {
		b.refused(messages.PermissionDenied, "ops", verb, request)
	}
	b.refused(messages.PermissionDenied, account, money.VerbPay, money.PayRequest{Key: "x", To: "ada", Amount: c})
	if b.bank.Hash() != before {
		t.Error("what was refused changed something")
	}
	b.refused(messages.PermissionDenied, account, clearingmsg.VerbRemit, clearingmsg.RemitRequest{Key: "x", Peer: "east", Payee: "ada", Amount: c})
	results := b.transfer(hold("h1", account, c), hold("h2", "ada", c), post("p", held, c), hold(clearing.TransferPrefix+"7", "ada", c), by(account, hold("h3", "ada", c)))
	for i, r := range results {
		if i == 1 && r.Error != nil || i != 1 && (r.Error == nil || r.Error.Kind != messages.PermissionDenied) {
			t.Errorf("transfer %d: %+v", i, r.Error)
		}
	}
	if got := must[money.AccountReply](b, "ada", messages.VerbAccount, money.AccountRequest{}); got.Reserved != 4*c {
		t.Errorf("ada has %v reserved, want 3 for east and 1", got.Reserved)
	}
}

// TestMembersDoNotRemit: a member of a project may not pay another site with the project's credits. A former owner who
// repeats a remittance must get the first answer.
func TestMembersDoNotRemit(t *testing.T) {
	keys, public := newKeys(t)
	b := startWith(t, func(c *Config) { c.Signer = keys })
	must[clearingmsg.PeerReply](b, "ops", clearingmsg.VerbPeer, clearingmsg.PeerRequest{Peer: "east", Keys: []string{public}, Limit: 50 * c})
	must[money.AccountReply](b, "ops", money.VerbProject, money.ProjectRequest{Account: "climate", Owners: []messages.Name{"ada", "cyd"}})
	b.grant("g", "climate", 100*c)
	role := func(name messages.Name, r money.Role) {
		t.Helper()
		must[money.AccountReply](b, "ada", messages.VerbMember, money.MemberRequest{Account: "climate", Member: name, Role: &r})
	}
	role("bob", money.RoleMember)
	role("eve", money.RoleAuditor)
	remit := func(key string) clearingmsg.RemitRequest {
		return clearingmsg.RemitRequest{Key: key, Account: "climate", Peer: "east", Payee: "bob", Amount: 2 * c}
	}
	for _, caller := range []messages.Name{"bob", "eve", "dan"} {
		b.refused(messages.PermissionDenied, caller, clearingmsg.VerbRemit, remit("k"))
	}
	authorise := clearingmsg.AuthoriseRequest{Key: "a", Account: "climate", Peer: "east", Amount: 3 * c, Interval: clearingmsg.MinInterval}
	b.refused(messages.PermissionDenied, "bob", clearingmsg.VerbAuthorise, authorise)
	limit := 3 * c
	must[money.AccountReply](b, "ada", messages.VerbMember, money.MemberRequest{Account: "climate", Member: "bob", Limit: &limit})
	must[clearingmsg.SignedAuthorisation](b, "bob", clearingmsg.VerbAuthorise, authorise)
	first := must[clearingmsg.ClearingReply](b, "cyd", clearingmsg.VerbRemit, remit("k"))
	role("cyd", money.RoleMember)
	if again := must[clearingmsg.ClearingReply](b, "cyd", clearingmsg.VerbRemit, remit("k")); again != first {
		t.Errorf("the remittance is answered with %+v, and was with %+v", again, first)
	}
	b.refused(messages.PermissionDenied, "cyd", clearingmsg.VerbRemit, remit("k2"))
	if got := must[money.AccountReply](b, "ops", messages.VerbAccount, money.AccountRequest{Account: "climate"}); got.Reserved != 5*c {
		t.Errorf("the project has %v set aside, want 5", got.Reserved)
	}
}

// TestRepeatsCostNoLog checks that a repeated message gets the same receipt as before, and that nothing is written to
// the log for it.
func TestRepeatsCostNoLog(t *testing.T) {
	keys, public := newKeys(t)
	ours, _ := newKeys(t)
	b := startWith(t, func(c *Config) { c.Signer = ours })
	b.grant("g", "ada", c)
	must[clearingmsg.PeerReply](b, "ops", clearingmsg.VerbPeer, clearingmsg.PeerRequest{Peer: "east", Keys: []string{public}, Limit: 50 * c})
	east := clearing.New("east", ledger.New(), proof.Verified)
	peer := clearing.Command{Peer: &clearingmsg.PeerRequest{Peer: "here", Keys: []string{public}}}
	command, err := peer.Encode()
	if err != nil {
		t.Fatal(err)
	}
	east.Apply(command)
	m, _ := east.Outgoing("here", 1000)
	m.List = []clearingmsg.Instruction{{Kind: clearingmsg.InstructPay, Account: "ada", Amount: 5 * c}}
	signed, err := clearing.SignInstructions(keys, m)
	if err != nil {
		t.Fatal(err)
	}
	first := must[clearingmsg.SignedReceipt](b, "$east", clearingmsg.VerbInstruct, signed)
	applied := b.bank.Status().Applied
	again := must[clearingmsg.SignedReceipt](b, "$east", clearingmsg.VerbInstruct, signed)
	if !bytes.Equal(first.Signature, again.Signature) || len(again.Receipt.Outcomes) != 1 || again.Receipt.Outcomes[0].Amount != 5*c {
		t.Errorf("first %+v, then %+v", first, again)
	}
	m.List[0].Amount++
	altered, err := clearing.SignInstructions(keys, m)
	if err != nil {
		t.Fatal(err)
	}
	if got := b.bank.Status().Applied; got != applied {
		t.Errorf("the repeat took the log from %d to %d", applied, got)
	}
	if got := b.metric("candor_bank_clearing_repeats_total", ""); got != 1 {
		t.Errorf("%v repeats were counted, want 1", got)
	}
	b.refused(messages.Conflict, "$east", clearingmsg.VerbInstruct, altered)
	if got := must[clearingmsg.PeersReply](b, "ops", clearingmsg.VerbPeers, messages.Empty{}).Peers[0].Dispute; got == "" {
		t.Error("other content under an answered number is no dispute")
	}
}

// TestImagesOfBoth checks that an image without the clearing or without the ledger is refused.
func TestImagesOfBoth(t *testing.T) {
	keys, public := newKeys(t)
	b := startWith(t, func(c *Config) { c.Signer = keys })
	b.grant("g", "ada", 100*c)
	fresh := func() *machine {
		m := &machine{site: "here", metrics: newMetrics(), archive: b.bank.archive, time: siteclock.NewSteady(b.clock, nil, still)}
		m.ledger, m.clearing = m.open()
		return m
	}
	var old bytes.Buffer
	b.bank.machine.read(func(l *ledger.Ledger) {
		if _, err := l.Capture().WriteTo(&old); err != nil {
			t.Error(err)
		}
	})
	m := fresh()
	if err := m.Restore(&old); err == nil || m.ledger.Totals().Issued != 0 {
		t.Errorf("an image of the ledger alone: %v", err)
	}
	must[clearingmsg.PeerReply](b, "ops", clearingmsg.VerbPeer, clearingmsg.PeerRequest{Peer: "east", Keys: []string{public}, Limit: 50 * c})
	must[clearingmsg.SignedAuthorisation](b, "ada", clearingmsg.VerbAuthorise, clearingmsg.AuthoriseRequest{Key: "k", Peer: "east", Amount: 3 * c, Interval: clearingmsg.MinInterval})
	data, err := b.box.Image()
	if err != nil {
		t.Fatal(err)
	}
	m = fresh()
	if err := m.Restore(bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	if m.clearing.Hash() != b.bank.machine.clearing.Hash() || m.ledger.Totals() != b.bank.machine.ledger.Totals() {
		t.Error("an image restores to something else")
	}
	revoke := clearing.Command{At: 2000, By: "ada", Revoke: &clearingmsg.RevokeRequest{ID: "ada/k"}}
	command, err := revoke.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []*machine{m, b.bank.machine} {
		results, err := m.Apply(9, [][]byte{command})
		if err != nil {
			t.Fatal(err)
		}
		if r := results[0].(clearing.Result); r.Error != nil || r.Answer.Number != 1 {
			t.Errorf("%+v", r)
		}
	}
	if m.clearing.Hash() != b.bank.machine.clearing.Hash() {
		t.Error("what was restored goes on otherwise")
	}
	for _, spoilt := range [][]byte{data[:len(data)/3], data[:len(data)-1]} {
		if err := fresh().Restore(bytes.NewReader(spoilt)); err == nil {
			t.Errorf("an image of %d bytes of %d is read", len(spoilt), len(data))
		}
	}
}

// TestSettlingFollowsLeadership checks that only a leading replica serves the clearing and sends messages.
func TestSettlingFollowsLeadership(t *testing.T) {
	keys, public := newKeys(t)
	b := startWith(t, func(c *Config) { c.Signer, c.FirstBackoff, c.LastBackoff = keys, 1000, 1000 })
	must[clearingmsg.PeerReply](b, "ops", clearingmsg.VerbPeer, clearingmsg.PeerRequest{Peer: "east", Keys: []string{public}, Limit: c})
	await.Until(b, "a message to the peer", func() bool {
		return must[clearingmsg.PeersReply](b, "ops", clearingmsg.VerbPeers, messages.Empty{}).Peers[0].Tries > 0
	})
	tried := func() float64 { return b.metric("candor_bank_clearing_messages_total", "again") }
	b.box.Depose()
	await.Until(b, "it withdraws", func() bool { return b.metric("candor_bank_serving_replicas", "") == 0 })
	before := tried()
	for range 20_000 { // a courier that still ran would send messages in this time
		if err := b.ask("ops", clearingmsg.VerbPeers, messages.Empty{}); messages.KindOf(err) != messages.Unavailable {
			t.Fatalf("deposed, it answers %v", err)
		}
	}
	if got := tried(); got != before {
		t.Errorf("deposed, it has sent %v messages", got-before)
	}
	b.box.Elect()
	await.Until(b, "a message after the election", func() bool { return tried() > before })
	must[clearingmsg.PeersReply](b, "ops", clearingmsg.VerbPeers, messages.Empty{})
}
