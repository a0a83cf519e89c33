package submit

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"math/bits"
	"slices"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/jobs"
	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
)

type again struct {
	budget string
	key    string
	dryRun bool
	wait   bool
}

func rerunCommand(a *cli.App) *cobra.Command {
	r := &again{}
	cmd := &cobra.Command{
		Use:   "rerun NUMBER",
		Short: "submit the failed tasks of an ended job again",
		Long: `Submit a new job with the tasks of an ended job that failed, were stopped or
never began. Tasks that ended well do not run again. The new job has the same
files. Each task has the same array index, CANDOR_TASK and CANDOR_TASKS as
before. The new job names the old job.

The new budget is a part of the old budget, in proportion to the number of
tasks, and at least the value that the job declares. --budget sets another
budget.`,
		Example: "  candor rerun 17 --dry-run\n  candor rerun 17\n  candor rerun 17 --budget 5 --wait",
		RunE: a.Online(func(ctx context.Context, s *cli.Session, args []string) error {
			number, err := cli.JobNumber(args[0])
			if err != nil {
				return err
			}
			return rerun(ctx, a, s, number, r)
		}),
		ValidArgsFunction: a.CompleteJobs(false),
	}
	cmd.Flags().StringVarP(&r.budget, "budget", "b", "", "the most the new job may cost, in `credits` (default: a part of the old budget, in proportion to the tasks)")
	cmd.Flags().StringVar(&r.key, "key", "", "idempotency `key` of the submission (default: random)")
	cmd.Flags().BoolVarP(&r.wait, "wait", "W", false, "follow the new job and exit with its exit code")
	cmd.Flags().BoolVar(&r.dryRun, "dry-run", false, "only check the job, submit nothing")
	return cmd
}

// rerun submits a new job with the tasks of an earlier job that did not end well.
func rerun(ctx context.Context, a *cli.App, s *cli.Session, number messages.JobID, r *again) error {
	job, err := cli.Call[jobmsg.JobDetail](ctx, s, messages.Auctioneer, messages.VerbJob, jobmsg.JobRequest{Job: number})
	if err != nil {
		return err
	}
	spec, err := repeated(job, func(stage int) ([]uint32, error) { return unfinished(ctx, s, job, stage) })
	if err != nil {
		return err
	}
	if r.budget != "" {
		if spec.Budget, err = messages.ParseCredits(r.budget); err != nil {
			return cli.Usagef("--budget: %v", messages.Detail(err))
		}
	}
	if job.Away == nil {
		if cure, why := letTasksIn(a, spec.Dir); why != nil {
			return messages.Errorf(messages.Conflict, "job %v ran in %s: %v; %s, and submit the job again", number, spec.Dir, why, cure)
		}
	}
	if err := filesThere(ctx, s, &spec); err != nil {
		return err
	}
	request := jobmsg.SubmitRequest{Key: cmp.Or(r.key, rand.Text()), Spec: spec, DryRun: r.dryRun}
	if job.Away != nil {
		request.Site = job.Away.Site
	}
	reply, err := cli.Call[jobmsg.SubmitReply](ctx, s, messages.Auctioneer, messages.VerbSubmit, request)
	if err != nil {
		return err
	}
	show := func(p *cli.Page) {
		which := "the only task"
		if job.Tasks > 1 {
			which = fmt.Sprintf("%s of the %s", terminal.Count(reply.Tasks), terminal.Plural(job.Tasks, "task"))
		}
		p.Printf("%s of job %v did not end well; the new budget is %s, the old one was %s\n", which, number, cli.Credits(spec.Budget), cli.Credits(job.Budget))
		writeSubmitted(p, reply, r.dryRun)
	}
	switch wait := r.wait && !r.dryRun; {
	case !wait:
		return a.Show(reply, show)
	case !a.Flags.JSON:
		if err := a.Show(reply, show); err != nil {
			return err
		}
	}
	return jobs.Wait(ctx, a, s, reply.Job)
}

// repeated returns a new job with the tasks of an ended job that did not end well. If one of them is in a gang, the
// whole gang runs again. The function `todo` returns, for a stage, the positions of the tasks to run again.
func repeated(job jobmsg.JobDetail, todo func(stage int) ([]uint32, error)) (jobmsg.JobSpec, error) {
	spec := job.Spec
	switch {
	case !job.State.Final() && job.State != jobmsg.Settling:
		return spec, messages.Errorf(messages.Conflict, "job %v has not ended; \"candor requeue %v\" runs its running tasks again", job.Job, job.Job)
	case job.Running > 0:
		return spec, messages.Errorf(messages.Conflict, "job %v is over, but %s can still end well; repeat the command in some seconds", job.Job, terminal.Plural(job.Running, "running task"))
	case job.Done == job.Tasks:
		return spec, messages.Errorf(messages.Conflict, "every task of job %v ended well; there is nothing to run again", job.Job)
	case spec.Contract != "":
		return spec, messages.Errorf(messages.Conflict, "job %v had a contract, and a contract is for one job only: ask for a new contract with candor quote", job.Job)
	}
	spec.RerunOf, spec.Hold, spec.Stages = job.Job, false, nil
	spec.AfterJobs, spec.AfterOK, spec.AfterFailed, spec.AfterStart = nil, nil, nil, nil
	spec.AfterAny, spec.StartDelay, spec.AfterEach = false, 0, 0
	tasks := 0
	for i := range job.Spec.Stages {
		if job.Stages[i].Done == job.Stages[i].Tasks && !spec.Together {
			continue
		}
		stage := job.Spec.Stages[i]
		left, err := todo(i)
		if err != nil {
			return spec, err
		}
		if stage.Gang {
			left = span(job.Stages[i].Tasks)
		}
		tasks += len(left)
		if len(left) < job.Stages[i].Tasks {
			if err := stage.Narrow(left, job.Stages[i].Tasks); err != nil {
				return spec, err
			}
		}
		stage.After = slices.DeleteFunc(slices.Clone(stage.After), func(name messages.Name) bool { return finished(job, name) })
		spec.Stages = append(spec.Stages, stage)
	}
	spec.Budget = max(part(job.Budget, tasks, job.Tasks), spec.Value)
	return spec, nil
}

func span(n int) []uint32 {
	out := make([]uint32, n)
	for i := range out {
		out[i] = uint32(i)
	}
	return out
}

// finished reports whether each task of a stage succeeded.
func finished(job jobmsg.JobDetail, stage messages.Name) bool {
	i := slices.IndexFunc(job.Stages, func(s jobmsg.StageStatus) bool { return s.Name == stage })
	return i >= 0 && job.Stages[i].Done == job.Stages[i].Tasks
}

// part divides a budget that is for `all` tasks. It returns the part for `tasks` of these tasks, rounded up to a
// microcredit.
func part(budget messages.Credits, tasks, all int) messages.Credits {
	hi, lo := bits.Mul64(uint64(budget), uint64(tasks))
	quotient, rest := bits.Div64(hi, lo, uint64(all))
	if rest > 0 {
		quotient++
	}
	return messages.Credits(quotient)
}

// unfinished returns the tasks of a stage that did not end well, in ascending order.
func unfinished(ctx context.Context, s *cli.Session, job jobmsg.JobDetail, stage int) (left []uint32, err error) {
	done := map[uint32]bool{}
	r := jobmsg.TasksRequest{Job: job.Job, Stage: &stage, Limit: cli.MaxPage}
	for more := true; more; {
		reply, err := cli.Call[jobmsg.TasksReply](ctx, s, messages.Auctioneer, messages.VerbTasks, r)
		if err != nil {
			return nil, err
		}
		for _, t := range reply.Tasks {
			done[t.Task.Index] = t.State == "Done"
			r.From = t.Task.Index + 1
		}
		more = reply.More && len(reply.Tasks) > 0
	}
	for _, k := range span(job.Stages[stage].Tasks) {
		if !done[k] {
			left = append(left, k)
		}
	}
	return left, nil
}

func filesThere(ctx context.Context, s *cli.Session, spec *jobmsg.JobSpec) error {
	asked := map[string]bool{}
	for i := range spec.Stages {
		for _, f := range spec.Stages[i].Inputs {
			if asked[f.Digest] {
				continue
			}
			asked[f.Digest] = true
			r, err := cli.Call[jobmsg.PutReply](ctx, s, messages.Depot, jobmsg.VerbPut, jobmsg.PutRequest{Digest: f.Digest, Size: f.Size})
			if err != nil {
				return err
			}
			if !r.Done {
				return messages.Errorf(messages.NotFound, "input %s: the site no longer has the file; submit the job again with the file", f.Name)
			}
		}
	}
	return nil
}
