package jobs

import (
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/nodeagent/lease"
	"github.com/candor-grid/candor/nodeagent/runner/boottime"
)

func taskCommand(*cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "task",
		Short:   "commands for the script of a task",
		Long:    "Commands for the script of a task. They need no credentials.",
		Example: "  candor task alive --for 10s && mv result.tmp result",
	}
	cmd.AddCommand(aliveCommand())
	return cmd
}

func aliveCommand() *cobra.Command {
	var yet time.Duration
	cmd := &cobra.Command{
		Use:   "alive",
		Short: "ask whether this attempt of the task is the current one",
		Long: `Tells an attempt whether it is still the current attempt of its task. The exit
code is 0 if the attempt is current. Otherwise a line gives the reason. The
exit code is 1 if the attempt was told to stop, or if the node has lost its
lease and the task may run on another node. The exit code is 6 if the answer is
not known.

A lease is the time during which the site gives the node's tasks to no other
node. The node's agent renews the lease. Ask before a step that must not happen
twice, with --for as long as the step takes. If the agent is frozen, the task
goes on, but the answer is no after the end of the lease. If the whole machine
is frozen between the answer and the step, only the receiver of the step can
notice: send CANDOR_ATTEMPT with the step, and let the receiver refuse a lower
number than the highest so far.`,
		Example: `  candor task alive --for 10s && mv result.tmp result
  candor task alive || exit 1`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return lease.Alive(os.Getenv(lease.Variable), boottime.Now(), yet)
		},
	}
	cmd.Flags().DurationVar(&yet, "for", 0, "also ask whether the lease lasts this `time` longer")
	return cmd
}
