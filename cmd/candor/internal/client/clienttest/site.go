package clienttest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/job"
)

// FullDisk is a writer that fails as if the disk were full.
type FullDisk struct{}

func (FullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// Noon is the present time in every test.
var Noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// At returns the instant that is some seconds after noon.
func At(seconds float64) messages.Time {
	return messages.TimeOf(Noon.Add(time.Duration(seconds * float64(time.Second))))
}

// Site answers requests on a bus in memory. Each test sets its answers.
type Site struct {
	Now     time.Time // the present time for commands
	T       *testing.T
	Net     *bus.Network
	Conn    bus.Bus
	Dir     string // the user's current directory
	Env     map[string]string
	In      string
	NATS    bool                          // users connect to a NATS server
	Tree    func(*cli.App) *cobra.Command // makes the commands for each run
	Width   int                           // width of the user's terminal; 0 means there is none
	Last    cli.Target                    // target of the last connection
	Signals []string                      // signals that nodes were asked to send
	Paused  time.Duration                 // sum of the times that commands paused

	mu      sync.Mutex
	Callers []messages.Name // account of every request, in order
}

// Commands makes some of candor's commands.
type Commands func(*cli.App) []*cobra.Command

// New returns a site that answers nothing yet. Its user has the given commands.
func New(t *testing.T, commands ...Commands) *Site {
	s := &Site{T: t, Net: bus.NewMemory(), Dir: t.TempDir(), Now: Noon.Add(time.Hour)}
	s.Tree = func(a *cli.App) *cobra.Command {
		root := cli.Root(a)
		for _, some := range commands {
			root.AddCommand(some(a)...)
		}
		cli.UsageErrors(root)
		return root
	}
	s.Conn = s.Net.Connect("site")
	t.Cleanup(func() { s.Conn.Close() })
	s.Env = map[string]string{"CANDOR_STATE": filepath.Join(s.Dir, "state"), "LANG": "C"}
	s.Write("state/site.json", `{"site":"west","server":"nats://127.0.0.1:4222","default_account":"alice"}`)
	return s
}

// Write writes a file in the user's directory.
func (s *Site) Write(name, text string) {
	s.T.Helper()
	path := filepath.Join(s.Dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		s.T.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.T.Fatal(err)
	}
}

// Answer makes the site answer one kind of request with a function.
func Answer[Req, Rep any](s *Site, actor, verb string, f func(Req) (Rep, error)) {
	ServeAt(s, messages.Subject("west", actor, verb, "*"), verb, f)
}

// ServeAt makes the site answer the requests on a subject with a function.
func ServeAt[Req, Rep any](s *Site, subject, verb string, f func(Req) (Rep, error)) {
	s.T.Helper()
	handle := bus.Handle(verb, func(_ context.Context, caller messages.Name, request Req) (Rep, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.Callers = append(s.Callers, caller)
		return f(request)
	})
	_, err := s.Conn.Serve(bus.Service{Name: "fake", Version: "1.0.0", Endpoints: []bus.Endpoint{{Name: verb, Subject: subject, Handle: handle}}})
	if err != nil {
		s.T.Fatal(err)
	}
}

// Reply makes the site answer every request of one kind with the same reply.
func Reply[Rep any](s *Site, actor, verb string, r Rep) {
	Answer(s, actor, verb, func(job.JobRequest) (Rep, error) { return r, nil })
}

// Refuse makes the site answer every request of one kind with an error.
func Refuse[Req any](s *Site, actor, verb string, err error) {
	Answer(s, actor, verb, func(Req) (messages.Empty, error) { return messages.Empty{}, err })
}

// Result has the exit code and the outputs of a command.
type Result struct {
	Code     int
	Out, Err string
}

func (s *Site) dial(t cli.Target) (bus.Bus, error) {
	s.Last = t
	if s.NATS {
		return cli.ConnectNATS(t)
	}
	return s.Net.Connect(t.Account), nil
}

// Run runs a command line and returns its result.
func (s *Site) Run(args ...string) Result {
	s.T.Helper()
	ctx, cancel := context.WithTimeout(s.T.Context(), time.Minute)
	defer cancel()
	r := s.RunIn(ctx, args...)
	if strings.Contains(strings.Join(strings.Fields(r.Err), " "), ForOperators) { // the text may be wrapped
		return s.RunIn(ctx, append([]string{"--account", "operator"}, args...)...)
	}
	return r
}

// ForOperators begins the error for an operators' command that was called without an account.
const ForOperators = "this command is for operators: repeat the command with --account operator"

// RunIn runs a command line and returns its result. If the command is only for operators, the result is the error that
// says so. RunIn does not try again with an operator's account.
func (s *Site) RunIn(ctx context.Context, args ...string) Result {
	s.T.Helper()
	var out, errs bytes.Buffer
	code := s.Execute(ctx, s.App(&out, &errs), args...)
	return Result{code, out.String(), errs.String()}
}

// Execute runs a command line with an App, and returns the exit code.
func (s *Site) Execute(ctx context.Context, a *cli.App, args ...string) int {
	return cli.Run(ctx, a, args, s.Tree(a))
}

// App returns an App with the environment, directory and clock of the test's user.
func (s *Site) App(out, errs io.Writer) *cli.App {
	return &cli.App{
		In: strings.NewReader(s.In), Out: out, Err: errs,
		Lookup:  func(name string) (string, bool) { v, ok := s.Env[name]; return v, ok },
		Environ: s.environ, Workdir: func() (string, error) { return s.Dir, nil },
		Now: func() time.Time { return s.Now }, Zone: time.UTC,
		Pause:   func(ctx context.Context, d time.Duration) error { s.Paused += max(d, 0); return ctx.Err() },
		Connect: s.dial, Width: func(io.Writer) int { return s.Width },
	}
}

func (s *Site) environ() (pairs []string) {
	for k, v := range s.Env {
		pairs = append(pairs, k+"="+v)
	}
	return pairs
}

// Path returns the path of a file in the user's directory.
func (s *Site) Path(name string) string { return filepath.Join(s.Dir, name) }

// Expect checks the exit code of a command, and that its outputs contain some text.
func (r Result) Expect(t *testing.T, code int, out, err string) {
	t.Helper()
	if r.Code != code || !strings.Contains(r.Out, out) || !strings.Contains(r.Err, err) {
		t.Errorf("exit code %d, want %d\nstdout: %s\nwant part: %s\nstderr: %s\nwant part: %s", r.Code, code, r.Out, out, r.Err, err)
	}
}

// Golden compares text with a file in testdata. If UPDATE_GOLDEN is set, it writes the file.
func Golden(t *testing.T, name, got string) {
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
		t.Errorf("%s:\n%s", path, Difference(got, string(want)))
	}
}

// Difference returns a text with got and want.
func Difference(got, want string) string { return fmt.Sprintf("got\n%s\nwant\n%s", got, want) }
