package identity_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/candor-grid/candor/bank/history"
	. "github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/deploy/identity/natsserver"
	"github.com/candor-grid/candor/deploy/identity/natstest"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/money"
)

type line struct {
	*nats.Conn
	creds []byte
	cut   chan struct{}
}

// line connects to the site with new credentials. If the connection ends, it is not made again.
func (s site) line(role Role, n messages.Name) *line {
	s.Helper()
	creds, err := s.Issue(role, n)
	if err != nil {
		s.Fatal(err)
	}
	l := &line{creds: creds, cut: make(chan struct{})}
	l.Conn, err = nats.Connect(s.url, nats.UserCredentialBytes(creds), nats.NoReconnect(), nats.ClosedHandler(func(*nats.Conn) { close(l.cut) }))
	if err != nil {
		s.Fatalf("%s %s cannot connect: %v", role, n, err)
	}
	s.Cleanup(l.Close)
	return l
}

func (s site) admits(creds []byte) bool {
	s.Helper()
	nc, err := nats.Connect(s.url, nats.UserCredentialBytes(creds))
	if err == nil {
		nc.Close()
	} else if !errors.Is(err, nats.ErrAuthorization) && !errors.Is(err, nats.ErrAuthRevoked) {
		s.Fatalf("refused for another reason: %v", err)
	}
	return err == nil
}

func (s site) refresh() {
	s.Helper()
	if err := natsserver.Refresh(s.server, s.options, s.Authority); err != nil {
		s.Fatal(err)
	}
}

func (s site) awaitCut(l *line, what string) {
	s.Helper()
	select {
	case <-l.cut:
	case <-time.After(patience):
		s.Errorf("the connection of %s is still open", what)
	}
}

// alive checks that a connection is open. It sends a ping to the server and waits for the answer.
func (s site) alive(l *line, what string) {
	s.Helper()
	if err := l.FlushTimeout(patience); err != nil {
		s.Errorf("the connection of %s: %v", what, err)
	}
}

// TestRotationOfARoleHasAnOverlap rotates the key of a role. A running server must accept credentials of both keys
// until the end of the rotation, and then only of the new key. Other roles must not notice it.
func TestRotationOfARoleHasAnOverlap(t *testing.T) {
	s := newSite(t)
	alice, node := s.line(User, "alice"), s.line(Node, "node1")
	if _, err := s.Rotate("user-role"); err != nil {
		t.Fatal(err)
	}
	s.refresh()
	s.alive(alice, "alice")
	if !s.admits(alice.creds) {
		t.Error("old credentials are refused during the overlap")
	}
	if _, _, err := s.Issued(alice.creds); messages.KindOf(err) != messages.PermissionDenied {
		t.Errorf("old credentials need not be issued anew: %v", err)
	}
	fresh := s.line(User, "alice")
	if _, err := s.Rotate("user-role"); messages.KindOf(err) != messages.Conflict {
		t.Errorf("a second rotation before the end of the first: %v", err)
	}
	if err := s.Finish("user-role"); err != nil {
		t.Fatal(err)
	}
	s.refresh()
	s.awaitCut(alice, "alice, of the old key")
	s.alive(fresh, "alice, of the new key")
	s.alive(node, "a node")
	if s.admits(alice.creds) || !s.admits(fresh.creds) {
		t.Error("after the end the old credentials are admitted, or the new ones refused")
	}
}

// A role with a derived key must have a key file after its rotation.
func TestRotationOfADerivedRole(t *testing.T) {
	s := newSite(t)
	old := s.line(Peer, "$east")
	for _, step := range []func() error{
		func() error { _, err := s.Rotate("peer-role"); return err },
		func() error { return s.Finish("peer-role") },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
		s.refresh()
	}
	s.awaitCut(old, "a peer, of the old key")
	s.alive(s.line(Peer, "$east"), "a peer, of the new key")
}

// When a name is revoked, all its connections must be closed at once, under every key. Other names must stay connected.
// Credentials that are issued afterwards must be valid.
func TestRevokedNameIsCutOff(t *testing.T) {
	s := newSite(t)
	alice, bob := s.line(User, "alice"), s.line(User, "bob")
	other, err := Open(s.dir) // the keys as another host of the site has them
	if err != nil {
		t.Fatal(err)
	}
	elsewhere, err := other.Issue(User, "alice")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Revoke(User, "alice"); err != nil {
		t.Fatal(err)
	}
	s.refresh()
	s.awaitCut(alice, "alice")
	s.alive(bob, "bob")
	if s.admits(alice.creds) || s.admits(elsewhere) {
		t.Error("revoked credentials are admitted")
	}
	if _, _, err := s.Issued(alice.creds); messages.KindOf(err) != messages.PermissionDenied {
		t.Errorf("revoked credentials count as issued: %v", err)
	}
	again := s.line(User, "alice")
	for range 2 { // the second revocation shows that no old key becomes valid again
		if err := s.Revoke(User, "alice"); err != nil {
			t.Fatal(err)
		}
	}
	s.refresh()
	s.awaitCut(again, "alice, issued again")
	if s.admits(alice.creds) || !s.admits(bob.creds) {
		t.Error("the first revocation is gone, or bob is revoked")
	}
	s.alive(s.line(User, "alice"), "alice, issued a third time")
}

// RevokeKey must refuse a name, and accept a key. A server must no longer admit the revoked key.
func TestRevokedKey(t *testing.T) {
	s := newSite(t)
	alice := s.line(User, "alice")
	key, err := KeyOf(alice.creds)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.RevokeKey("alice"); messages.KindOf(err) != messages.Invalid {
		t.Errorf("a name for a key: %v", err)
	}
	if err := s.RevokeKey(key); err != nil {
		t.Fatal(err)
	}
	s.refresh()
	s.awaitCut(alice, "alice")
	if s.admits(alice.creds) {
		t.Error("a revoked key is admitted")
	}
}

// When the operator's key is rotated, a running server must continue and accept later changes. A new server must trust
// the new key. The rotation may end when all servers have restarted.
func TestRotationOfTheOperator(t *testing.T) {
	s := newSite(t)
	alice := s.line(User, "alice")
	if _, err := s.Rotate(OperatorKey); err != nil {
		t.Fatal(err)
	}
	if err := s.Revoke(User, "bob"); err != nil {
		t.Fatal(err)
	}
	s.refresh()
	s.alive(alice, "alice")
	o := &server.Options{Host: "127.0.0.1", Port: -1, NoSigs: true, NoLog: true}
	if err := natsserver.Secure(o, s.Authority); err != nil {
		t.Fatal(err)
	}
	if o.TrustedOperators[0].Subject == s.options.TrustedOperators[0].Subject {
		t.Error("a server that is started trusts the old operator")
	}
	if err := s.Finish(OperatorKey); err != nil {
		t.Fatal(err)
	}
	if err := natsserver.Refresh(s.server, s.options, s.Authority); messages.KindOf(err) != messages.Conflict {
		t.Errorf("a server of the old operator after the end: %v", err)
	}
	s.alive(alice, "alice")
}

// The bank's old key must sign until the end of a rotation. Somebody who has only the account's key must be able to
// tell signatures of the new key from signatures of a stranger.
func TestRotationOfTheBanksKey(t *testing.T) {
	a, _ := Made(t)
	account, err := a.PublicKey()
	if err != nil || account != a.AccountKey() {
		t.Fatalf("before, the account's key signs: %s %v", account, err)
	}
	next, err := a.Rotate(BankKey)
	if err != nil {
		t.Fatal(err)
	}
	if now, _ := a.PublicKey(); now != account || a.NextKey() != next {
		t.Errorf("during the overlap %s signs, and %s is to come; want %s and %s", now, a.NextKey(), account, next)
	}
	if err := a.Finish(BankKey); err != nil {
		t.Fatal(err)
	}
	checkpoint := money.Checkpoint{Site: "west", Records: 7, Head: strings.Repeat("0", 64)}
	signed, err := history.Sign(a, checkpoint)
	if err != nil || signed.Key != next {
		t.Fatalf("signed by %s, want %s: %v", signed.Key, next, err)
	}
	stranger, _ := Made(t)
	forged, err := history.Sign(stranger, checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	if !history.Trusted(&signed, account) || history.Trusted(&forged, account) {
		t.Error("the new key is not trusted, or a stranger's is")
	}
	forged.Endorsement = signed.Endorsement
	if history.Trusted(&forged, account) {
		t.Error("the endorsement of one key is good for another")
	}
}

// The site's account gets a new key. The account keeps its name, so credentials signed with the old key must stay
// valid. Somebody has stolen a key of the account. The site must not admit this person before the rotation, nor after
// it. After the rotation, the site must not accept what the old key endorses.
func TestRotationOfTheAccountsKey(t *testing.T) {
	s := newSite(t)
	name, stolen := s.AccountKey(), natstest.Seed(t, s.dir, "account.nk")
	forged := natstest.Forge(t, stolen, "mallory")
	if s.admits(forged) {
		t.Error("the key of the account signs credentials")
	}
	if _, err := s.Rotate(AccountKey); messages.KindOf(err) != messages.Conflict {
		t.Errorf("the bank's key, which peers know, would be lost: %v", err)
	}
	for _, key := range []string{BankKey, AccountKey, AccountKey} {
		if _, err := s.Rotate(key); err != nil {
			t.Fatal(err)
		}
		if err := s.Finish(key); err != nil {
			t.Fatal(err)
		}
		s.refresh()
	}
	alice := s.line(User, "alice")
	s.alive(alice, "alice")
	if s.AccountKey() != name || s.admits(forged) {
		t.Errorf("the account is %s, and was %s", s.AccountKey(), name)
	}
	signed, err := history.Sign(s, money.Checkpoint{Site: "west", Records: 7, Head: strings.Repeat("0", 64)})
	if err != nil || !history.Trusted(&signed, name) || len(signed.Succession) != 2 {
		t.Errorf("a checkpoint of today: %+v, %v", signed, err)
	}
	signed.Succession = signed.Succession[:1]
	if history.Trusted(&signed, name) {
		t.Error("an endorsement is good for a succession that ends elsewhere")
	}
	files, err := filepath.Glob(filepath.Join(s.dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if text, err := os.ReadFile(file); err != nil || strings.Contains(string(text), string(stolen)) {
			t.Errorf("%s has the old key: %v", file, err)
		}
	}
}

func TestRotateRefuses(t *testing.T) {
	a, dir := Made(t)
	for _, name := range []string{"system", "root", "role", ""} {
		if _, err := a.Rotate(name); messages.KindOf(err) != messages.Invalid {
			t.Errorf("rotating %q: %v, want Invalid", name, err)
		}
	}
	for _, name := range Rotatable() {
		if err := a.Finish(name); messages.KindOf(err) != messages.NotFound {
			t.Errorf("ending a rotation of %s that there is not: %v", name, err)
		}
	}
	if err := a.Revoke(User, "Alice"); messages.KindOf(err) != messages.Invalid {
		t.Errorf("revoking what is no name: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "revoked.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := a.Revoke(User, "alice"); err == nil {
		t.Error("revocations that cannot be read are replaced")
	}
	if err := a.Reload(); err == nil {
		t.Error("revocations that cannot be read are taken for none")
	}
}

// Changed must report a change by another process, also right after the keys were read.
func TestChangesShow(t *testing.T) {
	a, dir := Made(t)
	other, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	changed := func() bool {
		t.Helper()
		c, err := a.Changed()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if changed() {
		t.Error("there is a change before any")
	}
	if err := other.Revoke(User, "alice"); err != nil {
		t.Fatal(err)
	}
	if !changed() {
		t.Error("a revocation does not show")
	}
	if err := a.Reload(); err != nil || changed() {
		t.Errorf("after reading it, it still shows: %v", err)
	}
}

// A user must not send messages larger than any request, or fill the servers with subscriptions. A service may do both.
func TestUsersConnectionsAreBounded(t *testing.T) {
	s := newSite(t)
	big := make([]byte, UserPayload+1)
	mallory := s.line(User, "mallory")
	s.alive(mallory, "a user") // after this answer, the server has sent its limits
	if err := mallory.Publish(messages.Subject("west", messages.Auctioneer, messages.VerbSubmit, "mallory"), big); !errors.Is(err, nats.ErrMaxPayload) {
		t.Errorf("a message that is too large: %v", err)
	}
	bank := s.line(Service, "$bank")
	if err := bank.Publish(messages.VectorSubject("west", "main"), big); err != nil {
		t.Fatal(err)
	}
	s.alive(bank, "a service that sends as much")
	eve := s.connect(User, "eve")
	refused := make(chan error, 1)
	eve.SetErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		select {
		case refused <- err:
		default:
		}
	})
	const subscriptions, copies = 100, 8
	var heard atomic.Int64
	for range subscriptions {
		if _, err := eve.Subscribe(messages.InboxPrefix("eve")+".>", func(*nats.Msg) { heard.Add(1) }); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case err := <-refused:
		if !errors.Is(err, nats.ErrMaxSubscriptionsExceeded) && !strings.Contains(err.Error(), "maximum subscriptions exceeded") {
			t.Errorf("refused with %v", err)
		}
	case <-time.After(patience):
		t.Errorf("%d subscriptions are not refused", subscriptions)
	}
	// This message keeps the server busy with eve's subscriptions; meanwhile, other users' replies wait.
	if err := bank.Publish(messages.InboxPrefix("eve")+".x", nil); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "a reply arrives", func() bool { return heard.Load() > 0 })
	if err := eve.FlushTimeout(patience); err != nil {
		t.Fatal(err)
	}
	if n := heard.Load(); n > copies {
		t.Errorf("a reply was delivered %d times", n)
	}
}
