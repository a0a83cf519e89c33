// Package jobs has the commands that list, show, explain, cancel and follow jobs, and read the output of tasks.
package jobs

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// Commands returns the commands about jobs that were submitted.
func Commands(a *cli.App) []*cobra.Command {
	return append(a.MakeTabled(cli.Makers{"jobs": jobsCommand, "job": jobCommand, "why": whyCommand}),
		a.Make(cli.Makers{"tasks": tasksCommand, "logs": logsCommand, "fetch": fetchCommand, "cancel": cancelCommand, "hold": holdCommand,
			"release": releaseCommand, "requeue": requeueCommand, "change": changeCommand, "signal": signalCommand, "attach": attachCommand,
			"exec": execCommand, "port": portCommand, "task": taskCommand})...)
}

func jobsCommand(a *cli.App) *cobra.Command {
	var r jobmsg.JobsRequest
	var which selection
	cmd := &cobra.Command{
		Use:   "jobs",
		Short: "list jobs, newest first",
		Long: `List your jobs, newest first, or only the jobs that fit every flag. Operators
can list the jobs of other accounts, with --all-accounts or --owner. Jobs from
other sites have accounts like alice@west. --since and --until choose jobs that
waited, ran or ended in that time.

The site keeps jobs for 90 days after their end, or as long as the operator
chose. The statement has the cost of older jobs.`,
		Example: `  candor jobs
  candor jobs --active --limit 5
  candor jobs --state Failed,Running --since 2d
  candor jobs --name 'train*' --label run=7 --sort -charged
  candor jobs --json | jq '.jobs[] | select(.state == "Failed") | .job'`,
		Args: takesNoJob,
		RunE: a.OnlineAs(func() bool { return r.All || r.Account != "" }, func(ctx context.Context, s *cli.Session, _ []string) error {
			if err := which.fill(a, &r); err != nil {
				return err
			}
			reply, err := listJobs(ctx, s, r)
			if err != nil {
				return err
			}
			others := len(reply.Jobs) == 0 && which.none() && !a.Flags.JSON && othersHave(ctx, s, r)
			return a.Show(reply, func(p *cli.Page) {
				switch {
				case others:
					p.Printf("No jobs of %s; --all-accounts lists the jobs of all accounts.\n", s.Account)
				case len(reply.Jobs) == 0 && !which.none():
					p.Printf("No job fits the flags.\n")
				default:
					writeJobs(p, reply)
				}
				writeGaps(p, reply)
			})
		}),
	}
	which.flags(a, cmd)
	f := cmd.Flags()
	f.BoolVar(&r.All, "all-accounts", false, "jobs of all accounts (operators)")
	f.BoolVar(&r.All, "all", false, "as --all-accounts")
	f.MarkHidden("all")
	f.StringVar(&r.Account, "owner", "", "jobs of this `account` (operators)")
	f.BoolVar(&r.Active, "active", false, "only jobs that have not ended")
	f.StringVar(&r.Sort, "sort", "-job", "sort by job, name, account, market, state, budget, charged, tasks, submitted, started\nor ended; - before the `column`: the largest first")
	f.StringVar(&r.After, "page", "", "the next page: the `mark` that the last page printed")
	f.IntVarP(&r.Limit, "limit", "n", 20, "at most this `number` of jobs")
	cmd.RegisterFlagCompletionFunc("owner", a.CompleteAccounts())
	cmd.RegisterFlagCompletionFunc("sort", cobra.FixedCompletions(jobmsg.JobSortings, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// takesNoJob refuses arguments. If the argument is a job's number, the error names the command that shows one job.
func takesNoJob(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if _, err := strconv.ParseUint(args[0], 10, 64); err != nil {
		return cobra.NoArgs(cmd, args)
	}
	return cli.Usagef("\"candor jobs\" takes no job number: \"candor job %s\" shows this job", args[0])
}

// othersHave reports whether --all-accounts would show the caller further jobs. Only operators may use this flag.
func othersHave(ctx context.Context, s *cli.Session, r jobmsg.JobsRequest) bool {
	if r.All || r.Account != "" {
		return false
	}
	r.All, r.Limit = true, 1
	reply, err := cli.Call[jobmsg.JobsReply](ctx, s, messages.Auctioneer, messages.VerbJobs, r)
	return err == nil && len(reply.Jobs) > 0
}

// An error of the site may begin with the name of a field. The user set this field with a flag, so naming replaces the
// name of the field by the flag.
func naming(flag, field string, err error) error {
	wire, ok := errors.AsType[*messages.Error](err)
	if !ok || !strings.HasPrefix(wire.Message, field+": ") {
		return err
	}
	return &messages.Error{Kind: wire.Kind, Op: wire.Op, Message: flag + strings.TrimPrefix(wire.Message, field)}
}

func listJobs(ctx context.Context, s *cli.Session, r jobmsg.JobsRequest) (jobmsg.JobsReply, error) {
	if r.Limit < 1 {
		return jobmsg.JobsReply{}, cli.Usagef("--limit %d: must be a whole number from 1 on", r.Limit)
	}
	var all jobmsg.JobsReply
	for wanted := r.Limit; ; {
		r.Limit = min(wanted, cli.MaxPage)
		reply, err := cli.Call[jobmsg.JobsReply](ctx, s, messages.Auctioneer, messages.VerbJobs, r)
		if err != nil {
			return all, naming("--page", "after", err)
		}
		reply.Jobs = append(all.Jobs, reply.Jobs...)
		wanted -= len(reply.Jobs) - len(all.Jobs)
		all = reply
		if !reply.More || wanted <= 0 || reply.Next == "" {
			return all, nil
		}
		r.After = reply.Next
	}
}

func jobCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "job NUMBER",
		Short:   "show a job: its stages, shares, times and charge",
		Example: "  candor job 17\n  candor job 17 --json | jq .stages",
		RunE: a.Online(func(ctx context.Context, s *cli.Session, args []string) error {
			return askJob(ctx, a, s, messages.VerbJob, args[0], writeJob)
		}),
		ValidArgsFunction: a.CompleteJobs(false),
	}
}

func whyCommand(a *cli.App) *cobra.Command {
	var bid string
	var cmd *cobra.Command
	cmd = &cobra.Command{
		Use:   "why NUMBER",
		Short: "explain why a job waits, or why it ended as it did",
		Long: `Explain a job: the reason why it waits, runs or ended, its share of each class,
the prices, and the changes that would help.

With --bid, the market decides once more, with another bid of the job, and the
answer compares both decisions. The job does not change. The bid is the budget,
or the rate in markets that use rates. In some markets bids do not decide, or
are sealed; the answer says so.`,
		Example: "  candor why 17\n  candor why 17 --bid 20\n  candor why 17 --json | jq -r .reason",
		RunE: a.Online(func(ctx context.Context, s *cli.Session, args []string) error {
			if !cmd.Flags().Changed("bid") {
				return askJob(ctx, a, s, messages.VerbWhy, args[0], writeWhy)
			}
			r := market.WhatIfRequest{}
			var err error
			if r.Job, err = cli.JobNumber(args[0]); err != nil {
				return err
			}
			if r.Bid, err = messages.ParsePrice(bid); err != nil || r.Bid <= 0 {
				return cli.Usagef("--bid %q: must be a number of credits above 0, with at most six places, or a rate for an hour, as in 36/h", bid)
			}
			return cli.Ask(ctx, a, s, messages.Auctioneer, market.VerbWhatIf, r, writeWhatIf)
		}),
		ValidArgsFunction: a.CompleteJobs(false),
	}
	cmd.Flags().StringVar(&bid, "bid", "", "what another bid of this many `credits` would change now; a rate may be for an hour, as in 36/h")
	return cmd
}

// each calls `do` for each argument, also after a failed call.
func each(a *cli.App, what string, args []string, do func(arg string) error) error {
	for _, arg := range args { // if one argument is not a number, do is never called
		if _, err := cli.JobNumber(arg); err != nil {
			return err
		}
	}
	var failed error
	for _, arg := range args {
		err := do(arg)
		if err == nil {
			continue
		}
		if len(args) == 1 {
			return err
		}
		a.Warn(what, []string{cli.Sentence(cli.Within("job "+arg, err))})
		if failed == nil {
			failed = cli.ExitStatus(cli.ExitCode(err))
		}
	}
	return failed
}

func askJob[Reply any](ctx context.Context, a *cli.App, s *cli.Session, verb, argument string, words func(*cli.Page, Reply)) error {
	job, err := cli.JobNumber(argument)
	if err != nil {
		return err
	}
	return cli.Ask(ctx, a, s, messages.Auctioneer, verb, jobmsg.JobRequest{Job: job}, words)
}
