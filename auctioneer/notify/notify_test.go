package notify

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

func secretFile(t *testing.T, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte("s3cret\n"), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func sender(t *testing.T, r Rules) *Sender {
	t.Helper()
	if len(r.Hosts) > 0 {
		r.SecretFile = secretFile(t, 0o600)
	}
	s, err := New("west", r)
	if err != nil {
		t.Fatal(err)
	}
	s.clock = func() time.Time { return time.Unix(1_790_000_000, 0) }
	return s
}

func notice(to string) *book.Notice {
	return &book.Notice{ID: 4, To: to, Event: job.NotifyEnd, At: 1_790_000_000_000_000, Job: job.JobSummary{Job: 17, Name: "é\r\nBcc: all@example.org", Account: "ada",
		State: job.Failed, Reason: "TaskFailed", ExitCode: 3, Tasks: 4, Done: 3, Charged: messages.Credit, Budget: 2 * messages.Credit}}
}

// The signature of a notification must fit its body. A notification that is sent again must have the same identifier.
func TestWebhook(t *testing.T) {
	type call struct {
		header http.Header
		body   string
	}
	calls := make(chan call, 2)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		calls <- call{r.Header, string(body)}
	}))
	defer server.Close()
	s := sender(t, Rules{Hosts: []string{strings.TrimPrefix(server.URL, "http://")}})
	for range 2 {
		if err := s.Send(t.Context(), notice(server.URL+"/hook?x=1")); err != nil {
			t.Fatal(err)
		}
		c := <-calls
		if id := c.header.Get("Candor-Notice"); id != "west-17-4" || !strings.Contains(c.body, `"id":"west-17-4","site":"west","event":"end"`) || !strings.Contains(c.body, `"state":"Failed"`) {
			t.Errorf("%s: %s", id, c.body)
		}
		if got, want := c.header.Get("Candor-Signature"), "sha256="+sign(Secret("s3cret").Of("ada"), "1790000000", []byte(c.body)); got != want || c.header.Get("Candor-Timestamp") != "1790000000" {
			t.Errorf("signature %s, want %s", got, want)
		}
	}
}

// The secret of ada's webhooks signs only ada's notifications. The site's own secret signs none.
func TestReceiversOfOneAccountForgeNothingForAnother(t *testing.T) {
	signatures := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		stamp := r.Header.Get("Candor-Timestamp")
		for name, secret := range map[string][]byte{"ada": Secret("s3cret").Of("ada"), "bob": Secret("s3cret").Of("bob"), "site": []byte("s3cret")} {
			if r.Header.Get("Candor-Signature") == "sha256="+sign(secret, stamp, body) {
				signatures <- name
			}
		}
	}))
	defer server.Close()
	s := sender(t, Rules{Hosts: []string{strings.TrimPrefix(server.URL, "http://")}})
	for _, account := range []messages.Name{"ada", "bob"} {
		n := notice(server.URL)
		n.Job.Account = account
		if err := s.Send(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		if by := <-signatures; by != string(account) {
			t.Errorf("%s's webhook is signed with the secret of %s", account, by)
		}
	}
}

// A receiver answers a notification with a status code. The code must decide whether the site sends the notification
// again.
func TestWhatAReceiverAnswers(t *testing.T) {
	followed := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/busy":
			w.WriteHeader(http.StatusTooManyRequests)
		case "/broken":
			w.WriteHeader(http.StatusInternalServerError)
		case "/gone":
			w.WriteHeader(http.StatusGone)
		case "/elsewhere":
			http.Redirect(w, r, "/secret", http.StatusTemporaryRedirect)
		case "/secret":
			followed = true
		case "/hangs":
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}
	}))
	defer server.Close()
	closed := httptest.NewServer(nil)
	closed.Close()
	s := sender(t, Rules{Hosts: []string{strings.TrimPrefix(server.URL, "http://"), strings.TrimPrefix(closed.URL, "http://")}})
	for to, want := range map[string]messages.Kind{
		server.URL + "/busy": messages.Unavailable, server.URL + "/broken": messages.Unavailable, server.URL + "/gone": messages.PermissionDenied,
		server.URL + "/elsewhere": messages.PermissionDenied, closed.URL + "/": messages.Unavailable,
	} {
		if err := s.Send(t.Context(), notice(to)); messages.KindOf(err) != want || err == nil {
			t.Errorf("%s: %v", to, err)
		}
	}
	if followed {
		t.Error("a redirect was followed")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.Send(ctx, notice(server.URL+"/hangs")); messages.KindOf(err) != messages.Unavailable {
		t.Errorf("hangs: %v", err)
	}
}

// A notification may go only to a listed host. The address of the host must be public, or listed too.
func TestWhoCanBeCalled(t *testing.T) {
	r := Rules{Hosts: []string{"hooks.example.org", "127.0.0.1:80", "10.0.0.7", "localhost:81"}, Networks: []string{"192.168.7.0/24"}}
	for to, want := range map[string]string{
		"https://hooks.example.org/x":     "",
		"https://HOOKS.example.org:443/x": "",
		"http://127.0.0.1:80/":            "",
		"http://hooks.example.org/":       "use https",
		"ftp://hooks.example.org/":        "use https",
		"https://evil.org/":               "calls no webhooks at evil.org",
		"https://hooks.example.org:8443/": "calls no webhooks at hooks.example.org:8443",
		"https://hooks.example.org.evil/": "calls no webhooks at",
		"https://169.254.169.254/latest":  "calls no webhooks at",
		"http://10.0.0.7/":                "use https",
	} {
		if err := r.Check([]job.Notify{{To: to}}); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", to, err)
		}
	}
	for _, c := range []struct {
		host, address string
		want          bool
	}{
		{"hooks.example.org", "93.184.216.34", true}, {"hooks.example.org", "127.0.0.1", false}, {"hooks.example.org", "10.0.0.7", false},
		{"hooks.example.org", "169.254.169.254", false}, {"hooks.example.org", "100.64.1.1", false}, {"hooks.example.org", "::1", false},
		{"hooks.example.org", "fd00::1", false}, {"hooks.example.org", "::ffff:127.0.0.1", false}, {"hooks.example.org", "192.168.7.9", true},
		{"hooks.example.org", "0.0.0.0", false}, {"hooks.example.org", "224.0.0.1", false}, {"10.0.0.7", "10.0.0.7", true}, {"localhost", "127.0.0.1", true}, {"localhost", "10.0.0.7", false},
	} {
		if got := r.reaches(c.host, netip.MustParseAddr(c.address)); got != c.want {
			t.Errorf("%s at %s: %v", c.host, c.address, got)
		}
	}
}

// A name that resolves to a private address must be refused when the connection is made.
func TestANameThatLeadsInside(t *testing.T) {
	called := false
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called = true }))
	defer server.Close()
	s := sender(t, Rules{Hosts: []string{"hooks.example.org"}})
	_, err := s.dial(t.Context(), "tcp", strings.TrimPrefix(server.URL, "http://"))
	if err == nil {
		t.Fatal("an address inside was reached that is not listed")
	}
	if kindOf(err) != messages.PermissionDenied && !strings.Contains(err.Error(), "neither public nor") || called {
		t.Errorf("%v", err)
	}
}

// relay starts a mail server that gives the given answers. It returns the letters that it received.
func relay(t *testing.T, answers map[string]string) (address string, letters chan string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	letters = make(chan string, 1)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serveMail(conn, answers, letters)
		}
	}()
	return l.Addr().String(), letters
}

func serveMail(conn net.Conn, answers map[string]string, letters chan string) {
	defer conn.Close()
	lines := bufio.NewScanner(conn)
	fmt.Fprint(conn, "220 relay\r\n")
	for lines.Scan() {
		verb, _, _ := strings.Cut(strings.ToUpper(lines.Text()), " ")
		switch answer := answers[verb]; {
		case answer == "hang":
			select {}
		case answer != "":
			fmt.Fprint(conn, answer, "\r\n")
		case verb == "DATA":
			fmt.Fprint(conn, "354 go on\r\n")
			var text strings.Builder
			for lines.Scan() && lines.Text() != "." {
				text.WriteString(lines.Text() + "\n")
			}
			letters <- text.String()
			fmt.Fprint(conn, "250 taken\r\n")
		default:
			fmt.Fprint(conn, "250 yes\r\n")
		}
	}
}

func TestEmail(t *testing.T) {
	address, letters := relay(t, nil)
	s := sender(t, Rules{SMTP: address, From: "candor@example.org", Domains: []string{"example.org"}})
	if err := s.Send(t.Context(), notice("ada@example.org")); err != nil {
		t.Fatal(err)
	}
	letter := <-letters
	for _, want := range []string{"To: ada@example.org\n", "Message-ID: <west-17-4@example.org>\n", "Auto-Submitted: auto-generated\n", "Exit code  3\n", "Charged    1 of 2 credits\n"} {
		if !strings.Contains(letter, want) {
			t.Errorf("%q is missing in\n%s", want, letter)
		}
	}
	if head, _, _ := strings.Cut(letter, "\n\n"); strings.Contains(head, "\nBcc") {
		t.Errorf("the name of a job makes a header:\n%s", head)
	}
}

func TestWhatARelayAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		answers map[string]string
		want    messages.Kind
	}{
		"for good":           {map[string]string{"RCPT": "550 no such user"}, messages.PermissionDenied},
		"for now":            {map[string]string{"MAIL": "451 later"}, messages.Unavailable},
		"hangs":              {map[string]string{"EHLO": "hang"}, messages.Unavailable},
		"STARTTLS that lies": {map[string]string{"EHLO": "250-relay\r\n250 STARTTLS", "STARTTLS": "220 go on"}, messages.Unavailable},
	} {
		address, _ := relay(t, c.answers)
		s := sender(t, Rules{SMTP: address, From: "candor@example.org", Domains: []string{"example.org"}})
		within := time.Minute
		if name == "hangs" {
			within = 200 * time.Millisecond
		}
		ctx, cancel := context.WithTimeout(t.Context(), within)
		if err := s.Send(ctx, notice("ada@example.org")); messages.KindOf(err) != c.want {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
	if err := (&Rules{SMTP: "relay:25", From: "a@b", Domains: []string{"example.org"}}).Check([]job.Notify{{To: "ada@evil.org"}}); messages.KindOf(err) != messages.PermissionDenied {
		t.Errorf("%v", err)
	}
	if err := (&Rules{}).Check([]job.Notify{{To: "ada@example.org"}}); err == nil || !strings.Contains(err.Error(), "sends no e-mail") {
		t.Errorf("%v", err)
	}
}

func TestASecretThatOthersRead(t *testing.T) {
	for mode, want := range map[os.FileMode]messages.Kind{0o644: messages.PermissionDenied, 0o640: messages.PermissionDenied} {
		_, err := New("west", Rules{Hosts: []string{"h"}, SecretFile: secretFile(t, mode)})
		if messages.KindOf(err) != want {
			t.Errorf("%o: %v", mode, err)
		}
	}
}
