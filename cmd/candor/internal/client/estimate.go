package client

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/jobfile"
	"github.com/candor-grid/candor/messages"
)

func (a *app) estimateCommand() *cobra.Command {
	sub := &submission{options: jobfile.NewOptions(a.lookup)}
	cmd := &cobra.Command{
		Use:   "estimate [flags] [FILE|-] [ARGUMENT...]",
		Short: "say what is expected of a job: its worth, its run time, when it completes",
		Long: `Say what the site expects of a job, without submitting it: what shares of each class
are worth to it, how long a task of each stage runs, and when it would be complete,
each with its spread and where it comes from. The file is read as by candor submit.

LOW and HIGH are the times that one in ten is below and above. ROBUST is what nine
tasks in ten need at most even if the estimate is as far off as so few runs allow.
Estimates rest on your own jobs that completed, those with the same name and
commands above all, and on others' where you have none.`,
		Example: `  candor estimate job.yaml
  candor estimate --json job.yaml | jq .completion.median
  candor estimate classes`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return a.estimate(cmd.Context(), sub, args) },
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().AddFlagSet(sub.options.Flags)
	cmd.Flags().BoolVar(&sub.script, "script", false, "the file is a script, whatever it looks like")
	cmd.RegisterFlagCompletionFunc("market", a.completeMarkets)
	cmd.RegisterFlagCompletionFunc("class", a.completeClasses)
	cmd.RegisterFlagCompletionFunc("project", a.completeAccounts)
	cmd.AddCommand(a.estimateClassesCommand())
	return cmd
}

func (a *app) estimate(ctx context.Context, sub *submission, args []string) error {
	job, err := a.readJob(sub, args)
	if err != nil {
		return err
	}
	a.warn("estimate", job.Warnings)
	if err := job.Spec.Validate(); err != nil {
		return refused(err, job, "")
	}
	s, err := a.dial(false)
	if err != nil {
		return err
	}
	defer s.bus.Close()
	reply, err := call[messages.EstimateReply](ctx, s, messages.Estimator, messages.VerbEstimate, messages.EstimateRequest{Spec: job.Spec})
	if err != nil {
		return err
	}
	return a.show(reply, func(p *page) { p.estimate(&job.Spec, reply) })
}

func (a *app) estimateClassesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "classes",
		Short: "list the job profile classes and what is known of each",
		Long: `List the site's job profile classes: how many samples of types were taken in, what
part of their weight was screened out as fitting no others, the bandwidth of the
estimated density, and how far the estimate still moves: its divergence from the
one before, in nats, which is near 0 once more samples tell nothing new.`,
		Example: "  candor estimate classes\n  candor estimate classes --json | jq '.classes[] | select(.prior > 0)'",
		Args:    cobra.NoArgs,
		RunE: a.online(func(ctx context.Context, s *session, _ []string) error {
			return ask(ctx, a, s, messages.Estimator, messages.VerbClasses, messages.Empty{}, (*page).classes)
		}),
	}
}
