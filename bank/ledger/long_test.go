package ledger

import (
	"fmt"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
	"github.com/candor-grid/candor/messages/wire"
)

// forgetDues inserts a fault: it removes all times at which something expires. Then nothing expires by itself.
func (b *bed) forgetDues() {
	for _, a := range b.Ledger.lots.dues {
		a.due = 0
	}
	b.Ledger.lots.dues = nil
}

// TestTheQueueOfExpiriesIsBounded checks that an account is in the queue once, however many expiring grants it has.
func TestTheQueueOfExpiriesIsBounded(t *testing.T) {
	b := newBed(t)
	b.grant("ada", 1)
	b.grant("bob", 1)
	for i := range 400 {
		b.expiring(fmt.Sprint(i), "ada", 1000, messages.Time(5000+i))
	}
	image := len(encodeImage(t, b.Ledger))
	for i := range 200 {
		p := money.PayRequest{Key: fmt.Sprint(i), From: "ada", To: "bob", Amount: 1500}
		if r := b.command(Command{Verb: Pay, By: "ada", Rank: User, Pay: p}); r.Error != nil {
			t.Fatal(r.Error)
		}
	}
	if n := len(b.Ledger.lots.dues); n != 2 {
		t.Errorf("%d moments are in the queue of two accounts", n)
	}
	if grown := len(encodeImage(t, b.Ledger)) - image; grown > 200*100+400*60 {
		t.Errorf("the image grew by %d bytes", grown)
	}
	if again := restore(t, encodeImage(t, b.Ledger)); again.NextExpiry() != b.NextExpiry() || again.NextExpiry() != 5000 {
		t.Errorf("next is %v, and after a restore %v", b.NextExpiry(), again.NextExpiry())
	}
	b.passes(5100)
	if b.NextExpiry() != 5101 {
		t.Errorf("next is %v", b.NextExpiry())
	}
	b.passes(6000)
	if n := len(b.Ledger.lots.dues); n != 0 || b.NextExpiry() != 0 {
		t.Errorf("%d are in the queue after all has expired", n)
	}
	b.has("ada", 1, 0)
	b.has("bob", 1, 0)
}

// TestAnAccountIsNeverClosedToGrants grants, spends and takes back the largest amounts again and again. The account's
// sums for statistics reach the largest number, and must then stay at it. Further grants must still be possible.
func TestAnAccountIsNeverClosedToGrants(t *testing.T) {
	b := newBed(t)
	b.grant("ada", 1)
	b.grant("bob", 1)
	b.command(Command{Verb: Member, By: "ops", Member: money.MemberRequest{Account: "ada", Member: "eve"}})
	for i := range 12 {
		key := fmt.Sprint("again", i)
		g := money.GrantRequest{Key: key, Account: "ada", Amount: messages.MaxCredits}
		if r := b.command(Command{Verb: Grant, By: "ops", Grant: g}); r.Error != nil {
			t.Fatalf("grant %d: %v", i, r.Error)
		}
		hold := held("h"+key, "ada", messages.MaxCredits)
		hold.Member = "eve"
		b.do(hold)
		pay := post("p"+key, "h"+key, messages.MaxCredits)
		pay.Credit = "bob"
		b.do(pay)
		w := money.WithdrawRequest{Key: key, Account: "bob", Amount: messages.MaxCredits, Reason: "back"}
		if r := b.command(Command{Verb: Withdraw, By: "ops", Withdraw: w}); r.Error != nil {
			t.Fatal(r.Error)
		}
	}
	b.has("ada", 1, 0)
	b.balanced()
	// If a chain of transfers is undone, the sums that the account counts (Spent, Granted) must stay the same.
	before, _ := b.Account("ada")
	b.do(held("h", "ada", 1))
	first := post("x", "h", 1)
	first.Credit, first.Linked = "bob", true
	if r := b.send(first, posted("y", "nobody", "bob", 1)); r[0].Error == nil {
		t.Fatal("the chain was carried out")
	}
	after, _ := b.Account("ada")
	if after.Spent != before.Spent || after.Granted != before.Granted || after.Roles[0].Spent != before.Roles[0].Spent {
		t.Errorf("counted %+v before and %+v after", before, after)
	}
}

// TestAGrantIsTheSameWheneverItIsSent: a request for a grant says how long the grant lasts. This duration begins with
// the first request. A later request with the same key and the same duration must count as the same grant.
func TestAGrantIsTheSameWheneverItIsSent(t *testing.T) {
	b := newBed(t)
	grant := func(lasts messages.Duration) *messages.Error {
		g := money.GrantRequest{Key: "k", Account: "ada", Amount: 30, Lasts: lasts}
		return b.command(Command{Verb: Grant, By: "ops", Grant: g}).Error
	}
	if err := grant(1000_000); err != nil { // a thousandth of a second
		t.Fatal(err)
	}
	b.wantLots("ada", "2000 30/0 ")
	b.passes(1500)
	if err := grant(1000_000); err != nil {
		t.Errorf("sent again: %v", err)
	}
	b.wantLots("ada", "2000 30/0 ")
	if err := grant(2000_000); err == nil || err.Kind != messages.Conflict {
		t.Errorf("with another span: %v", err)
	}
	again := restore(t, encodeImage(t, b.Ledger))
	if again.Hash() != b.Hash() {
		t.Error("the journal comes to another state")
	}
	b.passes(2000)
	b.has("ada", 0, 0)
	b.passes(2500)
	if err := grant(1000_000); err != nil {
		t.Errorf("sent again after it expired: %v", err)
	}
	b.has("ada", 0, 0)
	for _, bad := range []money.GrantRequest{{Lasts: -1}, {Lasts: 999}, {Lasts: 5000, Expires: 9000}} {
		bad.Key, bad.Account, bad.Amount = "bad", "ada", 1
		if err := b.command(Command{Verb: Grant, By: "ops", Grant: bad}).Error; err == nil || err.Kind != messages.Invalid {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// TestARepeatedCorrectionSaysWhatCanBeDone corrects a transfer a second time, and then does what the error says.
func TestARepeatedCorrectionSaysWhatCanBeDone(t *testing.T) {
	b := newBed(t)
	b.grant("ada", 50)
	b.grant("bob", 10)
	b.do(posted("t", "ada", "bob", 20))
	correct := func(transfer string, amount messages.Credits, reason string) *messages.Error {
		return b.command(Command{Verb: Correct, By: "ops", Correct: money.CorrectRequest{Transfer: transfer, Amount: amount, Reason: reason}}).Error
	}
	if err := correct("t", 8, "wrong"); err != nil {
		t.Fatal(err)
	}
	if err := correct("t", 8, "wrong"); err != nil {
		t.Errorf("sent again: %v", err)
	}
	for what, err := range map[string]*messages.Error{"another amount": correct("t", 12, "wrong"), "all": correct("t", 0, "wrong")} {
		if err == nil || err.Kind != messages.Conflict || strings.Contains(err.Message, "identifier") ||
			!strings.Contains(err.Message, `correct "$correct/t"`) || !strings.Contains(err.Message, `withdraw credits from account "bob"`) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := correct("t", 8, "for another reason"); err == nil || err.Kind != messages.Conflict || !strings.Contains(err.Message, "wrong") {
		t.Errorf("for another reason: %v", err)
	}
	b.has("ada", 38, 0)
	if err := correct("$correct/t", 3, "too much"); err != nil { // do what the error says
		t.Fatal(err)
	}
	b.has("ada", 35, 0)
}

// TestPagesOfAccountsAreBoundedInBytes checks that a page of projects with many members fits in one message.
func TestPagesOfAccountsAreBoundedInBytes(t *testing.T) {
	b := newBed(t)
	for i := range 12 {
		project := fmt.Sprintf("project-%02d", i)
		b.grant(project, 1)
		for j := range 400 {
			b.join(project, fmt.Sprintf("a-rather-long-name-of-a-member-%03d", j))
		}
	}
	seen, pages := 0, 0
	for q := (money.AccountsRequest{Projects: true}); ; {
		page, err := b.AccountsPage(q)
		if err != nil {
			t.Fatal(err)
		}
		data, err := wire.Marshal(page, wire.JSON)
		if err != nil || len(data) > 1<<20 {
			t.Fatalf("a page of %d accounts has %d bytes, %v", len(page.Accounts), len(data), err)
		}
		pages, seen = pages+1, seen+len(page.Accounts)
		if !page.More {
			break
		}
		q.After = page.Accounts[len(page.Accounts)-1].Account
	}
	if seen != 12 || pages < 2 {
		t.Errorf("%d accounts on %d pages", seen, pages)
	}
}

// TestPagesOfStatementsFitOneMessage checks that the longest page of the longest entries fits in one message, also in
// JSON.
func TestPagesOfStatementsFitOneMessage(t *testing.T) {
	const most = 8 << 20 // max_payload of a site's NATS servers
	b := newBed(t)
	ada := messages.Name(strings.Repeat("a", 63))
	b.grant(ada, MaxPage*c)
	long := func(i, bytes int) string { return fmt.Sprint(i) + strings.Repeat(`"`, bytes-len(fmt.Sprint(i))) }
	for i := 0; i < 2*MaxPage; i += 2 {
		hold, charge := held(long(i, MaxID), ada, c), post(long(i+1, MaxID), long(i, MaxID), c)
		hold.Reason, charge.Reason = long(i, MaxReason), long(i, MaxReason)
		b.do(hold)
		b.do(charge)
	}
	page, err := b.Statement(money.StatementRequest{Account: ada, After: 1, Limit: MaxPage})
	if err != nil {
		t.Fatal(err)
	}
	data, err := wire.Marshal(page, wire.JSON)
	if err != nil || len(page.Entries) != MaxPage || len(data) > most {
		t.Errorf("a page of %d entries has %d bytes, want at most %d; %v", len(page.Entries), len(data), most, err)
	}
	t.Logf("a page of %d entries has %d bytes", len(page.Entries), len(data))
}
