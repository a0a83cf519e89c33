package jobs

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
)

// These are the first and the longest pause between two requests for a job's state. The pauses are short at first, for
// short jobs.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = time.Second
)

func nextPause(d time.Duration) time.Duration { return min(d+d/2, lastPause) }

// Wait follows a job until it ends. Its error has the job's exit code.
func Wait(ctx context.Context, a *cli.App, s *cli.Session, job messages.JobID) error {
	detail, err := follow(ctx, a, s, job)
	if err != nil {
		if ctx.Err() != nil {
			fmt.Fprintf(a.Err, "Stopped waiting. Job %v goes on; \"candor cancel %v\" ends the job.\n", job, job)
		}
		return err
	}
	if err := a.Show(detail, func(p *cli.Page) { writeEnded(p, detail) }); err != nil {
		return err
	}
	if code := ExitCode(detail.JobSummary); code != cli.CodeOK {
		return cli.ExitStatus(code)
	}
	return nil
}

// ExitCode returns the exit code with which submit --wait and run report how a job ended.
func ExitCode(job jobmsg.JobSummary) int {
	switch {
	case job.State == jobmsg.Completed:
		return cli.CodeOK
	case job.State == jobmsg.Cancelled:
		return cli.CodeInterrupted
	case job.ExitCode > 0 && job.ExitCode < 256:
		return int(job.ExitCode)
	}
	return cli.CodeFailed
}

// follow shows a job's progress on standard error until the job has ended. It asks again if the site does not answer:
// the job may still run.
func follow(ctx context.Context, a *cli.App, s *cli.Session, job messages.JobID) (jobmsg.JobDetail, error) {
	show := newProgress(a)
	defer show.done()
	var state jobmsg.State
	var waited, shown time.Duration // shown is the value of waited at which the progress is shown again
	request := jobmsg.JobRequest{Job: job, Wait: 1}
	for d := min(firstPause, s.Timeout/2); ; d = min(nextPause(d), s.Timeout/2) {
		asked := a.Now()
		if request.Wait != 0 {
			request.Wait = messages.Duration(d)
		}
		detail, err := cli.Call[jobmsg.JobDetail](ctx, s, messages.Auctioneer, messages.VerbJob, request)
		switch {
		case request.Wait != 0 && messages.KindOf(err) == messages.Invalid: // a site with an older version cannot wait
			request.Wait = 0
			continue
		case err == nil && detail.State.Final():
			show.update(detail)
			return detail, nil
		case err == nil && (waited >= shown || detail.State != state):
			show.update(detail)
			state = detail.State
			shown = waited + min(max(waited/2, firstPause), lastPause)
		case err == nil:
		case !messages.KindOf(err).Retriable() || ctx.Err() != nil:
			return detail, err
		default:
			show.trouble(err)
		}
		if err := a.Pause(ctx, d-a.Now().Sub(asked)); err != nil { // the site answered early: wait until the time d has passed
			return detail, err
		}
		waited += d
	}
}

// progress shows the state of one job, or how many of several jobs have ended.
type progress interface {
	update(jobmsg.JobDetail)
	count(ended, all int)
	trouble(error)
	done()
}

// newProgress returns a progress that redraws lines on a terminal. Elsewhere it writes a new line for each change.
func newProgress(a *cli.App) progress {
	if terminal.IsTerminal(a.Err) && a.Getenv("TERM") != "dumb" {
		return &drawnProgress{app: a, block: terminal.Block{Out: a.Err}}
	}
	return &plainProgress{out: a.Err}
}

type plainProgress struct {
	out  io.Writer
	last string
}

func (w *plainProgress) update(job jobmsg.JobDetail) {
	line := fmt.Sprintf("Job %v: %v, %d of %s done, %d running", job.Job, job.State, job.Done, terminal.Plural(job.Tasks, "task"), job.Running)
	if reason := notState(job.State, job.Reason); job.State == jobmsg.Waiting && reason != "" {
		line += " (" + reason + ")"
	}
	if job.State <= jobmsg.Running && job.Message != "" {
		line += "; " + terminal.Safe(job.Message)
	}
	w.say(line)
}

func (w *plainProgress) count(ended, all int) { w.say(countEnded(ended, all)) }

func countEnded(ended, all int) string {
	return fmt.Sprintf("%s of %s ended", terminal.Count(ended), terminal.Plural(all, "job"))
}

func (w *plainProgress) trouble(err error) {
	w.say(fmt.Sprintf("The site does not answer: %s; asking again", cli.Sentence(err)))
}

func (w *plainProgress) say(line string) {
	if line != w.last {
		fmt.Fprintln(w.out, line)
	}
	w.last = line
}

func (w *plainProgress) done() {}

type drawnProgress struct {
	app   *cli.App
	block terminal.Block
}

func (w *drawnProgress) update(job jobmsg.JobDetail) {
	p := w.app.Page(w.app.Err)
	w.block.Draw(progressLines(p, job)...)
}

func (w *drawnProgress) count(ended, all int) { w.block.Draw(countEnded(ended, all)) }

func (w *drawnProgress) trouble(err error) {
	p := w.app.Page(w.app.Err)
	w.block.Draw(terminal.Clip(p.Yellow("The site does not answer; asking again: ")+terminal.Safe(cli.Sentence(err)), p.Columns))
}

func (w *drawnProgress) done() { w.block.Clear() }
