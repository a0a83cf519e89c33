package client

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/messages"
)

// Group is a set of further commands, under a title of the root's help.
type Group struct {
	Title    string
	Commands []*cobra.Command
}

// Main runs candor with its arguments and returns the exit code. An error of
// a further command decides it by its messages.Kind, or by a method
// ExitCode() int.
func Main(args []string, groups ...Group) int {
	// A second interrupt ends the process at once, as the first one restores
	// the signals' usual effect.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	return newApp().run(ctx, args, groups)
}

// run executes one command line.
func (a *app) run(ctx context.Context, args []string, groups []Group) int {
	root := a.root(groups)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return codeOK
	}
	if ctx.Err() != nil && !hasExitCode(err) {
		return codeInterrupted
	}
	if text := explain(cmd, err); text != "" {
		fmt.Fprintln(a.err, text)
	}
	return exitCode(err)
}

// root builds the tree of commands.
func (a *app) root(groups []Group) *cobra.Command {
	root := &cobra.Command{
		Use:   "candor",
		Short: "shared computing as an honest market",
		Long: `Candor runs the jobs of many people on shared nodes. Who goes first is decided by
an auction in which saying what your work is worth is the best you can do, and
what everyone owes is settled in credits.

Start a site on this machine with "candor up", then submit to it.`,
		Example: `  candor up                                   # a whole site in one process
  candor submit --budget 10 --wait sort.sh    # in another terminal
  candor jobs
  candor why 1`,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return cmd.Help()
		},
		Args:                       cobra.ArbitraryArgs,
		SuggestionsMinimumDistance: 2,
	}
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	a.connectionFlags(root.PersistentFlags())
	a.addGroups(root, groups)
	root.AddCommand(topics()...)
	root.SetHelpCommandGroupID("other")
	root.SetCompletionCommandGroupID("other")
	usageErrors(root)
	return root
}

func (a *app) addGroups(root *cobra.Command, further []Group) {
	own := []Group{
		{"Work:", []*cobra.Command{a.submitCommand(), a.quoteCommand(), a.jobsCommand(), a.jobCommand(), a.whyCommand(), a.logsCommand(), a.fetchCommand(), a.cancelCommand(), a.estimateCommand()}},
		{"Site:", []*cobra.Command{a.nodesCommand(), a.nodeCommand(), a.replicaCommand(), a.marketsCommand(), a.marketCommand(), a.reservationsCommand(), a.topCommand()}},
		{"Money:", []*cobra.Command{a.accountCommand(), a.statementCommand(), a.projectCommand(), a.transferCommand(), a.grantCommand(),
			a.withdrawCommand(), a.correctCommand(), a.booksCommand(), a.peerCommand(), a.settleCommand(), a.remitCommand(), a.authoriseCommand(), a.revokeCommand()}},
	}
	other := Group{"Other:", []*cobra.Command{a.schemaCommand(), a.versionCommand()}}
	for i, g := range own {
		addGroup(root, fmt.Sprintf("own%d", i), g)
	}
	for i, g := range further {
		addGroup(root, fmt.Sprintf("further%d", i), g)
		for _, c := range g.Commands {
			// They do not connect as a client: the root's flags are not theirs.
			usual := c.UsageTemplate()
			c.SetUsageTemplate(strings.Replace(usual, "{{if .HasAvailableInheritedFlags}}", "{{if false}}", 1))
			switch c.Name() {
			case messages.Bank:
				a.addBankCommands(c, usual)
			case "site":
				a.addSiteCommands(c, usual)
			}
		}
	}
	addGroup(root, "other", other)
}

func addGroup(root *cobra.Command, id string, g Group) {
	root.AddGroup(&cobra.Group{ID: id, Title: g.Title})
	for _, c := range g.Commands {
		c.GroupID = id
		root.AddCommand(c)
	}
}
