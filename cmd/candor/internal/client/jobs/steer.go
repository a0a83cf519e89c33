package jobs

import (
	"cmp"
	"context"
	"crypto/rand"
	"slices"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/jobfile"
	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

func holdCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "hold NUMBER...",
		Short: "put jobs on hold: they get no more tasks",
		Long: `Put jobs on hold: a job on hold gets no more tasks until it is released. Running
tasks go on. Only an operator can release a job that an operator put on hold.

The bank still holds the budget of a job on hold. The job loses its place in a
queue. A job that has reserved slots, has a contract or competes in a deadline
market cannot be put on hold. "candor submit --hold" submits a job on hold.`,
		Example: "  candor hold 17\n  candor hold 17 18 --json",
		RunE: a.Online(func(ctx context.Context, s *cli.Session, args []string) error {
			return each(a, "hold", args, func(arg string) error { return askJob(ctx, a, s, job.VerbHold, arg, writeHold) })
		}),
		ValidArgsFunction: a.CompleteJobs(true),
	}
}

func releaseCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "release NUMBER...",
		Short:   "release jobs that are on hold",
		Long:    "Release jobs that are on hold. The jobs get tasks again, as if submitted now.",
		Example: "  candor release 17\n  candor release 17 18",
		RunE: a.Online(func(ctx context.Context, s *cli.Session, args []string) error {
			return each(a, "release", args, func(arg string) error { return askJob(ctx, a, s, job.VerbRelease, arg, writeHold) })
		}),
		ValidArgsFunction: a.CompleteJobs(true),
	}
}

func writeHold(p *cli.Page, r job.HoldReply) {
	switch {
	case r.Hold && !r.Changed:
		p.Printf("Job %v is on hold already\n", r.Job)
	case r.Hold && r.Running > 0:
		p.Printf("Job %v is on hold; %s on\n", r.Job, verb(r.Running, "goes", "go"))
	case r.Hold:
		p.Printf("Job %v is on hold\n", r.Job)
	case !r.Changed:
		p.Printf("Job %v is not on hold\n", r.Job)
	default:
		p.Printf("Released job %v\n", r.Job)
	}
}

// verb writes a number of tasks with a verb, such as "1 task was" or "2 tasks were".
func verb(n int, one, several string) string {
	if n == 1 {
		return "1 task " + one
	}
	return terminal.Plural(n, "task") + " " + several
}

func requeueCommand(a *cli.App) *cobra.Command {
	q := logsQuery{}
	cmd := &cobra.Command{
		Use:   "requeue NUMBER",
		Short: "end running tasks of a job, and run them again",
		Long: `End running tasks of a job, and run them again from the beginning: all running
tasks, or only the tasks of --stage or --task. The job pays for the time that
the tasks had. The ended attempts do not count against the limit of attempts.
All tasks of a gang begin again together.`,
		Example: "  candor requeue 17\n  candor requeue 17 --task 5\n  candor requeue 17 --stage map --task 5 --json",
		RunE: a.Online(q.ofJob(func(ctx context.Context, s *cli.Session, args []string) error {
			r, err := q.requeue(ctx, s)
			if err != nil {
				return err
			}
			return cli.Ask(ctx, a, s, messages.Auctioneer, job.VerbRequeue, r, func(p *cli.Page, r job.RequeueReply) {
				p.Printf("Job %v: %s ended and will run again\n", r.Job, verb(r.Tasks, "is", "are"))
			})
		})),
		ValidArgsFunction: a.CompleteJobs(true),
	}
	q.flags(cmd)
	return cmd
}

func (q *logsQuery) requeue(ctx context.Context, s *cli.Session) (job.RequeueRequest, error) {
	r := job.RequeueRequest{Job: q.job}
	if q.task >= 0 {
		r.Task = new(uint32(q.task))
	}
	if q.stage == "" && q.task < 0 {
		return r, nil
	}
	job, err := cli.Call[job.JobDetail](ctx, s, messages.Auctioneer, messages.VerbJob, job.JobRequest{Job: q.job})
	if err != nil {
		return r, err
	}
	for i := range job.Stages {
		if job.Stages[i].Name == q.stage {
			r.Stage = &i
		}
	}
	switch {
	case q.stage != "" && r.Stage == nil:
		return r, messages.Errorf(messages.NotFound, "--stage %s: job %v has no such stage: `candor job %v` lists the stages", q.stage, q.job, q.job)
	case q.stage == "" && len(job.Stages) > 1:
		return r, cli.Usagef("--task %d: job %v has %d stages: name one with --stage", q.task, q.job, len(job.Stages))
	}
	return r, nil
}

type changes struct {
	job.ChangeRequest
	budget, rate, limit, stage string
	mostRunning                int
	comment                    string
	waits                      *jobfile.Options
	waitsForNothing            bool
	changed                    func(flag string) bool
}

func changeCommand(a *cli.App) *cobra.Command {
	c := &changes{waits: jobfile.NewOptions(nil)}
	cmd := &cobra.Command{
		Use:   "change NUMBER",
		Short: "change a job that has not ended",
		Long: `Change a job that has not ended. The name, the comment, and the number of tasks
that run at once can change at any time. The time limit of a stage, and what the
job waits for, can change before any task has started: --after and similar
options replace everything that the job waited for. A job can only wait for jobs
that were submitted before it.

The command "candor markets" says in which markets the budget can be raised, and
in which the rate, before any task has started. The bank sets the larger budget
aside before the change is in force. No bid can be lowered: otherwise people
would bid more than the truth and take the bid back later. For all other
changes, cancel the job and submit it again.`,
		Example: "  candor change 17 --budget 20\n  candor change 17 --name again --max-running 4\n  candor change 17 --stage map --time 2h --json",
		RunE: a.Online(func(ctx context.Context, s *cli.Session, args []string) (err error) {
			if c.Job, err = cli.JobNumber(args[0]); err != nil {
				return err
			}
			return change(ctx, a, s, c)
		}),
		ValidArgsFunction: a.CompleteJobs(true),
	}
	c.changed = cmd.Flags().Changed
	cmd.Flags().StringVarP(&c.budget, "budget", "b", "", "the most the job may cost, in `credits`: more than before")
	cmd.Flags().StringVar(&c.rate, "rate", "", "bid for an hour on a slot, in `credits`, as in 36/h, or for a second, as in 0.01: more than before")
	cmd.Flags().StringVarP(&c.Name, "name", "J", "", "`name` of the job")
	cmd.Flags().StringVarP(&c.limit, "time", "t", "", "`limit` of one attempt of a task: 1h30m, 2:00:00; a bare number is minutes")
	cmd.Flags().IntVar(&c.mostRunning, "max-running", -1, "at most this `number` of tasks at once; 0: no bound")
	cmd.Flags().Lookup("max-running").DefValue = "0" // without this, the help would show -1
	cmd.Flags().StringVar(&c.comment, "comment", "", "a `text` for people, shown by candor job")
	for _, name := range conditions {
		cmd.Flags().AddFlag(c.waits.Flags.Lookup(name))
	}
	cmd.Flags().BoolVar(&c.waitsForNothing, "after-nothing", false, "wait for no job any more")
	cmd.Flags().StringVar(&c.stage, "stage", "", "the `stage` that --time and --max-running change (default: the only one)")
	cmd.Flags().StringVar(&c.Key, "key", "", "idempotency `key` of the change (default: random)")
	return cmd
}

var conditions = []string{"after", "after-ok", "after-failed", "after-start", "after-any", "start-delay"}

func change(ctx context.Context, a *cli.App, s *cli.Session, c *changes) (err error) {
	waits := slices.ContainsFunc(conditions, c.changed)
	switch {
	case waits && c.waitsForNothing:
		return cli.Usagef("--after-nothing and the other --after options exclude each other: leave one of the two out")
	case waits, c.waitsForNothing:
		job := &jobfile.Job{Spec: job.JobSpec{Stages: make([]job.Stage, 1)}}
		if err := c.waits.Apply(job); err != nil {
			return err
		}
		c.Waits = job.Spec.Conditions()
	}
	if c.changed("comment") {
		c.Comment = &c.comment
	}
	if c.budget == "" && c.rate == "" && c.Name == "" && c.limit == "" && c.mostRunning < 0 && c.Waits == nil && c.Comment == nil {
		return cli.Usagef("say what to change: --budget, --rate, --name, --comment, --time, --max-running, --after or --after-nothing")
	}
	if c.mostRunning >= 0 {
		c.MaxRunning = &c.mostRunning
	}
	for _, amount := range []struct {
		flag, text string
		parse      func(string) (messages.Credits, error)
		into       *messages.Credits
	}{{"--budget", c.budget, messages.ParseCredits, &c.Budget}, {"--rate", c.rate, messages.ParsePrice, &c.Rate}} {
		if amount.text == "" {
			continue
		}
		if *amount.into, err = amount.parse(amount.text); err != nil || *amount.into <= 0 {
			return cli.Usagef("%s %q: must be a number of credits above 0, with at most six places", amount.flag, amount.text)
		}
	}
	if c.limit != "" {
		if c.TimeLimit, err = jobfile.ParseTime(c.limit); err != nil {
			return cli.Usagef("--time: %v", err)
		}
	}
	if c.stage != "" {
		r, err := (&logsQuery{job: c.Job, stage: c.stage, task: -1}).requeue(ctx, s)
		if err != nil {
			return err
		}
		c.Stage = r.Stage
	}
	c.Key = cmp.Or(c.Key, rand.Text())
	reply, err := cli.Call[job.ChangeReply](ctx, s, messages.Auctioneer, job.VerbChange, c.ChangeRequest)
	if err != nil {
		return err
	}
	return a.Show(reply, func(p *cli.Page) {
		if reply.Pending != 0 {
			p.Printf("Job %v is changed; its budget of %s becomes %v as soon as the bank answers\n", reply.Job, cli.Credits(reply.Budget), reply.Pending)
			return
		}
		p.Printf("Job %v is changed; its budget is %s\n", reply.Job, cli.Credits(reply.Budget))
	})
}
