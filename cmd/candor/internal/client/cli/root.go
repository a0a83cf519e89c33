package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
)

// Root returns the command candor with the flags of all commands. Call [UsageErrors] after you have added the commands.
func Root(a *App) *cobra.Command {
	root := &cobra.Command{
		Use: "candor", Short: "shared computing as a market", Args: cobra.ArbitraryArgs,
		SilenceErrors: true, SilenceUsage: true, SuggestionsMinimumDistance: 2,
	}
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	root.SetUsageTemplate(strings.NewReplacer(".FlagUsages ", ".FlagUsagesWrapped 80 ", "for more information about a command", "for its help").Replace(root.UsageTemplate()))
	a.ConnectionFlags(root.PersistentFlags())
	return root
}

// Run executes one command line, explains its error to the user, and returns the exit code.
func Run(ctx context.Context, a *App, args []string, root *cobra.Command) int {
	root.SetArgs(args)
	a.Interrupted = ctx
	lost := a.HeedOutput()
	root.SetOut(a.Out)
	if a.Only == "" {
		addCompletion(root)
	}
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		err = lost()
	}
	if err == nil {
		return CodeOK
	}
	if ctx.Err() != nil && !HasExitCode(err) {
		return CodeInterrupted
	}
	if text := Explain(cmd, err); text != "" {
		a.Tell(LocalTimes(text, a.Zone))
	}
	return ExitCode(err)
}

// addCompletion adds the command "completion" to root. Call it after the output of root is set.
func addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	if c, _, err := root.Find([]string{"completion"}); err == nil && c != root {
		c.Short = "print the completion script of a shell"
		c.Long = "Print the script that makes a shell complete commands, flags and names."
		c.Args, c.RunE = cobra.ArbitraryArgs, OneOf
	}
}
