package client

import (
	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/messages"
)

// lacking lists the commands of the whole program that the client program does not have.
var lacking = []string{"up", messages.Auctioneer, messages.NodeAgent, messages.Estimator, "config", "user", "backup", "restore",
	"demo", "solve", "simulate", "audit"}

const inWhole = `only the whole program has this command, and this is the client:
use bin/candor of "make build", or the package candor`

// The client program lacks some commands. If a user calls one of them, elsewhere returns an error, which names the
// programs that have these commands.
func elsewhere(*cobra.Command, []string) error { return cli.Usagef(inWhole) }

// alone returns the commands of a program that is only a client and cannot run a site.
func alone(a *cli.App) *cobra.Command {
	bank := &cobra.Command{Use: messages.Bank, Short: "export and check the bank's journal, sign requests", RunE: func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return cli.UnknownCommand(cmd, args[0])
		}
		return elsewhere(cmd, args)
	}}
	site := &cobra.Command{Use: "site", Short: "show the balances of the site with its peers (operators)", RunE: func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return elsewhere(cmd, args)
		}
		return cli.OneOf(cmd, nil)
	}}
	for _, cmd := range []*cobra.Command{bank, site} {
		cmd.SetFlagErrorFunc(func(cmd *cobra.Command, _ error) error { return elsewhere(cmd, nil) })
	}
	g := Group{Title: "Bank and peers:", Commands: []*cobra.Command{bank, site}}
	for _, name := range lacking {
		g.Commands = append(g.Commands, &cobra.Command{Use: name, Long: "candor " + name + ": " + inWhole + ".", Hidden: true, DisableFlagParsing: true, RunE: elsewhere})
	}
	for _, cmd := range g.Commands {
		cmd.Args = cobra.ArbitraryArgs
	}
	tree := root(a, []Group{g})
	tree.Long = `Candor runs the jobs of many people on shared nodes. You say what your job is
worth to you. An auction decides whose tasks run first, and a bank charges each
account in credits.

This program is the client, for machines on which people only use a site. The
commands that run a site, such as "candor up", are in the whole program.`
	tree.Example = `  candor submit --budget 10 --wait sort.sh
  candor jobs
  candor why 1`
	return tree
}
