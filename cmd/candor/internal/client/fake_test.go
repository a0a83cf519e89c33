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
	"github.com/candor-grid/candor/messages/job"
)

// noon is the present time in every test.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// at is an instant some seconds after noon.
func at(seconds float64) messages.Time {
	return messages.TimeOf(noon.Add(time.Duration(seconds * float64(time.Second))))
}

// fakeSite answers requests on a bus in memory. Each test sets its answers.
type fakeSite struct {
	now     time.Time // the present time for commands
	t       *testing.T
	net     *bus.Network
	conn    bus.Bus
	dir     string // the user's current directory
	env     map[string]string
	in      string // standard input
	nats    bool
	further func() []Group // makes further commands for each run; nil: none
	width   int            // width of the user's terminal; 0: there is none
	last    cli.Target     // target of the last connection
	signals []string       // signals that nodes were asked to send
	paused  time.Duration  // sum of the times that commands paused

	mu      sync.Mutex
	callers []messages.Name // account of every request, in order
}

func newSite(t *testing.T) *fakeSite {
	s := &fakeSite{t: t, net: bus.NewMemory(), dir: t.TempDir(), now: noon.Add(time.Hour)}
	s.conn = s.net.Connect("site")
	t.Cleanup(func() { s.conn.Close() })
	s.env = map[string]string{"CANDOR_STATE": filepath.Join(s.dir, "state"), "LANG": "C"}
	s.write("state/site.json", `{"site":"west","server":"nats://127.0.0.1:4222","default_account":"alice"}`)
	return s
}

// write writes a file in the user's directory.
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

// answer makes the site answer one kind of request with a function.
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

// reply makes the site answer every request of one kind with the same reply.
func reply[Rep any](s *fakeSite, actor, verb string, r Rep) {
	answer(s, actor, verb, func(job.JobRequest) (Rep, error) { return r, nil })
}

// refuse makes the site answer every request of one kind with an error.
func refuse[Req any](s *fakeSite, actor, verb string, err error) {
	answer(s, actor, verb, func(Req) (messages.Empty, error) { return messages.Empty{}, err })
}

// result has the exit code and the outputs of a command.
type result struct {
	code     int
	out, err string
}

// dial connects a user, over NATS if the test has a server.
func (s *fakeSite) dial(t cli.Target) (bus.Bus, error) {
	s.last = t
	if s.nats {
		return cli.ConnectNATS(t)
	}
	return s.net.Connect(t.Account), nil
}

// run runs a command line and returns its result.
func (s *fakeSite) run(args ...string) result {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	r := s.runIn(ctx, args...)
	if strings.Contains(strings.Join(strings.Fields(r.err), " "), forOperators) { // the text may be wrapped
		return s.runIn(ctx, append([]string{"--account", "operator"}, args...)...)
	}
	return r
}

// forOperators is the beginning of the error for a command for operators that names no account.
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

// app returns an App in the surroundings of the test's user.
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

// path returns the path of a file in the user's directory.
func (s *fakeSite) path(name string) string { return filepath.Join(s.dir, name) }

// expect checks the exit code of a command, and that its outputs contain some text.
func (r result) expect(t *testing.T, code int, out, err string) {
	t.Helper()
	if r.code != code || !strings.Contains(r.out, out) || !strings.Contains(r.err, err) {
		t.Errorf("exit code %d, want %d\nstdout: %s\nwant part: %s\nstderr: %s\nwant part: %s", r.code, code, r.out, out, r.err, err)
	}
}

// golden compares text with a file in testdata. If UPDATE_GOLDEN is set, it writes the file.
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
