package bank

import (
	"bytes"
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"slices"
	"strconv"
	"testing"

	"github.com/nats-io/nkeys"

	"github.com/candor-grid/candor/bank/clearing"
	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/bus"
	clearingmsg "github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/money"
	"github.com/candor-grid/candor/messages/proof"
	"github.com/candor-grid/candor/messages/wire"
)

// verifies checks the bank's journal like an outsider who has the site's keys.
func verifies(b *bed, k *siteKeys) (ledger.ProofReport, error) {
	b.Helper()
	return verifiesRecords(b, k, b.records())
}

func (b *bed) records() (records [][]byte) {
	b.Helper()
	var h ledger.History
	b.bank.machine.read(func(l *ledger.Ledger) { h = l.History() })
	for n := uint64(1); n <= h.Count(); n++ {
		raw, err := h.Record(n)
		if err != nil {
			b.Fatal(err)
		}
		records = append(records, raw)
	}
	return records
}

func verifiesRecords(b *bed, k *siteKeys, records [][]byte) (ledger.ProofReport, error) {
	exchange, err := k.Exchange()
	if err != nil {
		b.Fatal(err)
	}
	v := ledger.NewVerifier(emptyStore(b.T))
	v.Trust(&ledger.Root{Site: "here", Account: k.AccountKey(), Exchange: exchange, Later: k.Later}, clearing.Again("here"))
	for _, raw := range records {
		if err := v.Add(raw); err != nil {
			return v.Proofs(), err
		}
	}
	return v.Proofs(), v.End()
}

func TestAGrantIsProvenFromItsOperatorToTheBooks(t *testing.T) {
	b, k := provenBed(t)
	ops := b.as(k.issue("operator", "ops"), "ops")
	ops.grant("1", "ada", 10*c)
	service := b.as(k.issue("service", "$auctioneer"), "$auctioneer")
	for _, r := range service.transfer(hold("h", "ada", 5*c), post("p", "h", 3*c)) {
		if r.Error != nil {
			t.Fatal(r.Error)
		}
	}
	report, err := verifies(b, k)
	if err != nil {
		t.Fatal(err)
	}
	if report.From != 1 || report.Requests != 2 || report.Marked != 2 {
		t.Errorf("got %+v", report)
	}
}

// TestABankAheadOfTheClocksIsProvenTo sets the clocks of a site a day ahead, and then corrects them. The bank's time
// stays ahead for days. Requests signed with the bank's time must succeed.
func TestABankAheadOfTheClocksIsProvenTo(t *testing.T) {
	b, k := provenBed(t)
	right := b.clock()
	as := func(role string, name messages.Name) *bed {
		p := k.issue(role, name)
		other := b.as(p, name)
		other.client = b.network.ConnectAs(name, &bus.Identity{Principal: func() (proof.Principal, error) { return p, nil }, Clock: func() messages.Time { return right }})
		return other
	}
	ops, service := as("operator", "ops"), as("service", "$auctioneer")
	for i, ahead := range []messages.Duration{0, 24 * proof.Window, 30 * proof.Window} {
		b.setClock(right.Add(ahead))
		n := strconv.Itoa(i)
		ops.grant(n, "ada", 10*c)
		for _, r := range service.transfer(hold("h"+n, "ada", 5*c), post("p"+n, "h"+n, 3*c)) {
			if r.Error != nil {
				t.Fatalf("ahead by %v: %v", ahead, r.Error)
			}
		}
	}
	if report, err := verifies(b, k); err != nil || report.Marked != 6 {
		t.Errorf("got %+v, %v", report, err)
	}
}

// TestAForgedCommandInTheLogMovesNothing: an attacker writes into a replica's log. The state machine must refuse
// commands that nobody signed.
func TestAForgedCommandInTheLogMovesNothing(t *testing.T) {
	b, k := provenBed(t)
	ops := b.as(k.issue("operator", "ops"), "ops")
	ops.grant("1", "ada", 10*c)
	service := b.as(k.issue("service", "$auctioneer"), "$auctioneer")
	service.transfer(hold("h", "ada", 5*c))

	forged := map[string][]byte{
		"a raw grant":       (&ledger.Command{Verb: ledger.Grant, At: b.clock(), By: "ops", Grant: money.GrantRequest{Key: "2", Account: "eve", Amount: 12345 * c}}).Encode(),
		"a grant within":    (&ledger.Command{Verb: ledger.Grant, At: b.clock(), By: "ops", Within: true, Grant: money.GrantRequest{Key: "2", Account: "eve", Amount: 12345 * c}}).Encode(),
		"a raw transfer":    (&ledger.Command{Verb: ledger.Transfers, At: b.clock(), By: "$auctioneer", Rank: ledger.Service, Transfers: []money.Transfer{post("p", "h", 5*c)}}).Encode(),
		"as the clearing":   (&ledger.Command{Verb: ledger.Credit, At: b.clock(), By: "$clearing", Rank: ledger.Clearing, Credit: money.CreditRequest{Account: "ada", Credit: c}}).Encode(),
		"a grant by a user": b.command(k, "user", "ops", ledger.Grant, money.GrantRequest{Key: "2", Account: "eve", Amount: c}),
	}
	other := newSiteKeys(t)
	forged["a grant of another site's operator"] = b.command(other, "operator", "ops", ledger.Grant, money.GrantRequest{Key: "2", Account: "eve", Amount: c})
	forged["another name's proof"] = b.commandAs(k, "operator", "mallory", "ops", ledger.Grant, money.GrantRequest{Key: "2", Account: "eve", Amount: c})
	flipped := b.command(k, "operator", "ops", ledger.Grant, money.GrantRequest{Key: "2", Account: "eve", Amount: c})
	at := bytes.Index(flipped, []byte("eve"))
	flipped[at+5] ^= 1
	forged["a flipped amount"] = flipped

	before := b.books()
	for name, command := range forged {
		answer, err := b.box.Propose(context.Background(), command)
		if err != nil {
			t.Fatal(err)
		}
		if r := answer.(ledger.Result); r.Error == nil {
			t.Errorf("%s was carried out: %+v", name, r)
		}
	}
	if after := b.books(); after != before {
		t.Errorf("the books were %+v and are %+v", before, after)
	}
	if _, err := verifies(b, k); err != nil {
		t.Error(err)
	}
	if refused := b.metric("candor_bank_refusals_total", "Unproven"); refused < float64(len(forged)-1) {
		t.Errorf("%v refusals were counted of %d", refused, len(forged))
	}
}

func (b *bed) books() (r money.BooksReply) {
	b.bank.machine.read(func(l *ledger.Ledger) { r = l.Books() })
	return r
}

func (b *bed) command(k *siteKeys, role string, by messages.Name, verb ledger.Verb, request any) []byte {
	return b.commandAs(k, role, by, by, verb, request)
}

// commandAs returns a command with the signature of a name.
func (b *bed) commandAs(k *siteKeys, role string, name, by messages.Name, verb ledger.Verb, request any) []byte {
	b.Helper()
	payload, err := wire.Marshal(request, wire.Msgpack)
	if err != nil {
		b.Fatal(err)
	}
	p := k.issue(role, name)
	requests := map[ledger.Verb]string{ledger.Grant: messages.VerbGrant, ledger.Credit: money.VerbCredit}
	signed, err := p.Sign("here", requests[verb], by, b.clock(), payload)
	if err != nil {
		b.Fatal(err)
	}
	return (&ledger.Command{Verb: verb, At: b.clock(), By: by, Asked: &messages.SignedRequest{Proof: signed, Payload: payload}}).Encode()
}

func TestAnAlteredRecordIsNamed(t *testing.T) {
	b, k := provenBed(t)
	ops := b.as(k.issue("operator", "ops"), "ops")
	ops.grant("1", "ada", 10*c)
	service := b.as(k.issue("service", "$auctioneer"), "$auctioneer")
	service.transfer(money.Transfer{ID: "h", Kind: money.Posted, Debit: "ada", Credit: money.SiteAccount, Amount: 5 * c, Reason: "spring"})
	var h ledger.History
	b.bank.machine.read(func(l *ledger.Ledger) { h = l.History() })
	for n := uint64(1); n <= h.Count(); n++ {
		var records [][]byte
		for i := uint64(1); i <= h.Count(); i++ {
			raw, _ := h.Record(i)
			raw = bytes.Clone(raw)
			if at := bytes.LastIndex(raw, []byte("ada")); i == n && at >= 0 {
				raw[at+1] = 'z'
			} else if i == n && bytes.Contains(raw, []byte("spring")) {
				raw[bytes.Index(raw, []byte("spring"))] = 'S'
			} else if i == n {
				raw[len(raw)-1] ^= 1
			}
			records = append(records, raw)
		}
		if _, err := verifiesRecords(b, k, records); err == nil {
			t.Errorf("record %d was altered, and the journal verifies", n)
		}
	}
}

func TestWhatIsNotSignedIsRefusedWithWhatToDo(t *testing.T) {
	b, k := provenBed(t)
	b.refused(messages.Unproven, "ops", messages.VerbGrant, money.GrantRequest{Key: "1", Account: "ada", Amount: c})
	b.refused(messages.Unproven, "$auctioneer", messages.VerbTransfer, money.TransferRequest{Transfers: []money.Transfer{hold("h", "ada", c)}})
	b.as(k.issue("user", "ops"), "ops").refused(messages.Unproven, "ops", messages.VerbGrant, money.GrantRequest{Key: "1", Account: "ada", Amount: c})
}

func TestRotationAndRevocationEndWhatAKeyProves(t *testing.T) {
	b, k := provenBed(t)
	old := k.issue("operator", "ops")
	b.as(old, "ops").grant("1", "ada", c)
	k.rotate("operator")
	fresh := k.issue("operator", "ops")
	await.Until(b, "the new key counts", func() bool {
		_, err := call[money.AccountReply](b.as(fresh, "ops"), "ops", messages.VerbGrant, money.GrantRequest{Key: "2", Account: "ada", Amount: c})
		return err == nil
	})
	b.as(old, "ops").grant("3", "ada", c)
	k.finish("operator")
	await.Until(b, "the old key counts no more", func() bool {
		_, err := call[money.AccountReply](b.as(old, "ops"), "ops", messages.VerbGrant, money.GrantRequest{Key: "4", Account: "ada", Amount: c})
		return messages.KindOf(err) == messages.Unproven
	})
	b.as(fresh, "ops").grant("5", "ada", c)
	if _, err := verifies(b, k); err != nil {
		t.Error(err)
	}
}

// TestARetiredKeyOfTheAccountSaysNothing: another key has replaced the key of the site's account. The old key must not
// be able to state keys; sessions must continue with the new key.
func TestARetiredKeyOfTheAccountSaysNothing(t *testing.T) {
	b, k := provenBed(t)
	b.as(k.issue("operator", "ops"), "ops").grant("1", "ada", 10*c)
	service := b.as(k.issue("service", "$auctioneer"), "$auctioneer")
	service.transfer(hold("h", "ada", 5*c))
	stolen := &siteKeys{t: t, account: k.account, signers: map[string]nkeys.KeyPair{}}
	k.succeed()
	await.Until(b, "the books know the new key", func() bool {
		return read(b.bank.machine, func(l *ledger.Ledger) int { n, _ := l.Successors(); return n }) == 1
	})
	service.transfer(post("p", "h", 3*c))
	b.as(k.issue("operator", "ops"), "ops").grant("2", "ada", c)

	before := b.books()
	states := func(what string, thief *siteKeys) {
		t.Helper()
		keys := messages.SiteKeys{Site: "here", Roles: []messages.RoleKey{{Role: "operator", Key: public(t, accountKey(t))}}, Succession: thief.links}
		payload, err := wire.Marshal(&keys, wire.Msgpack)
		if err != nil {
			t.Fatal(err)
		}
		signature, err := thief.SignAccount(proof.KeysText(payload))
		if err != nil {
			t.Fatal(err)
		}
		command := ledger.Command{Verb: ledger.Keys, At: b.clock(), Asked: &messages.SignedRequest{Proof: messages.Proof{Signature: signature}, Payload: payload}}
		answer, err := b.box.Propose(context.Background(), command.Encode())
		if err != nil {
			t.Fatal(err)
		}
		if r := answer.(ledger.Result); messages.KindOf(r.Error) != messages.Unproven || r.Error == nil {
			t.Errorf("%s: %+v", what, r)
		}
	}
	states("a statement by the old key", stolen)
	stolen.succeed()
	states("a statement by a key that the old one named instead", stolen)
	stolen.succeed()
	states("a longer succession of the thief's", stolen)
	stolen.links = append(k.Succession(), stolen.links[1:]...)
	states("a succession that joins both", stolen)
	if after := b.books(); after != before {
		t.Errorf("the books were %+v and are %+v", before, after)
	}
	if report, err := verifies(b, k); err != nil || report.Marked != 2 {
		t.Errorf("%+v, %v", report, err)
	}
	hash := b.bank.Hash()
	var image bytes.Buffer
	if _, err := b.bank.machine.Capture().WriteTo(&image); err != nil {
		t.Fatal(err)
	}
	if err := b.bank.machine.Restore(bytes.NewReader(image.Bytes())); err != nil || b.bank.Hash() != hash {
		t.Errorf("an image does not have the succession: %v", err)
	}
	stolen.links = stolen.links[:0]
	states("after a restart from an image", stolen)
}

// TestASignedRequestIsCarriedOutOnce: somebody finds a signed request in the log and sends it again. The second time,
// the bank must refuse it.
func TestASignedRequestIsCarriedOutOnce(t *testing.T) {
	b, k := provenBed(t)
	ops := b.as(k.issue("operator", "ops"), "ops")
	ops.grant("1", "ada", c)
	credit := b.command(k, "operator", "ops", ledger.Credit, money.CreditRequest{Account: "ada", Credit: 100 * c})
	for i := range 2 {
		answer, err := b.box.Propose(context.Background(), credit)
		if err != nil {
			t.Fatal(err)
		}
		if r := answer.(ledger.Result); (r.Error == nil) != (i == 0) {
			t.Errorf("time %d: %+v", i, r.Error)
		}
		b.setClock(b.clock() + 1)
		must[money.AccountReply](ops, "ops", money.VerbCredit, money.CreditRequest{Account: "ada"})
	}
}

// TestALogWithoutTheStatementIsNotTaken checks that a site with keys refuses a log whose first record is not the
// statement of its keys.
func TestALogWithoutTheStatementIsNotTaken(t *testing.T) {
	k := newSiteKeys(t)
	exchange, err := k.Exchange()
	if err != nil {
		t.Fatal(err)
	}
	l := ledger.New()
	l.Trust(&ledger.Root{Site: "here", Account: k.AccountKey(), Exchange: exchange})
	grant := ledger.Command{Verb: ledger.Grant, At: 1, By: "ops", Grant: money.GrantRequest{Key: "1", Account: "eve", Amount: c}}
	if r := l.Apply(grant.Encode()); messages.KindOf(r.Error) != messages.Unproven || r.Error == nil {
		t.Errorf("got %v", r.Error)
	}
	old := ledger.New()
	old.Apply(grant.Encode())
	history := old.History()
	raw, err := history.Record(1)
	if err != nil {
		t.Fatal(err)
	}
	v := ledger.NewVerifier(emptyStore(t))
	v.Trust(&ledger.Root{Site: "here", Account: k.AccountKey()}, clearing.Again("here"))
	if err := v.Add(raw); messages.KindOf(err) != messages.Unproven || err == nil {
		t.Errorf("got %v", err)
	}
}

// TestAnImageHasWhatIsTrusted: a replica starts from an image. It must have the keys, the sessions and the used
// requests.
func TestAnImageHasWhatIsTrusted(t *testing.T) {
	b, k := provenBed(t)
	ops := b.as(k.issue("operator", "ops"), "ops")
	ops.grant("1", "ada", 10*c)
	service := b.as(k.issue("service", "$auctioneer"), "$auctioneer")
	service.transfer(hold("h", "ada", 5*c))
	credit := b.command(k, "operator", "ops", ledger.Credit, money.CreditRequest{Account: "ada", Credit: 100 * c})
	if _, err := b.box.Propose(context.Background(), credit); err != nil {
		t.Fatal(err)
	}
	var image bytes.Buffer
	if _, err := b.bank.machine.Capture().WriteTo(&image); err != nil {
		t.Fatal(err)
	}
	before := b.bank.Hash()
	if err := b.bank.machine.Restore(bytes.NewReader(image.Bytes())); err != nil {
		t.Fatal(err)
	}
	if b.bank.Hash() != before {
		t.Error("the restored state differs")
	}
	service.transfer(post("p", "h", 3*c))
	answer, err := b.box.Propose(context.Background(), credit)
	if err != nil {
		t.Fatal(err)
	}
	if r := answer.(ledger.Result); r.Error == nil {
		t.Error("a request was carried out again after a restore")
	}
	if _, err := verifies(b, k); err != nil {
		t.Error(err)
	}
}

// TestAForgedClearingCommandMovesNothing checks that a leader cannot propose a command of the clearing for a user or an
// operator who has not signed the request.
func TestAForgedClearingCommandMovesNothing(t *testing.T) {
	b, k := provenBed(t)
	ops := b.as(k.issue("operator", "ops"), "ops")
	ops.grant("1", "ada", 10*c)
	peer := clearingmsg.PeerRequest{Peer: "east", Keys: []string{public(t, accountKey(t))}, Limit: 5 * c}
	remit := clearingmsg.RemitRequest{Key: "r", Peer: "east", Payee: "eve", Amount: 4 * c}
	for name, command := range map[string]clearing.Command{
		"a peer":           {At: b.clock(), By: "ops", Peer: &peer},
		"a remittance":     {At: b.clock(), By: "ada", Remit: &remit},
		"another's proof":  {At: b.clock(), By: "ops", Peer: &peer, Asked: b.signed(k, "user", "ada", clearingmsg.VerbPeer, peer)},
		"another request":  {At: b.clock(), By: "ops", Peer: &peer, Asked: b.signed(k, "operator", "ops", clearingmsg.VerbReserve, clearingmsg.ReserveRequest{Limit: c})},
		"a user's for ops": {At: b.clock(), By: "ada", Peer: &peer, Asked: b.signed(k, "user", "ada", clearingmsg.VerbPeer, peer)},
	} {
		if r := b.proposeClearing(command); r.Error == nil {
			t.Errorf("%s was carried out: %+v", name, r)
		}
	}
	// Here the fields of the command differ from the fields of the request that was signed. The bank must carry out the
	// signed request.
	more := peer
	more.Limit = 1000 * c
	r := b.proposeClearing(clearing.Command{At: b.clock(), By: "ops", Peer: &more, Asked: b.signed(k, "operator", "ops", clearingmsg.VerbPeer, peer)})
	if r.Error != nil || r.Peer.Limit != peer.Limit {
		t.Errorf("got %+v, %v", r.Peer, r.Error)
	}
	if r := b.proposeClearing(clearing.Command{At: b.clock(), By: "ada", Remit: &remit, Asked: b.signed(k, "user", "ada", clearingmsg.VerbRemit, remit)}); r.Error != nil {
		t.Error(r.Error)
	}
	report, err := verifies(b, k)
	if err != nil || report.Followed == 0 {
		t.Errorf("got %+v, %v", report, err)
	}
}

func (b *bed) proposeClearing(command clearing.Command) clearing.Result {
	b.Helper()
	data, err := command.Encode()
	if err != nil {
		b.Fatal(err)
	}
	answer, err := b.box.Propose(context.Background(), data)
	if err != nil {
		b.Fatal(err)
	}
	return answer.(clearing.Result)
}

func (b *bed) signed(k *siteKeys, role string, name messages.Name, verb string, request any) *messages.SignedRequest {
	b.Helper()
	payload, err := wire.Marshal(request, wire.Msgpack)
	if err != nil {
		b.Fatal(err)
	}
	p := k.issue(role, name)
	proof, err := p.Sign("here", verb, name, b.clock(), payload)
	if err != nil {
		b.Fatal(err)
	}
	return &messages.SignedRequest{Proof: proof, Payload: payload}
}

// TestMarksAreOfTheirTransfers checks that each mark proves only its own transfer, at its position in its chain.
func TestMarksAreOfTheirTransfers(t *testing.T) {
	b, k := provenBed(t)
	b.as(k.issue("operator", "ops"), "ops").grant("1", "ada", 10*c)
	var session uint64
	var marks []byte
	list := []money.Transfer{
		{ID: "a", Kind: money.Posted, Debit: "ada", Credit: money.SiteAccount, Amount: c, Linked: true},
		{ID: "b", Kind: money.Posted, Debit: "ada", Credit: money.SiteAccount, Amount: c},
		{ID: "d", Kind: money.Posted, Debit: "ada", Credit: money.SiteAccount, Amount: c},
	}
	session, marker := b.opened(k, "service", "$auctioneer")
	marks = marker.Transfers(list)
	for name, forge := range map[string]func(r *money.TransferRequest){
		"an amount":      func(r *money.TransferRequest) { r.Transfers[2].Amount = 2 * c },
		"a flipped mark": func(r *money.TransferRequest) { r.Proof.Marks[40] ^= 1 },
		"half a chain": func(r *money.TransferRequest) {
			r.Transfers, r.Proof.Marks = r.Transfers[1:], r.Proof.Marks[proof.MarkSize:]
		},
		"another session":   func(r *money.TransferRequest) { r.Proof.Session++ },
		"a chain unlinked":  func(r *money.TransferRequest) { r.Transfers[0].Linked = false },
		"another's session": nil,
	} {
		r := money.TransferRequest{Transfers: slices.Clone(list), Proof: &messages.TransferProof{Session: session, Marks: bytes.Clone(marks)}}
		by := messages.Name("$auctioneer")
		if forge == nil {
			by = "$bank"
		} else {
			forge(&r)
		}
		command := ledger.Command{Verb: ledger.Transfers, At: b.clock(), By: by, Rank: ledger.Service, Transfers: r.Transfers, Proof: r.Proof}
		answer, err := b.box.Propose(context.Background(), command.Encode())
		if err != nil {
			t.Fatal(err)
		}
		if got := answer.(ledger.Result); messages.KindOf(got.Error) != messages.Unproven || got.Error == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
	// Services may not move credits of the clearing's accounts. The ledger itself refuses such transfers.
	reserved := []money.Transfer{{ID: "x", Kind: money.Posted, Debit: "clearing-east", Credit: money.SiteAccount, Amount: c}}
	command := ledger.Command{Verb: ledger.Transfers, At: b.clock(), By: "$auctioneer", Rank: ledger.Service, Transfers: reserved,
		Proof: &messages.TransferProof{Session: session, Marks: marker.Transfers(reserved)}}
	answer, err := b.box.Propose(context.Background(), command.Encode())
	if err != nil {
		t.Fatal(err)
	}
	if got := answer.(ledger.Result).Transfers; len(got) != 1 || messages.KindOf(got[0].Error) != messages.PermissionDenied {
		t.Errorf("got %+v", got)
	}
	good := ledger.Command{Verb: ledger.Transfers, At: b.clock(), By: "$auctioneer", Rank: ledger.Service, Transfers: list,
		Proof: &messages.TransferProof{Session: session, Marks: marks}}
	if answer, err = b.box.Propose(context.Background(), good.Encode()); err != nil || answer.(ledger.Result).Error != nil {
		t.Errorf("got %+v, %v", answer, err)
	}
	if report, err := verifies(b, k); err != nil || report.Marked != 3 {
		t.Errorf("got %+v, %v", report, err)
	}
}

// opened opens a session. It returns the session's number, and the object that makes the marks (the short proofs) of
// transfers in the session.
func (b *bed) opened(k *siteKeys, role string, name messages.Name) (uint64, *proof.Marker) {
	b.Helper()
	as := b.as(k.issue(role, name), name)
	own, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	trust := must[messages.TrustReply](as, name, messages.VerbTrust, messages.Empty{})
	public := own.PublicKey().Bytes()
	reply := must[messages.SessionReply](as, name, messages.VerbSession, messages.SessionRequest{Key: public})
	secret, err := proof.Agree("here", own, trust.Exchange, public, trust.Exchange)
	if err != nil {
		b.Fatal(err)
	}
	return reply.Session, proof.NewMarker(secret)
}
