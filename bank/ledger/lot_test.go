package ledger

import (
	"fmt"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

// expiring makes a grant of credits that expire.
func (b *bed) expiring(key string, account messages.Name, amount messages.Credits, expires messages.Time) {
	b.Helper()
	g := money.GrantRequest{Key: key, Account: account, Amount: amount, Expires: expires}
	if r := b.command(Command{Verb: Grant, By: "ops", Grant: g}); r.Error != nil {
		b.Fatalf("grant %s to %s: %v", key, account, r.Error)
	}
}

func (b *bed) passes(to messages.Time) {
	b.Helper()
	b.at = to
	if r := b.command(Command{Verb: Expire}); r.Error != nil {
		b.Fatal(r.Error)
	}
}

// lots returns the lots of an account as a text, each in the form "expires free/held".
func (b *bed) lots(account messages.Name) string {
	b.Helper()
	a, err := b.Account(account)
	if err != nil {
		b.Fatal(err)
	}
	text := ""
	for _, e := range a.Expiring {
		text += fmt.Sprintf("%d %d/%d ", e.Expires, e.Free, e.Held)
	}
	return text
}

func (b *bed) wantLots(account messages.Name, want string) {
	b.Helper()
	if got := b.lots(account); got != want {
		b.Fatalf("%s has lots %q, want %q", account, got, want)
	}
}

func TestGrantExpires(t *testing.T) {
	b := newBed(t)
	b.grant("lab", 50)
	b.expiring("q1", "lab", 30, 2000)
	b.wantLots("lab", "2000 30/0 ")
	if b.NextExpiry() != 2000 {
		t.Fatalf("next expiry %v", b.NextExpiry())
	}
	b.do(held("h", "lab", 10))
	b.do(post("c", "h", 10)) // spends credits of the grant that expires
	b.passes(1999)
	b.has("lab", 70, 0)
	b.passes(2000)
	b.has("lab", 50, 0)
	b.wantLots("lab", "")
	b.passes(2001)
	b.has("lab", 50, 0)
	s, err := b.Statement(money.StatementRequest{Account: "lab"})
	if err != nil {
		t.Fatal(err)
	}
	last := s.Entries[len(s.Entries)-1]
	if last.Change != -20 || last.Other != money.IssuerAccount || last.Reason != returnReason || last.Pending != "$grant/ops/q1" || last.By != "" {
		t.Fatalf("%+v", last)
	}
	b.do(held("h2", "lab", 50)) // the account can still be used
	if books := b.balanced(); books.Issued != 60 {
		t.Fatalf("%+v", books)
	}
}

func TestHoldsDrawOnWhatExpiresFirst(t *testing.T) {
	b := newBed(t)
	b.grant("lab", 100)
	b.expiring("late", "lab", 20, 3000)
	b.expiring("soon", "lab", 20, 2000)
	b.do(held("a", "lab", 15))
	b.do(held("b", "lab", 15))
	b.wantLots("lab", "2000 0/20 3000 10/10 ")
	b.passes(2000) // all credits of this grant are held, so nothing is returned
	b.has("lab", 140, 30)
	b.do(post("ca", "a", 5)) // 5 of the 15 held credits are spent, and the other 10 are returned
	b.has("lab", 125, 15)
	b.wantLots("lab", "2000 0/5 3000 10/10 ")
	b.passes(3000) // returns the free part of the second grant
	b.has("lab", 115, 15)
	b.do(void("vb", "b")) // returns 5 credits of the first grant and 10 of the second
	b.has("lab", 100, 0)
	b.wantLots("lab", "")
	b.balanced()
}

// TestHoldLapsesAfterItsGrant: a hold uses credits of a grant, and lapses after the grant has expired. When the hold
// lapses, the freed credits must go back to the giver of the grant at once.
func TestHoldLapsesAfterItsGrant(t *testing.T) {
	b := newBed(t)
	b.expiring("g", "ada", 10, 2000)
	h := held("h", "ada", 4)
	h.Expires = 2500
	b.do(h)
	b.passes(9000) // the hold and the grant expire in the same step
	b.has("ada", 0, 0)
	if books := b.balanced(); books.Issued != 0 || books.Transfers != 4 {
		t.Fatalf("%+v", books)
	}
}

// TestChainUsesWhatItFrees: a chain of transfers frees credits of an expired grant, and holds them again. The credits
// must stay with the account.
func TestChainUsesWhatItFrees(t *testing.T) {
	b := newBed(t)
	b.expiring("g", "ada", 10, 2000)
	b.do(held("h", "ada", 10))
	b.passes(2000)
	for _, r := range b.send(linked(void("v", "h"), held("h2", "ada", 7))...) {
		if r.Error != nil {
			t.Fatal(r.Error)
		}
	}
	b.has("ada", 7, 7)
	b.wantLots("ada", "2000 0/7 ")
}

// TestRefusedChainLeavesLotsAlone sends chains of transfers that are refused. The transfers in a chain take credits
// from lots in different ways: they charge a hold, free a hold, pay, and make a hold. No lot may change.
func TestRefusedChainLeavesLotsAlone(t *testing.T) {
	b := newBed(t)
	b.grant("bob", 1)
	b.grant("ada", 20)
	b.expiring("g", "ada", 10, 2000)
	b.expiring("g2", "ada", 10, 2100)
	b.do(held("h", "ada", 5))
	b.do(held("h2", "ada", 8))
	before := b.lots("ada")
	r := b.send(linked(post("p", "h", 2), void("v", "h2"), posted("x", "ada", "bob", 12), held("h3", "ada", 9), posted("no", "bob", "ada", 500))...)
	if r[0].Error == nil {
		t.Fatal("it was not refused")
	}
	b.wantLots("ada", before)
	b.passes(2000)
	b.passes(2100)
	b.has("ada", 33, 13)
}

// TestPaidCreditsKeepTheirExpiry: an account pays credits of an expiring grant to another account. When the grant
// expires, the credits must be taken back from the other account.
func TestPaidCreditsKeepTheirExpiry(t *testing.T) {
	b := newBed(t)
	b.grant("ada", 5)
	b.grant("bob", 1)
	b.expiring("g", "ada", 10, 2000)
	pay := Command{Verb: Pay, By: "ada", Rank: User, Pay: money.PayRequest{Key: "1", From: "ada", To: "bob", Amount: 12}}
	for range 2 { // the second request is a repetition
		if r := b.command(pay); r.Error != nil || r.Account.Balance != 3 {
			t.Fatalf("%+v", r)
		}
	}
	b.wantLots("ada", "")
	b.wantLots("bob", "2000 10/0 ")
	b.passes(2000)
	b.has("bob", 3, 0)
	b.has("ada", 3, 0)
	pay.Pay.Amount = 1
	if r := b.command(pay); r.Error == nil || r.Error.Kind != messages.Conflict {
		t.Fatalf("%+v", r)
	}
}

func TestWhatIsOwedDelaysTheReturn(t *testing.T) {
	b := newBed(t)
	b.expiring("g", "ada", 10, 2000)
	credit := func(c messages.Credits) {
		if r := b.command(Command{Verb: Credit, By: "ops", Credit: money.CreditRequest{Account: "ada", Credit: c}}); r.Error != nil {
			t.Fatal(r.Error)
		}
	}
	credit(20)
	b.do(held("a", "ada", 10))
	b.do(held("b", "ada", 20)) // this hold uses the account's credit limit
	b.do(void("v", "a"))
	credit(0)
	b.passes(2000)
	b.has("ada", 10, 20) // 10 credits of the expired grant are free, but the account owes 10
	b.do(post("p", "b", 4))
	b.has("ada", 0, 0)
	b.balanced()
}

func TestGrantRefusals(t *testing.T) {
	b := newBed(t)
	grant := func(key string, expires messages.Time) *messages.Error {
		return b.command(Command{Verb: Grant, By: "ops", Grant: money.GrantRequest{Key: key, Account: "ada", Amount: 1, Expires: expires}}).Error
	}
	if err := grant("past", 1000); err == nil || err.Kind != messages.Expired {
		t.Fatal(err)
	}
	if err := grant("negative", -1); err == nil || err.Kind != messages.Invalid {
		t.Fatal(err)
	}
	for i := range MaxLots {
		if err := grant(fmt.Sprint(i), messages.Time(5000+i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := grant("more", 9000); err == nil || err.Kind != messages.Exhausted {
		t.Fatal(err)
	}
	if err := grant("for ever", 0); err != nil {
		t.Fatal(err)
	}
	b.passes(9000)
	b.has("ada", 1, 0)
}

// TestTimeout checks that the time-out of a hold starts when the bank makes the hold. It must start again when the bank
// extends the hold.
func TestTimeout(t *testing.T) {
	b := newBed(t)
	b.grant("ada", 10)
	h := held("h", "ada", 3)
	h.Timeout = 500_000 // half a millisecond is 500 microseconds
	b.do(h)
	if b.NextExpiry() != 1500 {
		t.Fatalf("expires at %d", b.NextExpiry())
	}
	b.at = 1200
	if b.do(h) != 3 || b.NextExpiry() != 1500 {
		t.Fatalf("asked again, it expires at %d", b.NextExpiry())
	}
	e := money.Transfer{ID: "e", Kind: money.Extend, Pending: "h", Timeout: 1_000_000}
	if b.do(e) != 3 || b.NextExpiry() != 2200 {
		t.Fatalf("extended, it expires at %d", b.NextExpiry())
	}
	if restored := restore(t, encodeImage(t, b.Ledger)); restored.Hash() != b.Hash() || restored.NextExpiry() != 2200 {
		t.Fatal("restored to another expiry")
	}
	b.passes(2200)
	b.has("ada", 10, 0)
}
