package door_test

import (
	"encoding/json"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/wire"
)

// forwarder carries connections to a site, and counts them. After a call of its method `close`, it accepts no new
// connections, but keeps the open ones.
type forwarder struct {
	net.Listener
	taken atomic.Int64
}

func forward(t *testing.T, url string) *forwarder {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &forwarder{Listener: l}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			f.taken.Add(1)
			far, err := net.Dial("tcp", strings.TrimPrefix(url, "nats://"))
			if err != nil {
				_ = near.Close()
				continue
			}
			t.Cleanup(func() { _, _ = near.Close(), far.Close() })
			go func() { _, _ = io.Copy(far, near); _ = far.Close() }()
			go func() { _, _ = io.Copy(near, far); _ = near.Close() }()
		}
	}()
	return f
}

// After the first command of a user, the door keeps a connection to the site for this user. Further commands must work
// although the site takes no new connection. The door makes another connection for another user.
func TestADoorKeepsAConnection(t *testing.T) {
	m, state := newMachine(t), t.TempDir()
	s := west(t, state)
	f := forward(t, s.URL())
	defer m.openTo("nats://"+f.Addr().String(), state, "--least-user", "2")()
	before := f.taken.Load()
	m.says(nobody, "Submitted job 1", "submit", "--wrap", "true", "--chdir", "-")
	m.says(nobody, "Submitted job 2", "submit", "--wrap", "true", "--chdir", "-")
	m.says(2, "No jobs", "jobs")
	if n := f.taken.Load() - before; n != 2 {
		t.Errorf("three commands of two users made %d connections", n)
	}
	_ = f.Listener.Close()
	m.says(nobody, "Submitted job 3", "submit", "--wrap", "true", "--chdir", "-")
	m.says(nobody, "wrap", "jobs")
	m.says(2, "No jobs", "jobs")                            // the jobs of the user "nobody" are not shown to others
	m.says(3, "does not answer", "jobs", "--timeout", "2s") // this user has no connection yet, and gets none
}

// user is a connection of this process to a door.
type user struct {
	net.Conn
	*json.Decoder
	loan cli.Loan
}

func (m *machine) dial() *user {
	m.Helper()
	c, err := net.Dial("unix", m.socket)
	if err != nil {
		m.Fatal(err)
	}
	m.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(await.Patience))
	u := &user{Conn: c, Decoder: json.NewDecoder(c)}
	if err := u.Decode(&u.loan); err != nil || u.loan.Refused != "" {
		m.Fatal(u.loan.Refused, err)
	}
	return u
}

func (u *user) asks(subject string) (a cli.RelayAnswer, err error) {
	payload, err := wire.Marshal(job.JobsRequest{}, wire.Msgpack)
	if err == nil {
		err = json.NewEncoder(u).Encode(cli.Relayed{Subject: subject, Payload: payload, Within: messages.Duration(5 * time.Second)})
	}
	if err == nil {
		err = u.Decode(&a)
	}
	return a, err
}

// A hostile user sends requests in another account's name, to other parts of the site, too often, or for too much. The
// door must refuse all of them.
func TestADoorCarriesOnlyTheUsersRequests(t *testing.T) {
	m, state := newMachine(t), t.TempDir()
	s := west(t, state)
	defer m.open(s, state, "--least-user", "0")()

	u := m.dial() // this process runs as root, which is an account like any other
	own := messages.Subject("west", messages.Auctioneer, messages.VerbJobs, "root")
	if a, err := u.asks(own); err != nil || a.Error != nil || a.Direct {
		t.Fatalf("own jobs: %+v, %v", a, err)
	}
	for _, subject := range []string{
		messages.Subject("west", messages.Auctioneer, messages.VerbJobs, "nobody"),
		messages.Subject("west", messages.Auctioneer, messages.VerbJobs, "operator"),
		messages.Subject("west", messages.Admission, messages.VerbLend, "$door-login1"),
		"$JS.API.STREAM.NAMES", "_INBOX_nobody.x",
	} {
		if a, err := u.asks(subject); err != nil || a.Error == nil || a.Error.Kind != messages.PermissionDenied {
			t.Errorf("%s: %+v, %v", subject, a, err)
		}
	}
	for _, subject := range []string{"", "*", "a b", "a\r\nPUB b 0\r\n", ">"} {
		if a, err := u.asks(subject); err != nil || a.Error == nil || a.Error.Kind != messages.Invalid {
			t.Errorf("%q: %+v, %v", subject, a, err)
		}
	}
	for range cli.RelayRequests - 11 {
		if a, err := u.asks(own); err != nil || a.Error != nil {
			t.Errorf("own jobs: %+v, %v", a, err)
		}
	}
	if a, err := u.asks(own); err == nil {
		t.Errorf("one request too many: %+v", a)
	}
	for name, frame := range map[string]string{"no JSON": "PUB a 0\r\n", "a large one": `{"subject": "` + strings.Repeat("a", cli.RelayBytes) + `"}`} {
		u := m.dial()
		_, _ = io.WriteString(u, frame)
		if _, err := io.ReadAll(u); err != nil && !strings.Contains(err.Error(), "reset") {
			t.Errorf("%s: %v", name, err)
		}
	}
	var silent []*user
	for range 20 {
		silent = append(silent, m.dial())
	}
	if last := silent[len(silent)-1]; last.loan.Relays {
		t.Error("a user may hold any number of connections that carry requests")
	}
	m.says(nobody, "nobody", "account")
	if again := m.dial(); again.loan.Claim == "" {
		t.Error("a user with many connections gets no credentials")
	}
}

// TestADoorForgetsRevokedCredentials revokes the credentials of an account that uses the door, until the servers refuse
// the door's connection for it. After one refused request, the door must lend the account new credentials.
func TestADoorForgetsRevokedCredentials(t *testing.T) {
	m, state := newMachine(t), t.TempDir()
	f := forward(t, west(t, state).URL())
	defer m.openTo("nats://"+f.Addr().String(), state, "--least-user", "0")()
	own := messages.Subject("west", messages.Auctioneer, messages.VerbJobs, "root")
	u := m.dial()
	if a, err := u.asks(own); err != nil || a.Error != nil {
		t.Fatal(a, err)
	}
	before := f.taken.Load()
	keys, err := identity.OpenFor(filepath.Join(state, "keys"), "west")
	if err == nil {
		err = keys.Revoke(identity.User, "root")
	}
	if err != nil {
		t.Fatal(err)
	}
	await.Until(t, "the servers have refused the connection twice", func() bool { return f.taken.Load() >= before+3 })
	if a, err := m.dial().asks(own); err != nil || a.Error == nil || a.Error.Kind != messages.PermissionDenied || !a.Direct {
		t.Errorf("with revoked credentials: %+v, %v", a, err)
	}
	if again := m.dial(); again.loan.Claim == u.loan.Claim {
		t.Error("the door lends the revoked credentials again")
	} else if a, err := again.asks(own); err != nil || a.Error != nil {
		t.Errorf("with new credentials: %+v, %v", a, err)
	}
}

// After a revocation the next command gets new credentials, as long as the door has its own. Without them, the user
// learns who must do what.
func TestCommandsAfterARevocation(t *testing.T) {
	m, state := newMachine(t), t.TempDir()
	f := forward(t, west(t, state).URL())
	defer m.openTo("nats://"+f.Addr().String(), state, "--least-user", "2")()
	m.says(nobody, "No jobs", "jobs")
	keys, err := identity.OpenFor(filepath.Join(state, "keys"), "west")
	if err != nil {
		t.Fatal(err)
	}
	revoke := func(role identity.Role, name messages.Name) {
		before := f.taken.Load()
		if err := keys.Revoke(role, name); err != nil {
			t.Fatal(err)
		}
		await.Until(t, "the servers have refused a connection twice", func() bool { return f.taken.Load() >= before+3 })
	}
	revoke(identity.User, "nobody")
	m.says(nobody, "No jobs", "jobs")
	revoke(identity.Door, "$door-login1")
	m.says(2, "the credentials of this machine's door: an administrator must make new credentials with \"candor user add login1 --door\"", "jobs")
}
