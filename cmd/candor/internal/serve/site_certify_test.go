package serve

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/deploy/embedded"
	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/deploy/identity/certificate"
	"github.com/candor-grid/candor/messages"
)

// The certificate must be valid for the named replica only.
func TestCertifyReplica(t *testing.T) {
	dir := t.TempDir()
	keys, file := filepath.Join(dir, "keys"), filepath.Join(dir, "rack1-bank.pem")
	if _, err := identity.Create(keys, embedded.Default().Site); err != nil {
		t.Fatal(err)
	}
	run := func(arguments ...string) error {
		root := &cobra.Command{Use: "candor", SilenceErrors: true, SilenceUsage: true}
		root.AddCommand(Commands()...)
		root.SetOut(io.Discard)
		root.SetErr(io.Discard)
		root.SetArgs(append([]string{"site", "certify", "--keys", keys, "--state", dir, "--output", file}, arguments...))
		return root.ExecuteContext(t.Context())
	}
	if err := run("rack1", "--replica", "bank"); err != nil {
		t.Fatal(err)
	}
	if _, err := certificate.ReadReplica(file, messages.Bank, "rack1", embedded.Default().Site); err != nil {
		t.Error(err)
	}
	for _, wrong := range [][]string{{"rack1", "--replica", "estimator"}, {"rack1", "10.0.0.1", "--replica", "bank"}, {"../x", "--replica", "bank"}} {
		if err := run(wrong...); messages.KindOf(err) != messages.Invalid {
			t.Errorf("%v: %v, want Invalid", wrong, err)
		}
	}
}

// A certificate for localhost can also be issued for the public name of a hub. It must still be valid for the addresses
// at which the site connects to itself.
func TestCertifyLocalhost(t *testing.T) {
	dir := t.TempDir() + "/west"
	must(t, "site", "init", "west", "--dir", dir)
	must(t, "site", "certify", "localhost", "hub.west.example", "--tls", dir+"/tls")
	pair, err := tls.LoadX509KeyPair(dir+"/tls/localhost.pem", dir+"/tls/localhost.key")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"localhost", "127.0.0.1", "::1", "hub.west.example"} {
		if err := pair.Leaf.VerifyHostname(name); err != nil {
			t.Error(err)
		}
	}
}

// If a new certificate lacks an address of the old one, clients can no longer connect there. The command must say so.
func TestCertifySaysWhichNamesAreGone(t *testing.T) {
	dir := t.TempDir() + "/west"
	must(t, "site", "init", "west", "--dir", dir, "--hosts", "rack1=10.0.0.1,rack2=10.0.0.2,rack3=10.0.0.3")
	const gone = "The old certificate was also for"
	if out := must(t, "site", "certify", "rack1", "10.0.0.1", "hub.west.example", "--tls", dir+"/tls"); strings.Contains(out, gone) {
		t.Errorf("nothing is gone: %s", out)
	}
	if out := must(t, "site", "certify", "rack1", "--tls", dir+"/tls"); !strings.Contains(out, gone+" hub.west.example, 10.0.0.1.") {
		t.Errorf("two names are gone: %s", out)
	}
}

// An authority that ends soon must be told, because its certificates end with it. An authority that has expired must
// issue nothing. An authority of another program, with another kind of key, must be named as such.
func TestCertifySaysWhenTheAuthorityExpires(t *testing.T) {
	certify := func(made time.Time) (string, error) {
		dir := t.TempDir()
		if _, err := certificate.Create(dir, "west", made); err != nil {
			t.Fatal(err)
		}
		return run(t, "site", "certify", "rack1", "10.0.0.1", "--tls", dir)
	}
	now := time.Now()
	if out, err := certify(now); err != nil || strings.Contains(out, "expires on") {
		t.Errorf("a new authority: %s %v", out, err)
	}
	if out, err := certify(now.AddDate(-certificate.AuthorityYears, 0, 9)); err != nil || !strings.Contains(out, "expires on "+now.AddDate(0, 0, 9).UTC().Format(time.DateOnly)) {
		t.Errorf("an authority of nine more days: %s %v", out, err)
	}
	if out, err := certify(now.AddDate(-certificate.AuthorityYears, 0, -2)); messages.KindOf(err) != messages.Conflict || !strings.Contains(err.Error(), "this authority expired on") {
		t.Errorf("an authority that has expired: %s %v", out, err)
	}
	dir := t.TempDir()
	if _, err := certificate.Create(dir, "west", now); err != nil {
		t.Fatal(err)
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	if err := os.WriteFile(filepath.Join(dir, certificate.CAKeyFile), text, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := run(t, "site", "certify", "rack1", "--tls", dir); err == nil || !strings.Contains(err.Error(), "with the program that made this authority") {
		t.Errorf("an authority of another program: %s %v", out, err)
	}
}
