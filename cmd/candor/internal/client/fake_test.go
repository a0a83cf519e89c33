package client

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// noon is the instant at which every test takes place.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// at is an instant some seconds after noon.
func at(seconds float64) messages.Time {
	return messages.TimeOf(noon.Add(time.Duration(seconds * float64(time.Second))))
}

// fakeSite answers requests on a bus in memory, as a test tells it to.
type fakeSite struct {
	now     time.Time // of commands
	t       *testing.T
	net     *bus.Network
	conn    bus.Bus
	dir     string // current directory of the user
	env     map[string]string
	in      string // standard input
	nats    bool
	further func() []Group // each run has its own; nil: none
	width   int            // of the user's terminal; 0: there is none
	last    cli.Target     // of the last connection
	signals []string       // that nodes were asked to send
	paused  time.Duration  // by commands, in sum

	mu      sync.Mutex
	callers []messages.Name // of every request, in order
}

func newSite(t *testing.T) *fakeSite {
	s := &fakeSite{t: t, net: bus.NewMemory(), dir: t.TempDir(), now: noon.Add(time.Hour)}
	s.conn = s.net.Connect("site")
	t.Cleanup(func() { s.conn.Close() })
	s.env = map[string]string{"CANDOR_STATE": filepath.Join(s.dir, "state"), "LANG": "C"}
	s.write("state/site.json", `{"site":"west","server":"nats://127.0.0.1:4222","default_account":"alice"}`)
	return s
}

// write writes a file below the user's directory.
func (s *fakeSite) write(name, text string) {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// answer serves one verb of an actor.
func answer[Req, Rep any](s *fakeSite, actor, verb string, f func(Req) (Rep, error)) {
	serveAt(s, messages.Subject("west", actor, verb, "*"), verb, f)
}

func serveAt[Req, Rep any](s *fakeSite, subject, verb string, f func(Req) (Rep, error)) {
	s.t.Helper()
	handle := bus.Handle(verb, func(_ context.Context, caller messages.Name, request Req) (Rep, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.callers = append(s.callers, caller)
		return f(request)
	})
	_, err := s.conn.Serve(bus.Service{Name: "fake", Version: "1.0.0", Endpoints: []bus.Endpoint{{Name: verb, Subject: subject, Handle: handle}}})
	if err != nil {
		s.t.Fatal(err)
	}
}

// reply serves one verb with the same reply to every request.
func reply[Rep any](s *fakeSite, actor, verb string, r Rep) {
	answer(s, actor, verb, func(messages.JobRequest) (Rep, error) { return r, nil })
}

// refuse serves one verb with an error.
func refuse[Req any](s *fakeSite, actor, verb string, err error) {
	answer(s, actor, verb, func(Req) (messages.Empty, error) { return messages.Empty{}, err })
}

// result is what a command did.
type result struct {
	code     int
	out, err string
}

// dial connects a user; over NATS where the test has a server.
func (s *fakeSite) dial(t cli.Target) (bus.Bus, error) {
	s.last = t
	if s.nats {
		return cli.ConnectNATS(t)
	}
	return s.net.Connect(t.Account), nil
}

// run runs a command line.
func (s *fakeSite) run(args ...string) result {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	r := s.runIn(ctx, args...)
	if strings.Contains(strings.Join(strings.Fields(r.err), " "), forOperators) { // as the refusal says, wrapped on a narrow terminal
		return s.runIn(ctx, append([]string{"--account", "operator"}, args...)...)
	}
	return r
}

// forOperators refuses a command for operators that names no account.
const forOperators = "this command is for operators: repeat the command with --account operator"

func (s *fakeSite) runIn(ctx context.Context, args ...string) result {
	s.t.Helper()
	var out, errs bytes.Buffer
	a := s.app(&out, &errs)
	var further []Group
	if s.further != nil {
		further = s.further()
	}
	code := run(ctx, a, args, root(a, further))
	return result{code, out.String(), errs.String()}
}

// app is the user's surroundings.
func (s *fakeSite) app(out, errs io.Writer) *cli.App {
	return &cli.App{
		In: strings.NewReader(s.in), Out: out, Err: errs,
		Lookup:  func(name string) (string, bool) { v, ok := s.env[name]; return v, ok },
		Environ: s.environ, Workdir: func() (string, error) { return s.dir, nil },
		Now: func() time.Time { return s.now }, Zone: time.UTC,
		Pause:   func(ctx context.Context, d time.Duration) error { s.paused += max(d, 0); return ctx.Err() },
		Connect: s.dial, Width: func(io.Writer) int { return s.width },
	}
}

func (s *fakeSite) environ() (pairs []string) {
	for k, v := range s.env {
		pairs = append(pairs, k+"="+v)
	}
	return pairs
}

// path is the path of a file below the user's directory.
func (s *fakeSite) path(name string) string { return filepath.Join(s.dir, name) }

// expect checks what a command did: its exit code, and parts of its outputs.
func (r result) expect(t *testing.T, code int, out, err string) {
	t.Helper()
	if r.code != code || !strings.Contains(r.out, out) || !strings.Contains(r.err, err) {
		t.Errorf("exit code %d, want %d\nstdout: %s\nwant part: %s\nstderr: %s\nwant part: %s", r.code, code, r.out, out, r.err, err)
	}
}

// golden checks text against a file under testdata, or writes the file where
// UPDATE_GOLDEN is set.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s:\n%s", path, difference(got, string(want)))
	}
}

func difference(got, want string) string { return fmt.Sprintf("got\n%s\nwant\n%s", got, want) }
