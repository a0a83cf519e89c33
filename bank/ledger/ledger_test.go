package ledger

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
)

// TestOneJob follows the credits of a job from the grant to the charge.
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
	b.has(messages.SiteAccount, 12*c, 0)
	b.has(messages.IssuerAccount, -100*c, 0)
	a, _ := b.Account("ada")
	if a.Granted != 100*c || a.Spent != 12*c {
		t.Fatalf("granted %v, spent %v", a.Granted, a.Spent)
	}
	books := b.balanced()
	want := messages.BooksReply{Issued: 100 * c, Balances: 100 * c, Accounts: 2, Transfers: 3, Balanced: true, Message: books.Message}
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
	resolutions := []messages.Transfer{post("post", "h", 5), post("none", "h", 0), void("void", "h")}
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

// TestLapseComesFirst: a transfer that arrives at the very expiry is too late,
// and one that needs the freed credits is not.
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
	h.Expires = 900 // before 1000, which was seen
	b.refuse(messages.Expired, h)
	if b.Now() != 1000 {
		t.Fatalf("now %v", b.Now())
	}
}

func TestExtend(t *testing.T) {
	for _, tc := range []struct{ first, extended, want messages.Time }{
		{2000, 3000, 3000},
		{2000, 1500, 2000}, // only ever later
		{2000, 0, 0},       // never
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

// TestExpiryOrder: holds that are due at once lapse by expiry, then by
// identifier, however they were made, extended and resolved before.
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
	page, _ := b.Statement(messages.StatementRequest{Account: "ada", Limit: MaxPage})
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

// TestSameIdentifier: the first result stands, whatever it was and whatever
// happened since; other content is a conflict and changes nothing.
func TestSameIdentifier(t *testing.T) {
	b := newBed(t)
	b.grant("ada", 10)
	hold, tooMuch, charge := held("h", "ada", 6), held("x", "ada", 5), post("c", "h", 4)
	for _, x := range []messages.Transfer{hold, charge} {
		b.do(x)
	}
	b.do(held("h2", "ada", 6)) // so that the next is refused
	first := b.refuse(messages.Insufficient, tooMuch)
	b.do(void("v", "h2")) // now it could be done
	hash := b.Hash()
	if b.do(hold) != 6 || b.do(charge) != 4 || b.refuse(messages.Insufficient, tooMuch) != first {
		t.Fatal("another result than the first")
	}
	for _, change := range []func(*messages.Transfer){
		func(x *messages.Transfer) { x.Amount-- },
		func(x *messages.Transfer) { x.Reason = "other" },
		func(x *messages.Transfer) { x.Job = 9 },
		func(x *messages.Transfer) { x.Credit = messages.SiteAccount },
		func(x *messages.Transfer) { x.Member = "bob" },
	} {
		other := hold
		change(&other)
		b.refuse(messages.Conflict, other)
	}
	b.refuse(messages.Conflict, messages.Transfer{ID: "h", Kind: messages.Void, Pending: "h2"})
	if b.Hash() != hash {
		t.Fatal("a repeated request changed the state")
	}
}

// TestHoldAskedAgainLater: the expiry that is counted from then does not make
// it another hold, and does not move the first.
func TestHoldAskedAgainLater(t *testing.T) {
	b := newBed(t)
	b.grant("ada", 10)
	h := held("h", "ada", 6)
	h.Expires = 2000
	b.do(h)
	b.at = 1500
	h.Expires = 2500
	if b.do(h) != 6 || b.NextExpiry() != 2000 {
		t.Fatalf("expires at %v", b.NextExpiry())
	}
	b.has("ada", 10, 6)
}

// TestMalformedIsNotRemembered: the identifier stays free.
func TestMalformedIsNotRemembered(t *testing.T) {
	b := newBed(t)
	b.grant("ada", 10)
	hash := b.Hash()
	b.refuse(messages.Invalid, held("h", "ada", 0))
	b.refuse(messages.TooLarge, held("h", "ada", messages.MaxCredits+1))
	if b.Hash() != hash {
		t.Fatal("a malformed transfer changed the state")
	}
	b.do(held("h", "ada", 10))
}

func TestChain(t *testing.T) {
	b := newBed(t)
	b.grant("ada", 10)
	b.grant("bob", 1)
	b.grant("cyd", 1)
	// Credits may pass through an account that has none.
	r := b.send(linked(posted("1", "ada", "bob", 10), posted("2", "bob", "cyd", 11), held("3", "cyd", 12))...)
	for i := range r {
		if r[i].Error != nil {
			t.Fatal(r[i].Error)
		}
	}
	b.has("cyd", 12, 12)
	hash, records := b.Hash(), b.Totals().Records
	// One that fails takes back all: a post, an extension and a void before it too.
	failing := linked(post("4", "3", 5), posted("5", messages.SiteAccount, "ada", 5), posted("6", "ada", "bob", 99))
	r = b.send(failing...)
	for i := range r {
		if r[i].Error == nil || r[i].Error.Kind != messages.Insufficient {
			t.Fatalf("%d: %+v", i, r[i])
		}
	}
	b.has("cyd", 12, 12)
	b.has(messages.SiteAccount, 0, 0)
	if b.Totals().Records != records+3 || b.Hash() == hash {
		t.Fatal("the refusals were not remembered")
	}
	if again := b.send(failing...); !reflect.DeepEqual(again, r) {
		t.Fatalf("again: %+v, first: %+v", again, r)
	}
	b.balanced()
}

// TestChainUndoesEveryKind rolls back one transfer of each kind.
func TestChainUndoesEveryKind(t *testing.T) {
	b := newBed(t)
	b.grant("ada", 100)
	for i, id := range []string{"a", "b", "c"} {
		h := held(id, "ada", 10)
		h.Expires = messages.Time(2000 + i)
		b.do(h)
	}
	before := b.Accounts()
	r := b.send(linked(extend("e", "a", 9000), extend("e2", "a", 0), post("p", "b", 5), void("v", "c"), held("h", "ada", 60), posted("x", "ada", "ada2", 1))...)
	if r[5].Error.Kind != messages.NotFound {
		t.Fatal(r[5].Error)
	}
	if !reflect.DeepEqual(b.Accounts(), before) || b.NextExpiry() != 2000 {
		t.Fatalf("left %+v, next expiry %v", b.Accounts(), b.NextExpiry())
	}
	b.at = 2002
	if r := b.command(Command{Verb: Expire}); r.Lapsed != 3 {
		t.Fatalf("%d lapsed", r.Lapsed)
	}
	b.balanced()
}

func TestChainThatIsMalformed(t *testing.T) {
	b := newBed(t)
	b.grant("ada", 10)
	hash := b.Hash()
	open := held("b", "ada", 1)
	open.Linked = true
	for name, chain := range map[string][]messages.Transfer{
		"without an end":        linked(held("a", "ada", 1), open),
		"of one without an end": {open},
		"identifier twice":      linked(held("a", "ada", 1), held("a", "ada", 1)),
		"a malformed member":    linked(held("a", "ada", 1), held("c", "ada", 0)),
	} {
		for i, r := range b.send(chain...) {
			if r.Error == nil || r.Error.Kind != messages.Invalid {
				t.Errorf("%s: %d: %v", name, i, r.Error)
			}
		}
	}
	if b.Hash() != hash {
		t.Fatal("a malformed chain changed the state")
	}
}

// TestChainInPart: transfers that were answered keep their result, and the
// others cannot join them.
func TestChainInPart(t *testing.T) {
	b := newBed(t)
	b.grant("ada", 10)
	a := held("a", "ada", 1)
	a.Linked = true
	b.send(a, held("b", "ada", 1))
	r := b.send(a, held("c", "ada", 1))
	if r[0].Error != nil || r[0].Amount != 1 || r[1].Error == nil || r[1].Error.Kind != messages.Conflict {
		t.Fatalf("%+v", r)
	}
	b.has("ada", 10, 2)
	b.do(held("c", "ada", 1)) // its identifier is still free
}

func TestProjects(t *testing.T) {
	b := newBed(t)
	b.grant("lab", 10)
	h := messages.Transfer{ID: "h", Kind: messages.Hold, Debit: "lab", Member: "ada", Amount: 1}
	if m := b.refuse(messages.PermissionDenied, h); !strings.Contains(m, `"ada"`) || !strings.Contains(m, `"lab"`) {
		t.Fatalf("%q does not name them", m)
	}
	b.join("lab", "ada")
	h.ID = "h2"
	b.do(h)
	if !b.MayUse("ada", "lab") || b.MayUse("eve", "lab") || b.MayUse("ada", "bob") {
		t.Fatal("MayUse")
	}
	if of := b.AccountsOf("ada"); len(of) != 1 || of[0].Account != "lab" {
		t.Fatalf("accounts of ada: %+v", of)
	}
	b.grant("ada", 1)
	if of := b.AccountsOf("ada"); len(of) != 2 || of[0].Account != "ada" {
		t.Fatalf("accounts of ada: %+v", of)
	}
	records := b.Totals().Records
	b.join("lab", "ada") // once more is nothing new
	if b.Totals().Records != records {
		t.Fatal("a record of no change")
	}
	b.command(Command{Verb: Member, By: "ops", Member: messages.MemberRequest{Account: "lab", Member: "ada", Remove: true}})
	h.ID = "h3"
	b.refuse(messages.PermissionDenied, h)
	b.do(post("p", "h2", 1)) // what was held stays held
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
		{messages.SiteAccount, "ada", messages.Invalid},
	} {
		r := b.command(Command{Verb: Member, By: "ops", Member: messages.MemberRequest{Account: tc.project, Member: tc.member}})
		if r.Error == nil || r.Error.Kind != tc.want {
			t.Errorf("%s joins %s: %v", tc.member, tc.project, r.Error)
		}
	}
	a := b.accounts["lab"]
	for i := range MaxMembers {
		b.setMember(a, fmt.Sprintf("m%d", i), false)
	}
	r := b.command(Command{Verb: Member, By: "ops", Member: messages.MemberRequest{Account: "lab", Member: "ada"}})
	if r.Error == nil || r.Error.Kind != messages.Exhausted {
		t.Errorf("one member too many: %v", r.Error)
	}
}

// TestOverflow stands at the ends of the range: no sum wraps.
func TestOverflow(t *testing.T) {
	b := newBed(t)
	give := func(key, account string, amount messages.Credits) *messages.Error {
		return b.command(Command{Verb: Grant, By: "ops", Grant: messages.GrantRequest{Key: key, Account: account, Amount: amount}}).Error
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
	// What was spent is counted too, and credits can go round.
	for i := range 9 {
		b.do(held(fmt.Sprint("h", i), "bob", messages.MaxCredits))
		b.do(post(fmt.Sprint("c", i), fmt.Sprint("h", i), messages.MaxCredits))
	}
	b.do(posted("back", messages.SiteAccount, "bob", messages.MaxCredits))
	b.do(held("h", "bob", messages.MaxCredits))
	b.refuse(messages.TooLarge, post("c", "h", messages.MaxCredits))
	b.balanced()
}

func TestGrantIsIdempotent(t *testing.T) {
	b := newBed(t)
	g := messages.GrantRequest{Key: "k", Account: "ada", Amount: 5, Reason: "spring"}
	for range 3 {
		if r := b.command(Command{Verb: Grant, By: "ops", Grant: g}); r.Error != nil || r.Account.Balance != 5 {
			t.Fatalf("%+v", r)
		}
	}
	if r := b.command(Command{Verb: Grant, By: "ops2", Grant: g}); r.Error != nil || r.Account.Balance != 10 {
		t.Fatalf("another operator's grant under the same key: %+v", r)
	}
	g.Amount = 6
	if r := b.command(Command{Verb: Grant, By: "ops", Grant: g}); r.Error == nil || r.Error.Kind != messages.Conflict {
		t.Fatalf("other content: %v", r.Error)
	}
	b.has("ada", 10, 0)
}

func TestPayee(t *testing.T) {
	b := newBed(t)
	b.grant("ada", 10)
	b.grant("bob", 10)
	h := held("h", "ada", 5)
	h.Credit = "bob"
	b.do(h)
	b.refuse(messages.PermissionDenied, post("p", "h", 5)) // to the site
	p := post("p2", "h", 5)
	p.Credit = ""
	b.do(p)
	b.has("bob", 15, 0)
	b.do(held("h2", "ada", 1))
	p.ID, p.Pending, p.Amount = "p3", "h2", 1
	b.refuse(messages.Invalid, p) // nobody is named
	p.ID, p.Credit = "p4", "ada"
	b.refuse(messages.Invalid, p) // the payer itself
	b.balanced()
}

// TestAttacks on somebody else's hold.
func TestAttacks(t *testing.T) {
	b := newBed(t)
	b.grant("ada", 10)
	b.grant("eve", 10)
	b.do(held("h", "ada", 5))
	for id, attack := range map[string]messages.Transfer{
		"charge it to me": {Kind: messages.Post, Pending: "h", Debit: "eve", Credit: messages.SiteAccount, Amount: 5},
		"void it":         {Kind: messages.Void, Pending: "h", Debit: "eve"},
		"hold for ada":    {Kind: messages.Hold, Debit: "ada", Member: "eve", Amount: 1},
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

// TestCollision: identifiers of the same hash are kept apart.
func TestCollision(t *testing.T) {
	b := newBed(t)
	b.known.hash = func(string) uint64 { return 7 }
	b.grant("ada", 1000)
	for i := range 20 {
		b.do(held(fmt.Sprint(i), "ada", messages.Credits(i+1)/2+1))
	}
	for i := range 20 {
		if got := b.do(held(fmt.Sprint(i), "ada", messages.Credits(i+1)/2+1)); got != messages.Credits(i+1)/2+1 {
			t.Fatalf("%d: %v", i, got)
		}
	}
	b.refuse(messages.NotFound, void("v", "no such hold"))
	if b.Totals().Holds != 20 {
		t.Fatalf("%+v", b.Totals())
	}
}
