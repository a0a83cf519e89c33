package jobs

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/messages"
)

// logsQuery is what was asked for on the command line of logs.
type logsQuery struct {
	job      messages.JobID
	stage    string
	task     int
	follow   bool
	stderr   bool
	noPrefix bool
}

// flags are those that choose tasks of the job.
func (q *logsQuery) flags(cmd *cobra.Command) {
	cmd.Flags().IntVar(&q.task, "task", -1, "only the task at this `position` in its stage, from 0 on")
	cmd.Flags().StringVar(&q.stage, "stage", "", "only tasks of this `stage`")
}

// of sets the job that an argument names.
func (q *logsQuery) of(argument string) (err error) {
	if q.task < -1 {
		return cli.Usagef("--task %d: must be the position of a task, from 0 on", q.task)
	}
	q.job, err = jobNumber(argument)
	return err
}

func logsCommand(a *cli.App) *cobra.Command {
	q := logsQuery{}
	cmd := &cobra.Command{
		Use:   "logs NUMBER",
		Short: "print what the tasks of a job wrote",
		Long: `Print what the tasks of a job wrote, from the nodes that ran them: of each task its
latest attempt. The output of a single task comes as it is; of several tasks, in
the order of stage and index, each line behind the task's name. With --follow, wait
for tasks to start, and print as they write until the job ends.

Of a long output the site keeps the beginning and the end, 64 MiB together where it does
not say otherwise (tasks.output_mib). A line in between says how many bytes are missing.`,
		Example: `  candor logs 17
  candor logs 17 -f
  candor logs 17 --stage reduce --task 0 --stderr`,
		RunE: a.Online(func(ctx context.Context, s *cli.Session, args []string) error {
			if err := q.of(args[0]); err != nil {
				return err
			}
			return logs(ctx, a, s, q)
		}),
		ValidArgsFunction: a.CompleteJobs(false),
	}
	cmd.Flags().BoolVarP(&q.follow, "follow", "f", false, "print what is written until the job ends")
	q.flags(cmd)
	cmd.Flags().BoolVar(&q.stderr, "stderr", false, "standard error in place of standard output")
	cmd.Flags().BoolVar(&q.noPrefix, "no-prefix", false, "no task names before lines")
	return cmd
}

// maxFollowed bounds the tasks whose output is followed at once.
const maxFollowed = 1000

// longPoll is how long a node waits for more output before it answers.
const longPoll = 2 * time.Second

// logs prints the output of the tasks that the query selects.
func logs(ctx context.Context, a *cli.App, s *cli.Session, q logsQuery) error {
	r, err := newReader(ctx, a, s, q)
	if err != nil {
		return err
	}
	if q.follow {
		if r.selected > maxFollowed {
			return messages.Errorf(messages.TooLarge, "job %v has %d tasks, and at most %d can be followed at once: choose with --task or --stage", q.job, r.selected, maxFollowed)
		}
		return r.followAll(ctx)
	}
	return r.printAll(ctx)
}

// logReader reads the output of tasks of a job.
type logReader struct {
	app      *cli.App
	session  *cli.Session
	query    logsQuery
	job      messages.JobDetail
	stage    *int // the selected stage, nil for all
	selected int  // how many tasks the query selects

	mu     sync.Mutex // guards the app's outputs and failed
	failed error      // the first task that could not be read
}

// newReader asks for the job of a query and selects its tasks.
func newReader(ctx context.Context, a *cli.App, s *cli.Session, q logsQuery) (*logReader, error) {
	job, err := cli.Call[messages.JobDetail](ctx, s, messages.Auctioneer, messages.VerbJob, messages.JobRequest{Job: q.job})
	if err != nil {
		return nil, err
	}
	r := &logReader{app: a, session: s, query: q, job: job}
	return r, r.selectTasks()
}

// selectTasks finds the stage that the query names and counts its tasks.
func (r *logReader) selectTasks() error {
	q := r.query
	for i, stage := range r.job.Stages {
		if q.stage != "" && stage.Name != q.stage {
			continue
		}
		if q.stage != "" {
			r.stage = &i
		}
		switch {
		case q.task < 0:
			r.selected += stage.Tasks
		case q.task < stage.Tasks:
			r.selected++
		}
	}
	if q.stage != "" && r.stage == nil {
		return messages.Errorf(messages.NotFound, "--stage %s: job %v has no such stage: candor job %v lists them", q.stage, q.job, q.job)
	}
	if r.selected == 0 {
		return messages.Errorf(messages.NotFound, "--task %d: no stage of job %v has so many tasks: candor job %v lists them", q.task, q.job, q.job)
	}
	return nil
}

// eachTask calls f with every selected task that was ever claimed, page by page.
func (r *logReader) eachTask(ctx context.Context, f func(messages.TaskStatus) error) error {
	for stage := range r.job.Stages {
		if r.stage != nil && stage != *r.stage {
			continue
		}
		if err := r.eachTaskOf(ctx, stage, f); err != nil {
			return err
		}
	}
	return nil
}

func (r *logReader) eachTaskOf(ctx context.Context, stage int, f func(messages.TaskStatus) error) error {
	ask := messages.TasksRequest{Job: r.query.job, Stage: &stage, Limit: cli.MaxPage}
	if r.query.task >= 0 {
		ask.From, ask.Limit = uint32(r.query.task), 1
	}
	for {
		reply, err := cli.Call[messages.TasksReply](ctx, r.session, messages.Auctioneer, messages.VerbTasks, ask)
		if err != nil {
			return err
		}
		for _, t := range reply.Tasks {
			if r.query.task >= 0 && t.Task.Index != uint32(r.query.task) {
				return nil
			}
			if err := f(t); err != nil {
				return err
			}
			ask.From = t.Task.Index + 1
		}
		if !reply.More || len(reply.Tasks) == 0 || r.query.task >= 0 {
			return nil
		}
	}
}

// printAll prints what there is, task after task.
func (r *logReader) printAll(ctx context.Context) error {
	found := false
	err := r.eachTask(ctx, func(t messages.TaskStatus) error {
		found = true
		return r.read(ctx, t, false)
	})
	if err == nil && !found {
		return messages.Errorf(messages.NotFound, "job %v is %v, and none of these tasks has started: wait for them with --follow, or see candor why %v",
			r.query.job, r.job.State, r.query.job)
	}
	if err == nil {
		err = r.failed
	}
	return err
}

// followAll starts to read each attempt as it is claimed, until the job has
// ended and all is read.
func (r *logReader) followAll(ctx context.Context) error {
	var readers sync.WaitGroup
	defer readers.Wait()
	ctx, cancel := context.WithCancel(ctx)
	followed := make(map[messages.Attempt]bool)
	start := func(t messages.TaskStatus) error {
		attempt := messages.Attempt{Task: t.Task, Number: t.Attempt}
		if !followed[attempt] {
			followed[attempt] = true
			readers.Go(func() { r.keep(r.read(ctx, t, true)) })
		}
		return nil
	}
	if err := r.watch(ctx, start); err != nil {
		cancel()
		return err
	}
	readers.Wait()
	cancel()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

// watch calls start with the tasks there are, again and again until the job
// is over. The state is asked for before the tasks, so that no attempt is missed.
func (r *logReader) watch(ctx context.Context, start func(messages.TaskStatus) error) error {
	for d := firstPause; ; d = nextPause(d) {
		job, err := cli.Call[messages.JobDetail](ctx, r.session, messages.Auctioneer, messages.VerbJob, messages.JobRequest{Job: r.query.job})
		if err == nil {
			err = r.eachTask(ctx, start)
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && !messages.KindOf(err).Retriable():
			return err
		case err == nil && job.State >= messages.Settling:
			return nil
		}
		if err := r.app.Pause(ctx, d); err != nil {
			return err
		}
	}
}

// read prints the output of one attempt: what there is, or with follow until
// the attempt has ended. A node that does not answer is reported, and the
// other tasks are read nevertheless.
func (r *logReader) read(ctx context.Context, t messages.TaskStatus, follow bool) error {
	out := r.output(t)
	defer out.Close()
	ask := messages.LogsRequest{Attempt: messages.Attempt{Task: t.Task, Number: t.Attempt}, Stderr: r.query.stderr}
	if follow {
		ask.Wait = messages.Duration(min(longPoll, r.session.Timeout/2))
	}
	for {
		reply, err := r.ask(ctx, t.Node, ask)
		if err != nil {
			return r.unreadable(ctx, t, err)
		}
		if err := out.piece(reply); err != nil {
			return err
		}
		if reply.End || !follow && len(reply.Data) == 0 {
			return nil
		}
		ask.Offset = reply.Next
	}
}

// ask reads a piece of output from the node that has it; if another site runs the job,
// the auctioneer of the own site fetches the piece.
func (r *logReader) ask(ctx context.Context, node messages.Name, q messages.LogsRequest) (messages.LogsReply, error) {
	if r.job.Away != nil {
		return cli.Call[messages.LogsReply](ctx, r.session, messages.Auctioneer, messages.VerbOutput, messages.OutputRequest{Node: node, Logs: q})
	}
	return cli.CallAt[messages.LogsReply](ctx, r.session, messages.LogsSubject(r.session.Site, node, r.session.Account), q)
}

// unreadable reports a task whose output cannot be had.
func (r *logReader) unreadable(ctx context.Context, t messages.TaskStatus, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	r.keep(cli.Within(fmt.Sprintf("%s on node %s", r.name(t.Task), t.Node), err))
	return nil
}

// keep remembers the first failure.
func (r *logReader) keep(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed == nil {
		r.failed = err
	}
}

// name is how a task is called: by its stage and position.
func (r *logReader) name(t messages.TaskRef) string {
	if int(t.Stage) < len(r.job.Stages) {
		return fmt.Sprintf("%s.%d", r.job.Stages[t.Stage].Name, t.Index)
	}
	return t.String()
}

// output is where the output of a task goes, in its form.
func (r *logReader) output(t messages.TaskStatus) logOutput {
	to := &lockedWriter{mu: &r.mu, to: r.app.Out}
	switch {
	case r.app.Flags.JSON:
		return &jsonOutput{to: to, task: t, stderr: r.query.stderr}
	case r.selected == 1 || r.query.noPrefix && !r.query.follow:
		return &rawOutput{to: to}
	}
	prefix := ""
	if !r.query.noPrefix {
		prefix = r.app.Style(r.app.Out).Cyan(r.name(t.Task)+" |") + " "
	}
	return &lineOutput{to: to, prefix: prefix}
}
