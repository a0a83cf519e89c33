package serve

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/deploy/embedded"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/nodeagent/runner/dumps"
	"github.com/candor-grid/candor/nodeagent/runner/executor"
)

// Commands returns the commands that run actors, and the commands that prepare a site.
func Commands() []*cobra.Command {
	return []*cobra.Command{
		upCommand(), auctioneerCommand(), bankCommand(), nodeagentCommand(), estimatorCommand(),
		configCommand(), userCommand(), siteCommand(), backupCommand(), restoreCommand(), executorCommand(),
	}
}

// prepare sets a command's own flags from the environment, unless the command line gives them. It does not set flags
// that the command has from its parent commands; other packages do.
func prepare(cmd *cobra.Command) error {
	if err := environment(cmd.NonInheritedFlags(), os.LookupEnv); err != nil {
		return err
	}
	return applyAt(cmd)
}

// applyAt is for commands that have the flag --at, which names a running site. It sets --state to the site's state
// directory. A command without --state works only on files, and refuses --at.
func applyAt(cmd *cobra.Command) error {
	at := cmd.InheritedFlags().Lookup("at")
	if at == nil || !at.Changed {
		return nil
	}
	name, state := at.Value.String(), cmd.Flags().Lookup("state")
	if state == nil || cmd.Flags().Changed("config") {
		return messages.Errorf(messages.Invalid, "--at: %s works on files, not on a running site; leave out --at", cmd.CommandPath())
	}
	base := cmp.Or(state.Value.String(), defaultState())
	for _, dir := range []string{base, filepath.Join(base, sitesDir, name)} {
		if info, err := embedded.ReadInfo(dir); err == nil && info.Site == name {
			return cmd.Flags().Set("state", dir)
		}
	}
	return messages.Errorf(messages.NotFound, "--at: no site %q is known in %s; start it with `candor up --sites`", name, base)
}

func prepared(run func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := prepare(cmd); err != nil {
			return err
		}
		return run(cmd, args)
	}
}

func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short}
	cmd.AddCommand(commands...)
	return cmd
}

func say(w io.Writer, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	if width := terminal.Columns(w); width > 0 {
		text = terminal.Wrap(text, width)
	}
	_, err := io.WriteString(w, text)
	return err
}

// common has the flags of every command that runs actors.
type common struct {
	settings settings
	logging  logging
}

// options returns the options for the actors. The result `door` is the address at which the process serves its metrics.
func (c *common) options(cmd *cobra.Command, config *embedded.Config) (o embedded.Options, door embedded.MetricsDoor, err error) {
	log, err := c.logging.logger(cmd.ErrOrStderr())
	if err != nil {
		return o, door, err
	}
	door, err = config.MetricsDoor(c.settings.host)
	return embedded.Options{Host: c.settings.host, Metrics: door.Address != "", Log: log, Executor: executor.Self()}, door, err
}

func executorCommand() *cobra.Command {
	return &cobra.Command{
		Use: executor.Argument, Hidden: true, Annotations: map[string]string{dumps.StartsTasks: ""}, DisableFlagParsing: true, Args: cobra.ArbitraryArgs, Short: "run the tasks of a node, for its agent",
		RunE: func(_ *cobra.Command, args []string) error { return executor.Main(args) },
	}
}
