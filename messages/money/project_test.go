package money

import (
	"testing"

	"github.com/candor-grid/candor/messages"
)

func TestAffords(t *testing.T) {
	lab := AccountReply{Account: "lab", Available: 10, Credit: 5, Roles: []Membership{
		{Member: "ada", Limit: 8, Spent: 2, Held: 1}, {Member: "bob"}, {Member: "cyd", Role: RoleAuditor}, {Member: "dan", Role: RoleOwner},
	}}
	frozen := lab
	frozen.Frozen = "ops"
	for _, tc := range []struct {
		account AccountReply
		member  messages.Name
		amount  messages.Credits
		want    messages.Kind
		refused bool
	}{
		{lab, "lab", 15, 0, false},
		{lab, "lab", 16, messages.Insufficient, true},
		{lab, "bob", 15, 0, false},
		{lab, "dan", 15, 0, false},
		{lab, "ada", 5, 0, false},
		{lab, "ada", 6, messages.Insufficient, true},
		{lab, "cyd", 1, messages.PermissionDenied, true},
		{lab, "eve", 1, messages.PermissionDenied, true},
		{frozen, "bob", 1, messages.PermissionDenied, true},
	} {
		err := tc.account.Affords(tc.member, tc.amount)
		if (err != nil) != tc.refused || err != nil && messages.KindOf(err) != tc.want {
			t.Errorf("%s, %v: %v, want %v", tc.member, tc.amount, err, tc.want)
		}
	}
}

func TestRolesHaveNames(t *testing.T) {
	for r := RoleMember; r <= RoleSelf; r++ {
		text, err := r.MarshalText()
		var back Role
		if err != nil || back.UnmarshalText(text) != nil || back != r {
			t.Errorf("%d is written %q and read as %d", r, text, back)
		}
	}
	var r Role
	if err := r.UnmarshalText([]byte("king")); messages.KindOf(err) != messages.Invalid || Role(9).String() != "unknown" {
		t.Errorf("%v, %v", err, Role(9))
	}
}
