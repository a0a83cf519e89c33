package jobs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
)

// runningTasks returns the tasks of a query that run now. The result `away` says whether they run at another site.
func runningTasks(ctx context.Context, a *cli.App, s *cli.Session, q logsQuery) (running []job.TaskStatus, away bool, err error) {
	r, err := newReader(ctx, a, s, q)
	if err != nil {
		return nil, false, err
	}
	err = r.eachTask(ctx, func(t job.TaskStatus) error {
		if t.State == "Running" || t.State == "Suspended" {
			running = append(running, t)
		}
		return nil
	})
	if err == nil && len(running) == 0 {
		err = messages.Errorf(messages.Conflict, "job %v is %v, and none of the chosen tasks runs: \"candor tasks %v\" lists all tasks", q.job, r.job.State, q.job)
	}
	return running, r.job.Away != nil, err
}

// oneRunning returns the only running task that a query selects. It returns an error if the query selects several
// tasks. The result `away` says whether the task runs at another site.
func oneRunning(ctx context.Context, a *cli.App, s *cli.Session, q logsQuery) (t job.TaskStatus, away bool, err error) {
	all, away, err := runningTasks(ctx, a, s, q)
	if err == nil && len(all) > 1 {
		err = messages.Errorf(messages.Invalid, "%d tasks of job %v run: choose one with --task or --stage", len(all), q.job)
	}
	if err != nil {
		return t, false, err
	}
	return all[0], away, nil
}

// StreamOf returns a stream that connects this process to a process of a running task. If `begin` is nil, this is the
// task's own process. Otherwise a new process is started on the task's node, as `begin` describes, and the stream
// connects to it.
func StreamOf(a *cli.App, s *cli.Session, t *job.TaskStatus, away bool, begin *agent.StreamBegin) *Stream {
	return &Stream{App: a, Session: s, Node: t.Node, Away: away, Attempt: messages.Attempt{Task: t.Task, Number: t.Attempt}, Begin: begin}
}

// If `err` is not nil, ExitWith returns it. Otherwise it returns an error that makes this process end with the remote
// exit code, or nil for code 0.
func ExitWith(code int, err error) error {
	if err != nil || code == 0 {
		return err
	}
	return cli.ExitStatus(code)
}

func attachCommand(a *cli.App) *cobra.Command {
	q := logsQuery{}
	cmd := &cobra.Command{
		Use:   "attach NUMBER",
		Short: "take over the input and output of a job of \"candor run\"",
		Long: `Take over the standard input, output and signals of a job that "candor run"
started, after its client was lost or from another machine. A client that is
still attached gets a message, and ends. The command prints what the job wrote
while no client was attached. After 256 KiB without a client the job waits for
one.

The exit code is that of the command.`,
		Example: "  candor attach 17",
		RunE: a.Online(q.ofJob(func(ctx context.Context, s *cli.Session, args []string) error {
			t, away, err := oneRunning(ctx, a, s, q)
			if err != nil {
				return err
			}
			return ExitWith(StreamOf(a, s, &t, away, nil).Interact(ctx, terminal.IsTerminal(a.In)))
		})),
		ValidArgsFunction: a.CompleteJobs(true),
	}
	return cmd
}

func execCommand(a *cli.App) *cobra.Command {
	q := logsQuery{}
	var onTerminal bool
	cmd := &cobra.Command{
		Use:   "exec NUMBER -- COMMAND...",
		Short: "run a command on the node of a running task",
		Long: `Run a command on the node of a running task, as the user of the task, in its
directory, with its variables and within its limits. The command ends when the
task ends. The exit code is the exit code of the command.`,
		Example: "  candor exec 17 -- ps aux\n  candor exec 17 --task 3 -t -- bash",
		Args:    cobra.MinimumNArgs(2),
		RunE: a.Online(q.ofJob(func(ctx context.Context, s *cli.Session, args []string) error {
			t, away, err := oneRunning(ctx, a, s, q)
			if err != nil {
				return err
			}
			begin := &agent.StreamBegin{Command: args[1:], Interactive: Window(a, onTerminal), Term: a.Getenv("TERM")}
			return ExitWith(StreamOf(a, s, &t, away, begin).Interact(ctx, onTerminal))
		})),
		ValidArgsFunction: a.CompleteJobs(true),
	}
	q.flags(cmd)
	cmd.Flags().BoolVarP(&onTerminal, "terminal", "t", false, "give the command a terminal")
	return cmd
}

func signalCommand(a *cli.App) *cobra.Command {
	q := logsQuery{}
	cmd := &cobra.Command{
		Use:   "signal NUMBER SIGNAL",
		Short: "send a signal to the running tasks of a job",
		Long: `Send a signal to all processes of the running tasks of a job, or of one task.
The signal has a name, such as USR1, or a number. A task that is ended by KILL
has failed, and may be tried again. To end a job, use candor cancel.`,
		Example: "  candor signal 17 USR1\n  candor signal 17 --task 3 TERM",
		Args:    cobra.ExactArgs(2),
		RunE: a.Online(q.ofJob(func(ctx context.Context, s *cli.Session, args []string) error {
			return signalTasks(ctx, a, s, q, args[1])
		})),
		ValidArgsFunction: a.CompleteJobs(true),
	}
	q.flags(cmd)
	return cmd
}

func signalTasks(ctx context.Context, a *cli.App, s *cli.Session, q logsQuery, text string) error {
	name, err := job.ParseSignal(text)
	if err != nil {
		return err
	}
	running, away, err := runningTasks(ctx, a, s, q)
	if err != nil {
		return err
	}
	n, err := SignalTasks(ctx, s, running, away, agent.StreamRequest{Signal: name})
	if err != nil {
		return err
	}
	return a.Show(messages.Empty{}, func(p *cli.Page) {
		p.Printf("Sent SIG%s to %s of job %v\n", name, terminal.Plural(n, "task"), q.job)
	})
}

// SignalTasks sends a signal to running tasks. It returns how many got it, without tasks that ended in the meantime.
func SignalTasks(ctx context.Context, s *cli.Session, running []job.TaskStatus, away bool, r agent.StreamRequest) (n int, err error) {
	for _, t := range running {
		r.Attempt = messages.Attempt{Task: t.Task, Number: t.Attempt}
		ctx, cancel := context.WithTimeout(ctx, s.Timeout)
		_, err := askStream(ctx, s, t.Node, away, &r)
		cancel()
		if err == nil {
			n++
		} else if messages.KindOf(err) != messages.Ended {
			return n, messages.Errorf(messages.KindOf(err), "task %v on %s: %s", t.Task, t.Node, messages.Detail(err))
		}
	}
	return n, nil
}

func portCommand(a *cli.App) *cobra.Command {
	q := logsQuery{}
	cmd := &cobra.Command{
		Use:   "port NUMBER [LOCAL:]PORT",
		Short: "forward a port of this machine to a running task",
		Long: `Forward a port of this machine to a port of a running task, for example of a
notebook. Both ports have the same number, unless LOCAL names another one; with
LOCAL 0 the command takes any free port. Only this machine can connect. Stop
with Ctrl-C.

If the task runs on this machine, as with candor up, the local port cannot be
the port of the task: without LOCAL the command takes any free port.`,
		Example: "  candor port 17 8888\n  candor port 17 0:8888",
		Args:    cobra.ExactArgs(2),
		RunE: a.Online(q.ofJob(func(ctx context.Context, s *cli.Session, args []string) error {
			t, away, err := oneRunning(ctx, a, s, q)
			if err != nil {
				return err
			}
			return forward(ctx, a, s, &t, away, args[1])
		})),
	}
	q.flags(cmd)
	return cmd
}

// forward passes connections on a local port to the task, until ctx or the task ends.
func forward(ctx context.Context, a *cli.App, s *cli.Session, t *job.TaskStatus, away bool, text string) error {
	local, remote, two := strings.Cut(text, ":")
	if !two {
		remote = local
	}
	port, err := strconv.ParseUint(remote, 10, 16)
	if _, localErr := strconv.ParseUint(local, 10, 16); err != nil || localErr != nil || port == 0 {
		return cli.Usagef("%q: write a port, from 1 to 65535, or LOCAL:PORT", text)
	}
	if local == remote && hasNode(a, t.Node) { // otherwise the node and this command would connect to each other without end
		if two {
			return cli.Usagef("%q: the task runs on this machine (node %s), and port %s is its own port: choose another local port, as in candor port %v 0:%s", text, t.Node, remote, t.Task.Job, remote)
		}
		local = "0"
	}
	listener, err := net.Listen("tcp", "127.0.0.1:"+local)
	if errors.Is(err, syscall.EADDRINUSE) {
		return cli.Usagef("port %s of this machine is in use (by the task itself, if the task runs on this machine): choose another local port, as in candor port %v 0:%s", local, t.Task.Job, remote)
	}
	if err != nil {
		return cli.Usagef("%v", err)
	}
	fmt.Fprintf(a.Out, "Forwarding %v to port %d of task %v on %s\n", listener.Addr(), port, t.Task, t.Node)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	var open sync.WaitGroup
	defer open.Wait()
	for {
		conn, err := listener.Accept()
		if err != nil {
			if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
				return cause
			}
			return nil
		}
		open.Go(func() {
			stream := StreamOf(a, s, t, away, &agent.StreamBegin{Port: int(port), Interactive: job.Interactive{Linger: portLinger}})
			if err := stream.connect(ctx, conn); messages.KindOf(err) == messages.NotFound {
				cancel(err) // the task has ended
			} else if err != nil && ctx.Err() == nil {
				a.Tell(fmt.Sprintf("candor port: %s", cli.Sentence(err)))
			}
		})
	}
}

// hasNode reports whether a node of the site runs on this machine, in a directory that the user can read.
func hasNode(a *cli.App, node messages.Name) bool {
	state, local, err := a.LocalSite()
	t, unresolved := a.Resolve(false)
	if err != nil || unresolved != nil || t.Server != local.Server || t.Site != local.Site {
		return false
	}
	_, err = os.Stat(filepath.Join(state, "nodes", node))
	return err == nil
}

// portLinger is how long the task's side of a forwarded connection stays open after the last request of its client.
const portLinger = messages.Duration(time.Minute)

// connect passes data between a local connection and the task until one side has closed.
func (c *Stream) connect(ctx context.Context, conn net.Conn) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer conn.Close()
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	from, err := c.Open(ctx)
	if err != nil {
		return err
	}
	c.In, c.Out, c.Errs = conn, conn, conn
	if _, err := c.Copy(ctx, from); err != nil {
		c.close(context.WithoutCancel(ctx))
		if _, is := errors.AsType[*net.OpError](err); !is {
			return err
		}
	}
	return nil
}
