package jobs

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

type tasksQuery struct {
	job    messages.JobID
	stage  string
	index  string
	states []string
	ask    job.TasksRequest
	limit  int
}

func tasksCommand(a *cli.App) *cobra.Command {
	q := tasksQuery{}
	cmd := &cobra.Command{
		Use:   "tasks NUMBER",
		Short: "list the tasks of a job, and how each attempt ended",
		Long: `List the tasks of a job that a node has taken, one line for each task: the
latest attempt, its state and node, its run time, its memory and processor time,
and the reason of its end.

  Running    has a slot
  Suspended  gave its slot to other tasks, and waits for a slot to go on
  Gathering  waits for the other tasks of its gang
  Done       ended well
  Failed     exited with an error, was killed, broke a limit, or could not start
  Stopped    was ended together with its job, its node or its slot
  Pending    waits for its next attempt
  Cancelled  was cancelled, and its job went on

With --attempts, earlier attempts are listed too. The site keeps up to 64 failed
attempts of each job, the first ones of each stage, and counts the others.`,
		Example: `  candor tasks 17
  candor tasks 17 --state Failed,Pending
  candor tasks 17 --stage map --index 500 --attempts
  candor tasks 17 --json |
      jq -r '.tasks[] | select(.reason == "MemoryLimit") | .index'`,
		RunE: a.Online(func(ctx context.Context, s *cli.Session, args []string) error {
			if err := q.of(args[0]); err != nil {
				return err
			}
			return tasks(ctx, a, s, q)
		}),
		ValidArgsFunction: a.CompleteJobs(false),
	}
	cmd.Flags().StringVar(&q.stage, "stage", "", "only tasks of this `stage`")
	cmd.Flags().StringVar(&q.index, "index", "", "only tasks at these `positions` in their stage, from 0 on: 7, 7-9, or 7- for all from 7 on")
	cmd.Flags().StringSliceVar(&q.states, "state", nil, "only attempts in these `states`")
	cmd.Flags().StringVar(&q.ask.Node, "node", "", "only attempts on this `node`")
	cmd.Flags().BoolVar(&q.ask.Attempts, "attempts", false, "earlier attempts too")
	cmd.Flags().IntVarP(&q.limit, "limit", "n", 1000, "at most about this `number` of lines")
	cmd.RegisterFlagCompletionFunc("state", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return job.TaskStates, cobra.ShellCompDirectiveNoFileComp
	})
	return cmd
}

func (q *tasksQuery) of(argument string) (err error) {
	if q.job, err = cli.JobNumber(argument); err != nil {
		return err
	}
	if q.limit < 1 {
		return cli.Usagef("--limit %d: must be a whole number from 1 on", q.limit)
	}
	for _, name := range q.states {
		at := slices.IndexFunc(job.TaskStates, func(s string) bool { return strings.EqualFold(s, name) })
		if at < 0 {
			return cli.Usagef("--state %s: must be one of %s", terminal.Safe(name), strings.Join(job.TaskStates, ", "))
		}
		q.ask.States = append(q.ask.States, job.TaskStates[at])
	}
	q.ask.Job = q.job
	q.ask.From, q.ask.Until, err = positions(q.index)
	return err
}

// The method filters reports whether the user's flags may exclude some of the tasks that have started.
func (q *tasksQuery) filters() bool { return len(q.states) > 0 || q.ask.Node != "" || q.index != "" }

// positions reads a range such as "7", "7-9" or "7-". A position is in the range if it is at least `from` and less than
// `until`. If `until` is 0, the range has no end.
func positions(text string) (from, until uint32, err error) {
	if text == "" {
		return 0, 0, nil
	}
	first, last, several := strings.Cut(text, "-")
	low, err := strconv.ParseUint(first, 10, 31)
	high := low
	if err == nil && last != "" {
		high, err = strconv.ParseUint(last, 10, 31)
	}
	if err != nil || high < low {
		return 0, 0, cli.Usagef("--index %s: must be a position from 0 on, such as 7, or a range, such as 7-9", terminal.Safe(text))
	}
	if several && last == "" {
		return uint32(low), 0, nil
	}
	return uint32(low), uint32(high) + 1, nil
}

func tasks(ctx context.Context, a *cli.App, s *cli.Session, q tasksQuery) error {
	r, err := newReader(ctx, a, s, logsQuery{job: q.job, stage: q.stage, task: -1})
	if err != nil {
		return err
	}
	if at := r.job.Away; at != nil && at.Known != 0 && at.Trouble != "" { // the site already waited for the other site's answer
		return messages.Errorf(messages.Unavailable, "site %s, which runs job %d, does not answer: %s; ask again later", at.Site, q.job, at.Trouble)
	}
	var all job.TasksReply
	for stage := range r.job.Stages {
		if r.stage != nil && stage != *r.stage {
			continue
		}
		if err := q.tasksOf(ctx, s, stage, &all); err != nil {
			return err
		}
	}
	return a.Show(all, func(p *cli.Page) { writeTasks(p, &q, all) })
}

// tasksOf appends the tasks of one stage to the list `all`, until the list has q.limit tasks.
func (q *tasksQuery) tasksOf(ctx context.Context, s *cli.Session, stage int, all *job.TasksReply) error {
	ask := q.ask
	ask.Stage = &stage
	for first := true; ; first = false {
		room := q.limit - len(all.Tasks)
		ask.Limit = min(max(room, 1), cli.MaxPage)
		reply, err := cli.Call[job.TasksReply](ctx, s, messages.Auctioneer, messages.VerbTasks, ask)
		if err != nil {
			return err
		}
		if first {
			all.Account, all.Omitted, all.Unstarted = reply.Account, reply.Omitted, all.Unstarted+reply.Unstarted
		}
		if room <= 0 {
			all.More = all.More || len(reply.Tasks) > 0
			return nil
		}
		all.Tasks = append(all.Tasks, reply.Tasks...)
		if !reply.More {
			return nil
		}
		if reply.Next <= ask.From { // the site returned no new position
			return messages.Errorf(messages.Internal, "the answer of the site is not complete: it ends after task %d; try again", ask.From)
		}
		if ask.From = reply.Next; len(all.Tasks) >= q.limit {
			all.More, all.Next = true, reply.Next
			return nil
		}
	}
}

// writeTasks writes a table with a line for each attempt. The line ends with the message of the attempt. If the page is
// too narrow, the line ends with a short reason instead, and some of the messages follow below the table.
func writeTasks(p *cli.Page, q *tasksQuery, r job.TasksReply) {
	columns := p.Layout.Width
	t := tasksTable(p, r.Tasks, func(s job.TaskStatus) string { return s.Message })
	var whole strings.Builder
	t.Write(&whole, p.Style, "")
	short := columns > 0 && slices.ContainsFunc(strings.Split(whole.String(), "\n"), func(line string) bool { return terminal.Width(line) > columns })
	if short {
		t = tasksTable(p, r.Tasks, func(s job.TaskStatus) string { return s.Reason })
	}
	switch {
	case len(r.Tasks) > 0:
		p.Table(t, "")
	case r.Unstarted == 0 || q.filters():
		p.Printf("No started task of job %v fits the flags.\n", q.job)
	}
	if short && len(r.Tasks) <= fewTasks {
		before := "\n"
		for _, s := range r.Tasks {
			if s.Message != "" {
				p.Printf("%s%s%s: %s\n", before, taskName(s), attemptOf(s), terminal.Safe(s.Message))
				before = ""
			}
		}
	}
	if r.More {
		p.Printf("%s\n", p.Dim("There are more tasks: use a larger --limit, or choose tasks with --index, --stage, --state and --node."))
	}
	if r.Unstarted > 0 {
		p.Printf("%s\n", p.Dim(fmt.Sprintf("%s not started; \"candor why %v\" says why.", has(r.Unstarted, "task"), q.job)))
	}
	if r.Omitted > 0 {
		p.Printf("%s\n", p.Dim(fmt.Sprintf("%s not kept.", has(r.Omitted, "earlier attempt"))))
	}
}

// attemptOf returns the number of an attempt, or "" if the task has not started.
func attemptOf(s job.TaskStatus) string {
	if s.Attempt == 0 {
		return ""
	}
	return fmt.Sprintf(", attempt %d", s.Attempt)
}

// For at most fewTasks tasks, the command explains each task in a sentence of its own.
const fewTasks = 8

func tasksTable(p *cli.Page, tasks []job.TaskStatus, why func(job.TaskStatus) string) *terminal.Table {
	t := terminal.NewTable("<TASK|>INDEX|>ATTEMPT|STATE|~NODE|STARTED|>RAN|>CPU|>MEMORY|>SUSPENDED|>EXIT|~16WHY").Spare("STARTED|CPU|MEMORY|SUSPENDED")
	indexed := slices.ContainsFunc(tasks, func(s job.TaskStatus) bool { return s.Array != int64(s.Index) })
	for _, s := range tasks {
		index, exit := "", ""
		if indexed { // the array index differs from the position
			index = strconv.FormatInt(s.Array, 10)
		}
		if s.ExitCode != nil {
			exit = strconv.Itoa(*s.ExitCode)
		}
		t.Row(taskName(s), index, cli.Number(int(s.Attempt)), taskState(p, s.State), terminal.Safe(s.Node), p.At(s.Claimed), terminal.Span(s.Ran.Std()),
			span(s.CPU), memory(s.MaxRSS), span(s.Suspended), exit, terminal.Safe(why(s)))
	}
	return t
}

// This function returns the beginning of a sentence about n things, such as "3 tasks were".
func has(n int, noun string) string {
	if n == 1 {
		return terminal.Plural(n, noun) + " was"
	}
	return terminal.Plural(n, noun) + " were"
}

func taskName(s job.TaskStatus) string {
	return fmt.Sprintf("%s.%d", terminal.Safe(s.Stage), s.Index)
}

func taskState(p *cli.Page, state string) string {
	switch state {
	case "Done":
		return p.Green(state)
	case "Failed":
		return p.Red(state)
	case "Stopped", "Suspended", "Pending":
		return p.Yellow(state)
	case "Running":
		return p.Cyan(state)
	}
	return terminal.Safe(state)
}
