package ledger

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

func (b *bed) as(user messages.Name, c Command) Result {
	c.By, c.Rank = user, User
	return b.command(c)
}

func (b *bed) must(r Result) Result {
	b.Helper()
	if r.Error != nil {
		b.Fatal(r.Error)
	}
	return r
}

func (b *bed) refused(kind messages.Kind, r Result) {
	b.Helper()
	if r.Error == nil || r.Error.Kind != kind || r.Error.Message == "" {
		b.Fatalf("%v, want a refusal of kind %v", r.Error, kind)
	}
}

// climate returns a project with dan as its owner and ada as a member with a limit of 20.
func climate(t *testing.T) *bed {
	b := newBed(t)
	b.must(b.command(Command{Verb: Project, By: "ops", Project: money.ProjectRequest{Account: "climate", Title: "Climate", Owners: []messages.Name{"dan"}}}))
	b.grant("climate", 100)
	b.grant("eve", 5)
	limit := messages.Credits(20)
	b.must(b.as("dan", Command{Verb: Member, Member: money.MemberRequest{Account: "climate", Member: "ada", Limit: &limit}}))
	return b
}

func (b *bed) part(account, member messages.Name) money.Membership {
	b.Helper()
	a, err := b.Account(account)
	if err != nil {
		b.Fatal(err)
	}
	i := slices.IndexFunc(a.Roles, func(m money.Membership) bool { return m.Member == member })
	if i < 0 {
		b.Fatalf("%s has no part in %s: %+v", member, account, a.Roles)
	}
	return a.Roles[i]
}

func heldBy(member messages.Name, t money.Transfer) money.Transfer {
	t.Member = member
	return t
}

// TestMemberLimit checks a member's limit in a project. If a member leaves and comes back, the credits that the member
// used before must still count.
func TestMemberLimit(t *testing.T) {
	b := climate(t)
	b.do(heldBy("ada", held("a", "climate", 12)))
	b.refuse(messages.Insufficient, heldBy("ada", held("b", "climate", 9)))
	b.do(heldBy("ada", held("c", "climate", 8)))
	b.do(void("v", "c")) // these 8 credits are free again
	b.do(post("p", "a", 10))
	if m := b.part("climate", "ada"); m.Spent != 10 || m.Held != 0 || m.Limit != 20 {
		t.Fatalf("%+v", m)
	}
	b.do(heldBy("ada", held("d", "climate", 10)))
	b.must(b.as("dan", Command{Verb: Member, Member: money.MemberRequest{Account: "climate", Member: "ada", Remove: true}}))
	b.refuse(messages.PermissionDenied, heldBy("ada", held("e", "climate", 1)))
	b.do(post("pd", "d", 4)) // what the member held before is still charged
	limit := messages.Credits(15)
	b.must(b.as("dan", Command{Verb: Member, Member: money.MemberRequest{Account: "climate", Member: "ada", Limit: &limit}}))
	if m := b.part("climate", "ada"); m.Spent != 14 || m.Held != 0 {
		t.Fatalf("%+v", m)
	}
	b.refuse(messages.Insufficient, heldBy("ada", held("f", "climate", 2)))
	b.do(heldBy("ada", held("g", "climate", 1)))
	b.do(held("own", "climate", 50)) // without a member there is no limit
}

func TestRoles(t *testing.T) {
	b := climate(t)
	auditor, owner := money.RoleAuditor, money.RoleOwner
	member := func(by, who messages.Name, role *money.Role, remove bool) Result {
		return b.as(by, Command{Verb: Member, Member: money.MemberRequest{Account: "climate", Member: who, Role: role, Remove: remove}})
	}
	b.must(member("dan", "cyd", &auditor, false))
	b.refuse(messages.PermissionDenied, heldBy("cyd", held("a", "climate", 1)))
	if !b.MaySee("cyd", "climate") || b.part("climate", "cyd").Role != money.RoleAuditor {
		t.Fatal("an auditor sees the account, and may not spend from it")
	}
	for _, by := range []messages.Name{"ada", "cyd", "eve"} {
		b.refused(messages.PermissionDenied, member(by, "eve", nil, false))
	}
	b.refused(messages.PermissionDenied, member("dan", "dan", nil, true))
	b.refused(messages.PermissionDenied, member("dan", "dan", &auditor, false))
	b.must(member("dan", "ada", &owner, false))
	b.must(member("ada", "dan", nil, true)) // now there is another owner
	b.refused(messages.PermissionDenied, member("dan", "eve", nil, false))
	if m := b.part("climate", "ada"); m.Limit != 20 {
		t.Fatalf("a new role took the limit away: %+v", m)
	}
	b.must(b.command(Command{Verb: Member, By: "ops", Member: money.MemberRequest{Account: "climate", Member: "ada", Remove: true}}))
}

// TestProject checks that a repeated request for a project changes nothing, and that a user's own account cannot become
// a project.
func TestProject(t *testing.T) {
	b := climate(t)
	request := money.ProjectRequest{Account: "climate", Title: "Climate", Owners: []messages.Name{"dan"}}
	records := b.Totals().Records
	if a := b.must(b.command(Command{Verb: Project, By: "ops", Project: request})).Account; !a.Project || a.Title != "Climate" || b.Totals().Records != records {
		t.Fatalf("%+v", a)
	}
	request.Title, request.Owners = "Models", []messages.Name{"eve"}
	if a := b.must(b.command(Command{Verb: Project, By: "ops", Project: request})).Account; a.Title != "Models" || b.part("climate", "eve").Role != money.RoleOwner {
		t.Fatalf("%+v", a)
	}
	request.Account, request.Owners = "eve", nil
	b.refused(messages.Conflict, b.command(Command{Verb: Project, By: "ops", Project: request}))
	request.Account, request.Owners = "new", make([]messages.Name, MaxOwners+1)
	b.refused(messages.TooLarge, b.command(Command{Verb: Project, By: "ops", Project: request}))
}

// TestFreeze checks that a frozen account allows nothing new, and that earlier holds can be resolved.
func TestFreeze(t *testing.T) {
	b := climate(t)
	b.do(heldBy("ada", held("a", "climate", 10)))
	b.do(heldBy("ada", held("b", "climate", 10)))
	freeze := func(frozen bool) Command {
		return Command{Verb: Freeze, By: "ops", Freeze: money.FreezeRequest{Account: "climate", Frozen: frozen, Reason: "audit"}}
	}
	b.refused(messages.PermissionDenied, b.as("ada", freeze(true)))
	if a := b.must(b.command(freeze(true))).Account; a.Frozen != "ops" || a.Why != "audit" {
		t.Fatalf("%+v", a)
	}
	b.refuse(messages.PermissionDenied, held("c", "climate", 1))
	b.refuse(messages.PermissionDenied, posted("d", "climate", "eve", 1))
	b.refused(messages.PermissionDenied, b.as("dan", Command{Verb: Pay, Pay: money.PayRequest{Key: "k", From: "climate", To: "eve", Amount: 1}}))
	b.do(post("pa", "a", 3))
	b.do(extend("eb", "b", 9000))
	b.do(void("vb", "b"))
	b.do(posted("in", "eve", "climate", 5))
	b.must(b.command(Command{Verb: Withdraw, By: "ops", Withdraw: money.WithdrawRequest{Key: "w", Account: "climate", Amount: 2, Reason: "audit"}}))
	b.has("climate", 100, 0)
	b.refused(messages.PermissionDenied, b.as("dan", freeze(false))) // an operator froze the account
	b.must(b.command(freeze(false)))
	b.must(b.as("dan", freeze(true)))
	b.must(b.as("dan", freeze(false)))
	b.do(held("e", "climate", 1))
}

// TestCorrection checks that a correction reverses a charge once, even if it is repeated. The corrected amount must no
// longer count against the limit of the member who spent it.
func TestCorrection(t *testing.T) {
	b := climate(t)
	b.do(heldBy("ada", held("h", "climate", 12)))
	b.do(post("charge", "h", 10))
	correct := func(of string, amount messages.Credits) Result {
		return b.command(Command{Verb: Correct, By: "ops", Correct: money.CorrectRequest{Transfer: of, Amount: amount, Reason: "a faulty node"}})
	}
	b.refused(messages.NotFound, correct("nothing", 0))
	b.refused(messages.Invalid, correct("h", 0)) // the transfer h moved no credits
	b.refused(messages.Invalid, correct("charge", 11))
	b.refused(messages.Invalid, b.command(Command{Verb: Correct, By: "ops", Correct: money.CorrectRequest{Transfer: "charge"}})) // the request has no reason
	for range 2 {
		if r := b.must(correct("charge", 4)).Corrected; r.Debit != money.SiteAccount || r.Credit != "climate" || r.Amount != 4 {
			t.Fatalf("%+v", r)
		}
	}
	b.refused(messages.Conflict, correct("charge", 5))
	b.has("climate", 94, 0)
	if a, _ := b.Account("climate"); a.Spent != 6 || b.part("climate", "ada").Spent != 6 {
		t.Fatalf("%+v", a)
	}
	b.must(correct("$correct/charge", 0)) // the correction is corrected
	b.has("climate", 90, 0)
	b.must(correct("$grant/ops/first climate", 30))
	b.has("climate", 60, 0)
	// A refusal is not remembered: the request may succeed when there are credits again.
	b.do(held("all", "climate", 60))
	b.do(posted("x", "eve", "climate", 5))
	b.do(held("more", "climate", 5))
	b.refused(messages.Insufficient, correct("x", 0))
	b.do(void("v", "more"))
	b.must(correct("x", 0))
	b.balanced()
}

func TestCredit(t *testing.T) {
	b := newBed(t)
	b.grant("ada", 10)
	b.refuse(messages.Insufficient, held("a", "ada", 15))
	b.must(b.command(Command{Verb: Credit, By: "ops", Credit: money.CreditRequest{Account: "ada", Credit: 8}}))
	b.do(held("b", "ada", 15))
	b.refuse(messages.Insufficient, held("c", "ada", 4))
	b.do(post("p", "b", 15))
	b.has("ada", -5, 0)
	if books := b.balanced(); books.Balances != 10 || books.Issued != 10 {
		t.Fatalf("%+v", books)
	}
	b.must(b.command(Command{Verb: Credit, By: "ops", Credit: money.CreditRequest{Account: "ada"}}))
	b.refuse(messages.Insufficient, held("d", "ada", 1))
	b.balanced() // the debt of ada stays
}

// TestExternalityPayments ends the hold of a job that ran, and pays the jobs that waited for it. All this is one chain
// of MaxLegs transfers.
func TestExternalityPayments(t *testing.T) {
	const waiting = (money.MaxLegs - 2) / 2
	b := newBed(t)
	b.grant("runner", 10*waiting)
	b.do(held("hold", "runner", 8*waiting))
	legs := []money.Transfer{post("capture", "hold", 3*waiting)}
	for i := range waiting {
		name := messages.Name(fmt.Sprintf("user%d", i))
		b.grant(name, 1)
		b.do(held(name+"/hold", name, 1))
		legs = append(legs, posted(name+"/owed", money.SiteAccount, name, 3), void(name+"/void", name+"/hold"))
	}
	legs = linked(append(legs, posted("fee", "runner", money.SiteAccount, 1))...)
	if len(legs) != money.MaxLegs {
		t.Fatalf("%d legs", len(legs))
	}
	broken := slices.Clone(legs)
	for i := range broken {
		broken[i].ID = "x" + broken[i].ID
	}
	broken[len(broken)-1].Amount = 1 << 50
	before := b.Accounts()
	for _, r := range b.send(broken...) {
		if r.Error == nil || r.Error.Kind != messages.Insufficient {
			t.Fatalf("%+v", r)
		}
	}
	if fmt.Sprint(b.Accounts()) != fmt.Sprint(before) {
		t.Fatal("a part of it was done")
	}
	for _, r := range b.send(legs...) {
		if r.Error != nil {
			t.Fatal(r.Error)
		}
	}
	b.has("runner", 7*waiting-1, 0)
	b.has("user7", 4, 0)
	b.has(money.SiteAccount, 1, 0)
	b.balanced()
}

// TestAmounts checks the amount in the answer to each kind of transfer, for the first and for a repeated request.
func TestAmounts(t *testing.T) {
	b := newBed(t)
	b.grant("ada", 100)
	for _, x := range []struct {
		transfer money.Transfer
		want     messages.Credits
	}{
		{held("h", "ada", 30), 30}, {held("h2", "ada", 20), 20}, {extend("e", "h", 9000), 30},
		{post("p", "h", 12), 12}, {void("v", "h2"), 20}, {posted("x", "ada", money.SiteAccount, 5), 5},
	} {
		if first, again := b.do(x.transfer), b.do(x.transfer); first != x.want || again != x.want {
			t.Errorf("%s: %v, and again %v, want %v", x.transfer.Kind, first, again, x.want)
		}
	}
}

// TestChainOnItsOwnHold sends chains of transfers. A chain makes a hold. Later transfers of the same chain resolve this
// hold, extend it, or set its job. The result must be the same as with single transfers.
func TestChainOnItsOwnHold(t *testing.T) {
	b := newBed(t)
	b.grant("ada", 100)
	e := extend("e", "h", 9000)
	e.Job = 7
	chain := linked(held("h", "ada", 30), e, post("p", "h", 12), held("h2", "ada", 5), void("v", "h2"))
	r := b.command(Command{Verb: Transfers, By: "$auctioneer", Rank: Service, Transfers: chain})
	for i, x := range r.Transfers {
		if x.Error != nil {
			t.Fatalf("%s: %v", chain[i].ID, x.Error)
		}
	}
	b.has("ada", 88, 0)
	s, err := b.Statement(money.StatementRequest{Account: "ada"})
	if err != nil || s.Entries[1].Job != 7 || s.Entries[2].Job != 7 {
		t.Fatalf("%+v %v", s, err)
	}
	if restored := restore(t, encodeImage(t, b.Ledger)); restored.Hash() != b.Hash() {
		t.Fatal("restored to another state")
	}
}

func TestMostGranted(t *testing.T) {
	b := newBed(t)
	for _, g := range []struct {
		account messages.Name
		amount  messages.Credits
	}{{"ada", 5}, {"bob", 9}, {"eve", 5}, {"zoe", 7}} {
		b.grant(g.account, g.amount)
	}
	b.do(held("h", "bob", 9))
	for most, want := range map[int]string{1: "bob", 3: "bob zoe ada", 9: "bob zoe ada eve"} {
		var names []string
		for _, a := range b.MostGranted(most) {
			names = append(names, a.Account)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("the first %d: %s, want %s", most, got, want)
		}
	}
	if a := b.MostGranted(1)[0]; a.Available != 0 || a.Granted != 9 {
		t.Errorf("%+v", a)
	}
}
