package jobs

import (
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/nodeagent/lease"
	"github.com/candor-grid/candor/nodeagent/runner/boottime"
)

func taskCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "task",
		Short: "ask from inside a task",
		Long:  "Commands for the script of a task. They need no credentials.",
	}
	cmd.AddCommand(aliveCommand())
	return cmd
}

func aliveCommand() *cobra.Command {
	var yet time.Duration
	cmd := &cobra.Command{
		Use:   "alive",
		Short: "ask whether this attempt is the current one",
		Long: `Say by the exit code whether the attempt that asks is the current one of its task: 0 if
so. Otherwise a line says why not: the node has lost its lease, so that the task may run
elsewhere, or the attempt was told to stop (exit code of Fenced), or nobody knows
(exit code of Unavailable).

Ask before a step that must not happen twice, for as long as the step takes: an agent that
is frozen ends no task, and the answer becomes no by itself. If the machine itself is
frozen between the answer and the step, only the receiver of the step can tell: give it
CANDOR_ATTEMPT, and have it refuse a lower number than it has seen.`,
		Example: `  candor task alive --for 10s && mv result.tmp result
  candor task alive || exit 1`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return lease.Alive(os.Getenv(lease.Variable), boottime.Now(), yet)
		},
	}
	cmd.Flags().DurationVar(&yet, "for", 0, "ask that the lease lasts this `time` yet")
	return cmd
}
