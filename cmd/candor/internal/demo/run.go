package demo

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/money"
)

type run struct {
	grid     *grid
	workload *Workload
	example  fs.FS
	dir      string // directory where the example is unpacked and results are written
	progress *progress

	jobs []messages.JobID       // number of the job of each submission; 0 before the submission
	mine map[messages.JobID]int // index of the submission of each job
}

// interval is the time between two requests for the state of the jobs.
const interval = 200 * time.Millisecond

type submitted struct {
	index int
	job   messages.JobID
	err   error
}

// do submits the workload, follows it until it ends, and returns the report. An error says why there is no report.
func (r *run) do(ctx context.Context) (*Report, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.jobs, r.mine = make([]messages.JobID, len(r.workload.Submissions)), map[messages.JobID]int{}
	began := time.Now()
	accepted := make(chan submitted)
	go r.submitAll(ctx, began, accepted)
	if err := r.follow(ctx, began, accepted); err != nil {
		return nil, err
	}
	r.progress.end()
	return r.report(ctx)
}

// submitAll submits each job at its time, and sends the site's answer to the channel `accepted`.
func (r *run) submitAll(ctx context.Context, began time.Time, accepted chan<- submitted) {
	for i := range r.workload.Submissions {
		s := &r.workload.Submissions[i]
		select {
		case <-time.After(time.Until(began.Add(s.Due()))):
		case <-ctx.Done():
			return
		}
		request := jobmsg.SubmitRequest{Key: fmt.Sprintf("demo-%d", i+1), Spec: s.Spec(r.dir, outDir(r.dir, i, s))}
		reply, err := cli.Call[jobmsg.SubmitReply](ctx, r.grid.users[s.Account], messages.Auctioneer, messages.VerbSubmit, request)
		if err != nil {
			err = fmt.Errorf("submitting %s as %s: %w", s.Title(), s.Account, err)
		}
		select {
		case accepted <- submitted{i, reply.Job, err}:
		case <-ctx.Done():
			return
		}
	}
}

func (r *run) follow(ctx context.Context, began time.Time, accepted <-chan submitted) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case s := <-accepted:
			if s.err != nil {
				return s.err
			}
			r.jobs[s.index], r.mine[s.job] = s.job, s.index
		case <-ticker.C:
			now, err := r.look(ctx, began)
			if err != nil {
				return cmp.Or(context.Cause(ctx), err)
			}
			r.progress.show(now)
			if now.over() {
				return nil
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (r *run) look(ctx context.Context, began time.Time) (*snapshot, error) {
	s, err := r.grid.look(ctx, r.mine)
	if err != nil {
		return nil, fmt.Errorf("asking for the states of the jobs: %w", err)
	}
	s.elapsed, s.planned, s.tasks = time.Since(began), len(r.workload.Submissions), r.workload.tasks()
	return s, nil
}

func (r *run) report(ctx context.Context) (*Report, error) {
	report := &Report{Site: r.grid.operator.Site}
	nodes, err := ask[market.NodesReply](ctx, r.grid, messages.Auctioneer, messages.VerbNodes, messages.Empty{})
	if err != nil {
		return nil, err
	}
	report.Nodes = len(nodes.Nodes)
	if err := r.reportJobs(ctx, report); err != nil {
		return nil, err
	}
	if err := r.reportBooks(ctx, report); err != nil {
		return nil, err
	}
	report.judge()
	return report, nil
}

// reportJobs adds the jobs to the report, and compares their results with the known answers.
func (r *run) reportJobs(ctx context.Context, report *Report) error {
	results := map[string]string{}
	var first, last messages.Time
	for i, job := range r.jobs {
		detail, err := ask[jobmsg.JobDetail](ctx, r.grid, messages.Auctioneer, messages.VerbJob, jobmsg.JobRequest{Job: job})
		if err != nil {
			return err
		}
		s := &r.workload.Submissions[i]
		text, result := r.check(i, s)
		if result.Right {
			results[s.Answer()] = text
			report.Answers.Right++
		}
		report.Tasks += detail.Tasks
		report.Jobs = append(report.Jobs, newJobLine(&detail, result))
		if i == 0 {
			first = detail.Submitted
		}
		last = max(last, detail.Ended)
	}
	report.Took = last.Sub(first)
	report.Answers.Of, report.Answers.Findings = len(r.jobs), findings(results)
	return nil
}

func (r *run) check(i int, s *Submission) (string, Result) {
	want, err := fs.ReadFile(r.example, "answers/"+s.Answer())
	if err != nil {
		return "", Result{Problem: err.Error()}
	}
	got, err := collect(outDir(r.dir, i, s))
	if err != nil {
		return "", Result{Problem: err.Error()}
	}
	difference := firstDifference(got, string(want))
	return got, Result{Right: difference == "", Rows: strings.Count(got, "\n"), Problem: difference}
}

func (r *run) reportBooks(ctx context.Context, report *Report) error {
	bank, err := ask[money.BooksReply](ctx, r.grid, messages.Bank, messages.VerbBooks, messages.Empty{})
	if err != nil {
		return err
	}
	statements, err := r.grid.statements(ctx)
	if err != nil {
		return err
	}
	charged := map[messages.JobID]messages.Credits{}
	for _, j := range report.Jobs {
		charged[j.Job] = j.Charge
	}
	report.Books = addUp(bank, statements, charged)
	return nil
}
