package jobs

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/job"
)

// Stream connects this process to a process on a node. It carries input, output and signals.
type Stream struct {
	App     *cli.App
	Session *cli.Session
	Node    messages.Name
	Attempt messages.Attempt
	Away    bool               // another site runs the task; the auctioneers of both sites pass the messages on
	Begin   *agent.StreamBegin // starts the remote process; nil means connect to the process of the task itself
	// Over is called when the node does not answer. It returns an error with the reason if the stream has ended. A nil
	// error means that the node may answer later.
	Over func(context.Context) error
	// Comes is called while the node does not know the task or its stream. It returns true if the task may still begin on
	// this node, for example while its prolog runs there. If Comes is nil, the task will not begin later.
	Comes func(context.Context) bool

	In        io.Reader
	Out, Errs io.Writer

	name, client string
	signals      atomic.Uint64
	asked        atomic.Int64 // time of the last request of this process, in milliseconds since 1970
	lost         atomic.Bool
}

// streamPoll is how long a node waits for output before it answers. streamAnswer is how long this process waits for the
// node's answer.
const (
	streamPoll   = time.Second
	streamAnswer = 5 * time.Second
	streamStay   = time.Second // longest time without a request of this client
)

// beginsWithin bounds how long Open waits for a task to begin on its node. The prolog alone may take 5 minutes.
const beginsWithin = 15 * time.Minute

// If a task has not begun on its node, Open waits for it. tellAfter is how long Open waits before it tells the user
// about this.
const tellAfter = 5 * time.Second

// Open connects to the stream, or starts it. If the task has not begun on its node, Open waits. It returns the position
// in the input of the first byte that the node needs.
func (c *Stream) Open(ctx context.Context) (from int64, err error) {
	from, err = c.open(ctx)
	began, told := time.Now(), false
	for d := firstPause; messages.KindOf(err) == messages.NotFound && c.Comes != nil && time.Since(began) < beginsWithin && c.Comes(ctx); d = nextPause(d) {
		if !told && time.Since(began) > tellAfter {
			told = true
			fmt.Fprintf(c.App.Err, "[candor: waiting until node %s has begun its part of the job]%s", c.Node, lineEnd(c.App))
		}
		if err := c.App.Pause(ctx, d); err != nil {
			return 0, err
		}
		from, err = c.open(ctx)
	}
	return from, err
}

func (c *Stream) open(ctx context.Context) (from int64, err error) {
	c.client = rand.Text()
	if c.Begin != nil {
		c.name = rand.Text()
	}
	reply, err := c.ask(ctx, agent.StreamRequest{Begin: c.Begin, Take: true})
	return reply.InputNext, err
}

// ask repeats a request until there is an answer, also after the connection was lost.
func (c *Stream) ask(ctx context.Context, r agent.StreamRequest) (agent.StreamReply, error) {
	r.Attempt, r.Stream, r.Client = c.Attempt, c.name, c.client
	for d := firstPause; ; d = nextPause(d) {
		c.asked.Store(time.Now().UnixMilli())
		answer, cancel := context.WithTimeout(ctx, streamAnswer)
		reply, err := askStream(answer, c.Session, c.Node, c.Away, &r)
		cancel()
		switch {
		case err == nil:
			if c.lost.Swap(false) {
				fmt.Fprintf(c.App.Err, "[candor: connected again]%s", lineEnd(c.App))
			}
			return reply, nil
		case ctx.Err() != nil:
			return reply, ctx.Err()
		case !messages.KindOf(err).Retriable() || r.Begin != nil && messages.KindOf(err) == messages.Exhausted:
			return reply, err
		case d > 4*firstPause && !c.lost.Swap(true):
			fmt.Fprintf(c.App.Err, "[candor: node %s does not answer (%s); trying again]%s", c.Node, messages.Detail(err), lineEnd(c.App))
		}
		if c.Over != nil && c.lost.Load() {
			if err := c.Over(ctx); err != nil {
				return reply, err
			}
		}
		if err := c.App.Pause(ctx, d); err != nil {
			return reply, err
		}
	}
}

// askStream sends a node a request about a stream, or a signal. If `away` is true, another site runs the job.
func askStream(ctx context.Context, s *cli.Session, node messages.Name, away bool, r *agent.StreamRequest) (reply agent.StreamReply, err error) {
	if !away {
		return bus.Call[agent.StreamReply](ctx, s.Bus, agent.StreamSubject(s.Site, node, s.Account), r)
	}
	answer, err := bus.Call[agent.LogsReply](ctx, s.Bus, messages.Subject(s.Site, messages.Auctioneer, clearing.VerbOutput, s.Account), clearing.OutputRequest{Node: node, Stream: r})
	switch {
	case err != nil:
		return reply, err
	case answer.Stream == nil:
		return reply, messages.Errorf(messages.Invalid, "the site of the job cannot pass on input and output, because its release is too old: use another site")
	}
	return *answer.Stream, nil
}

// lineEnd returns the end of a line. A terminal that may be in raw mode needs a carriage return.
func lineEnd(a *cli.App) string {
	if terminal.IsTerminal(a.Err) {
		return "\r\n"
	}
	return "\n"
}

// Signal sends a signal to the stream's processes, without a retry.
func (c *Stream) Signal(ctx context.Context, name string) error {
	_, err := c.ask(ctx, agent.StreamRequest{Signal: name, SignalNumber: c.signals.Add(1)})
	return err
}

// Copy passes input and output between this process and the remote process. It returns when the remote process has
// ended, with the exit code of that process. The argument `from` is the position at which the input begins.
func (c *Stream) Copy(ctx context.Context, from int64) (code int, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if c.In != nil {
		go c.send(ctx, from)
	}
	go c.stay(ctx)
	var output, errs int64
	for {
		reply, err := c.ask(ctx, agent.StreamRequest{Poll: true, OutputAt: output, ErrorsAt: errs, Wait: messages.Duration(streamPoll)})
		if err != nil {
			return 0, err
		}
		if output, err = pass(c.Out, reply.Output, reply.OutputAt, output); err != nil {
			return 0, err
		}
		if errs, err = pass(c.Errs, reply.Errors, reply.ErrorsAt, errs); err != nil {
			return 0, err
		}
		if reply.Ended {
			c.close(ctx)
			return reply.ExitCode, nil
		}
	}
}

// stay sends requests while the client sends nothing else. Otherwise the node would end the command, because its client
// is silent.
func (c *Stream) stay(ctx context.Context) {
	tick := time.NewTicker(streamStay)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if time.Since(time.UnixMilli(c.asked.Load())) >= streamStay {
			_, _ = c.ask(ctx, agent.StreamRequest{})
		}
	}
}

// Close tells the node that the client no longer needs the stream.
func (c *Stream) Close(ctx context.Context) { c.close(ctx) }

// close tells the node that the client no longer needs the stream. If this message is lost, the node ends the stream
// later, when it has heard nothing from the client.
func (c *Stream) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, streamPoll)
	defer cancel()
	_, _ = c.ask(ctx, agent.StreamRequest{Close: true})
}

// pass writes the bytes of a piece that are new, and returns the position after the piece. The argument `at` is the
// position of the piece. The argument `have` is the position up to which bytes were already written.
func pass(to io.Writer, piece []byte, at, have int64) (int64, error) {
	if skip := have - at; skip > 0 {
		piece = piece[min(skip, int64(len(piece))):]
		at = have
	}
	if len(piece) == 0 {
		return max(at, have), nil
	}
	_, err := to.Write(piece)
	return at + int64(len(piece)), err
}

func (c *Stream) send(ctx context.Context, at int64) {
	piece := make([]byte, agent.MaxStreamPiece)
	for {
		n, err := c.In.Read(piece)
		rest, end := piece[:n], err != nil
		for len(rest) > 0 || end {
			reply, err := c.ask(ctx, agent.StreamRequest{Input: rest, InputAt: at, InputEnd: end, Wait: messages.Duration(streamPoll)})
			if err != nil {
				return
			}
			took := min(max(reply.InputNext-at, 0), int64(len(rest)))
			if rest, at = rest[took:], reply.InputNext; len(rest) == 0 && end {
				return
			}
		}
	}
}

// passedOn are the signals that this process passes on to the task, with their names.
var passedOn = map[os.Signal]string{syscall.SIGINT: "INT", syscall.SIGTERM: "TERM", syscall.SIGHUP: "HUP", syscall.SIGQUIT: "QUIT",
	syscall.SIGUSR1: "USR1", syscall.SIGUSR2: "USR2"}

// impatient is the number of interrupts after which this process ends, if the site answers none of them.
const impatient = 3

// Interact opens the stream, and passes on input, output, signals and the terminal's size. It returns the remote exit
// code.
func (c *Stream) Interact(ctx context.Context, onTerminal bool) (code int, err error) {
	c.In, c.Out, c.Errs = c.App.In, c.App.Out, c.App.Err
	signals := make(chan os.Signal, 16)
	ending := []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT}
	if !signal.Ignored(syscall.SIGHUP) { // under nohup, the command survives the end of the terminal
		ending = append(ending, syscall.SIGHUP)
	}
	signal.Notify(signals, append(ending, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH)...)
	signal.Ignore(syscall.SIGPIPE) // a write to a closed pipe then returns an error, and the command can be ended
	defer signal.Stop(signals)
	opening, opened := signal.NotifyContext(ctx, ending...)
	defer opened()
	from, err := c.Open(opening)
	if opening.Err() != nil { // the user has stopped waiting for the task to begin
		if c.Begin != nil { // no other client uses this stream
			c.close(context.WithoutCancel(ctx))
		}
		return 0, context.Canceled
	}
	if opened(); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // an interrupt does not end ctx: signals go to the task
	defer cancel()
	if in, is := c.App.In.(*os.File); is && onTerminal && terminal.IsTerminal(in) {
		state, err := term.MakeRaw(int(in.Fd()))
		if err != nil {
			return 0, err
		}
		defer func() { _ = term.Restore(int(in.Fd()), state) }()
	}
	go func() {
		interrupts := 0
		for {
			select {
			case <-ctx.Done():
				return
			case s := <-signals:
				switch {
				case s == syscall.SIGWINCH && onTerminal:
					columns, rows := terminal.Size(c.App.Out)
					go c.ask(ctx, agent.StreamRequest{Rows: rows, Columns: columns})
				case s == syscall.SIGINT:
					if interrupts++; interrupts >= impatient && c.lost.Load() {
						cancel()
					}
					fallthrough
				case passedOn[s] != "":
					go c.Signal(ctx, passedOn[s])
				}
			}
		}
	}()
	code, err = c.Copy(ctx, from)
	if errors.Is(err, syscall.EPIPE) { // the process that reads the output has ended, for example head
		c.close(ctx)
		err = cli.ExitStatus(128 + int(syscall.SIGPIPE))
	}
	return code, err
}

// Window returns what the node must know about this terminal, such as its size.
func Window(a *cli.App, onTerminal bool) job.Interactive {
	i := job.Interactive{Terminal: onTerminal}
	if onTerminal {
		i.Columns, i.Rows = terminal.Size(a.Out)
	}
	return i
}
