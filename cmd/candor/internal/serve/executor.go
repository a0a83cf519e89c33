package serve

import (
	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/nodeagent/runner/executor"
)

func executorCommand() *cobra.Command {
	return &cobra.Command{
		Use: executor.Argument, Hidden: true, Args: cobra.NoArgs, Short: "run the tasks of a node, for its agent",
		RunE: func(*cobra.Command, []string) error { return executor.Main() },
	}
}
