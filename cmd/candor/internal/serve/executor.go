package serve

import (
	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/nodeagent/runner/executor"
)

func executorCommand() *cobra.Command {
	return &cobra.Command{
		Use: executor.Argument, Hidden: true, DisableFlagParsing: true, Args: cobra.ArbitraryArgs, Short: "run the tasks of a node, for its agent",
		RunE: func(_ *cobra.Command, args []string) error { return executor.Main(args) },
	}
}
