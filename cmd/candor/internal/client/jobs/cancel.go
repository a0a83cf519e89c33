package jobs

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

type cancellation struct {
	which       selection
	all         bool // all jobs of the caller that have not ended
	owner       string
	yes, dryRun bool
	tasks       string // positions of tasks in a stage of the job
	array       string // indices of elements of an array job
	stage       string
}

func cancelCommand(a *cli.App) *cobra.Command {
	var c cancellation
	cmd := &cobra.Command{
		Use:   "cancel [NUMBER]...",
		Short: "cancel jobs",
		Long: `Cancel jobs: running tasks are ended, waiting tasks are dropped, and the job is
charged for the time that it had. Every job that you name is tried. The exit
code is the code of the first job that could not be cancelled.

Instead of numbers, flags can choose your jobs: all jobs that fit every flag and
have not ended. The command lists these jobs and asks before it cancels them.
Where there is no terminal, --yes is needed. Only the listed jobs are cancelled,
and no job that was submitted later.

With --task or --array, only some tasks of one job are cancelled. The job runs
its other tasks, and then ends as Cancelled, or as Failed if a task failed. A
later stage that needs all of these tasks does not start. Tasks of a gang cannot
be cancelled alone, nor tasks in markets where a bid is for all tasks of a job.`,
		Example: `  candor cancel 17 18 19
  candor cancel 17 --task 3-7
  candor cancel --name 'train*' --state Waiting
  candor cancel --label run=7 --dry-run
  candor cancel --all --yes`,
		RunE: a.OnlineAs(func() bool { return c.owner != "" }, func(ctx context.Context, s *cli.Session, args []string) error {
			return c.run(ctx, a, s, args)
		}),
		ValidArgsFunction: a.CompleteJobs(true),
	}
	c.which.flags(a, cmd)
	f := cmd.Flags()
	f.BoolVar(&c.all, "all", false, "all jobs of yours that have not ended")
	f.StringVar(&c.owner, "owner", "", "jobs of this `account` instead of yours (operators)")
	f.BoolVarP(&c.yes, "yes", "y", false, "do not ask")
	f.StringVar(&c.tasks, "task", "", "only the tasks at these `positions` in their stage, from 0 on: 3-7 or 1,4,9")
	f.StringVar(&c.array, "array", "", "only the tasks with these `indices` of the job's array")
	f.StringVar(&c.stage, "stage", "", "the `stage` of these tasks (default: the only one)")
	f.BoolVar(&c.dryRun, "dry-run", false, "only list the jobs, cancel nothing")
	cmd.RegisterFlagCompletionFunc("owner", a.CompleteAccounts())
	return cmd
}

func (c *cancellation) run(ctx context.Context, a *cli.App, s *cli.Session, args []string) error {
	selects := c.all || c.owner != "" || !c.which.none()
	switch {
	case selects && len(args) > 0:
		return cli.Usagef("%s: give job numbers, or flags that choose jobs, not both", args[0])
	case !selects && len(args) == 0:
		return cli.Usagef("name the jobs: by numbers, --all, or flags such as --state and --name; see candor cancel --help")
	case c.all && !c.which.none():
		return cli.Usagef("--all cannot be used with another flag that chooses jobs: leave --all out")
	}
	if c.tasks != "" || c.array != "" || c.stage != "" {
		return c.cancelTasks(ctx, a, s, args)
	}
	if !selects {
		return cancelNumbers(ctx, a, s, args, c.dryRun)
	}
	found, err := c.find(ctx, a, s)
	if err != nil {
		return err
	}
	return c.cancel(ctx, a, s, found)
}

func (c *cancellation) find(ctx context.Context, a *cli.App, s *cli.Session) ([]job.JobSummary, error) {
	r := job.JobsRequest{Account: c.owner, Active: true, Limit: math.MaxInt}
	if err := c.which.fill(a, &r); err != nil {
		return nil, err
	}
	reply, err := listJobs(ctx, s, r)
	return slices.DeleteFunc(reply.Jobs, func(j job.JobSummary) bool { return j.State > job.Running }), err
}

func (c *cancellation) cancel(ctx context.Context, a *cli.App, s *cli.Session, found []job.JobSummary) error {
	if len(found) == 0 || c.dryRun {
		return a.Show(job.JobsReply{Jobs: found}, func(p *cli.Page) { writeChosen(p, found, "would be cancelled") })
	}
	if !c.yes {
		if err := agree(ctx, a, found); err != nil {
			return err
		}
	}
	ids := make([]messages.JobID, len(found))
	for i := range found {
		ids[i] = found[i].Job
	}
	return cancelJobs(ctx, a, s, ids)
}

// agree shows the user the jobs in the list `found`, and asks whether they should be cancelled. It returns nil if the
// user says yes.
func agree(ctx context.Context, a *cli.App, found []job.JobSummary) error {
	p := a.Page(a.Err)
	writeChosen(p, found, "to be cancelled")
	if _, err := a.Err.Write(p.Bytes()); err != nil {
		return err
	}
	if !terminal.IsTerminal(a.In) {
		return cli.Usagef("nothing was cancelled: give --yes to cancel %s without being asked", terminal.Plural(len(found), "job"))
	}
	yes, err := a.Agrees(ctx, "Cancel "+terminal.Plural(len(found), "job")+"?")
	if err == nil && !yes {
		fmt.Fprintln(a.Err, "Nothing was cancelled.")
		err = cli.ExitStatus(cli.CodeFailed)
	}
	return err
}

// mostChosen is the largest number of selected jobs that are shown.
const mostChosen = 20

func writeChosen(p *cli.Page, found []job.JobSummary, what string) {
	if len(found) == 0 {
		p.Printf("No active job fits the flags. Nothing was cancelled.\n")
		return
	}
	p.Printf("%s %s:\n", terminal.Plural(len(found), "job"), what)
	t := terminal.NewTable(">JOB|~NAME|~ACCOUNT|~MARKET|STATE|>BUDGET|SUBMITTED")
	for _, j := range found[:min(len(found), mostChosen)] {
		t.Row(j.Job.String(), terminal.Safe(j.Name), ownerOf(j), where(j), p.State(j.State), j.Budget.String(), p.At(j.Submitted))
	}
	p.Table(t, "  ")
	if more := len(found) - mostChosen; more > 0 {
		p.Printf("  and %d more\n", more)
	}
}

// cancelNumbers cancels the jobs whose numbers are in the arguments. If one argument is not a number, it cancels no
// job.
func cancelNumbers(ctx context.Context, a *cli.App, s *cli.Session, args []string, dryRun bool) error {
	ids := make([]messages.JobID, len(args))
	for i, arg := range args {
		var err error
		if ids[i], err = cli.JobNumber(arg); err != nil {
			return err
		}
	}
	switch {
	case dryRun:
		return cli.Usagef("--dry-run can be used only with flags that choose jobs, not with job numbers")
	case len(ids) == 1:
		return cli.Ask(ctx, a, s, messages.Auctioneer, messages.VerbCancel, job.CancelRequest{Job: ids[0]}, writeCancelled)
	}
	return cancelJobs(ctx, a, s, ids)
}

// cancelJobs cancels jobs and shows each result. It exits with the code of the first failure.
func cancelJobs(ctx context.Context, a *cli.App, s *cli.Session, ids []messages.JobID) error {
	var all job.CancelReply
	var failed error
	for part := range slices.Chunk(ids, job.MaxCancelled) {
		reply, err := cli.Call[job.CancelReply](ctx, s, messages.Auctioneer, messages.VerbCancel, job.CancelRequest{Jobs: part})
		if failed = err; failed != nil {
			break
		}
		all.Jobs = append(all.Jobs, reply.Jobs...)
	}
	if len(all.Jobs) == 0 {
		return failed
	}
	if err := a.Show(all, func(p *cli.Page) { writeAllCancelled(p, all.Jobs) }); err != nil {
		return err
	}
	for _, j := range all.Jobs {
		if j.Error == nil {
			continue
		}
		a.Warn("cancel", []string{cli.Sentence(cli.Within("job "+j.Job.String(), j.Error))})
		if failed == nil {
			failed = cli.ExitStatus(cli.ExitCode(j.Error))
		}
	}
	return failed
}

func writeAllCancelled(p *cli.Page, list []job.CancelOutcome) {
	done := 0
	for _, j := range list {
		if j.Error != nil {
			continue
		}
		if done++; len(list) <= mostChosen {
			writeCancelled(p, job.CancelReply{Job: j.Job, State: j.State, Away: j.Away})
		}
	}
	if len(list) > mostChosen {
		p.Printf("Cancelled %d of %s\n", done, terminal.Plural(len(list), "job"))
	}
}
