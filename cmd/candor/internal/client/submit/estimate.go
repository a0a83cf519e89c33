package submit

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/market"
)

func estimateCommand(a *cli.App) *cobra.Command {
	cmd, sub := describing(a, &cobra.Command{
		Use:   "estimate [flags] [FILE|-] [ARGUMENT...]",
		Short: "estimate the worth, the run time and the end of a job",
		Long: `Estimate a job without submitting it: the worth of shares of each class, the run
time of a task of each stage, and the time of completion. Each estimate has its
spread and its source. The file is read as by candor submit.

One in ten tasks runs shorter than LOW, and one in ten runs longer than HIGH.
ROBUST is a careful bound: nine in ten tasks run shorter than ROBUST, even if
the few past runs are not typical. The estimates come from your completed jobs,
first from jobs with the same name and commands. If you have no such jobs, the
estimates come from the jobs of others.

For a job without a valuation, the last table shows the same as candor quote:
the start and the cost at present prices, and the cheapest hour of a week.`,
		Example: `  candor estimate job.yaml
  candor estimate --json job.yaml | jq .completion.median
  candor estimate classes`,
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return estimate(cmd.Context(), a, sub, args) }
	cmd.Flags().BoolVar(&sub.script, "script", false, "read the file as a script")
	cmd.AddCommand(a.Tabled(estimateClassesCommand(a)))
	return cmd
}

func estimate(ctx context.Context, a *cli.App, sub *submission, args []string) error {
	job, err := readUnpaid(a, sub, args)
	if err != nil {
		return err
	}
	s, err := dialFor(ctx, a, job)
	if err != nil {
		return err
	}
	defer s.Bus.Close()
	a.Warn("estimate", job.Warnings)
	job.Assemble()
	asked := clearing.OffersRequest{Spec: job.Spec, Sites: []messages.Name{s.Site}}
	job.Spec.Budget = cmp.Or(job.Spec.Budget, messages.Credit) // a job needs some budget to be valid; no estimate depends on it
	if err := job.Spec.Validate(); err != nil {
		return refused(err, job, "")
	}
	reply, err := cli.Call[market.EstimateReply](ctx, s, messages.Estimator, market.VerbEstimate, market.EstimateRequest{Spec: job.Spec})
	if err != nil {
		return err
	}
	out := estimated{EstimateReply: reply}
	if asked.Spec.Valuation == nil { // for a job with a valuation, a market would make a quote and keep it
		present, err := cli.Call[clearing.OffersReply](ctx, s, messages.Auctioneer, clearing.VerbOffers, asked)
		if out.Present = &present; err != nil {
			present.Silent = []clearing.Silent{{Site: s.Site, Error: messages.AsError("", err)}}
		}
	}
	return a.Show(out, func(p *cli.Page) {
		writeEstimate(p, &job.Spec, reply)
		if out.Present != nil {
			p.Title("At present prices")
			writeOffers(p, *out.Present, true)
		}
	})
}

// estimated is an estimate, and what the market offers at its prices now. If the market was not asked, the field
// Present is nil.
type estimated struct {
	market.EstimateReply
	Present *clearing.OffersReply `json:"present,omitempty"`
}

func estimateClassesCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "classes",
		Short: "list the job profile classes and their samples",
		Long: `List the site's job profile classes, and what was learned from samples. OUTSIDE
is the number of samples outside the bounds of the profile. SCREENED OUT is the
part of the weight that was removed because it fits no other sample. PRIOR is
the part of the estimate that comes from the operator's profile. DIVERGENCE is
the relative entropy from the estimate before, in units of 1.44 bits: it is near
0 when new samples no longer change the estimate. BANDWIDTH is the width of a
kernel of the estimated density.`,
		Example: "  candor estimate classes\n  candor estimate classes --json | jq '.classes[] | select(.prior > 0)'",
		RunE:    cli.Asking(a, a.Online, messages.Estimator, market.VerbClasses, writeClasses),
	}
}
