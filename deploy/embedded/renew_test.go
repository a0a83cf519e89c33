package embedded

import (
	"os"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"

	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// Expired credentials must be refused, old credentials without an expiry must work, and nobody may renew another user's
// credentials.
func TestCredentialsEndAndAreRenewed(t *testing.T) {
	t.Parallel()
	c := small(t.TempDir())
	c.Replicas, c.CredentialsFor = 1, messages.Duration(time.Hour)
	s := start(t, c)
	defer closeSite(t, s)
	held, err := bus.ReadPrincipal(s.CredsFile("alice"))
	if err != nil {
		t.Fatal(err)
	}
	issued, expires, err := identity.Validity(held.Token)
	if err != nil || expires.Sub(issued).Round(time.Minute) != time.Hour {
		t.Errorf("from %v to %v, %v", issued, expires, err)
	}
	renew := func(name messages.Name) (messages.RenewReply, error) {
		u := connect(t, s, name)
		return bus.Call[messages.RenewReply](within(t), u.bus, messages.Subject(u.site, messages.Admission, messages.VerbRenew, name), messages.RenewRequest{Claim: held.Token})
	}
	admitted := func(token string) error {
		b, err := bus.Connect(bus.Config{URL: s.URL(), Name: "alice", JWT: token, Seed: held.Seed})
		if err == nil {
			_ = b.Close()
		}
		return err
	}
	reply, err := renew("alice")
	if err != nil || admitted(reply.Claim) != nil {
		t.Errorf("renewed: %v, %v", err, admitted(reply.Claim))
	}
	if _, err := renew("bob"); messages.KindOf(err) != messages.PermissionDenied {
		t.Errorf("another's: %v", err)
	}
	claims, err := jwt.DecodeUserClaims(held.Token)
	if err != nil {
		t.Fatal(err)
	}
	before, err := s.authority.Enrol(identity.User, "alice", claims.Subject)
	if err != nil || admitted(before) != nil {
		t.Errorf("credentials without an end: %v, %v", err, admitted(before))
	}
	s.authority.SetLife(-time.Minute)
	ended, err := s.authority.Credentials(identity.User, "alice")
	if err != nil || messages.KindOf(admitted(ended.Token)) != messages.PermissionDenied {
		t.Errorf("ended: %v, %v", err, admitted(ended.Token))
	}
	old, err := jwt.FormatUserConfig(ended.Token, []byte(held.Seed))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.CredsFile("alice"), old, 0o600); err != nil {
		t.Fatal(err)
	}
	s.authority.SetLife(0)
	if err := writeCredentials(&s.config, s.authority); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(s.CredsFile("alice"))
	if err != nil || !identity.Lasting(text, time.Now()) || connect(t, s, "alice").account().Balance == 0 {
		t.Errorf("replaced in the state directory: %v", err)
	}
}
