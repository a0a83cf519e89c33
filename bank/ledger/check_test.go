package ledger

import (
	"math"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

// TestCheck has a row for each rule that a single transfer can break.
func TestCheck(t *testing.T) {
	long := strings.Repeat("x", 600)
	for name, tc := range map[string]struct {
		transfer money.Transfer
		change   func(*money.Transfer)
		want     messages.Kind
		says     string
	}{
		"no id":              {held("", "ada", 1), nil, messages.Invalid, "id is empty"},
		"long id":            {held(long, "ada", 1), nil, messages.Invalid, "at most 256 bytes"},
		"id of two lines":    {held("a\nb", "ada", 1), nil, messages.Invalid, "printable"},
		"id not UTF-8":       {held("a\xff", "ada", 1), nil, messages.Invalid, "printable"},
		"id of a grant":      {held("$grant/ops/1", "ada", 1), nil, messages.Invalid, "only the bank uses"},
		"id of a return":     {held("$return/1", "ada", 1), nil, messages.Invalid, "only the bank uses"},
		"negative timeout":   {held("a", "ada", 1), func(x *money.Transfer) { x.Timeout = -1 }, messages.Invalid, "timeout is negative"},
		"timeout of nothing": {held("a", "ada", 1), func(x *money.Transfer) { x.Timeout = 999 }, messages.Invalid, "microsecond"},
		"two expiries":       {held("a", "ada", 1), func(x *money.Transfer) { x.Timeout, x.Expires = 1000, 1 }, messages.Invalid, "both"},
		"post with timeout":  {post("a", "h", 1), func(x *money.Transfer) { x.Timeout = 1000 }, messages.Invalid, "timeout"},
		"long reason":        {held("a", "ada", 1), func(x *money.Transfer) { x.Reason = long }, messages.Invalid, "reason"},
		"control in reason":  {held("a", "ada", 1), func(x *money.Transfer) { x.Reason = "caf\u00e9\u0085" }, messages.Invalid, "reason"},
		"long name":          {held("a", long, 1), nil, messages.Invalid, "names of accounts"},
		"long pending":       {void("a", long), nil, messages.Invalid, "pending"},
		"unknown kind":       {held("a", "ada", 1), func(x *money.Transfer) { x.Kind = 9 }, messages.Invalid, "kind is unknown"},
		"zero hold":          {held("a", "ada", 0), nil, messages.Invalid, "amount is 0"},
		"negative hold":      {held("a", "ada", -1), nil, messages.Invalid, "negative"},
		"2^63":               {held("a", "ada", math.MinInt64), nil, messages.Invalid, "negative"},
		"enormous":           {held("a", "ada", math.MaxInt64), nil, messages.TooLarge, "maximum for one transfer"},
		"just too much":      {post("a", "h", messages.MaxCredits+1), nil, messages.TooLarge, "maximum for one transfer"},
		"negative post":      {post("a", "h", -1), nil, messages.Invalid, "negative"},
		"negative expiry":    {extend("a", "h", -1), nil, messages.Invalid, "expires is negative"},
		"hold with pending":  {held("a", "ada", 1), func(x *money.Transfer) { x.Pending = "h" }, messages.Invalid, "pending"},
		"hold of nobody":     {held("a", "", 1), nil, messages.Invalid, "debit is empty"},
		"hold of no member":  {held("a", "ada", 1), func(x *money.Transfer) { x.Member = "" }, messages.Invalid, "member is empty"},
		"hold for itself":    {held("a", "ada", 1), func(x *money.Transfer) { x.Credit = "ada" }, messages.Invalid, "same account"},
		"posted to nobody":   {posted("a", "ada", "", 1), nil, messages.Invalid, "credit is empty"},
		"posted to itself":   {posted("a", "ada", "ada", 1), nil, messages.Invalid, "same account"},
		"posted by a member": {posted("a", "ada", "bob", 1), func(x *money.Transfer) { x.Member = "ada" }, messages.Invalid, "only for holds"},
		"posted that ends":   {posted("a", "ada", "bob", 1), func(x *money.Transfer) { x.Expires = 9 }, messages.Invalid, "only for holds"},
		"post of no hold":    {post("a", "", 1), nil, messages.Invalid, "pending is empty"},
		"post by a member":   {post("a", "h", 1), func(x *money.Transfer) { x.Member = "ada" }, messages.Invalid, "only for holds"},
		"post that ends":     {post("a", "h", 1), func(x *money.Transfer) { x.Expires = 9 }, messages.Invalid, "expires"},
		"void to somebody":   {void("a", "h"), func(x *money.Transfer) { x.Credit = "bob" }, messages.Invalid, "credit"},
		"issue":              {posted("a", money.IssuerAccount, "ada", 1), nil, messages.PermissionDenied, "grant"},
		"hold of the issuer": {held("a", money.IssuerAccount, 1), nil, messages.PermissionDenied, "grant"},
		"post to the issuer": {post("a", "h", 1), func(x *money.Transfer) { x.Credit = money.IssuerAccount }, messages.PermissionDenied, "grant"},
	} {
		if tc.change != nil {
			tc.change(&tc.transfer)
		}
		err := Check(&tc.transfer)
		if err == nil || err.Kind != tc.want || !strings.Contains(err.Message, tc.says) {
			t.Errorf("%s: %v, want %v saying %q", name, err, tc.want, tc.says)
		}
		if err != nil && len(err.Message) > 512 {
			t.Errorf("%s: a message of %d bytes", name, len(err.Message))
		}
	}
}

func TestCheckAdmits(t *testing.T) {
	for _, x := range []money.Transfer{
		held("a", "ada", messages.MaxCredits),
		held(strings.Repeat("é", 128), "ada", 1),
		posted("a", money.SiteAccount, "ada", 1),
		post("a", "h", 0),
		void("a", "h"),
		extend("a", "h", 0),
		extend("a", "h", math.MaxInt64),
	} {
		if err := Check(&x); err != nil {
			t.Errorf("%+v: %v", x, err)
		}
	}
}

func TestCheckGrant(t *testing.T) {
	good := money.GrantRequest{Key: "k", Account: "ada", Amount: 1}
	if err := checkGrant(&good); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*money.GrantRequest){
		"no key":       func(g *money.GrantRequest) { g.Key = "" },
		"long key":     func(g *money.GrantRequest) { g.Key = strings.Repeat("k", 200) },
		"bank's own":   func(g *money.GrantRequest) { g.Account = money.SiteAccount },
		"no account":   func(g *money.GrantRequest) { g.Account = "" },
		"a space":      func(g *money.GrantRequest) { g.Account = "A da" },
		"zero":         func(g *money.GrantRequest) { g.Amount = 0 },
		"negative":     func(g *money.GrantRequest) { g.Amount = -1 },
		"enormous":     func(g *money.GrantRequest) { g.Amount = messages.MaxCredits + 1 },
		"reason lines": func(g *money.GrantRequest) { g.Reason = "a\nb" },
	} {
		g := good
		change(&g)
		if err := checkGrant(&g); err == nil {
			t.Errorf("%s: admitted", name)
		}
	}
}
