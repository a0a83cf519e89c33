package submit

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/jobfile"
	"github.com/candor-grid/candor/cmd/candor/internal/client/jobs"
	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
)

// interaction is what was asked for on the command line of run.
type interaction struct {
	*submission
	terminal     bool
	quiet        bool
	linger, idle time.Duration
}

func runCommand(a *cli.App) *cobra.Command {
	run := &interaction{}
	cmd := &cobra.Command{
		Use:   "run [flags] -- COMMAND...",
		Short: "run a command on the site, with its input and output here",
		Long: `Run a command as a job of one task, with the standard input, output and signals
of this process. The exit code is that of the command. With -t the command has a
terminal. The job waits for a slot as any other; Ctrl-C gives up waiting.

The most that the job may cost is shown before it starts, and the charge at its
end. The output goes here alone, and candor logs does not keep it. A command
whose reader is slow waits for the reader.

After a lost connection the command and this client go on where they were. If
the client is lost, the command has --linger to be taken over by candor attach,
and then it is ended. With --idle it is ended too after a time without input or
output. A command whose slot or node is lost is not run again.`,
		Example: `  candor run -b 1 -- hostname
  candor run -b 5 -t -- python3
  tar c data | candor run -b 2 -- tar tv`,
		Args: cobra.MinimumNArgs(1),
	}
	cmd, run.submission = describing(a, cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		job := jobfile.OfCommand(args)
		if err := finish(a, job, run.options, filepath.Base(args[0])); err != nil {
			return err
		}
		return run.do(cmd.Context(), a, job)
	}
	run.flags(cmd)
	cmd.Flags().BoolVarP(&run.terminal, "terminal", "t", false, "give the command a terminal")
	return cmd
}

func shellCommand(a *cli.App) *cobra.Command {
	run := &interaction{terminal: true}
	cmd := &cobra.Command{
		Use:   "shell [flags]",
		Short: "open a login shell in a slot of the site",
		Long: `Open a login shell in a slot of the site: candor run -t with a shell of the user
as whom your tasks run. The slot costs what it costs other jobs, also while the
shell waits for you.`,
		Example: "  candor shell -b 5\n  candor shell -b 5 --idle 30m --class gpu",
		Args:    cobra.NoArgs,
	}
	cmd, run.submission = describing(a, cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		job := jobfile.OfCommand([]string{"/bin/sh", "-c", `if [ "${SHELL:-/bin/sh}" = /bin/sh ] && command -v bash >/dev/null; then exec bash -l; fi; exec "$SHELL" -l`})
		if err := finish(a, job, run.options, "shell"); err != nil {
			return err
		}
		return run.do(cmd.Context(), a, job)
	}
	run.flags(cmd)
	return cmd
}

func (i *interaction) flags(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&i.linger, "linger", messages.DefaultLinger.Std(), "how `long` the command runs after its client was lost")
	cmd.Flags().DurationVar(&i.idle, "idle", 0, "end the command after so `long` without input or output (default: never)")
	cmd.Flags().BoolVarP(&i.quiet, "quiet", "q", false, "say nothing of the job and its cost")
}

// do submits the job, waits for its task, and is its terminal.
func (i *interaction) do(ctx context.Context, a *cli.App, job *jobfile.Job) error {
	if job.Site != "" {
		return cli.Usagef("--site: only tasks of your own site can be reached while they run: use candor submit --site")
	}
	if err := AssumeBudget(a, job); err != nil {
		return err
	}
	stage := &job.Spec.Stages[0]
	window := jobs.Window(a, i.terminal)
	window.Linger, window.Idle = messages.Duration(i.linger), messages.Duration(i.idle)
	stage.Interactive, stage.Attempts = &window, 1
	if kind := a.Getenv("TERM"); kind != "" && i.terminal {
		job.Spec.Env = job.Spec.Env.Overlaid(messages.Env{{Name: "TERM", Value: kind}})
	}
	if i.quiet {
		job.Warnings = nil
	}
	s, reply, err := Send(ctx, a, job, "", false)
	if err != nil {
		return err
	}
	defer s.Bus.Close()
	i.say(a, "Job %v may cost %s of %s", reply.Job, cli.Credits(reply.Held), reply.Payer)
	t, err := i.started(ctx, a, s, reply.Job)
	if err != nil {
		i.cancel(ctx, s, reply.Job)
		return err
	}
	if t == nil { // it has ended already, or could not start
		return jobs.Wait(ctx, a, s, reply.Job)
	}
	stream := jobs.StreamOf(a, s, t, nil)
	stream.Over = func(ctx context.Context) error { return lostFor(ctx, s, t) }
	code, err := stream.Interact(ctx, i.terminal)
	return i.end(context.WithoutCancel(ctx), a, s, t, code, err)
}

func (i *interaction) say(a *cli.App, format string, args ...any) {
	if !i.quiet {
		fmt.Fprintf(a.Err, format+"\n", args...)
	}
}

// cancel ends a job that nobody is at any more.
func (i *interaction) cancel(ctx context.Context, s *cli.Session, job messages.JobID) {
	_, _ = cli.Call[messages.CancelReply](context.WithoutCancel(ctx), s, messages.Auctioneer, messages.VerbCancel, messages.CancelRequest{Job: job})
}

// started waits until the task runs; nil: the job has ended.
func (i *interaction) started(ctx context.Context, a *cli.App, s *cli.Session, job messages.JobID) (*messages.TaskStatus, error) {
	told := false
	for d, began := 20*time.Millisecond, a.Now(); ; d = min(d+d/2, time.Second) {
		tasks, err := cli.Call[messages.TasksReply](ctx, s, messages.Auctioneer, messages.VerbTasks, messages.TasksRequest{Job: job})
		if err == nil && len(tasks.Tasks) > 0 {
			if t := tasks.Tasks[0]; t.State == "Running" || t.State == "Suspended" {
				return &t, nil
			}
		}
		detail, jobErr := cli.Call[messages.JobDetail](ctx, s, messages.Auctioneer, messages.VerbJob, messages.JobRequest{Job: job})
		if jobErr == nil && detail.State >= messages.Settling {
			return nil, nil
		}
		if err != nil && !messages.KindOf(err).Retriable() {
			return nil, err
		}
		if !told && a.Now().Sub(began) > time.Second {
			told = true
			i.say(a, "Waiting for a slot; candor why %v says why. Ctrl-C cancels the job.", job)
		}
		if err := a.Pause(ctx, d); err != nil {
			return nil, err
		}
	}
}

// lostFor says why a task that does not answer will not come back; nil: it may.
func lostFor(ctx context.Context, s *cli.Session, t *messages.TaskStatus) error {
	tasks, err := cli.Call[messages.TasksReply](ctx, s, messages.Auctioneer, messages.VerbTasks, messages.TasksRequest{Job: t.Task.Job})
	if err != nil {
		return nil
	}
	if len(tasks.Tasks) != 1 || tasks.Tasks[0].Attempt != t.Attempt || tasks.Tasks[0].State != "Running" && tasks.Tasks[0].State != "Suspended" {
		return messages.Errorf(messages.Ended, "the command is lost with its node")
	}
	return nil
}

// beginsAgain reports whether a later attempt of the task has begun.
func beginsAgain(ctx context.Context, s *cli.Session, t *messages.TaskStatus) bool {
	tasks, err := cli.Call[messages.TasksReply](ctx, s, messages.Auctioneer, messages.VerbTasks, messages.TasksRequest{Job: t.Task.Job})
	return err == nil && len(tasks.Tasks) == 1 && tasks.Tasks[0].Attempt > t.Attempt
}

// endWithin is how long the site may take to settle a job whose command has ended.
const endWithin = 15 * time.Second

// end says what the job has cost, cancels a job that would begin again or that nobody reads,
// and returns the exit code of the command.
func (i *interaction) end(ctx context.Context, a *cli.App, s *cli.Session, t *messages.TaskStatus, code int, err error) error {
	job := t.Task.Job
	if messages.KindOf(err) == messages.Conflict { // another client has the job now
		return err
	}
	notThere := messages.KindOf(err) == messages.NotFound // before it had a stream
	if notThere {
		err = nil
	} else if err != nil {
		i.cancel(ctx, s, job)
	}
	ctx, cancel := context.WithTimeout(ctx, endWithin)
	defer cancel()
	for d := 20 * time.Millisecond; ctx.Err() == nil; d = min(d+d/2, time.Second) {
		detail, askErr := cli.Call[messages.JobDetail](ctx, s, messages.Auctioneer, messages.VerbJob, messages.JobRequest{Job: job})
		switch {
		case askErr == nil && detail.State.Final():
			message := ""
			if detail.Message != "" && detail.State != messages.Completed {
				message = ": " + terminal.Safe(detail.Message)
			}
			i.say(a, "Job %v %v, %s charged%s", job, detail.State, cli.Credits(detail.Charged), message)
			if err == nil && code == 0 {
				code = jobs.ExitCode(detail.JobSummary)
			}
			return jobs.ExitWith(code, err)
		case askErr == nil && (detail.State == messages.Waiting || beginsAgain(ctx, s, t)): // its slot was lost
			i.cancel(ctx, s, t.Task.Job)
		}
		_ = a.Pause(ctx, d)
	}
	return jobs.ExitWith(code, err)
}
