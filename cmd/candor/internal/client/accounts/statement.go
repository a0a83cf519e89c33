package accounts

import (
	"cmp"
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

func statementCommand(a *cli.App) *cobra.Command {
	var o statementOptions
	cmd := &cobra.Command{
		Use:   "statement [NAME]",
		Short: "show the history of an account, oldest entry first",
		Long: `Show every movement of an account's credits, by default your own: the reason,
the job and its market, the credits held, charged and given back, and the
balance after the movement.

With --project, show only the movements of your own jobs in the project.

With --label, show only charges and payments of jobs with those labels, and
their sum. With --by-label, show the sum for each value of a label.`,
		Example: `  candor statement
  candor statement climate --from 2026-01-01 --to 2026-02-01
  candor statement --project climate --from '7 days ago'
  candor statement -n 10
  candor statement --from 24h --json | jq '.entries[].change'
  candor statement climate --by-label run --from 30d
  candor statement --label run=7
  candor statement --csv > statement.csv`,
		RunE: a.Online(func(ctx context.Context, s *cli.Session, args []string) error {
			return statement(ctx, a, s, &o, args)
		}),
		PreRun:            func(cmd *cobra.Command, _ []string) { o.limited = cmd.Flags().Changed("limit") },
		ValidArgsFunction: a.CompleteAccounts(),
	}
	cmd.Flags().StringVar(&o.from, "from", "", "from this `time` on: 2026-01-31, 2026-01-31T12:00:00Z, or how long ago, like 24h")
	cmd.Flags().StringVar(&o.to, "to", "", "before this `time`")
	cmd.Flags().StringVar(&o.project, "project", "", "the statement of this `project`, for your own jobs only")
	cmd.Flags().BoolVar(&o.csv, "csv", false, "print a table of comma-separated values")
	cmd.Flags().IntVarP(&o.limit, "limit", "n", 0, "only the newest, at most this `number` of entries (default: all)")
	cmd.Flags().StringSliceVar(&o.labels, "label", nil, "only the cost of jobs with this label `K=V`, or K with any value; may be repeated")
	cmd.Flags().StringVar(&o.byLabel, "by-label", "", "the cost of jobs for each value of this `label`, instead of the entries")
	cmd.RegisterFlagCompletionFunc("project", a.CompleteAccounts())
	return cmd
}

type statementOptions struct {
	from, to, project string
	csv               bool
	labels            []string
	byLabel           string
	limit             int
	limited           bool // the user gave a limit
}

func statement(ctx context.Context, a *cli.App, s *cli.Session, o *statementOptions, args []string) error {
	r := money.StatementRequest{Account: cmp.Or(o.project, optional(args))}
	var err error
	if r.From, err = a.Instant("--from", o.from); err != nil {
		return err
	}
	if r.To, err = a.Instant("--to", o.to); err != nil {
		return err
	}
	switch {
	case o.project != "" && len(args) > 0:
		return cli.Usagef("--project %s names the account: leave out %q", o.project, args[0])
	case o.byLabel != "" && o.csv:
		return cli.Usagef("--by-label: cannot go with --csv: choose one")
	case o.csv && a.Flags.JSON:
		return cli.Usagef("--csv: cannot go with --json: choose one")
	}
	if o.limited && o.limit < 1 {
		return cli.Usagef("--limit %d: must be a whole number from 1 on", o.limit)
	}
	reply, err := statementOf(ctx, s, r, o.limit)
	if err != nil {
		return err
	}
	nameJobs(reply.Entries)
	if o.project != "" {
		reply.Entries = slices.DeleteFunc(reply.Entries, func(e money.Entry) bool { return e.Member != s.Account })
	}
	want, err := selectors(o)
	if err != nil {
		return err
	}
	if len(want) > 0 {
		reply.Entries = slices.DeleteFunc(reply.Entries, func(e money.Entry) bool { return !labelsOf(e).Fit(want) })
	}
	if o.byLabel != "" {
		costs := byLabel(reply, o.byLabel)
		return a.Show(costs, func(p *cli.Page) { writeCosts(p, costs) })
	}
	if o.csv {
		return statementCSV(a, reply, jobsOf(ctx, s, reply))
	}
	if a.Flags.JSON {
		return a.PrintJSON(reply)
	}
	facts := jobsOf(ctx, s, reply)
	return a.Show(reply, func(p *cli.Page) {
		if len(want) > 0 {
			writeLabelled(p, reply, o.labels, facts)
		} else if o.project != "" {
			writePart(p, reply, s.Account, facts)
		} else {
			writeStatement(p, reply, facts)
		}
	})
}

// statementOf reads the newest entries of a statement. It reads at most `limit` entries. If `limit` is 0, it reads all
// entries.
func statementOf(ctx context.Context, s *cli.Session, r money.StatementRequest, limit int) (all money.StatementReply, err error) {
	if limit == 0 {
		return FullStatement(ctx, s, r)
	}
	for r.Newest = true; ; {
		r.Limit = min(limit-len(all.Entries), cli.MaxPage)
		reply, err := cli.Call[money.StatementReply](ctx, s, messages.Bank, messages.VerbStatement, r)
		if err != nil {
			return all, err
		}
		reply.Entries, reply.Account = append(reply.Entries, all.Entries...), cmp.Or(reply.Account, all.Account)
		done := !reply.More || len(reply.Entries) == len(all.Entries) || len(reply.Entries) >= limit
		all = reply
		if done {
			return all, nil
		}
		r.Before = all.Entries[0].Number
	}
}

func FullStatement(ctx context.Context, s *cli.Session, r money.StatementRequest) (money.StatementReply, error) {
	var all money.StatementReply
	for r.Limit = cli.MaxPage; ; {
		reply, err := cli.Call[money.StatementReply](ctx, s, messages.Bank, messages.VerbStatement, r)
		if err != nil {
			return all, err
		}
		if r.After == 0 {
			all.Account, all.Opening = reply.Account, reply.Opening
		}
		all.Entries = append(all.Entries, reply.Entries...)
		if !reply.More || len(reply.Entries) == 0 {
			return all, nil
		}
		r.After = reply.Entries[len(reply.Entries)-1].Number
	}
}

// A hold is made before its job has a number, so the entry that creates the hold has no job number. Later entries of
// the same hold have the number. nameJobs copies it to the first entry.
func nameJobs(entries []money.Entry) {
	jobs := map[string]messages.JobID{}
	for _, e := range slices.Backward(entries) {
		if e.Pending != "" && e.Job != 0 {
			jobs[e.Pending] = e.Job
		}
	}
	for i := range entries {
		if e := &entries[i]; e.Kind == money.Hold && e.Job == 0 {
			e.Job = jobs[e.Transfer]
		}
	}
}
