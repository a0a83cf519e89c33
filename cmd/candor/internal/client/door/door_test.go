package door_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/candor-grid/candor/cmd/candor/internal/client"
	"github.com/candor-grid/candor/deploy/embedded"
	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/market"
)

// asClient is a variable that makes this test binary behave as the command candor.
const asClient = "CANDOR_DOOR_TEST"

func TestMain(m *testing.M) {
	if os.Getenv(asClient) != "" {
		os.Exit(client.Main(append([]string{"candor"}, os.Args[1:]...), nil))
	}
	os.Exit(m.Run())
}

// nobody is the user number of the user nobody, which every machine has.
const nobody = 65534

type machine struct {
	*testing.T
	program, dir, socket string
}

func newMachine(t *testing.T) *machine {
	if os.Geteuid() != 0 {
		t.Skip("only root can be other users")
	}
	dir, err := os.MkdirTemp("/tmp", "candor-door-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	m := &machine{T: t, dir: dir, program: filepath.Join(dir, "candor"), socket: filepath.Join(dir, "run", "door.sock")}
	self, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(m.program, self, 0o755)
	}
	if err == nil {
		err = os.WriteFile(m.file(), []byte("door: "+m.socket+"\n"), 0o644)
	}
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *machine) file() string { return filepath.Join(m.dir, "client.yaml") }

func (m *machine) as(uid uint32, words ...string) *exec.Cmd {
	c := exec.Command(m.program, words...)
	c.Env = []string{asClient + "=1", "CANDOR_CLIENT=" + m.file(), "HOME=/nonexistent", "PATH=" + os.Getenv("PATH")}
	c.Dir = "/"
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	return c
}

func (m *machine) says(uid uint32, want string, words ...string) {
	m.Helper()
	out, err := m.as(uid, words...).CombinedOutput()
	if !strings.Contains(string(out), want) {
		m.Errorf("candor %s as user %d says %q, not %q (%v)", strings.Join(words, " "), uid, out, want, err)
	}
}

// open starts a door with further flags, and waits until the door serves.
func (m *machine) open(s *embedded.Site, state string, flags ...string) (stop func()) {
	m.Helper()
	return m.openTo(s.URL(), state, flags...)
}

func (m *machine) openTo(url, state string, flags ...string) (stop func()) {
	m.Helper()
	authority, err := identity.OpenFor(filepath.Join(state, "keys"), "west")
	if err != nil {
		m.Fatal(err)
	}
	creds, err := embedded.WriteCredentials(state, authority, identity.Door, "$door-login1")
	if err != nil {
		m.Fatal(err)
	}
	c := m.as(0, append([]string{"door", "--creds", creds, "--site", "west", "--server", url, "--socket", m.socket}, flags...)...)
	p := await.Start(m, c, "users of this machine get credentials of site west")
	select {
	case <-p.Found:
	case <-p.Ended:
		m.Fatalf("the door ended: %s", p.Output)
	}
	return func() {
		_ = p.Process.Signal(syscall.SIGTERM)
		<-p.Ended
	}
}

func west(t *testing.T, state string) *embedded.Site {
	c := embedded.Config{Site: "west", State: state, Listen: "127.0.0.1:0", Replicas: 1, Operators: []messages.Name{"operator", "daemon"},
		Accounts: []embedded.Account{{Name: "nobody", Grant: 10 * messages.Credit}, {Name: "alice", Grant: messages.Credit}},
		Markets:  []market.Market{{Name: "main", Mechanism: market.FIFO, Classes: []messages.Name{"cpu"}}},
		Nodes:    []embedded.Node{{Name: "node1", Slots: embedded.Slots{{Class: "cpu", Slots: 1}}}}}
	ctx, cancel := context.WithTimeout(t.Context(), await.Patience)
	defer cancel()
	s, err := embedded.Start(ctx, c, embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// A user of the machine has no file of credentials, and uses the door. Then the user can act only as the account that
// has the user's name. The door must refuse accounts of operators and services. If one user keeps many connections
// open, other users must still be served.
func TestADoorGivesUsersTheirCredentials(t *testing.T) {
	m, state := newMachine(t), t.TempDir()
	s := west(t, state)
	m.says(nobody, "door of this machine does not answer", "jobs")
	stop := m.open(s, state)
	m.says(nobody, "nobody", "account")
	m.says(nobody, "Submitted job 1", "submit", "--wrap", "true", "--chdir", "-")
	m.says(nobody, "gives you the credentials of nobody, your user name; to charge a project, use --project alice", "jobs", "--account", "alice")
	m.says(0, "user number 0 is a service of this machine", "jobs")
	m.says(0, "another door already serves "+m.socket, "door", "--creds", filepath.Join(state, "creds", "doors", "login1.creds"), "--site", "west", "--server", s.URL(), "--socket", m.socket)
	m.says(0, "--creds: missing", "door", "--site", "west", "--server", s.URL())

	// If a user may not read the machine's file, a command must work as if the file were missing.
	if err := os.Chmod(m.file(), 0o600); err != nil {
		t.Fatal(err)
	}
	m.says(nobody, "no site is known here", "jobs")
	m.says(nobody, "does not accept account nobody", "jobs", "--server", s.URL(), "--site", "west", "--account", "nobody")
	if err := os.Chmod(m.file(), 0o644); err != nil {
		t.Fatal(err)
	}
	stop()
	stop = m.open(s, state, "--least-user", "0") // the new door replaces the socket of the first door
	defer stop()
	m.says(1, "daemon is an operator", "jobs")

	// One user's connections must not keep other users out, even if they read nothing.
	holder := m.as(nobody, "-")
	holder.Path, holder.Args = "/bin/sh", []string{"sh", "-c", fmt.Sprintf("for i in $(seq 12); do %s jobs >/dev/null 2>&1 & done; wait", m.program)}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	m.says(2, "bin", "account")
	_ = holder.Wait()
	var silent []net.Conn
	for range 100 {
		if c, err := net.Dial("unix", m.socket); err == nil {
			silent = append(silent, c)
		}
	}
	m.says(nobody, "nobody", "account")
	for _, c := range silent {
		_ = c.Close()
	}
}
