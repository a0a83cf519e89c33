package submit

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/jobfile"
	"github.com/candor-grid/candor/cmd/candor/internal/client/jobs"
	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	jobmsg "github.com/candor-grid/candor/messages/job"
	marketmsg "github.com/candor-grid/candor/messages/market"
)

type interaction struct {
	*submission
	terminal     bool
	quiet        bool
	linger, idle time.Duration
	of           string // salloc or srun, which say in Slurm's words how the job goes on; "" for candor run
}

func runCommand(a *cli.App) *cobra.Command {
	run := &interaction{}
	cmd := &cobra.Command{
		Use:   "run [flags] -- COMMAND...",
		Short: "run a command on the site, with this shell's input and output",
		Long: `Run a command as a job of one task, with the standard input, output and signals
of this process. The exit code is the code of the command, or 127 if the command
cannot be started. With -t the command has a terminal. The job waits for a slot
like any other job; Ctrl-C gives up waiting. With --site a peer of your site
runs the command.

The most that the job may cost, the present price of a slot and the time of
--idle are shown before the command starts, and the charge at its end. The
output goes only to this client: candor logs cannot print it. If the client
reads slowly, the command waits for the client.

If the connection is lost, the command goes on, and the client connects again.
If the client is lost, candor attach can take the command over during the time
of --linger; then the site ends the command. With --idle the site also ends a
command that has had no input and no output for that time. A command whose slot
or node is lost is not run again.`,
		Example: `  candor run -b 1 -- hostname
  candor run -b 5 -t -- python3
  tar c data | candor run -b 2 -- tar tv`,
	}
	cmd, run.submission = describing(a, cmd)
	cmd.Args = cobra.MinimumNArgs(1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		job, err := OfCommand(a, run.options, args)
		if err != nil {
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
		Long: `Open a login shell in a slot of the site, like candor run -t with the login
shell of the user that runs your tasks. The slot costs as much as for another
job, also while the shell waits for you.`,
		Example: "  candor shell -b 5\n  candor shell -b 5 --idle 30m --class gpu",
	}
	cmd, run.submission = describing(a, cmd)
	cmd.Args = cobra.NoArgs
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
	cmd.Flags().DurationVar(&i.linger, "linger", agent.DefaultLinger.Std(), "the `time` for which the command goes on after the connection to its client is lost")
	cmd.Flags().DurationVar(&i.idle, "idle", 0, "end the command after this `time` without input or output (default: never)")
	cmd.Flags().BoolVarP(&i.quiet, "quiet", "q", false, "do not print the job and its cost")
}

func OfCommand(a *cli.App, options *jobfile.Options, words []string) (*jobfile.Job, error) {
	job := jobfile.OfCommand(words)
	return job, finish(a, job, options, filepath.Base(words[0]))
}

// Interact runs the command of a job with this process's input, output and signals. The argument `of` is the name of
// Slurm's command that does so: salloc or srun.
func Interact(ctx context.Context, a *cli.App, job *jobfile.Job, of string, onTerminal, quiet bool) error {
	i := &interaction{terminal: onTerminal, quiet: quiet, linger: agent.DefaultLinger.Std(), of: of}
	return i.do(ctx, a, job)
}

func (i *interaction) do(ctx context.Context, a *cli.App, job *jobfile.Job) error {
	if err := AssumeBudget(a, job); err != nil {
		return err
	}
	stage := &job.Spec.Stages[0]
	window := jobs.Window(a, i.terminal)
	window.Linger, window.Idle = messages.Duration(i.linger), messages.Duration(i.idle)
	stage.Interactive, stage.Attempts = &window, 1
	if kind := a.Getenv("TERM"); kind != "" && i.terminal {
		job.Spec.Env = job.Spec.Env.Overlaid(jobmsg.Env{{Name: "TERM", Value: kind}})
	}
	if i.quiet {
		job.Warnings = nil
	}
	s, reply, err := Send(ctx, a, job, "", false)
	if err != nil {
		return err
	}
	defer s.Bus.Close()
	i.say(a, "Job %v may cost up to %s, paid by %s%s", reply.Job, cli.Credits(reply.Held), reply.Payer, i.terms(ctx, s, reply.Site, reply.Market, stage.Class))
	t, err := i.started(ctx, a, s, reply.Job)
	if err != nil {
		_ = i.cancel(ctx, s, reply.Job)
		return err
	}
	if t.Node == "" { // the job ended before a task was claimed
		return i.end(ctx, a, s, t, 0, nil)
	}
	if i.of == salloc {
		i.say(a, "salloc: Granted job allocation %v", reply.Job)
	}
	stream := jobs.StreamOf(a, s, t, reply.Site != "", nil)
	stream.Over = func(ctx context.Context) error { return lostFor(ctx, a, s, t) }
	stream.Comes = func(ctx context.Context) bool { return runsStill(ctx, s, t) }
	code, err := stream.Interact(ctx, i.terminal)
	if i.of == salloc {
		i.say(a, "salloc: Relinquishing job allocation %v", reply.Job)
	}
	return i.end(context.WithoutCancel(ctx), a, s, t, code, err)
}

func (i *interaction) say(a *cli.App, format string, args ...any) {
	if !i.quiet {
		fmt.Fprintf(a.Err, format+"\n", args...)
	}
}

// salloc is the command of Slurm that makes an allocation.
const salloc = "salloc"

// terms says what the slot costs now, and when the site ends the command.
func (i *interaction) terms(ctx context.Context, s *cli.Session, site, market, class messages.Name) (text string) {
	if i.quiet {
		return ""
	}
	if site != "" {
		text = "\nThe command runs at site " + site
		market = ""
	}
	all, _ := cli.Call[marketmsg.MarketsReply](ctx, s, messages.Auctioneer, messages.VerbMarkets, messages.Empty{}) // after an error, the text has no price
	for _, m := range all.Markets {
		for _, t := range m.Tariffs {
			if m.Market.Name == market && t.Class == cmp.Or(class, m.Market.Classes[0]) {
				text = "\nNow " + cmp.Or(strings.Replace(cli.Tariff(t), "scarce now", "scarce", 1), "nobody else wants a slot of "+t.Class+", so a slot costs nothing")
			}
		}
	}
	if i.idle > 0 {
		text += fmt.Sprintf("\nThe command ends after %v without input or output", messages.Duration(i.idle))
	}
	return text
}

// cancel cancels the job of a command whose user has gone.
func (i *interaction) cancel(ctx context.Context, s *cli.Session, job messages.JobID) error {
	_, err := cli.Call[jobmsg.CancelReply](context.WithoutCancel(ctx), s, messages.Auctioneer, messages.VerbCancel, jobmsg.CancelRequest{Job: job})
	return err
}

// started waits until the task has begun, or until the job has ended without a task. A task that has already ended also
// counts, because its output and exit code are kept.
func (i *interaction) started(ctx context.Context, a *cli.App, s *cli.Session, job messages.JobID) (*jobmsg.TaskStatus, error) {
	told := false
	for d, began := 20*time.Millisecond, a.Now(); ; d = min(d+d/2, time.Second) {
		detail, jobErr := cli.Call[jobmsg.JobDetail](ctx, s, messages.Auctioneer, messages.VerbJob, jobmsg.JobRequest{Job: job})
		tasks, err := cli.Call[jobmsg.TasksReply](ctx, s, messages.Auctioneer, messages.VerbTasks, jobmsg.TasksRequest{Job: job})
		if err == nil && len(tasks.Tasks) > 0 && tasks.Tasks[0].Node != "" && tasks.Tasks[0].State != "Gathering" && tasks.Tasks[0].State != "Pending" {
			if told && i.of != "" {
				i.say(a, "%s: job %v has been allocated resources", i.of, job)
			}
			return &tasks.Tasks[0], nil
		}
		if err == nil && jobErr == nil && detail.State >= jobmsg.Settling {
			return &jobmsg.TaskStatus{Task: messages.TaskRef{Job: job}}, nil
		}
		if err != nil && !messages.KindOf(err).Retriable() {
			return nil, err
		}
		if !told && a.Now().Sub(began) > time.Second {
			told = true
			if i.of == salloc {
				i.say(a, "salloc: Pending job allocation %v", job)
			}
			if i.of != "" {
				i.say(a, "%s: job %v queued and waiting for resources", i.of, job)
			}
			i.say(a, "Waiting for a slot; \"candor why %v\" says why. Ctrl-C cancels the job.", job)
		}
		if err := a.Pause(ctx, d); err != nil {
			return nil, err
		}
	}
}

// outputKept is how long a node keeps the last output of an ended command.
const outputKept = 2 * time.Minute

// lostFor is called when a task's node does not answer. It returns nil if it makes sense to wait, because the node may
// answer again. It returns an error if the task has ended or is lost.
func lostFor(ctx context.Context, a *cli.App, s *cli.Session, t *jobmsg.TaskStatus) error {
	tasks, err := cli.Call[jobmsg.TasksReply](ctx, s, messages.Auctioneer, messages.VerbTasks, jobmsg.TasksRequest{Job: t.Task.Job})
	if err != nil {
		return nil
	}
	if len(tasks.Tasks) > 0 && tasks.Tasks[0].Attempt == t.Attempt {
		switch now := &tasks.Tasks[0]; now.State {
		case "Running", "Suspended":
			return nil
		case "Done", "Failed", "Cancelled":
			if a.Now().Sub(now.Ended.Std()) < outputKept {
				return nil
			}
		}
	}
	return messages.Errorf(messages.Ended, "the node was lost, and the command with it: run the command again")
}

// runsStill reports whether the leader counts the task's present attempt as running. If the leader does not answer, the
// result is true, because the attempt may run.
func runsStill(ctx context.Context, s *cli.Session, t *jobmsg.TaskStatus) bool {
	tasks, err := cli.Call[jobmsg.TasksReply](ctx, s, messages.Auctioneer, messages.VerbTasks, jobmsg.TasksRequest{Job: t.Task.Job})
	if err != nil {
		return messages.KindOf(err).Retriable()
	}
	return len(tasks.Tasks) > 0 && tasks.Tasks[0].Attempt == t.Attempt && (tasks.Tasks[0].State == "Running" || tasks.Tasks[0].State == "Suspended")
}

func beginsAgain(ctx context.Context, s *cli.Session, t *jobmsg.TaskStatus) bool {
	tasks, err := cli.Call[jobmsg.TasksReply](ctx, s, messages.Auctioneer, messages.VerbTasks, jobmsg.TasksRequest{Job: t.Task.Job})
	return err == nil && len(tasks.Tasks) > 0 && tasks.Tasks[0].Attempt > t.Attempt
}

// cannotStart is the exit code for a command that cannot be started, as in shells.
const cannotStart = 127

// endWithin is how long to wait until the site has settled a job after its command.
var endWithin = 15 * time.Second

// The method end waits until the job has ended, prints its cost, and returns the command's exit code. In three cases,
// it cancels the job. First, the site wants to run the job's task again after a failure. Second, nobody reads the
// output. Third, the node did not begin the task.
func (i *interaction) end(ctx context.Context, a *cli.App, s *cli.Session, t *jobmsg.TaskStatus, code int, err error) error {
	job := t.Task.Job
	if messages.KindOf(err) == messages.Conflict { // another client uses the job now
		return err
	}
	notThere := messages.KindOf(err) == messages.NotFound // the node never had a stream for the task, or does not keep it any more
	if notThere {
		err = nil
	} else if err != nil {
		_ = i.cancel(ctx, s, job)
	}
	parent := ctx
	ctx, cancel := context.WithTimeout(ctx, endWithin)
	defer cancel()
	settling := false
	for d := 20 * time.Millisecond; ctx.Err() == nil; d = min(d+d/2, time.Second) {
		detail, askErr := cli.Call[jobmsg.JobDetail](ctx, s, messages.Auctioneer, messages.VerbJob, jobmsg.JobRequest{Job: job})
		switch {
		case askErr == nil && detail.State.Final():
			message := ""
			if detail.Message != "" && detail.State != jobmsg.Completed {
				message = ": " + terminal.Safe(detail.Message)
			}
			i.say(a, "Job %v %v, %s charged%s", job, detail.State, cli.Credits(detail.Charged), message)
			if notThere && detail.State == jobmsg.Completed {
				return messages.Errorf(messages.NotFound, "job %v completed, but the end of its output is lost: a node keeps the output only for %v", job, messages.Duration(outputKept))
			}
			switch {
			case detail.Reason == "CannotStart":
				code = cannotStart
			case err == nil && code == 0:
				code = jobs.ExitCode(detail.JobSummary)
			}
			return jobs.ExitWith(code, err)
		case askErr == nil && (detail.State == jobmsg.Waiting || beginsAgain(ctx, s, t)): // the site would run the task again
			_ = i.cancel(ctx, s, t.Task.Job)
		case askErr == nil && detail.State == jobmsg.Settling:
			settling = true
		}
		_ = a.Pause(ctx, d)
	}
	if notThere && !settling { // the job has not ended, and this command cannot use it
		if err := i.cancel(parent, s, job); err != nil {
			return messages.Errorf(messages.KindOf(err), "node %s has no output of the command, and job %v could not be cancelled (%s): cancel it with \"candor cancel %v\"", t.Node, job, messages.Detail(err), job)
		}
		return messages.Errorf(messages.NotFound, "node %s has no output of the command: job %v was cancelled; run the command again", t.Node, job)
	}
	if notThere {
		return messages.Errorf(messages.Unavailable, "the command of job %v has ended, but the site has not settled its cost yet: \"candor jobs %v\" says how it ended", job, job)
	}
	return jobs.ExitWith(code, err)
}
