package serve

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/deploy/embedded"
	"github.com/candor-grid/candor/messages"
)

func configCommand() *cobra.Command {
	return group("config", "check and show configurations",
		checkCommand(), showCommand())
}

func checkCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "list the mistakes in a configuration file",
		Long: `Reads a site's configuration file as candor up does, and lists all mistakes,
each with file, line, column and a sentence. Exits with 0 if there is no
mistake.`,
		Example: `  candor config check site.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := (&settings{file: args[0]}).load()
			if err != nil {
				return err
			}
			return say(cmd.OutOrStdout(), "%s: nothing is wrong: site %s, %s, %s, %s\n",
				args[0], c.Site, count(len(c.Markets), "market"), count(len(c.Nodes), "node"), count(len(c.Accounts), "account"))
		},
	}
}

func showCommand() *cobra.Command {
	s := &settings{}
	var running bool
	cmd := &cobra.Command{
		Use:   "show",
		Short: "show the configuration in effect",
		Long: `Prints, as YAML, the configuration that candor up with the same flags and
environment would run: the defaults, the file over them, and both over that.

With --running the command prints the configuration with which the running site
of the state directory was started. candor markets shows the markets that were
applied since.`,
		Example: `  candor config show > site.yaml
  candor config show --config site.yaml --nodes 8
  candor config show --running --state /var/lib/candor`,
		RunE: prepared(func(cmd *cobra.Command, _ []string) error {
			text, err := s.shown(cmd, running)
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(text)
			return err
		}),
	}
	s.siteFlags(cmd.Flags())
	cmd.Flags().BoolVar(&running, "running", false, "show what the running site was started with")
	return cmd
}

// shown is what show prints.
func (s *settings) shown(cmd *cobra.Command, running bool) ([]byte, error) {
	if !running {
		c, err := s.load()
		if err != nil {
			return nil, err
		}
		return show(&c)
	}
	for _, name := range []string{"config", "host", "keys", "listen", "metrics", "nodes", "profile", "replicas"} {
		if cmd.Flags().Changed(name) {
			return nil, messages.Errorf(messages.Invalid, "--%s: goes with what would run, not with --running; leave one of them out", name)
		}
	}
	config, process, err := embedded.Running(cmp.Or(s.state, defaultState()))
	if err != nil {
		return nil, err
	}
	text, err := yaml.JSONToYAML(config)
	return append([]byte("# in effect since process "+process+" started\n"), text...), err
}

// show writes a configuration as a file would hold it. It goes through JSON,
// which knows how amounts and slots are written.
func show(c *embedded.Config) ([]byte, error) {
	text, err := json.Marshal(c)
	if err == nil {
		text, err = yaml.JSONToYAML(text)
	}
	if err != nil {
		return nil, messages.Errorf(messages.Internal, "writing the configuration: %v", err)
	}
	return text, nil
}

// count writes a number of things.
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
