package embedded

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/deploy/console/signon"
	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
)

func TestConsoleDoors(t *testing.T) {
	t.Parallel()
	c := small(t.TempDir())
	c.Console = "127.0.0.1:0"
	s := start(t, c)
	t.Cleanup(func() { _ = s.Close() })
	r, err := http.Get(s.Info().Console + "/site.json")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if told, _ := io.ReadAll(r.Body); !strings.Contains(string(told), s.Info().WebSocket) {
		t.Errorf("the page is told %s; the listener is %s", told, s.Info().WebSocket)
	}
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(s.Info().Console, "http://"))
	for origin, want := range map[string]int{
		s.Info().Console: http.StatusSwitchingProtocols, "http://localhost:" + port: http.StatusSwitchingProtocols,
		"http://evil.example": http.StatusForbidden, "http://127.0.0.1:1": http.StatusForbidden, "https://127.0.0.1:" + port: http.StatusForbidden, "null": http.StatusForbidden,
	} {
		if got := upgrade(t, s.Info().WebSocket, origin); got != want {
			t.Errorf("origin %s: %d, want %d", origin, got, want)
		}
	}
}

func upgrade(t *testing.T, socket, origin string) int {
	t.Helper()
	r, err := http.NewRequest("GET", "http"+strings.TrimPrefix(socket, "ws"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Origin": origin} {
		r.Header.Set(name, value)
	}
	reply, err := new(http.Transport).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = reply.Body.Close()
	return reply.StatusCode
}

func TestConsoleIsPlaintextOnLoopbackAlone(t *testing.T) {
	for _, c := range []struct{ console, socket, want string }{
		{"127.0.0.1:8470", "", ""}, {"localhost:0", "[::1]:0", ""}, {"", "127.0.0.1:8471", ""},
		{"0.0.0.0:8470", "", "console: "}, {"127.0.0.1:8470", "west.example:8471", "websocket: "}, {"8470", "", "console: "},
	} {
		config := Default()
		config.State, config.Console, config.WebSocket, config.Plaintext = t.TempDir(), c.console, c.socket, true
		if err := config.Validate(); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("console %q, websocket %q: %v", c.console, c.socket, err)
		}
	}
	if _, err := after("127.0.0.1:65535"); messages.KindOf(err) != messages.Invalid {
		t.Errorf("no port follows: %v", err)
	}
	if at, err := after("[::1]:8470"); err != nil || at != "[::1]:8471" {
		t.Errorf("the next port: %s, %v", at, err)
	}
}

// The pages and the WebSocket listener must use TLS, also beyond loopback, under the names in the certificate.
func TestConsoleOverTLS(t *testing.T) {
	t.Parallel()
	a := newCertificates(t)
	c := small(t.TempDir())
	c.TLS, c.Console = a.issue("one"), "0.0.0.0:0"
	s := start(t, c)
	t.Cleanup(func() { _ = s.Close() })
	pool := x509.NewCertPool()
	if err := trust(pool, c.TLS.CA); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(s.Info().Console)
	if err != nil || u.Scheme != "https" || !strings.HasPrefix(s.Info().WebSocket, "wss://") {
		t.Fatalf("the console is at %s, the listener at %s", s.Info().Console, s.Info().WebSocket)
	}
	// The names in the certificate do not all lead to this machine, so the client connects to 127.0.0.1.
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	r, err := client.Get("https://" + net.JoinHostPort("127.0.0.1", u.Port()) + "/site.json")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	told, _ := io.ReadAll(r.Body)
	if want := `"websocket":"wss://127.0.0.1:`; r.StatusCode != http.StatusOK || !strings.Contains(string(told), want) {
		t.Errorf("%s: %s, want %s", r.Status, told, want)
	}
}

// The site must admit the credentials of a person who signed on. These credentials must end within the hour. They must
// be the credentials of an operator only if the caller asked for that.
func TestSignOnLendsForAnHour(t *testing.T) {
	t.Parallel()
	c := small(t.TempDir())
	c.Console = "127.0.0.1:0"
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.SignOn = &signon.Rules{Issuer: "http://127.0.0.1:1", Client: "candor", SecretFile: secret}
	s := start(t, c)
	t.Cleanup(func() { _ = s.Close() })
	for account, operator := range map[messages.Name]bool{"alice": false, "operator": true} {
		loan, err := s.lend(account, operator)
		if err != nil {
			t.Fatal(err)
		}
		role, name, err := s.authority.Issued([]byte(loan.Creds))
		if want := map[bool]identity.Role{false: identity.User, true: identity.Operator}[operator]; err != nil || role != want || name != account {
			t.Errorf("%s gets the credentials of %s %s (%v)", account, role, name, err)
		}
		if until := time.Until(loan.Expires.Std()); until > time.Hour || until < 50*time.Minute {
			t.Errorf("the credentials of %s last %v", account, until)
		}
	}
	if _, err := s.lend(clearing.PeerAccountPrefix+"east", false); err == nil {
		t.Error("somebody signed on as another site")
	}
	r, err := http.Get(s.Info().Console + "/sign-on/begin")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if text, _ := io.ReadAll(r.Body); r.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(text), "127.0.0.1:1, where people of this site sign in, does not answer") {
		t.Errorf("%s: %s", r.Status, text)
	}
}

func TestSignOnNeedsAConsole(t *testing.T) {
	config := Default()
	config.State, config.SignOn = t.TempDir(), &signon.Rules{Issuer: "http://login.example.org", Client: "candor", SecretFile: "/x"}
	err := config.Validate()
	for _, want := range []string{"sign_on: has no effect without a console", "sign_on.issuer: "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v has no %q", err, want)
		}
	}
}
