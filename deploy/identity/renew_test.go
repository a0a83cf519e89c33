package identity

import (
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
)

func opened(t *testing.T) *Authority {
	a, _ := create(t)
	return a
}

func claimOf(t *testing.T, a *Authority, role Role, n messages.Name) string {
	t.Helper()
	c, err := a.Credentials(role, n)
	if err != nil {
		t.Fatal(err)
	}
	return c.Token
}

// Only credentials of users and operators may expire.
func TestCredentialsOfUsersEnd(t *testing.T) {
	a := opened(t)
	for role, c := range map[Role]struct {
		name messages.Name
		life time.Duration
	}{User: {"alice", DefaultLife}, Operator: {"ops", DefaultLife}, Node: {"n1", 0}, Service: {"$bank", 0}, Peer: {"$east", 0}} {
		issued, expires, err := Validity(claimOf(t, a, role, c.name))
		if err != nil || expires.IsZero() != (c.life == 0) || c.life != 0 && expires.Sub(issued).Round(time.Minute) != c.life {
			t.Errorf("%s: from %v to %v, %v", role, issued, expires, err)
		}
	}
}

// Valid credentials may be replaced by later ones for the same key and role, and by nothing else.
func TestRenewal(t *testing.T) {
	a := opened(t)
	for role, n := range map[Role]messages.Name{User: "alice", Operator: "ops"} {
		a.SetLife(time.Hour)
		old := claimOf(t, a, role, n)
		a.SetLife(2 * time.Hour)
		renewed, err := a.Renew(n, old)
		if err != nil {
			t.Fatal(err)
		}
		was, err := jwt.DecodeUserClaims(old)
		if err != nil {
			t.Fatal(err)
		}
		is, err := jwt.DecodeUserClaims(renewed)
		if err != nil || is.Subject != was.Subject || is.Issuer != was.Issuer || is.Name != n || is.Expires < was.Expires+3599 {
			t.Errorf("%s: renewed as %+v, from %+v of %s, %v", role, is, was, n, err)
		}
	}
	refused := func(what string, n messages.Name, claim string) {
		t.Helper()
		if renewed, err := a.Renew(n, claim); messages.KindOf(err) != messages.PermissionDenied || renewed != "" {
			t.Errorf("%s: %v", what, err)
		}
	}
	alice := claimOf(t, a, User, "alice")
	refused("another's", "bob", alice)
	refused("a node's", "n1", claimOf(t, a, Node, "n1"))
	refused("another site's", "alice", claimOf(t, opened(t), User, "alice"))
	a.SetLife(-time.Second)
	refused("expired", "alice", claimOf(t, a, User, "alice"))
	a.SetLife(0)
	if err := a.Revoke(User, "alice"); err != nil {
		t.Fatal(err)
	}
	refused("revoked", "alice", alice)
	ops := claimOf(t, a, User, "carol")
	if _, err := a.Rotate("user-role"); err != nil {
		t.Fatal(err)
	}
	refused("of a key that was rotated, which no revocation would find", "carol", ops)
	if _, err := a.Renew("alice", "no claim"); messages.KindOf(err) != messages.Invalid {
		t.Errorf("no claim: %v", err)
	}
}

func TestLastThird(t *testing.T) {
	issued := time.Unix(1_000_000, 0)
	expires := issued.Add(90 * time.Hour)
	for after, due := range map[time.Duration]bool{0: false, 59 * time.Hour: false, 61 * time.Hour: true, 91 * time.Hour: true} {
		if Due(issued, expires, issued.Add(after)) != due {
			t.Errorf("after %v: due is %v", after, !due)
		}
	}
	if Due(issued, time.Time{}, expires) {
		t.Error("credentials without an end are due")
	}
}

// Credentials may be renewed again and again, but only until four times their validity has passed since the first
// issue. So each renewal must know the time of the first issue.
func TestRenewalsEnd(t *testing.T) {
	a := opened(t)
	a.SetLife(time.Hour)
	claims, err := jwt.DecodeUserClaims(claimOf(t, a, User, "alice"))
	if err != nil {
		t.Fatal(err)
	}
	k := a.held.Load()
	for age, good := range map[time.Duration]bool{3 * time.Hour: true, 5 * time.Hour: false} {
		began := time.Now().Add(-age)
		claim, err := k.claim(User, "alice", claims.Subject, time.Now().Add(time.Minute), since+strconv.FormatInt(began.Unix(), 10))
		if err != nil {
			t.Fatal(err)
		}
		renewed, err := a.Renew("alice", claim)
		if good != (err == nil) || !good && messages.KindOf(err) != messages.PermissionDenied {
			t.Errorf("after %v: %v", age, err)
		}
		if !good {
			continue
		}
		if again, err := jwt.DecodeUserClaims(renewed); err != nil || first(again).Unix() != began.Unix() {
			t.Errorf("the renewal says that it began at %v: %v", first(again), err)
		}
	}
}

// Credentials that a door lends to a user must end within an hour and be for the user's own key, and nobody may renew
// them.
func TestWhatADoorLendsIsNotRenewed(t *testing.T) {
	a := opened(t)
	c, expires, err := a.Lend(User, "alice", "login1")
	if err != nil {
		t.Fatal(err)
	}
	own, err := a.Credentials(User, "alice")
	if err != nil || own.Seed != c.Seed {
		t.Errorf("the key is not alice's: %v", err)
	}
	if _, until, err := Validity(c.Token); err != nil || !until.Equal(expires) || time.Until(until) > LendFor {
		t.Errorf("valid until %v, and %v was said: %v", until, expires, err)
	}
	if _, err := a.Renew("alice", c.Token); messages.KindOf(err) != messages.PermissionDenied {
		t.Errorf("renewed: %v", err)
	}
	for role, name := range map[Role]messages.Name{User: "$bank", Service: "$bank", Operator: "../x", Node: "node1", Door: "$door-login1"} {
		if _, _, err := a.Lend(role, name, "login1"); err == nil {
			t.Errorf("the credentials of %s %s are lent", role, name)
		}
	}
	if _, _, err := a.Lend(User, clearing.PeerAccountPrefix+"east", "console"); err == nil {
		t.Error("the credentials of another site's account are lent")
	}
}
