// Package site has the commands about the nodes, markets and replicas of a site, and
// the overview that is redrawn.
package site

import (
	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/messages"
)

// Commands are the commands about the nodes, markets and replicas of a site.
func Commands(a *cli.App) []*cobra.Command {
	return []*cobra.Command{a.Tabled(nodesCommand(a)), nodeCommand(a), replicaCommand(a), a.Tabled(marketsCommand(a)), marketCommand(a), a.Tabled(reservationsCommand(a)), topCommand(a)}
}

func nodesCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "nodes",
		Short:   "list the nodes of the site and their slots",
		Example: "  candor nodes\n  candor nodes --json | jq '.nodes[] | select(.state != \"Up\")'",
		RunE:    cli.Asking(a, a.Online, messages.Auctioneer, messages.VerbNodes, writeNodes),
	}
}

func marketsCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "markets",
		Short: "list the markets of the site, with prices and largest bidders",
		Long: `List the markets of the site: their mechanism, the price of each class (the sum of
what all bidders put on it, in credits; where slots are charged by time, what a second
on one costs), slots, tasks that wait, who would get the next slot that comes free, and
the largest bidders.`,
		Example: "  candor markets\n  candor markets --json | jq '.markets[].prices'",
		RunE:    cli.Asking(a, a.Online, messages.Auctioneer, messages.VerbMarkets, writeMarkets),
	}
}
