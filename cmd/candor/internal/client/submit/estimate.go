package submit

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/messages"
)

func estimateCommand(a *cli.App) *cobra.Command {
	cmd, sub := describing(a, &cobra.Command{
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
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return estimate(cmd.Context(), a, sub, args) }
	cmd.Flags().BoolVar(&sub.script, "script", false, "the file is a script, whatever it looks like")
	cmd.AddCommand(a.Tabled(estimateClassesCommand(a)))
	return cmd
}

func estimate(ctx context.Context, a *cli.App, sub *submission, args []string) error {
	job, err := readJob(a, sub, args)
	if err != nil {
		return err
	}
	a.Warn("estimate", job.Warnings)
	if err := job.Spec.Validate(); err != nil {
		return refused(err, job, "")
	}
	s, err := a.Dial(false)
	if err != nil {
		return err
	}
	defer s.Bus.Close()
	return cli.Ask(ctx, a, s, messages.Estimator, messages.VerbEstimate, messages.EstimateRequest{Spec: job.Spec}, func(p *cli.Page, reply messages.EstimateReply) {
		writeEstimate(p, &job.Spec, reply)
	})
}

func estimateClassesCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "classes",
		Short: "list the job profile classes and what is known of each",
		Long: `List the site's job profile classes: how many samples of types were taken in, what
part of their weight was screened out as fitting no others, the bandwidth of the
estimated density, and how far the estimate still moves: its divergence from the
one before, in nats, which is near 0 once more samples tell nothing new.`,
		Example: "  candor estimate classes\n  candor estimate classes --json | jq '.classes[] | select(.prior > 0)'",
		RunE:    cli.Asking(a, a.Online, messages.Estimator, messages.VerbClasses, writeClasses),
	}
}
