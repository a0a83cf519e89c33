package client

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// app is what the commands have of the world around them. Tests put their own
// in its place.
type app struct {
	in       io.Reader
	out, err io.Writer
	lookup   func(name string) (string, bool) // environment
	environ  func() []string
	workdir  func() (string, error)
	now      func() time.Time
	zone     *time.Location
	// pause waits between two looks at something that changes; it returns
	// early, with ctx's error, when ctx ends.
	pause   func(ctx context.Context, d time.Duration) error
	connect func(target) (bus.Bus, error)

	flags connection
}

func newApp() *app {
	return &app{
		in: os.Stdin, out: os.Stdout, err: os.Stderr,
		lookup: os.LookupEnv, environ: os.Environ, workdir: os.Getwd,
		now: time.Now, zone: time.Local, pause: pause, connect: connectNATS,
	}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (a *app) getenv(name string) string {
	value, _ := a.lookup(name)
	return value
}

// style is how text to one of the app's outputs looks.
func (a *app) style(w io.Writer) terminal.Style {
	return terminal.StyleFor(terminal.IsTerminal(w), a.flags.noColor, a.getenv)
}

// page starts a page of output for w.
func (a *app) page(w io.Writer) *page {
	columns, _ := terminal.Size(w)
	return &page{Style: a.style(w), now: messages.TimeOf(a.now()), zone: a.zone, columns: columns}
}

// show prints a reply: as the site sent it with --json, else in words.
func (a *app) show(reply any, words func(*page)) error {
	if a.flags.json {
		return a.printJSON(reply)
	}
	p := a.page(a.out)
	words(p)
	_, err := a.out.Write(p.Bytes())
	return err
}

// printJSON prints a reply as the site writes it in JSON, on one line.
func (a *app) printJSON(reply any) error {
	text, err := messages.Marshal(reply, messages.JSON)
	if err != nil {
		return err
	}
	_, err = a.out.Write(append(text, '\n'))
	return err
}

// ask asks an actor of the site, and shows what it answers.
func ask[Reply any](ctx context.Context, a *app, s *session, actor, verb string, request any, words func(*page, Reply)) error {
	reply, err := call[Reply](ctx, s, actor, verb, request)
	if err != nil {
		return err
	}
	return a.show(reply, func(p *page) { words(p, reply) })
}

// action is what a command does once it is connected.
type action func(ctx context.Context, s *session, args []string) error

// online makes a command's RunE of an action.
func (a *app) online(do action) func(*cobra.Command, []string) error {
	return a.onlineAs(func() bool { return false }, do)
}

// operating makes the RunE of a command that only operators may use.
func (a *app) operating(do action) func(*cobra.Command, []string) error {
	return a.onlineAs(func() bool { return true }, do)
}

func (a *app) onlineAs(operator func() bool, do action) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		s, err := a.dial(operator())
		if err != nil {
			return err
		}
		defer s.bus.Close()
		return do(cmd.Context(), s, args)
	}
}
