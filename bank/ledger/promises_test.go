package ledger

import (
	"bytes"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/money"
)

// TestCorrectionOfACorrection checks that a correction of a correction restores what was spent. Otherwise members could
// exceed their limits.
func TestCorrectionOfACorrection(t *testing.T) {
	b := climate(t)
	b.do(heldBy("ada", held("h", "climate", 20)))
	b.do(post("charge", "h", 20)) // the charge uses ada's whole limit
	id := "charge"
	for i, spent := range []messages.Credits{5, 15, 7, 12} {
		amount := []messages.Credits{15, 10, 8, 5}[i]
		b.must(b.command(Command{Verb: Correct, By: "ops", Correct: money.CorrectRequest{Transfer: id, Amount: amount, Reason: "r"}}))
		if a, _ := b.Account("climate"); a.Spent != spent || b.part("climate", "ada").Spent != spent {
			t.Fatalf("after %s: the account spent %v, she %v, want %v", id, a.Spent, b.part("climate", "ada").Spent, spent)
		}
		id = "$correct/" + id
	}
	b.refuse(messages.Insufficient, heldBy("ada", held("above", "climate", 9)))
	b.do(heldBy("ada", held("within", "climate", 8)))
	b.balanced()
}

// TestCorrectionOfACorrectionForOneWhoLeft corrects a charge of a member. The member leaves the project, and then the
// correction itself is corrected. If the member comes back, the charge must count again as spent by the member.
func TestCorrectionOfACorrectionForOneWhoLeft(t *testing.T) {
	b := climate(t)
	b.do(heldBy("ada", held("h", "climate", 20)))
	b.do(post("charge", "h", 20))
	b.must(b.command(Command{Verb: Correct, By: "ops", Correct: money.CorrectRequest{Transfer: "charge", Reason: "r"}}))
	b.must(b.command(Command{Verb: Member, By: "ops", Member: money.MemberRequest{Account: "climate", Member: "ada", Remove: true}}))
	b.must(b.command(Command{Verb: Correct, By: "ops", Correct: money.CorrectRequest{Transfer: "$correct/charge", Reason: "r"}}))
	b.join("climate", "ada")
	if spent := b.part("climate", "ada").Spent; spent != 20 {
		t.Errorf("she spent %v", spent)
	}
	if restored := restore(t, encodeImage(t, b.Ledger)); restored.Hash() != b.Hash() {
		t.Error("it is restored to something else")
	}
}

// TestDelayedReturn: a grant has expired, but the account has already spent a part of it. The account owes this part.
// It must be returned as soon as the account gets credits.
func TestDelayedReturn(t *testing.T) {
	credit := func(b *bed, c messages.Credits) {
		if r := b.command(Command{Verb: Credit, By: "ops", Credit: money.CreditRequest{Account: "ada", Credit: c}}); r.Error != nil {
			b.Fatal(r.Error)
		}
	}
	for name, income := range map[string]func(*bed){
		"a transfer": func(b *bed) { b.do(posted("in", "bob", "ada", 6)) },
		"a grant":    func(b *bed) { b.grant("ada", 6) },
		"a payment": func(b *bed) {
			b.command(Command{Verb: Pay, By: "bob", Rank: User, Pay: money.PayRequest{Key: "k", From: "bob", To: "ada", Amount: 6}})
		},
		"a charge": func(b *bed) {
			b.do(held("hb", "bob", 6))
			p := post("in", "hb", 6)
			p.Credit = "ada"
			b.do(p)
		},
		"a correction": func(b *bed) {
			b.must(b.command(Command{Verb: Correct, By: "ops", Correct: money.CorrectRequest{Transfer: "out", Amount: 6, Reason: "r"}}))
		},
		"credit": func(b *bed) { credit(b, 6) },
	} {
		b := newBed(t)
		b.grant("bob", 50)
		b.expiring("g", "ada", 10, 2000)
		credit(b, 30)
		b.do(held("a", "ada", 10))
		b.do(posted("out", "ada", "bob", 10)) // the payment uses the account's credit limit
		b.do(void("v", "a"))                  // 10 credits of the grant become free, but the account has a balance of 0
		credit(b, 0)
		b.passes(2000)
		b.has("ada", 0, 0)
		b.wantLots("ada", "2000 10/0 ")
		income(b)
		b.wantLots("ada", "2000 4/0 ")
		if a, _ := b.Account("ada"); a.Available+a.Credit != 0 {
			t.Errorf("%s: %v can be spent of a grant that expired", name, a.Available+a.Credit)
		}
		b.balanced()
		if restored := restore(t, encodeImage(t, b.Ledger)); restored.Hash() != b.Hash() {
			t.Errorf("%s: it is restored to something else", name)
		}
	}
}

// TestPaymentIsAnsweredAgain takes an account away from a user, who then repeats an earlier payment. The user must get
// the first answer, but without the account's balance and roles.
func TestPaymentIsAnsweredAgain(t *testing.T) {
	b := climate(t)
	pay := Command{Verb: Pay, By: "dan", Rank: User, Pay: money.PayRequest{Key: "k", From: "climate", To: "ada", Amount: 5}}
	other := pay
	other.Pay.Amount = 6
	b.grant("ada", 1)
	b.must(b.command(pay))
	b.must(b.command(Command{Verb: Member, By: "ops", Member: money.MemberRequest{Account: "climate", Member: "dan", Remove: true}}))
	if r := b.command(pay); r.Error != nil || r.Account.Account != "climate" || r.Account.Balance != 0 || r.Account.Roles != nil {
		t.Errorf("asked again: %+v", r)
	}
	b.refused(messages.Conflict, b.command(other))
	other.Pay.Key = "another"
	b.refused(messages.PermissionDenied, b.command(other))
	if a, _ := b.Account("ada"); a.Balance != 6 {
		t.Errorf("it was paid %v", a.Balance)
	}
}

// TestHoldsThatCannotBeCounted gives many accounts a large credit. The sum of their holds can then be too large for an
// integer of 64 bits. A hold that would make the sum too large must be refused.
func TestHoldsThatCannotBeCounted(t *testing.T) {
	b := newBed(t)
	for i := range 10 {
		name := "user" + uitoa(uint64(i))
		b.grant(name, 1)
		b.must(b.command(Command{Verb: Credit, By: "ops", Credit: money.CreditRequest{Account: name, Credit: messages.MaxCredits}}))
		if h := held(name, name, messages.MaxCredits); i < 9 {
			b.do(h)
		} else {
			b.refuse(messages.TooLarge, h)
		}
		if books := b.balanced(); books.Held <= 0 || b.Totals().Held != books.Held {
			t.Fatalf("after %d holds: %+v", i+1, books)
		}
	}
}

// TestWhatMirrorsOtherSitesDoesNotExpire checks that credits on a peer's account cannot get an expiry. The account
// mirrors an account in the ledger of the other site, where the credits would not expire. So the two ledgers would
// differ.
func TestWhatMirrorsOtherSitesDoesNotExpire(t *testing.T) {
	b := newBed(t)
	g := money.GrantRequest{Key: "k", Account: clearing.PeerAccountPrefix + "-settlement", Amount: 5, Expires: 5000}
	b.refused(messages.Invalid, b.command(Command{Verb: Grant, By: "ops", Grant: g}))
	g.Key, g.Expires = "k2", 0
	b.must(b.command(Command{Verb: Grant, By: "ops", Grant: g}))
}

// TestRanks: each command has a caller and the caller's rank. If the rank does not allow the command, the bank must
// refuse it without writing a record. This holds for every caller.
func TestRanks(t *testing.T) {
	b := climate(t)
	before := b.Totals().Records
	role := money.RoleOwner
	for _, c := range []Command{
		{Verb: Grant, By: "ada", Rank: User, Grant: money.GrantRequest{Key: "k", Account: "ada", Amount: 5}},
		{Verb: Grant, By: "$auctioneer", Rank: Service, Grant: money.GrantRequest{Key: "k", Account: "ada", Amount: 5}},
		{Verb: Withdraw, By: "ada", Rank: User, Withdraw: money.WithdrawRequest{Key: "k", Account: "climate", Amount: 5, Reason: "r"}},
		{Verb: Credit, By: "ada", Rank: User, Credit: money.CreditRequest{Account: "ada", Credit: 5}},
		{Verb: Correct, By: "ada", Rank: User, Correct: money.CorrectRequest{Transfer: "$grant/ops/first climate", Reason: "r"}},
		{Verb: Project, By: "ada", Rank: User, Project: money.ProjectRequest{Account: "mine"}},
		{Verb: Transfers, By: "ada", Rank: User, Transfers: []money.Transfer{posted("x", "climate", "$site", 1)}},
		{Verb: Transfers, By: "$auctioneer", Rank: Operator, Transfers: []money.Transfer{posted("x", "climate", "$site", 1)}},
		{Verb: Transfers, By: "ada", Rank: Service, Transfers: []money.Transfer{posted("x", "climate", "$site", 1)}},
		{Verb: Member, By: "$auctioneer", Rank: Service, Member: money.MemberRequest{Account: "climate", Member: "eve", Role: &role}},
		{Verb: Pay, By: "$auctioneer", Rank: Service, Pay: money.PayRequest{Key: "k", From: "climate", To: "ada", Amount: 1}},
		{Verb: Freeze, By: "$auctioneer", Rank: Service, Freeze: money.FreezeRequest{Account: "climate", Frozen: true}},
	} {
		b.refused(messages.PermissionDenied, b.command(c))
	}
	if after := b.Totals().Records; after != before {
		t.Errorf("%d records were written", after-before)
	}
}

// TestRefusalsAreKeptByTheirKind: two versions of the program refuse the same requests with different texts. Their
// replicas must have equal hashes.
func TestRefusalsAreKeptByTheirKind(t *testing.T) {
	b := climate(t)
	first := b.refuse(messages.Insufficient, posted("no", "eve", "climate", 1000))
	record, err := b.records.read(b.records.recorded("no"))
	if err != nil {
		t.Fatal(err)
	}
	var w codec
	record.refusal.Message = "in other words"
	if w.record(&record); !bytes.Equal(w.b, journalOf(t, b.Ledger)[b.records.recorded("no")-1]) {
		t.Error("the record of a refusal has its words")
	}
	again := b.refuse(messages.Insufficient, posted("no", "eve", "climate", 1000))
	if !strings.Contains(first, "are needed") || !strings.Contains(again, "refused when it was first asked for") {
		t.Errorf("it says %q, and again %q", first, again)
	}
}
