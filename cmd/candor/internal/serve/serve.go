package serve

import (
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap"
)

// Commands are the commands that run actors, and what belongs to them.
func Commands() []*cobra.Command {
	return []*cobra.Command{
		upCommand(), auctioneerCommand(), bankCommand(), nodeagentCommand(), estimatorCommand(),
		configCommand(), userCommand(), siteCommand(), executorCommand(),
	}
}

// prepare reads the environment into the flags of a command that were not
// given; those of its parents are not this package's.
func prepare(cmd *cobra.Command) error {
	if err := environment(cmd.NonInheritedFlags(), os.LookupEnv); err != nil {
		return err
	}
	return applyAt(cmd)
}

// prepared makes a command's RunE, which fills in flags from the environment and then
// runs the command.
func prepared(run func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := prepare(cmd); err != nil {
			return err
		}
		return run(cmd, args)
	}
}

// common holds the flags of every command that runs actors.
type common struct {
	settings settings
	logging  logging
}

func (c *common) flags(f *pflag.FlagSet) {
	c.settings.siteFlags(f)
	c.logging.flags(f)
}

// logger logs to the command's error output.
func (c *common) logger(cmd *cobra.Command) (*zap.Logger, error) {
	return c.logging.logger(cmd.ErrOrStderr())
}
