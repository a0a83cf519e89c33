package ledger

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

func TestOneJob(t *testing.T) {
	b := newBed(t)
	b.grant("ada", 100*c)
	if got := b.do(held("hold", "ada", 30*c)); got != 30*c {
		t.Fatalf("held %v", got)
	}
	b.has("ada", 100*c, 30*c)
	if got := b.do(post("charge", "hold", 12*c)); got != 12*c {
		t.Fatalf("charged %v", got)
	}
	b.has("ada", 88*c, 0)
	b.has(money.SiteAccount, 12*c, 0)
	b.has(money.IssuerAccount, -100*c, 0)
	a, _ := b.Account("ada")
	if a.Granted != 100*c || a.Spent != 12*c {
		t.Fatalf("granted %v, spent %v", a.Granted, a.Spent)
	}
	books := b.balanced()
	want := money.BooksReply{Issued: 100 * c, Balances: 100 * c, Accounts: 2, Transfers: 3, Balanced: true, Message: books.Message}
	if books != want {
		t.Fatalf("books %+v, want %+v", books, want)
	}
}

func TestWhatIsReservedCannotBeSpent(t *testing.T) {
	b := newBed(t)
	b.grant("ada", 10)
	b.grant("bob", 1)
	b.do(held("h", "ada", 7))
	b.refuse(messages.Insufficient, held("h2", "ada", 4))
	b.refuse(messages.Insufficient, posted("p", "ada", "bob", 4))
	b.do(posted("p2", "ada", "bob", 3))
	b.has("ada", 7, 7)
	b.do(void("v", "h"))
	b.do(held("h3", "ada", 7))
	b.balanced()
}

func TestHoldResolvesOnce(t *testing.T) {
	resolutions := []money.Transfer{post("post", "h", 5), post("none", "h", 0), void("void", "h")}
	for _, first := range resolutions {
		for _, second := range append(resolutions, extend("extend", "h", 0)) {
			b := newBed(t)
			b.grant("ada", 10)
			b.do(held("h", "ada", 5))
			b.do(first)
			second.ID += " again"
			b.refuse(messages.Ended, second)
			b.has("ada", 10-first.Amount, 0)
			b.balanced()
		}
	}
}

func TestHoldLapsesByItself(t *testing.T) {
	b := newBed(t)
	b.grant("ada", 10)
	h := held("h", "ada", 5)
	h.Expires = 2000
	b.do(h)
	if b.NextExpiry() != 2000 {
		t.Fatalf("next expiry %v", b.NextExpiry())
	}
	b.at = 1999
	b.command(Command{Verb: Expire})
	b.has("ada", 10, 5)
	b.at = 2000
	if r := b.command(Command{Verb: Expire}); r.Lapsed != 1 {
		t.Fatalf("%d lapsed", r.Lapsed)
	}
	b.has("ada", 10, 0)
	b.refuse(messages.Expired, post("p", "h", 5))
	b.refuse(messages.Expired, void("v", "h"))
	if b.NextExpiry() != 0 {
		t.Fatalf("next expiry %v", b.NextExpiry())
	}
}

// TestLapseComesFirst: transfers arrive exactly at the expiry of a hold. A transfer that uses the hold must be too
// late. A transfer that needs the freed credits must succeed.
func TestLapseComesFirst(t *testing.T) {
	b := newBed(t)
	b.grant("ada", 10)
	h := held("h", "ada", 10)
	h.Expires = 2000
	b.do(h)
	b.at = 2000
	r := b.send(post("p", "h", 1), held("h2", "ada", 10))
	if r[0].Error == nil || r[0].Error.Kind != messages.Expired || r[1].Error != nil {
		t.Fatalf("%+v", r)
	}
}

func TestTimeDoesNotRunBackwards(t *testing.T) {
	b := newBed(t)
	b.grant("ada", 10)
	b.at = 500
	h := held("h", "ada", 1)
	h.Expires = 900 // before 1000, the time of an earlier command
	b.refuse(messages.Expired, h)
	if b.Now() != 1000 {
		t.Fatalf("now %v", b.Now())
	}
}

func TestExtend(t *testing.T) {
	for _, tc := range []struct{ first, extended, want messages.Time }{
		{2000, 3000, 3000},
		{2000, 1500, 2000}, // an expiry only moves to a later time
		{2000, 0, 0},       // 0 means never
		{0, 3000, 0},
		{2000, math.MaxInt64, math.MaxInt64},
	} {
		b := newBed(t)
		b.grant("ada", 10)
		h := held("h", "ada", 1)
		h.Expires = tc.first
		b.do(h)
		b.do(extend("e", "h", tc.extended))
		if got := b.NextExpiry(); got != tc.want {
			t.Errorf("expiry %v extended to %v: %v, want %v", tc.first, tc.extended, got, tc.want)
		}
	}
}

// TestExpiryOrder: several holds are due together. They must lapse in the order of expiry. Holds with the same expiry
// must lapse in the order of their identifiers.
func TestExpiryOrder(t *testing.T) {
	b := newBed(t)
	b.grant("ada", 1000)
	due := map[string]messages.Time{}
	for i := range 60 {
		h := held(fmt.Sprintf("h%02d", i*37%60), "ada", 1)
		h.Expires = messages.Time(2000 + i*11%7)
		due[h.ID] = h.Expires
		b.do(h)
	}
	for i := 0; i < 60; i += 3 {
		gone, extended := fmt.Sprintf("h%02d", i), fmt.Sprintf("h%02d", i+1)
		b.do(void("void "+gone, gone))
		b.do(extend("extend "+extended, extended, messages.Time(2004+i%4)))
		due[extended] = max(due[extended], messages.Time(2004+i%4))
		delete(due, gone)
	}
	want := slices.SortedFunc(maps.Keys(due), func(x, y string) int {
		return cmp.Or(cmp.Compare(due[x], due[y]), cmp.Compare(x, y))
	})
	b.at = 5000
	if r := b.command(Command{Verb: Expire}); r.Lapsed != 40 {
		t.Fatalf("%d lapsed", r.Lapsed)
	}
	var got []string
	page, _ := b.Statement(money.StatementRequest{Account: "ada", Limit: MaxPage})
	for _, e := range page.Entries {
		if e.Reason == lapseReason {
			got = append(got, e.Transfer)
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("lapsed %v, want %v", got, want)
	}
	b.has("ada", 1000, 0)
	b.balanced()
}

func TestProjects(t *testing.T) {
	b := newBed(t)
	b.grant("lab", 10)
	h := money.Transfer{ID: "h", Kind: money.Hold, Debit: "lab", Member: "ada", Amount: 1}
	if m := b.refuse(messages.PermissionDenied, h); !strings.Contains(m, `"ada"`) || !strings.Contains(m, `"lab"`) {
		t.Fatalf("%q does not name them", m)
	}
	b.join("lab", "ada")
	h.ID = "h2"
	b.do(h)
	if !b.MaySee("ada", "lab") || b.MaySee("eve", "lab") || b.MaySee("ada", "bob") {
		t.Fatal("MayUse")
	}
	of := func() []money.AccountReply {
		r, err := b.AccountsOf("ada", money.AccountsRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return r.Accounts
	}
	if of := of(); len(of) != 1 || of[0].Account != "lab" {
		t.Fatalf("accounts of ada: %+v", of)
	}
	b.grant("ada", 1)
	if of := of(); len(of) != 2 || of[0].Account != "ada" {
		t.Fatalf("accounts of ada: %+v", of)
	}
	records := b.Totals().Records
	b.join("lab", "ada") // a repeated request changes nothing
	if b.Totals().Records != records {
		t.Fatal("a record of no change")
	}
	b.command(Command{Verb: Member, By: "ops", Member: money.MemberRequest{Account: "lab", Member: "ada", Remove: true}})
	h.ID = "h3"
	b.refuse(messages.PermissionDenied, h)
	b.do(post("p", "h2", 1)) // earlier holds stay
}

func TestMembershipRefusals(t *testing.T) {
	b := newBed(t)
	b.grant("lab", 10)
	for _, tc := range []struct {
		project, member messages.Name
		want            messages.Kind
	}{
		{"nolab", "ada", messages.NotFound},
		{"lab", "$auctioneer", messages.Invalid},
		{"lab", "", messages.Invalid},
		{"lab", "lab", messages.Invalid},
		{money.SiteAccount, "ada", messages.Invalid},
	} {
		r := b.command(Command{Verb: Member, By: "ops", Member: money.MemberRequest{Account: tc.project, Member: tc.member}})
		if r.Error == nil || r.Error.Kind != tc.want {
			t.Errorf("%s joins %s: %v", tc.member, tc.project, r.Error)
		}
	}
	a := b.accounts.byName["lab"]
	for i := range MaxMembers {
		b.accounts.setMember(a, fmt.Sprintf("m%d", i), false)
	}
	r := b.command(Command{Verb: Member, By: "ops", Member: money.MemberRequest{Account: "lab", Member: "ada"}})
	if r.Error == nil || r.Error.Kind != messages.Exhausted {
		t.Errorf("one member too many: %v", r.Error)
	}
}

// TestOverflow uses amounts at the ends of the range. No sum may wrap.
func TestOverflow(t *testing.T) {
	b := newBed(t)
	give := func(key, account string, amount messages.Credits) *messages.Error {
		return b.command(Command{Verb: Grant, By: "ops", Grant: money.GrantRequest{Key: key, Account: account, Amount: amount}}).Error
	}
	for i := range 9 {
		if err := give(fmt.Sprint(i), "ada", messages.MaxCredits); err != nil {
			t.Fatal(err)
		}
	}
	rest := messages.Credits(math.MaxInt64) - 9*messages.MaxCredits
	if err := give("ten", "new", messages.MaxCredits); err == nil || err.Kind != messages.TooLarge {
		t.Fatalf("ten times the most: %v", err)
	}
	if _, err := b.Account("new"); messages.KindOf(err) != messages.NotFound {
		t.Fatalf("a refused grant opened an account: %v", err)
	}
	if err := give("rest", "bob", rest); err != nil {
		t.Fatalf("up to the last microcredit: %v", err)
	}
	if err := give("one", "bob", 1); err == nil || err.Kind != messages.TooLarge {
		t.Fatalf("one more: %v", err)
	}
	for i := range 9 {
		b.do(posted(fmt.Sprint("p", i), "ada", "bob", messages.MaxCredits))
	}
	b.has("bob", math.MaxInt64, 0)
	// Bob spends the same credits again and again, because they come back to him. So the amount that he has spent could
	// become too large for its type.
	for i := range 9 {
		b.do(held(fmt.Sprint("h", i), "bob", messages.MaxCredits))
		b.do(post(fmt.Sprint("c", i), fmt.Sprint("h", i), messages.MaxCredits))
	}
	b.do(posted("back", money.SiteAccount, "bob", messages.MaxCredits))
	b.do(held("h", "bob", messages.MaxCredits))
	b.do(post("c", "h", messages.MaxCredits)) // the spent amount is no longer counted
	if a, _ := b.Account("bob"); a.Spent != math.MaxInt64 {
		t.Errorf("bob is said to have spent %v", a.Spent)
	}
	b.balanced()
}

func TestPayee(t *testing.T) {
	b := newBed(t)
	b.grant("ada", 10)
	b.grant("bob", 10)
	h := held("h", "ada", 5)
	h.Credit = "bob"
	b.do(h)
	b.refuse(messages.PermissionDenied, post("p", "h", 5)) // the payee would be the site, not bob
	p := post("p2", "h", 5)
	p.Credit = ""
	b.do(p)
	b.has("bob", 15, 0)
	b.do(held("h2", "ada", 1))
	p.ID, p.Pending, p.Amount = "p3", "h2", 1
	b.refuse(messages.Invalid, p) // no payee is named
	p.ID, p.Credit = "p4", "ada"
	b.refuse(messages.Invalid, p) // the payee is the payer
	b.balanced()
}

func TestAttacks(t *testing.T) {
	b := newBed(t)
	b.grant("ada", 10)
	b.grant("eve", 10)
	b.do(held("h", "ada", 5))
	for id, attack := range map[string]money.Transfer{
		"charge it to me": {Kind: money.Post, Pending: "h", Debit: "eve", Credit: money.SiteAccount, Amount: 5},
		"void it":         {Kind: money.Void, Pending: "h", Debit: "eve"},
		"hold for ada":    {Kind: money.Hold, Debit: "ada", Member: "eve", Amount: 1},
	} {
		attack.ID = id
		b.refuse(messages.PermissionDenied, attack)
	}
	b.refuse(messages.Insufficient, post("too much", "h", 6))
	b.refuse(messages.NotFound, post("no hold", "nothing", 1))
	b.do(posted("p", "ada", "eve", 1))
	b.refuse(messages.NotFound, post("no hold either", "p", 1))
	b.refuse(messages.NotFound, posted("to nobody", "ada", "nobody", 1))
	wrong := void("v", "h")
	wrong.Amount = 4
	b.refuse(messages.Invalid, wrong)
	wrong.ID, wrong.Amount = "v2", 5
	b.do(wrong)
	b.balanced()
}
