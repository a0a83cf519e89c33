package client

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/messages"
)

func (a *app) nodesCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "nodes",
		Short:   "list the nodes of the site and their slots",
		Example: "  candor nodes\n  candor nodes --json | jq '.nodes[] | select(.state != \"Up\")'",
		Args:    cobra.NoArgs,
		RunE: a.online(func(ctx context.Context, s *session, _ []string) error {
			return ask(ctx, a, s, messages.Auctioneer, messages.VerbNodes, messages.Empty{}, (*page).nodes)
		}),
	}
}

func (a *app) marketsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "markets",
		Short: "list the markets of the site, with prices and largest bidders",
		Long: `List the markets of the site: their mechanism, the price of each class (the sum of
what all bidders put on it, in credits; where slots are charged by time, what a second
on one costs), slots, tasks that wait, who would get the next slot that comes free, and
the largest bidders.`,
		Example: "  candor markets\n  candor markets --json | jq '.markets[].prices'",
		Args:    cobra.NoArgs,
		RunE: a.online(func(ctx context.Context, s *session, _ []string) error {
			return ask(ctx, a, s, messages.Auctioneer, messages.VerbMarkets, messages.Empty{}, (*page).markets)
		}),
	}
}
