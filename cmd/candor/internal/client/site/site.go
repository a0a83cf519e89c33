// Package site has the commands about the nodes, markets and replicas of a site, and the overview candor top.
package site

import (
	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/messages"
)

// Commands returns the commands about the nodes, markets and replicas of a site.
func Commands(a *cli.App) []*cobra.Command {
	return append(a.MakeTabled(cli.Makers{"nodes": nodesCommand, "markets": marketsCommand, "reservations": reservationsCommand}),
		a.Make(cli.Makers{"node": nodeCommand, "window": windowCommand, "replica": replicaCommand, "upgrade": upgradeCommand, "market": marketCommand, "top": topCommand, "console": consoleCommand})...)
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
		Long: `List the markets of the site: the mechanism, the price of each class, the slots,
the waiting tasks, the job that would get the next free slot, and the largest
bidders. The price of a class is the sum of all bids for it, in credits. In
markets that charge by time, the price is the cost of an hour on one slot (with
--json, of a second). The last line has the version of the markets, which each
"candor market apply" raises.`,
		Example: "  candor markets\n  candor markets --json | jq '.markets[].prices'",
		RunE:    cli.Asking(a, a.Online, messages.Auctioneer, messages.VerbMarkets, writeMarketsVersioned),
	}
}
