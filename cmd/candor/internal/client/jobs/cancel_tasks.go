package jobs

import (
	"context"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
)

func (c *cancellation) cancelTasks(ctx context.Context, a *cli.App, s *cli.Session, args []string) error {
	switch {
	case len(args) != 1:
		return cli.Usagef("--task, --array and --stage need the number of one job")
	case (c.tasks == "") == (c.array == ""):
		return cli.Usagef("name the tasks to cancel with --task or --array")
	case c.dryRun:
		return cli.Usagef("--dry-run can be used only with flags that choose jobs, not with flags that choose tasks")
	}
	job, err := cli.JobNumber(args[0])
	if err != nil {
		return err
	}
	r := jobmsg.CancelRequest{Job: job}
	flag, text := "--task", c.tasks
	if c.array != "" {
		flag, text = "--array", c.array
	}
	chosen, bound, err := jobmsg.ParseArray(text)
	if err != nil || bound != 0 {
		return cli.Usagef("%s %s: must be numbers and ranges, such as 3-7 or 1,4,9", flag, terminal.Safe(text))
	}
	if r.Tasks = chosen; c.stage != "" || c.array != "" {
		if err := c.place(ctx, s, &r); err != nil {
			return err
		}
	}
	return cli.Ask(ctx, a, s, messages.Auctioneer, messages.VerbCancel, r, func(p *cli.Page, r jobmsg.CancelReply) {
		p.Printf("Cancelled %s of job %v\n", terminal.Plural(r.Tasks, "task"), r.Job)
	})
}

// place writes the number of the stage into the request r. With --array, r has indices of the array; place replaces
// them by the positions of these tasks in the stage.
func (c *cancellation) place(ctx context.Context, s *cli.Session, r *jobmsg.CancelRequest) error {
	job, err := cli.Call[jobmsg.JobDetail](ctx, s, messages.Auctioneer, messages.VerbJob, jobmsg.JobRequest{Job: r.Job})
	if err != nil {
		return err
	}
	for i := range job.Stages {
		if job.Stages[i].Name == c.stage || c.stage == "" && len(job.Stages) == 1 {
			r.Stage = &i
		}
	}
	switch {
	case r.Stage == nil && c.stage == "":
		return cli.Usagef("job %v has %d stages: name one with --stage", r.Job, len(job.Stages))
	case r.Stage == nil:
		return messages.Errorf(messages.NotFound, "--stage %s: job %v has no such stage: `candor job %v` lists the stages", c.stage, r.Job, r.Job)
	case c.array == "":
		return nil
	}
	indices := job.Spec.Stages[*r.Stage].Array
	if len(indices) == 0 {
		return cli.Usagef("--array: stage %s of job %v is no array; choose tasks with --task", job.Stages[*r.Stage].Name, r.Job)
	}
	r.Tasks, err = indices.Positions(r.Tasks)
	return err
}
