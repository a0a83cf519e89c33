// Package cli has what every group of commands needs: the process's environment ([App]), the connection to a site
// ([Session], [Call]), the output ([Page]), and errors with their exit codes. Commands reach the process only through
// an App.
package cli

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/wire"
)

// App gives commands access to their process. Tests replace every field.
type App struct {
	In       io.Reader
	Out, Err io.Writer
	Lookup   func(name string) (string, bool) // returns a variable of the environment
	Environ  func() []string
	Workdir  func() (string, error)
	Now      func() time.Time
	Zone     *time.Location
	// Pause waits between two readings of something that changes. It returns early, with ctx's error, when ctx ends.
	Pause   func(ctx context.Context, d time.Duration) error
	Connect func(Target) (bus.Bus, error)
	// Width returns the width of an output in columns, or 0 if the output is no terminal.
	Width func(w io.Writer) int

	// Interrupted is a context. When it ends, reads from Input fail. If it is nil, nothing stops these reads.
	Interrupted context.Context

	// If Only is not "", [App.Make] makes only the command with this name. Otherwise it makes all commands.
	Only string

	Flags connection
	sites map[string]siteFile // contents of files that were read, by state directory
	loan  Loan                // credentials from the door (the program that gives them to users of this machine); zero if it was not asked yet
	relay *relay              // connection to this door that no session uses yet; nil means there is none
}

// New returns the App of this process.
func New() *App {
	return &App{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		Lookup: os.LookupEnv, Environ: os.Environ, Workdir: os.Getwd,
		Now: time.Now, Zone: time.Local, Pause: pause, Connect: ConnectNATS, Width: terminal.Columns,
	}
}

// Input returns a reader of the standard input a.In. If the context a.Interrupted ends, a read fails, even while it
// waits for somebody to type.
func (a *App) Input() io.Reader {
	if a.Interrupted == nil {
		return a.In
	}
	return until(a.Interrupted, a.In)
}

// until returns a reader that fails when ctx ends, even during a read.
func until(ctx context.Context, in io.Reader) io.Reader {
	r, w := io.Pipe()
	context.AfterFunc(ctx, func() { _ = w.CloseWithError(ctx.Err()) })
	go func() {
		_, err := io.Copy(w, in)
		_ = w.CloseWithError(err)
	}()
	return r
}

// HeedOutput makes the App keep the first error of a write to Out. The returned function gives this error at the end of
// the command. Without it, a full disk would go unnoticed, because commands print without a check for errors. For a
// terminal, HeedOutput does nothing.
func (a *App) HeedOutput() (lost func() error) {
	if terminal.IsTerminal(a.Out) {
		return func() error { return nil }
	}
	out := &heeded{out: a.Out}
	a.Out = out
	return func() error { return out.err }
}

type heeded struct {
	out io.Writer
	err error
}

func (h *heeded) Write(text []byte) (int, error) {
	n, err := h.out.Write(text)
	if h.err == nil {
		h.err = err
	}
	return n, err
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

// Getenv returns a variable of the environment, or "".
func (a *App) Getenv(name string) string {
	value, _ := a.Lookup(name)
	return value
}

// Style returns the colours and width for text to one of the app's outputs.
func (a *App) Style(w io.Writer) terminal.Style {
	return terminal.StyleFor(terminal.IsTerminal(w), a.Flags.noColor, a.Getenv)
}

// Page starts a page of output for w.
func (a *App) Page(w io.Writer) *Page {
	columns := a.Width(w)
	layout := terminal.Layout{Width: columns, Names: a.Flags.form == formNames, Columns: a.Flags.columns}
	if a.Flags.form == formWide {
		layout.Width = 0
	}
	return &Page{Style: a.Style(w), Now: messages.TimeOf(a.Now()), Zone: a.Zone, Columns: cmp.Or(columns, 80), Layout: layout}
}

// Show prints a reply. With --json, it prints the reply as the site sent it. Otherwise it prints the text that the
// function `words` writes.
func (a *App) Show(reply any, words func(*Page)) error {
	if a.Flags.JSON {
		return a.PrintJSON(reply)
	}
	p := a.Page(a.Out)
	words(p)
	return a.print(p)
}

// The method print writes a page. If the user asked only for names or columns, print writes only these to standard
// output. If the page then has no table, it writes the whole page to standard error.
func (a *App) print(p *Page) error {
	if err := p.check(); err != nil {
		return err
	}
	out, text := a.Out, p.Bytes()
	if p.alone() {
		if text = p.listed.Bytes(); len(p.tables) == 0 {
			out, text = a.Err, p.Bytes()
		}
	}
	if p.Layout.Width > 0 {
		text = []byte(terminal.Wrap(string(text), p.Layout.Width))
	}
	_, err := out.Write(text)
	return err
}

// Verdict shows a reply, and ends the command with exit code 1 if the check failed.
func (a *App) Verdict(reply any, good bool, words func(*Page)) error {
	if err := a.Show(reply, words); err != nil || good {
		return err
	}
	return ExitStatus(CodeFailed)
}

// PrintJSON prints a reply on one line, in the same JSON that the site writes.
func (a *App) PrintJSON(reply any) error {
	text, err := wire.Marshal(reply, wire.JSON)
	if err != nil {
		return err
	}
	_, err = a.Out.Write(append(terminal.SafeJSON(text), '\n'))
	return err
}

// Ask sends a request to an actor of the site, and shows the reply.
func Ask[Reply any](ctx context.Context, a *App, s *Session, actor, verb string, request any, words func(*Page, Reply)) error {
	reply, err := Call[Reply](ctx, s, actor, verb, request)
	if err != nil {
		return err
	}
	return a.Show(reply, func(p *Page) { words(p, reply) })
}

// Makers has the functions that make commands. The key is the name of the command.
type Makers map[string]func(*App) *cobra.Command

// Make makes the command that the command line names, or all commands if a.Only is "". Making all commands takes longer
// than running most commands.
func (a *App) Make(all Makers) (made []*cobra.Command) {
	for name, make := range all {
		if a.Only == "" || a.Only == name {
			made = append(made, make(a))
		}
	}
	return made
}

// MakeTabled does what Make does, for commands that print tables: it adds the flags for tables.
func (a *App) MakeTabled(all Makers) []*cobra.Command {
	made := a.Make(all)
	for _, cmd := range made {
		a.Tabled(cmd)
	}
	return made
}

type runE = func(*cobra.Command, []string) error

// Action is the work of a command after it has connected.
type Action func(ctx context.Context, s *Session, args []string) error

// Online returns a RunE that connects to the site and then runs `do`.
func (a *App) Online(do Action) func(*cobra.Command, []string) error {
	return a.OnlineAs(func() bool { return false }, do)
}

// Operating returns the RunE of a command that only operators may use.
func (a *App) Operating(do Action) func(*cobra.Command, []string) error {
	return a.OnlineAs(func() bool { return true }, do)
}

// OnlineAs returns a RunE that connects to the site and runs `do`. If `operator` returns true, it connects as an
// operator.
func (a *App) OnlineAs(operator func() bool, do Action) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		s, err := a.Dial(operator())
		if err != nil {
			return err
		}
		defer s.Bus.Close()
		return do(cmd.Context(), s, args)
	}
}

// Asking returns the RunE of a command that sends an empty request to an actor and shows the answer.
func Asking[Reply any](a *App, as func(Action) runE, actor, verb string, words func(*Page, Reply)) runE {
	return as(func(ctx context.Context, s *Session, _ []string) error {
		return Ask(ctx, a, s, actor, verb, messages.Empty{}, words)
	})
}

// WithAmount returns an action that reads the argument at a position as an amount of credits.
func WithAmount(position int, do func(ctx context.Context, s *Session, args []string, amount messages.Credits) error) Action {
	return func(ctx context.Context, s *Session, args []string) error {
		amount, err := AmountOf(args[position])
		if err != nil {
			return err
		}
		return do(ctx, s, args, amount)
	}
}

// Group adds commands below cmd. If a user gives only cmd, it lists these commands.
func Group(cmd *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(commands...)
	return cmd
}

// Warn writes warnings to standard error: problems that do not end the command.
func (a *App) Warn(command string, sentences []string) {
	for _, sentence := range sentences {
		a.Tell("candor " + command + ": " + sentence)
	}
}

// Tell writes lines to standard error, wrapped to the width of a terminal.
func (a *App) Tell(text string) {
	if width := a.Width(a.Err); width > 0 {
		text = terminal.Wrap(text, width)
	}
	fmt.Fprintln(a.Err, text)
}

// Confirm asks the user on a terminal whether to continue. If the user does not agree, it returns an error with the
// reason.
func (a *App) Confirm(ctx context.Context, question, refusal string) error {
	if !terminal.IsTerminal(a.In) || !terminal.IsTerminal(a.Err) {
		return Usagef("%s", refusal)
	}
	yes, err := a.Agrees(ctx, question)
	if err == nil && !yes {
		err = Usagef("nothing was done")
	}
	return err
}

// Agrees asks a question, and reports whether the user says yes. An interrupt stops the wait for the answer.
func (a *App) Agrees(ctx context.Context, question string) (bool, error) {
	fmt.Fprintf(a.Err, "%s [y/N] ", question)
	text, _ := bufio.NewReader(until(ctx, a.In)).ReadString('\n')
	if ctx.Err() != nil {
		fmt.Fprintln(a.Err)
		return false, ctx.Err()
	}
	text = strings.ToLower(strings.TrimSpace(text))
	return text == "y" || text == "yes", nil
}

// FromHere makes a path absolute. A relative path is below the user's current directory.
func (a *App) FromHere(path string) (string, error) {
	if filepath.IsAbs(path) {
		return path, nil
	}
	here, err := a.Workdir()
	if err != nil {
		return "", Usagef("the current directory is not known (%v): give whole paths", err)
	}
	return filepath.Join(here, path), nil
}
