package bank

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

func attacked(t *testing.T) *bed {
	b := start(t)
	for i, name := range []messages.Name{"ada", "bob", "dan"} {
		b.grant(fmt.Sprint(i), name, 1000*c)
	}
	must[money.AccountReply](b, "ops", money.VerbProject, money.ProjectRequest{Account: "lab", Title: "The lab", Owners: []messages.Name{"dan"}})
	b.grant("lab", "lab", 1000*c)
	limit, auditor := 20*c, money.RoleAuditor
	must[money.AccountReply](b, "dan", messages.VerbMember, money.MemberRequest{Account: "lab", Member: "ada", Limit: &limit})
	must[money.AccountReply](b, "dan", messages.VerbMember, money.MemberRequest{Account: "lab", Member: "cyd", Role: &auditor})
	if r := b.transfer(hold("h", "ada", 30*c)); r[0].Error != nil {
		t.Fatal(r[0].Error)
	}
	return b
}

func (b *bed) turnedDown(verb string, kind messages.Kind) float64 {
	b.Helper()
	families, err := b.metrics.Gather()
	if err != nil {
		b.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if l := m.GetLabel(); family.GetName() == "candor_bank_turned_down_total" && l[0].GetValue() == kind.String() && l[1].GetValue() == verb {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}

func by(member messages.Name, t money.Transfer) money.Transfer {
	t.Member = member
	return t
}

func debit(account messages.Name, t money.Transfer) money.Transfer {
	t.Debit = account
	return t
}

// TestAttacksByTransfer sends transfers that a dishonest service could pass on or invent. No account may change.
func TestAttacksByTransfer(t *testing.T) {
	b := attacked(t)
	b.transfer(hold("spent", "bob", 5*c), post("capture", "spent", 5*c))
	before := must[money.AccountsReply](b, "ops", messages.VerbAccounts, money.AccountsRequest{})
	for name, attack := range map[string]struct {
		transfer money.Transfer
		kind     messages.Kind
		says     string
	}{
		"somebody else's hold":         {debit("bob", post("a1", "h", c)), messages.PermissionDenied, `"ada", not on "bob"`},
		"a second capture":             {post("a2", "spent", c), messages.Ended, "resolves once"},
		"a void of what was captured":  {money.Transfer{ID: "a3", Kind: money.Void, Pending: "spent"}, messages.Ended, "resolves once"},
		"more than was held":           {post("a4", "h", 31*c), messages.Insufficient, "post at most"},
		"the same name for other":      {post("capture", "h", c), messages.Conflict, "other content"},
		"2^63, as it wraps":            {hold("a5", "ada", math.MinInt64), messages.Invalid, "negative"},
		"2^63 - 1":                     {hold("a6", "ada", math.MaxInt64), messages.TooLarge, "maximum for one transfer"},
		"a negative amount":            {hold("a7", "ada", -c), messages.Invalid, "negative"},
		"a negative capture":           {post("a8", "h", -c), messages.Invalid, "negative"},
		"no member":                    {by("bob", hold("a9", "lab", c)), messages.PermissionDenied, "not a member"},
		"a user's account by another":  {by("bob", hold("a10", "ada", c)), messages.PermissionDenied, "not a member"},
		"an auditor":                   {by("cyd", hold("a11", "lab", c)), messages.PermissionDenied, "auditor"},
		"above the member's limit":     {by("ada", hold("a12", "lab", 21*c)), messages.Insufficient, "limit"},
		"more than there is":           {hold("a13", "ada", 971*c), messages.Insufficient, "available"},
		"issuing":                      {money.Transfer{ID: "a14", Debit: money.IssuerAccount, Credit: "bob", Amount: c}, messages.PermissionDenied, "only the requests"},
		"the name of a grant":          {hold("$grant/ops/0", "ada", c), messages.Invalid, "only the bank uses"},
		"the name of a correction":     {hold("$correct/capture", "ada", c), messages.Invalid, "only the bank uses"},
		"a capture to oneself":         {money.Transfer{ID: "a15", Kind: money.Post, Pending: "h", Credit: "ada", Amount: c}, messages.Invalid, "void the hold"},
		"a hold that nobody made":      {post("a16", "nothing", c), messages.NotFound, "no hold"},
		"a capture of no hold at all":  {post("a17", "capture", c), messages.NotFound, "not a hold"},
		"an account that nobody opens": {hold("a18", "eve", c), messages.NotFound, "no account"},
	} {
		counted := b.turnedDown(messages.VerbTransfer, attack.kind)
		r := b.transfer(attack.transfer)[0]
		if r.Error == nil || r.Error.Kind != attack.kind || !strings.Contains(r.Error.Message, attack.says) {
			t.Errorf("%s: %v, want %v saying %q", name, r.Error, attack.kind, attack.says)
		}
		if now := b.turnedDown(messages.VerbTransfer, attack.kind); now != counted+1 {
			t.Errorf("%s: counted %v times", name, now-counted)
		}
	}
	after := must[money.AccountsReply](b, "ops", messages.VerbAccounts, money.AccountsRequest{})
	if fmt.Sprintf("%+v", before) != fmt.Sprintf("%+v", after) {
		t.Errorf("the accounts were\n%+v\nand are\n%+v", before, after)
	}
}

// TestAttacksByCallers sends requests under the names of callers who have no right to make these requests. The last
// token of a request's subject names the caller.
func TestAttacksByCallers(t *testing.T) {
	b := attacked(t)
	owner, none := money.RoleOwner, messages.Credits(0)
	before := must[money.AccountsReply](b, "ops", messages.VerbAccounts, money.AccountsRequest{})
	for name, attack := range map[string]struct {
		callers []messages.Name
		verb    string
		request any
	}{
		"charging a hold":               {[]messages.Name{"eve", "bob", "$estimator"}, messages.VerbTransfer, money.TransferRequest{Transfers: []money.Transfer{post("x", "h", c)}}},
		"granting":                      {[]messages.Name{"eve", "dan", "$auctioneer"}, messages.VerbGrant, money.GrantRequest{Key: "k", Account: "eve", Amount: c}},
		"withdrawing":                   {[]messages.Name{"eve", "dan", "$auctioneer"}, money.VerbWithdraw, money.WithdrawRequest{Key: "k", Account: "ada", Amount: c, Reason: "r"}},
		"correcting":                    {[]messages.Name{"eve", "dan", "$auctioneer"}, money.VerbCorrect, money.CorrectRequest{Transfer: "$grant/ops/1", Reason: "r"}},
		"making a project":              {[]messages.Name{"eve", "$auctioneer"}, money.VerbProject, money.ProjectRequest{Account: "new", Owners: []messages.Name{"eve"}}},
		"giving credit":                 {[]messages.Name{"eve", "dan", "$auctioneer"}, money.VerbCredit, money.CreditRequest{Account: "lab", Credit: c}},
		"paying from another's account": {[]messages.Name{"eve", "bob", "$auctioneer"}, money.VerbPay, money.PayRequest{Key: "k", From: "ada", To: "bob", Amount: c}},
		"paying from a project":         {[]messages.Name{"ada", "cyd", "eve"}, money.VerbPay, money.PayRequest{Key: "k", From: "lab", To: "bob", Amount: c}},
		"making oneself owner":          {[]messages.Name{"ada", "cyd", "eve", "$auctioneer"}, messages.VerbMember, money.MemberRequest{Account: "lab", Member: "ada", Role: &owner}},
		"taking one's limit away":       {[]messages.Name{"ada"}, messages.VerbMember, money.MemberRequest{Account: "lab", Member: "ada", Limit: &none}},
		"removing the last owner":       {[]messages.Name{"dan"}, messages.VerbMember, money.MemberRequest{Account: "lab", Member: "dan", Remove: true}},
		"freezing another's account":    {[]messages.Name{"ada", "cyd", "eve", "$auctioneer"}, money.VerbFreeze, money.FreezeRequest{Account: "lab", Frozen: true}},
		"recomputing the books":         {[]messages.Name{"ada", "$auctioneer"}, messages.VerbBooks, money.BooksRequest{Full: true}},
		"removing a replica":            {[]messages.Name{"eve", "dan", "$auctioneer"}, messages.VerbReplica, messages.ReplicaRequest{Remove: "1", Force: true}},
		"reading another's statement":   {[]messages.Name{"eve", "bob", "$estimator"}, messages.VerbStatement, money.StatementRequest{Account: "lab"}},
	} {
		for _, caller := range attack.callers {
			counted := b.turnedDown(attack.verb, messages.PermissionDenied)
			if err := b.ask(caller, attack.verb, attack.request); messages.KindOf(err) != messages.PermissionDenied {
				t.Errorf("%s by %s: %v", name, caller, err)
			}
			if now := b.turnedDown(attack.verb, messages.PermissionDenied); now != counted+1 {
				t.Errorf("%s by %s: counted %v times", name, caller, now-counted)
			}
		}
	}
	after := must[money.AccountsReply](b, "ops", messages.VerbAccounts, money.AccountsRequest{})
	if fmt.Sprintf("%+v", before) != fmt.Sprintf("%+v", after) {
		t.Errorf("the accounts were\n%+v\nand are\n%+v", before, after)
	}
}

// TestMillionTinyHolds checks that the pending holds of one account are limited, and that other accounts are not
// affected.
func TestMillionTinyHolds(t *testing.T) {
	b := attacked(t)
	batch := make([]money.Transfer, ledger.MaxBatch)
	made, refused := 1, 0 // one hold was made before
	for n := 0; n <= ledger.MaxHolds; n += len(batch) {
		for i := range batch {
			batch[i] = hold(fmt.Sprint("tiny", n+i), "ada", 1)
		}
		for _, r := range b.transfer(batch...) {
			switch {
			case r.Error == nil:
				made++
			case r.Error.Kind != messages.Exhausted || !strings.Contains(r.Error.Message, "pending holds"):
				t.Fatal(r.Error)
			default:
				refused++
			}
		}
	}
	if made != ledger.MaxHolds || refused != len(batch)+1 || b.turnedDown(messages.VerbTransfer, messages.Exhausted) != float64(refused) {
		t.Errorf("%d holds made, %d refused, %v counted", made, refused, b.turnedDown(messages.VerbTransfer, messages.Exhausted))
	}
	if r := b.transfer(hold("other", "bob", c), post("charge", "h", c), hold("again", "ada", 1)); r[0].Error != nil || r[1].Error != nil || r[2].Error != nil {
		t.Errorf("others, a charge, and a hold in its place: %+v", r)
	}
}

func TestHoldsOfAnotherService(t *testing.T) {
	b := attacked(t)
	extend := money.Transfer{ID: "x3", Kind: money.Extend, Pending: "o", Expires: 9000}
	void := money.Transfer{ID: "x2", Kind: money.Void, Pending: "o"}
	reply := must[money.TransferReply](b, "ops", messages.VerbTransfer, money.TransferRequest{Transfers: []money.Transfer{hold("o", "ada", c)}})
	if reply.Results[0].Error != nil {
		t.Fatal(reply.Results[0].Error)
	}
	for _, x := range []money.Transfer{post("x1", "o", c), void, extend} {
		if r := b.transfer(x)[0]; r.Error == nil || r.Error.Kind != messages.PermissionDenied || !strings.Contains(r.Error.Message, `"ops"`) {
			t.Errorf("%s: %+v", x.Kind, r)
		}
	}
	// An operator can free a hold that got stuck, whoever made it.
	stuck := money.Transfer{ID: "free", Kind: money.Void, Pending: "h"}
	reply = must[money.TransferReply](b, "ops", messages.VerbTransfer, money.TransferRequest{Transfers: []money.Transfer{stuck}})
	if r := reply.Results[0]; r.Error != nil || r.Amount != 30*c {
		t.Errorf("%+v", r)
	}
}

// TestPaymentOfManyLegs sends a chain of MaxLegs transfers over the bus. All of them must be carried out, or none.
func TestPaymentOfManyLegs(t *testing.T) {
	b := attacked(t)
	why := strings.Repeat("what others would have gained had this job not run; ", 5)
	chain := func(prefix string, last messages.Credits) []money.Transfer {
		legs := []money.Transfer{post(prefix+"charge", "h", 30*c)}
		for i := range money.MaxLegs - 2 {
			id := fmt.Sprintf("job/here/ada/%s/%s/externality/%d", strings.Repeat("K", 64), prefix, i)
			legs = append(legs, money.Transfer{ID: id, Debit: money.SiteAccount, Credit: "bob", Amount: 1, Job: 7, Reason: why})
		}
		legs = append(legs, money.Transfer{ID: prefix + "last", Debit: money.SiteAccount, Credit: "dan", Amount: last})
		for i := range legs[:len(legs)-1] {
			legs[i].Linked = true
		}
		return legs
	}
	balance := func(name messages.Name) messages.Credits {
		return must[money.AccountReply](b, "ops", messages.VerbAccount, money.AccountRequest{Account: name}).Balance
	}
	for _, r := range b.transfer(chain("too much ", 31*c)...) {
		if r.Error == nil || r.Error.Kind != messages.Insufficient {
			t.Fatalf("%+v", r)
		}
	}
	if balance("ada") != 1000*c || balance(money.SiteAccount) != 0 {
		t.Fatal("a part of a refused payment was done")
	}
	for _, r := range b.transfer(chain("", 30*c-(money.MaxLegs-2))...) {
		if r.Error != nil {
			t.Fatal(r.Error)
		}
	}
	if balance("ada") != 970*c || balance(money.SiteAccount) != 0 || balance("bob") != 1000*c+money.MaxLegs-2 {
		t.Fatalf("ada has %v, bob %v, the site %v", balance("ada"), balance("bob"), balance(money.SiteAccount))
	}
}
