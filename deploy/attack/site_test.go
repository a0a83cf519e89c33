package attack

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/bus"
)

const patience = time.Minute

// binary returns the path of the operators' binary, which is built once. CANDOR_BINARY names another binary.
var binary = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("CANDOR_BINARY"); path != "" {
		return path, nil
	}
	path := filepath.Join(scratch, "candor")
	out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", path, "github.com/candor-grid/candor/cmd/candor").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

var scratch string

// TestMain also runs within tasks of the attacked site, where it makes the attack that the environment names.
func TestMain(m *testing.M) {
	if instructions := os.Getenv(insideEnv); instructions != "" {
		attackFromInside(instructions)
		return
	}
	if name := os.Getenv(bombEnv); name != "" {
		bomb(name)
		return
	}
	if name := os.Getenv(holdEnv); name != "" {
		holdUp(name)
		return
	}
	var err error
	if scratch, err = os.MkdirTemp("", "attack"); err != nil {
		panic(err)
	}
	_ = os.Chmod(scratch, 0o755) // sites that run as other users must be able to use the directory
	code := m.Run()
	_ = os.RemoveAll(scratch)
	os.Exit(code)
}

// site is a running site in a child process, started as an operator would.
type site struct {
	*testing.T
	name    messages.Name
	state   string
	url     string
	leaf    string // address at which the servers of other sites connect
	process *os.Process
	log     *await.Output
	ended   chan error

	others    []*site  // the other hosts of this site
	addresses []string // further addresses in the configuration
	nodes     int
	user      *syscall.Credential // the user who started the site; nil means the user of this process
	wrapper   []string            // command that starts the site's process in another environment
}

func (s *site) hosts() []*site { return append([]*site{s}, s.others...) }

// stateDir returns the path for a state directory below /var/lib, where services have their state. If this user may not
// write there, it is below the directory for temporary files.
func stateDir(t *testing.T, owner *syscall.Credential) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/lib", "candor-attack-")
	if err != nil {
		return filepath.Join(t.TempDir(), "state")
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	err = os.Chmod(dir, 0o755) // with the permissions of the parent directory of an operator's state
	if owner != nil && err == nil {
		err = os.Chown(dir, int(owner.Uid), int(owner.Gid))
	}
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "state")
}

func up(t *testing.T, arguments ...string) *site {
	t.Helper()
	return upAs(t, nil, arguments...)
}

// plain is the configuration of the attacked sites. It does not depend on this machine.
const plain = `markets: [{name: main, mechanism: proportional, classes: [map, reduce]}]
nodes: [{name: node1, slots: {map: 4, reduce: 2}}, {name: node2, slots: {map: 4, reduce: 2}}]
`

func plainFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(scratch, "plain.yaml")
	if err := os.WriteFile(file, []byte(plain), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// upAs starts a site as the given user. If the argument `user` is nil, it starts the site as the user of this process.
func upAs(t *testing.T, user *syscall.Credential, arguments ...string) *site {
	t.Helper()
	return upIn(t, stateDir(t, user), user, arguments...)
}

func upIn(t *testing.T, state string, user *syscall.Credential, arguments ...string) *site {
	t.Helper()
	s := &site{T: t, state: state, nodes: 2, user: user}
	if !slices.Contains(arguments, "--config") {
		arguments = append(slices.Clone(arguments), "--config", plainFile(t))
	}
	s.begin(user, append(arguments, "--listen", "127.0.0.1:0")...)
	s.await()
	return s
}

func (s *site) begin(user *syscall.Credential, arguments ...string) {
	t := s.T
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	s.log, s.ended = new(await.Output), make(chan error, 1)
	line := slices.Concat(s.wrapper, []string{path, "up", "--state", s.state}, arguments)
	command := exec.Command(line[0], line[1:]...)
	command.Stdout, command.Stderr = s.log, s.log
	command.SysProcAttr = &syscall.SysProcAttr{Credential: user}
	if user != nil {
		command.Dir, command.Env = filepath.Dir(s.state), append(os.Environ(), "HOME="+filepath.Dir(s.state))
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	s.process = command.Process
	go func() { s.ended <- command.Wait() }()
	t.Cleanup(s.stop)
}

// await waits until the site is up, and reads the site's name and addresses from its file site.json.
func (s *site) await() {
	t := s.T
	t.Helper()
	await.Until(t, "the site is up", func() bool { return strings.Contains(s.log.String(), "Stop with") || s.gone() })
	if s.gone() {
		t.Fatalf("the site ended:\n%s", s.log)
	}
	text, err := os.ReadFile(filepath.Join(s.state, "site.json"))
	var info struct {
		Site   messages.Name `json:"site"`
		Server string        `json:"server"`
		Leaf   string        `json:"leaf"`
	}
	if err == nil {
		err = json.Unmarshal(text, &info)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.name, s.url, s.leaf = info.Site, info.Server, info.Leaf
}

func (s *site) gone() bool {
	select {
	case err := <-s.ended:
		s.ended <- err
		return true
	default:
		return false
	}
}

func (s *site) stop() {
	process := s.process
	if inner := s.inner(); inner != 0 {
		process, _ = os.FindProcess(inner)
	}
	_ = process.Signal(syscall.SIGINT)
	select {
	case err := <-s.ended:
		s.ended <- err
	case <-time.After(patience):
		_ = s.process.Kill()
		s.Error("the site does not end")
	}
}

// sound checks that the site's process still runs and has logged no panic.
func (s *site) sound() {
	s.Helper()
	for _, other := range s.others {
		other.sound()
	}
	if s.gone() {
		s.Errorf("the site's process has ended:\n%s", tail(s.log.String()))
	}
	if at := strings.Index(s.log.String(), "panic"); at >= 0 {
		s.Errorf("the site's log has a panic:\n%.4000s", s.log.String()[max(0, at-500):])
	}
}

func tail(text string) string { return text[max(0, len(text)-4000):] }

var residentLine = regexp.MustCompile(`VmRSS:\s*(\d+) kB`)

// resident returns the memory of the site's process, in MiB. If the memory is unknown, resident returns 0.
func (s *site) resident() int {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.process.Pid))
	if found := residentLine.FindSubmatch(status); found != nil {
		kib, _ := strconv.Atoi(string(found[1]))
		return kib >> 10
	}
	return 0
}

func (s *site) within() context.Context {
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	s.Cleanup(cancel)
	return ctx
}

func (s *site) creds(name messages.Name) string {
	return filepath.Join(s.state, "creds", name+".creds")
}

func (s *site) issued(role identity.Role, name messages.Name) string {
	s.Helper()
	authority, err := identity.Open(filepath.Join(s.state, "keys"))
	if err != nil {
		s.Fatal(err)
	}
	text, err := authority.Issue(role, name)
	if err != nil {
		s.Fatal(err)
	}
	file := filepath.Join(s.TempDir(), "issued.creds")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		s.Fatal(err)
	}
	return file
}

func (s *site) conn(name messages.Name, creds string, options ...nats.Option) *nats.Conn {
	s.Helper()
	options = append([]nats.Option{nats.UserCredentials(creds), nats.CustomInboxPrefix(messages.InboxPrefix(name)),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})}, options...)
	nc, err := nats.Connect(s.url, options...)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(nc.Close)
	return nc
}

// client returns the account's own client, which proves its requests.
func (s *site) client(name messages.Name) bus.Bus {
	s.Helper()
	b, err := bus.Connect(bus.Config{URL: s.url, Name: name, CredsFile: s.creds(name)})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = b.Close() })
	return b
}

// ask sends a request in the name of an account. If the request fails, the test ends.
func ask[Reply any](s *site, name messages.Name, actor, verb string, request any) Reply {
	s.Helper()
	b := s.client(name)
	defer b.Close()
	reply, err := bus.Call[Reply](s.within(), b, messages.Subject(s.name, actor, verb, name), request)
	if err != nil {
		s.Fatalf("%s %s of %s: %v", actor, verb, name, err)
	}
	return reply
}

func (s *site) candor(account messages.Name, arguments ...string) (string, error) {
	return s.plain(append(arguments, "--account", account)...)
}

func (s *site) plain(arguments ...string) (string, error) {
	return s.plainly(append(arguments, "--state", s.state)...)
}

func (s *site) plainly(arguments ...string) (string, error) {
	path, err := binary()
	if err != nil {
		return "", err
	}
	command := exec.CommandContext(s.within(), path, arguments...)
	text, err := command.CombinedOutput()
	return string(text), err
}
