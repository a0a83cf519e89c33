package serve

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/auctioneer/notify"
	"github.com/candor-grid/candor/deploy/embedded"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/money"
)

// When the command returns, the server must refuse the revoked credentials, and must have cut the user's connections.
// Other users stay connected.
func TestRevokedWhenItReturns(t *testing.T) {
	c := embedded.Default()
	c.State, c.Listen, c.Replicas = filepath.Join(t.TempDir(), "site"), "127.0.0.1:0", 1
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, err := embedded.Start(ctx, c, embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	stolen := filepath.Join(t.TempDir(), "alice.creds")
	creds, err := os.ReadFile(s.CredsFile("alice"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(stolen, creds, 0o600); err != nil {
		t.Fatal(err)
	}
	connect := func(file string, name messages.Name) (bus.Bus, error) {
		return bus.Connect(bus.Config{URL: s.URL(), Name: name, CredsFile: file})
	}
	thief, err := connect(stolen, "alice")
	if err != nil {
		t.Fatal(err)
	}
	defer thief.Close()
	bob, err := connect(s.CredsFile("bob"), "bob")
	if err != nil {
		t.Fatal(err)
	}
	defer bob.Close()
	balance := func(b bus.Bus, name messages.Name) error {
		_, err := bus.Call[money.AccountReply](ctx, b, messages.Subject(c.Site, messages.Bank, messages.VerbAccount, name), money.AccountRequest{})
		return err
	}
	if err := balance(thief, "alice"); err != nil {
		t.Fatal(err)
	}
	if out := must(t, "user", "revoke", "alice", "--state", c.State); out != "The credentials of user alice are revoked (the running site makes new ones, because alice is one of the accounts in its configuration)\n" {
		t.Errorf("it says %q", out)
	}
	short, stop := context.WithTimeout(ctx, time.Second)
	defer stop()
	if _, err := thief.Request(short, messages.Subject(c.Site, messages.Bank, messages.VerbAccount, "alice"), []byte("{}")); err == nil {
		t.Error("a connection from before is answered")
	}
	if b, err := connect(stolen, "alice"); messages.KindOf(err) != messages.PermissionDenied {
		t.Errorf("connecting with what was revoked: %v", err)
		_ = b.Close()
	}
	if err := balance(bob, "bob"); err != nil {
		t.Errorf("bob: %v", err)
	}
	out := must(t, "user", "list", "--state", c.State)
	if !regexp.MustCompile(`(?m)^alice +user .* 1$`).MatchString(out) || !regexp.MustCompile(`(?m)^bob +user +good +\S+ \S+ +\S+ \S+$`).MatchString(out) {
		t.Errorf("candor user list prints\n%s", out)
	}
}

// Only a user who can read the site's secret can print the secrets of accounts. The secrets must all differ.
func TestSecretsOfAccounts(t *testing.T) {
	dir := t.TempDir()
	secret, config := filepath.Join(dir, "secret"), filepath.Join(dir, "site.yaml")
	for file, text := range map[string]string{secret: "s3cret\n", config: "notify:\n  hosts: [hooks.example.org]\n  secret_file: " + secret + "\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ada, bob := must(t, "user", "secret", "ada", "--config", config), must(t, "user", "secret", "bob", "--config", config)
	if ada == bob || ada != string(notify.Secret("s3cret").Of("ada"))+"\n" {
		t.Errorf("the secrets are %s and %s", ada, bob)
	}
	refused(t, messages.Invalid, "is not the name of an account", "user", "secret", "Ada", "--config", config)
	refused(t, messages.NotFound, "no notify.secret_file", "user", "secret", "ada", "--state", dir)
	if err := os.Chmod(secret, 0o644); err != nil {
		t.Fatal(err)
	}
	refused(t, messages.PermissionDenied, "others can read", "user", "secret", "ada", "--config", config)
}

// An unknown name that resembles a known one is usually misspelt. It is revoked only with --force. Other unknown names
// may have credentials from another state directory or from a door. They are revoked with a remark.
func TestAMisspeltNameIsNotRevoked(t *testing.T) {
	state := t.TempDir()
	must(t, "site", "init", "--state", state)
	must(t, "user", "add", "dave", "--state", state)
	refused(t, messages.NotFound, `did you mean "dave"?`, "user", "revoke", "dav", "--state", state)
	must(t, "user", "revoke", "dav", "--force", "--state", state)
	must(t, "user", "add", "login1", "--door", "--state", state, "--keys", filepath.Join(state, "keys"))
	refused(t, messages.NotFound, `credentials of door login2; did you mean "login1"?`, "user", "revoke", "login2", "--door", "--state", state)
	if out := must(t, "user", "revoke", "login1", "--door", "--state", t.TempDir(), "--keys", filepath.Join(state, "keys")); !strings.Contains(out,
		"The credentials of door login1 are revoked (this state directory has no credentials of that name: check the spelling)") {
		t.Errorf("a name with credentials in another directory: %s", out)
	}
	out := must(t, "user", "list", "--json", "--state", state)
	var list struct{ Users []holder }
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatal(err)
	}
	for name, revoked := range map[string]int{"dav": 1, "dave": 0} {
		if i := slices.IndexFunc(list.Users, func(h holder) bool { return h.Name == name && h.Revoked == revoked }); i < 0 {
			t.Errorf("%s is not in %s", name, out)
		}
	}
}
