package jobs

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/clearing"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

type logsQuery struct {
	job      messages.JobID
	stage    string
	task     int
	attempt  uint32 // 0 means the latest attempt
	follow   bool
	stdout   bool
	stderr   bool
	noPrefix bool
}

func (q *logsQuery) flags(cmd *cobra.Command) {
	cmd.Flags().IntVar(&q.task, "task", -1, "only the task at this `position` in its stage, from 0 on")
	cmd.Flags().Lookup("task").DefValue = "0" // without this, the help would show -1
	cmd.Flags().StringVar(&q.stage, "stage", "", "only tasks of this `stage`")
}

// ofJob returns an action that takes the query's job from the first argument, and then runs the action `do`.
func (q *logsQuery) ofJob(do cli.Action) cli.Action {
	return func(ctx context.Context, s *cli.Session, args []string) (err error) {
		if q.task < -1 {
			return cli.Usagef("--task %d: must be the position of a task, from 0 on", q.task)
		}
		if q.job, err = cli.JobNumber(args[0]); err != nil {
			return err
		}
		return do(ctx, s, args)
	}
}

func logsCommand(a *cli.App) *cobra.Command {
	q := logsQuery{}
	cmd := &cobra.Command{
		Use:   "logs NUMBER",
		Short: "print what the tasks of a job wrote",
		Long: `Print the output of a job's tasks: of the latest attempt of each task, or of the
attempt that --attempt names. The node that ran a task keeps the output of every
attempt.

Standard output and standard error are both printed, or only one of the two with
--stdout or --stderr. A node keeps the two in two files. So the output of a task
is printed first, then its errors. With --follow, the command waits for tasks to
start and prints both as they come, until the job ends.

The output of one task is printed unchanged. With several tasks, each line
begins with the name of the task: "map.3 |" for output, "map.3 !" for errors. If
there is no output, the command says so on a terminal.

In a market with the mechanism deadline, the output of a job can be read when
the job is settled: at its deadline at the latest, or at its end if that is
later. An operator can change this with hand_over: end.

The site keeps the beginning and the end of a long output: 64 MiB together, or
the size that the operator has set (tasks.output_mib). A line between the two
parts says how many bytes are missing.`,
		Example: `  candor logs 17
  candor logs 17 -f
  candor logs 17 --stage reduce --task 0 --stderr
  candor logs 17 --task 500 --attempt 1`,
		RunE: a.Online(q.ofJob(func(ctx context.Context, s *cli.Session, args []string) error {
			if q.attempt > 0 && q.follow {
				return cli.Usagef("--attempt and --follow exclude each other: --follow prints every attempt from the latest on")
			}
			return logs(ctx, a, s, q)
		})),
		ValidArgsFunction: a.CompleteJobs(false),
	}
	cmd.Flags().BoolVarP(&q.follow, "follow", "f", false, "print output as it comes, until the job ends")
	q.flags(cmd)
	cmd.Flags().Uint32Var(&q.attempt, "attempt", 0, "this `attempt` of each task, from 1 on; \"candor tasks --attempts\" lists the attempts")
	cmd.Flags().BoolVar(&q.stdout, "stdout", false, "only standard output")
	cmd.Flags().BoolVar(&q.stderr, "stderr", false, "only standard error")
	cmd.MarkFlagsMutuallyExclusive("stdout", "stderr")
	cmd.Flags().BoolVar(&q.noPrefix, "no-prefix", false, "print lines without the names of the tasks")
	return cmd
}

// maxFollowed is the largest number of tasks whose output is followed at once.
const maxFollowed = 1000

// longPoll is how long a node waits for more output before it answers a request.
const longPoll = 2 * time.Second

func logs(ctx context.Context, a *cli.App, s *cli.Session, q logsQuery) error {
	r, err := newReader(ctx, a, s, q)
	if err != nil {
		return err
	}
	if q.follow && r.selected > maxFollowed {
		return messages.Errorf(messages.TooLarge, "job %v has %d tasks, and at most %d can be followed at once: choose tasks with --task or --stage", q.job, r.selected, maxFollowed)
	}
	if q.follow {
		err = r.followAll(ctx)
	} else {
		err = r.printAll(ctx)
	}
	if err == nil && !r.wrote && !a.Flags.JSON && a.Width(a.Err) > 0 {
		a.Warn("logs", []string{r.nothing()})
	}
	return err
}

// The method nothing returns a sentence that says that the task wrote no output. The sentence is only for terminals. A
// program gets only the output itself.
func (r *logReader) nothing() string {
	what, to, yet := "job "+r.query.job.String(), "", ""
	if r.query.stage != "" || r.query.task >= 0 || r.query.attempt > 0 {
		what = "this part of " + what
	}
	switch {
	case r.query.stdout:
		to = " to standard output"
	case r.query.stderr:
		to = " to standard error"
	}
	if r.job.State < jobmsg.Settling && !r.query.follow {
		yet = " so far"
	}
	return what + " wrote nothing" + to + yet
}

type logReader struct {
	app      *cli.App
	session  *cli.Session
	query    logsQuery
	job      jobmsg.JobDetail
	stage    *int // the selected stage; nil means all stages
	selected int  // number of tasks that the query selects

	mu     sync.Mutex // protects failed, wrote and the app's outputs
	failed error      // error of the first task that could not be read
	wrote  bool       // output was printed
}

func newReader(ctx context.Context, a *cli.App, s *cli.Session, q logsQuery) (*logReader, error) {
	job, err := cli.Call[jobmsg.JobDetail](ctx, s, messages.Auctioneer, messages.VerbJob, jobmsg.JobRequest{Job: q.job})
	if err != nil {
		return nil, err
	}
	if job.Kept && job.Account == s.Account {
		return nil, jobmsg.ErrKept(job.Job, job.Spec.Deadline)
	}
	r := &logReader{app: a, session: s, query: q, job: job}
	return r, r.selectTasks()
}

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
		return messages.Errorf(messages.NotFound, "--stage %s: job %v has no such stage: `candor job %v` lists the stages", q.stage, q.job, q.job)
	}
	if r.selected == 0 {
		return messages.Errorf(messages.NotFound, "--task %d: no stage of job %v has so many tasks: `candor job %v` lists the stages", q.task, q.job, q.job)
	}
	return nil
}

const namedStages = 3

// chosen returns words for the selected tasks, such as "task map.0" or "tasks map.0 to map.9, sort.0".
func (r *logReader) chosen() string {
	var parts []string
	for i, stage := range r.job.Stages {
		switch {
		case r.stage != nil && i != *r.stage, r.query.task >= stage.Tasks:
		case r.query.task >= 0 || stage.Tasks == 1:
			parts = append(parts, fmt.Sprintf("%s.%d", stage.Name, max(0, r.query.task)))
		case stage.Tasks > 1:
			parts = append(parts, fmt.Sprintf("%s.0 to %s.%d", stage.Name, stage.Name, stage.Tasks-1))
		}
	}
	if len(parts) > namedStages {
		parts = append(parts[:namedStages], "...")
	}
	noun := "tasks "
	if r.selected == 1 {
		noun = "task "
	}
	return noun + strings.Join(parts, ", ")
}

// noneHas returns a sentence such as "none of the 3 tasks has left files". The argument `done` has its last words, here
// "left files".
func (r *logReader) noneHas(done string) string {
	if r.selected == 1 {
		return r.chosen() + " has not " + done
	}
	return "none of the " + r.chosen() + " has " + done
}

// eachTask calls f for every selected task that a node has claimed.
func (r *logReader) eachTask(ctx context.Context, f func(jobmsg.TaskStatus) error) error {
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

func (r *logReader) eachTaskOf(ctx context.Context, stage int, f func(jobmsg.TaskStatus) error) error {
	ask := jobmsg.TasksRequest{Job: r.query.job, Stage: &stage, Limit: cli.MaxPage, Attempts: r.query.attempt > 0}
	if r.query.task >= 0 {
		ask.From, ask.Limit = uint32(r.query.task), 1
	}
	for {
		reply, err := cli.Call[jobmsg.TasksReply](ctx, r.session, messages.Auctioneer, messages.VerbTasks, ask)
		if err != nil {
			return err
		}
		for rest := reply.Tasks; len(rest) > 0; {
			n := 1
			for n < len(rest) && rest[n].Task == rest[0].Task {
				n++
			}
			index := rest[0].Task.Index
			if r.query.task >= 0 && index != uint32(r.query.task) {
				return nil
			}
			if t, ok := r.choose(rest[:n]); ok {
				if err := f(t); err != nil {
					return err
				}
			}
			ask.From, rest = index+1, rest[n:]
		}
		if !reply.More || len(reply.Tasks) == 0 || r.query.task >= 0 {
			return nil
		}
	}
}

// choose returns the attempt to read: the latest one, or the named one. The argument `attempts` has all known attempts
// of one task, the latest at the end. If the site no longer knows the attempt, the result has no node. If the task
// never had it, choose returns false.
func (r *logReader) choose(attempts []jobmsg.TaskStatus) (jobmsg.TaskStatus, bool) {
	latest := attempts[len(attempts)-1]
	if r.query.attempt == 0 {
		return latest, latest.Attempt > 0
	}
	for _, t := range attempts {
		if t.Attempt == r.query.attempt {
			return t, true
		}
	}
	known := r.query.attempt < latest.Attempt
	latest.Attempt, latest.Node = r.query.attempt, ""
	return latest, known
}

func (r *logReader) printAll(ctx context.Context) error {
	found := false
	err := r.eachTask(ctx, func(t jobmsg.TaskStatus) error {
		found = true
		return r.readBoth(ctx, t)
	})
	if err == nil && !found && r.query.attempt > 0 {
		return messages.Errorf(messages.NotFound, "job %v has no attempt %d of %s: `candor tasks %v --attempts` lists the attempts",
			r.query.job, r.query.attempt, r.chosen(), r.query.job)
	}
	if err == nil && !found {
		return messages.Errorf(messages.NotFound, "job %v is %v, and %s: wait with --follow, or see `candor why %v`",
			r.query.job, r.job.State, r.noneHas("started"), r.query.job)
	}
	if err == nil {
		err = r.failed
	}
	return err
}

// followAll follows the output of each attempt from its claim on. It returns when the job has ended and all output is
// read.
func (r *logReader) followAll(ctx context.Context) error {
	var readers sync.WaitGroup
	defer readers.Wait()
	ctx, cancel := context.WithCancel(ctx)
	followed := make(map[messages.Attempt]bool)
	start := func(t jobmsg.TaskStatus) error {
		attempt := messages.Attempt{Task: t.Task, Number: t.Attempt}
		if !followed[attempt] {
			followed[attempt] = true
			for _, stderr := range r.streams() {
				readers.Go(func() { r.keep(r.read(ctx, t, stderr, true)) })
			}
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

// watch lists the tasks again and again until the job has ended, and calls start for each task. It asks for the job's
// state first, so that it misses no attempt.
func (r *logReader) watch(ctx context.Context, start func(jobmsg.TaskStatus) error) error {
	for d := firstPause; ; d = nextPause(d) {
		job, err := cli.Call[jobmsg.JobDetail](ctx, r.session, messages.Auctioneer, messages.VerbJob, jobmsg.JobRequest{Job: r.query.job})
		if err == nil {
			err = r.eachTask(ctx, start)
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && !messages.KindOf(err).Retriable():
			return err
		case err == nil && job.State >= jobmsg.Settling:
			return nil
		}
		if err := r.app.Pause(ctx, d); err != nil {
			return err
		}
	}
}

// streams returns the outputs to print: false for standard output, true for standard error.
func (r *logReader) streams() []bool {
	switch {
	case r.query.stdout:
		return []bool{false}
	case r.query.stderr:
		return []bool{true}
	}
	return []bool{false, true}
}

func (r *logReader) readBoth(ctx context.Context, t jobmsg.TaskStatus) error {
	if t.Node == "" {
		node, err := r.findNode(ctx, t)
		if err != nil {
			return r.unreadable(ctx, t, err)
		}
		t.Node = node
	}
	for _, stderr := range r.streams() {
		if err := r.read(ctx, t, stderr, false); err != nil {
			return err
		}
	}
	return nil
}

// findNode finds the node that ran an attempt, if the site no longer knows it. It asks every node that is not lost.
func (r *logReader) findNode(ctx context.Context, t jobmsg.TaskStatus) (messages.Name, error) {
	gone := messages.Errorf(messages.NotFound, "the site no longer knows where attempt %d ran, and no node has the output of this attempt", t.Attempt)
	if r.job.Away != nil {
		return "", gone
	}
	all, err := cli.Call[market.NodesReply](ctx, r.session, messages.Auctioneer, messages.VerbNodes, messages.Empty{})
	if err != nil {
		return "", err
	}
	ask := agent.LogsRequest{Attempt: messages.Attempt{Task: t.Task, Number: t.Attempt}, Limit: 1}
	for _, n := range all.Nodes {
		if n.State == "Lost" {
			continue
		}
		if _, err := r.ask(ctx, n.Node, ask); err == nil {
			return n.Node, nil
		} else if ctx.Err() != nil {
			return "", ctx.Err()
		}
	}
	return "", gone
}

// read prints one output stream of an attempt. If `follow` is true, it continues until the attempt has ended. If the
// node does not answer, read reports this, and the other tasks are still read.
func (r *logReader) read(ctx context.Context, t jobmsg.TaskStatus, stderr, follow bool) error {
	out := r.output(t, stderr)
	defer out.Close()
	ask := agent.LogsRequest{Attempt: messages.Attempt{Task: t.Task, Number: t.Attempt}, Stderr: stderr}
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

// ask reads a piece of output from a node. At another site, the auctioneer of the user's site fetches the piece.
func (r *logReader) ask(ctx context.Context, node messages.Name, q agent.LogsRequest) (agent.LogsReply, error) {
	if r.job.Away != nil {
		return cli.Call[agent.LogsReply](ctx, r.session, messages.Auctioneer, clearing.VerbOutput, clearing.OutputRequest{Node: node, Logs: q})
	}
	return cli.CallAt[agent.LogsReply](ctx, r.session, messages.LogsSubject(r.session.Site, node, r.session.Account), q)
}

func (r *logReader) unreadable(ctx context.Context, t jobmsg.TaskStatus, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	name := r.name(t.Task)
	if t.Node != "" {
		name += " on node " + t.Node
	}
	r.keep(cli.Within(name, silentNode(err)))
	return nil
}

// silentNode rewrites the error for a node that did not get the request. It returns other errors unchanged.
func silentNode(err error) error {
	if !bus.Nobody(err) {
		return err
	}
	return messages.Errorf(messages.Unavailable, "the node does not answer: it is down, or was removed from the site; the output is on its disk, and can be read when the node runs again")
}

func (r *logReader) keep(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed == nil {
		r.failed = err
	}
}

// name returns the name of a task: its stage and position, such as map.3.
func (r *logReader) name(t messages.TaskRef) string {
	if int(t.Stage) < len(r.job.Stages) {
		return fmt.Sprintf("%s.%d", r.job.Stages[t.Stage].Name, t.Index)
	}
	return t.String()
}

// output returns a writer for an output stream of a task, in the form that the user chose.
func (r *logReader) output(t jobmsg.TaskStatus, stderr bool) logOutput {
	to := &lockedWriter{mu: &r.mu, to: r.app.Out, wrote: &r.wrote}
	switch {
	case r.app.Flags.JSON:
		return &jsonOutput{to: to, task: t, stderr: stderr}
	case r.selected == 1 || r.query.noPrefix && !r.query.follow:
		return &rawOutput{to: to}
	}
	prefix := ""
	switch style := r.app.Style(r.app.Out); {
	case r.query.noPrefix:
	case stderr:
		prefix = style.Yellow(r.name(t.Task)+" !") + " "
	default:
		prefix = style.Cyan(r.name(t.Task)+" |") + " "
	}
	return &lineOutput{to: to, prefix: prefix}
}
