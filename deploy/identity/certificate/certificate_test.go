package certificate

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
)

func create(t *testing.T, site messages.Name) (*Authority, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tls")
	a, err := Create(dir, site, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return a, dir
}

// config returns the TLS configuration of a host, for both ends. The argument `trusts` is the directory of the trusted
// authority.
func config(t *testing.T, dir string, host messages.Name, trusts string) *tls.Config {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, host+".pem"), filepath.Join(dir, host+".key"))
	if err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(filepath.Join(trusts, CAFile))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		t.Fatal("no certificate in the authority's file")
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: pool, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}
}

func shake(server, client *tls.Config) error {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	go func() {
		end := tls.Server(a, server)
		if end.Handshake() == nil {
			_, _ = end.Write([]byte("x"))
		}
		_ = a.Close()
	}()
	end := tls.Client(b, client)
	if err := end.Handshake(); err != nil {
		return err
	}
	_, err := io.ReadFull(end, make([]byte, 1)) // the refusal of the server comes only after the client's part of the handshake
	return err
}

// A host uses its certificate both as a client and as a server. Other hosts of the site must accept it under the host's
// name, and under the host's other addresses. Hosts of other sites must not accept it.
func TestHostsKnowOneAnother(t *testing.T) {
	a, dir := create(t, "west")
	other, otherDir := create(t, "east")
	for host, reached := range map[string][]string{"rack1": {"10.0.0.1", "hub.west.example"}, "rack2": nil} {
		if err := a.Issue(host, reached, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	if err := other.Issue("rack1", nil, time.Now()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"rack1", "10.0.0.1", "hub.west.example"} {
		client := config(t, dir, "rack2", dir)
		client.ServerName = name
		if err := shake(config(t, dir, "rack1", dir), client); err != nil {
			t.Errorf("as %s: %v", name, err)
		}
	}
	client := config(t, dir, "rack2", dir)
	client.ServerName = "rack3"
	if err := shake(config(t, dir, "rack1", dir), client); err == nil {
		t.Error("rack1 passes for rack3")
	}
	client.ServerName = "rack1"
	if err := shake(config(t, otherDir, "rack1", otherDir), client); err == nil {
		t.Error("another site's rack1 passes for this one's")
	}
	stranger := config(t, otherDir, "rack1", dir)
	stranger.ServerName = "rack1"
	if err := shake(config(t, dir, "rack1", dir), stranger); err == nil {
		t.Error("another site's host is let in")
	}
}

// A second authority must not be made in the same directory. An authority must issue certificates after it was opened
// again. Only the owner may be able to read its keys.
func TestAuthorityStays(t *testing.T) {
	_, dir := create(t, "west")
	if _, err := Create(dir, "west", time.Now()); messages.KindOf(err) != messages.Conflict {
		t.Errorf("made twice: %v", err)
	}
	a, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := a.Issue("rack1", []string{"127.0.0.1"}, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	client := config(t, dir, "rack1", dir)
	client.ServerName = "127.0.0.1"
	if err := shake(config(t, dir, "rack1", dir), client); err != nil {
		t.Errorf("issued again: %v", err)
	}
	for _, file := range []string{CAKeyFile, "rack1.key"} {
		if info, err := os.Stat(filepath.Join(dir, file)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v", file, info.Mode(), err)
		}
	}
}

func TestRefuses(t *testing.T) {
	a, dir := create(t, "west")
	for _, host := range []string{"", "ca", "Rack", "../x"} {
		if err := a.Issue(host, nil, time.Now()); messages.KindOf(err) != messages.Invalid {
			t.Errorf("host %q: %v", host, err)
		}
	}
	if err := a.Issue("rack1", []string{"höst"}, time.Now()); err == nil {
		t.Error("a name that no certificate can have")
	}
	if _, err := Open(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("none there: %v", err)
	}
	_, otherDir := create(t, "east")
	key, err := os.ReadFile(filepath.Join(otherDir, CAKeyFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, CAKeyFile), key, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); messages.KindOf(err) != messages.Conflict {
		t.Errorf("another's key: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, CAFile), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); err == nil {
		t.Error("no certificate")
	}
}

// A host's certificate must not be valid longer than the certificate of its authority.
func TestLifetimes(t *testing.T) {
	a, dir := create(t, "west")
	if err := a.Issue("rack1", nil, time.Now().AddDate(AuthorityYears, -1, 0)); err != nil {
		t.Fatal(err)
	}
	der, err := readPEM(filepath.Join(dir, "rack1.pem"))
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil || !cert.NotAfter.Equal(a.cert.NotAfter) {
		t.Errorf("ends %v, its authority %v: %v", cert.NotAfter, a.cert.NotAfter, err)
	}
}
