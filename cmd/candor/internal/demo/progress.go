package demo

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// progress shows snapshots. On a terminal it redraws the same lines. Elsewhere it writes at most one line a second.
type progress struct {
	out   io.Writer
	style terminal.Style
	block *terminal.Block // nil means that the output is no terminal, and lines are written
	last  time.Duration   // time of the last line
}

func newProgress(out io.Writer, style terminal.Style) *progress {
	p := &progress{out: out, style: style, last: -time.Second}
	if terminal.IsTerminal(out) {
		p.block = &terminal.Block{Out: out}
	}
	return p
}

func (p *progress) show(s *snapshot) {
	if p.block != nil {
		columns, rows := terminal.Size(p.out)
		p.block.Draw(screen(s, p.style, columns, rows)...)
		return
	}
	if s.elapsed >= p.last+time.Second || s.over() {
		p.last = s.elapsed
		fmt.Fprintln(p.out, plain(s))
	}
}

func (p *progress) end() {
	if p.block != nil {
		p.block.Clear()
	}
}

func plain(s *snapshot) string {
	line := fmt.Sprintf("%5.1fs  jobs: %d of %d submitted, %d running, %d ended; tasks: %d of %d",
		s.elapsed.Seconds(), len(s.jobs), s.planned, s.running(), s.ended(), s.done(), s.tasks)
	for _, price := range s.prices() {
		line += fmt.Sprintf("; %s: %d of %d slots busy, price %.2f", price.Class, price.Slots-price.Idle, price.Slots, price.Price)
	}
	return line
}

// chrome is the number of lines on the screen that are not rows of the table, such as the bar and the prices. One of
// these lines stays empty, so that the screen does not scroll.
const chrome = 6

// screen returns a snapshot as text: a bar, the prices and a table. The text has at most `columns` columns and `rows`
// rows.
func screen(s *snapshot, style terminal.Style, columns, rows int) []string {
	lines := []string{bar(s, columns), prices(s), ""}
	shown, hidden := choose(s.jobs, rows-chrome)
	lines = append(lines, jobTable(s, shown, style)...)
	if hidden > 0 {
		lines = append(lines, style.Dim(fmt.Sprintf("… and %s that have ended or are waiting", terminal.Plural(hidden, "more job"))))
	}
	for i := range lines {
		lines[i] = terminal.Clip(lines[i], columns)
	}
	return lines
}

func bar(s *snapshot, columns int) string {
	fraction := 0.0
	if s.tasks > 0 {
		fraction = float64(s.done()) / float64(s.tasks)
	}
	text := fmt.Sprintf(" %s  %d of %d tasks, %d of %d jobs, %s",
		terminal.Percent(fraction), s.done(), s.tasks, s.ended(), s.planned, terminal.Span(s.elapsed))
	return terminal.Bar(fraction, min(30, max(columns-len(text), 5))) + text
}

func prices(s *snapshot) string {
	var parts []string
	for _, p := range s.prices() {
		parts = append(parts, fmt.Sprintf("%s: %d of %d slots busy, %d slots wanted, %d bidders, price %.2f",
			p.Class, p.Slots-p.Idle, p.Slots, p.Pending, p.Bidders, p.Price))
	}
	return strings.Join(parts, "  |  ")
}

// choose returns the jobs to show in at most `rows` lines: first running jobs, then waiting ones, then the last ended
// ones. The result `hidden` is the number of jobs that are not shown.
func choose(jobs []job.JobSummary, rows int) (shown []job.JobSummary, hidden int) {
	rows = max(rows, 1)
	if len(jobs) <= rows {
		return jobs, 0
	}
	keep := map[messages.JobID]bool{}
	for _, wanted := range []func(job.State) bool{
		func(s job.State) bool { return s == job.Running || s == job.Settling },
		func(s job.State) bool { return s == job.Waiting },
		job.State.Final,
	} {
		for i := len(jobs) - 1; i >= 0 && len(keep) < rows; i-- {
			if wanted(jobs[i].State) {
				keep[jobs[i].Job] = true
			}
		}
	}
	for _, j := range jobs {
		if keep[j.Job] {
			shown = append(shown, j)
		}
	}
	return shown, len(jobs) - len(shown)
}

func jobTable(s *snapshot, jobs []job.JobSummary, style terminal.Style) []string {
	t := terminal.NewTable(">JOB|NAME|ACCOUNT|STATE|>TASKS|SHARE NOW|>BUDGET|>CHARGED")
	for _, j := range jobs {
		charged := ""
		if j.State.Final() {
			charged = j.Charged.String()
		}
		t.Row(j.Job.String(), j.Name, j.Account, paintState(j.State, style), fmt.Sprintf("%d/%d", j.Done, j.Tasks),
			sharesNow(s.shares(j.Job)), j.Budget.String(), charged)
	}
	var b bytes.Buffer
	t.Write(&b, style, "")
	return strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
}

func sharesNow(shares []job.ClassShare) string {
	var parts []string
	for _, c := range shares {
		if c.Now > 0 {
			parts = append(parts, c.Class+" "+terminal.Percent(c.Now))
		}
	}
	return strings.Join(parts, ", ")
}

func paintState(state job.State, style terminal.Style) string {
	switch state {
	case job.Waiting:
		return style.Yellow(state.String())
	case job.Running, job.Settling:
		return style.Cyan(state.String())
	case job.Completed:
		return style.Green(state.String())
	}
	return style.Red(state.String())
}
