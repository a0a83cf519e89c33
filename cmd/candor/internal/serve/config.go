package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/deploy/embedded"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/market"
)

func configCommand() *cobra.Command {
	return group("config", "check and show configurations",
		checkCommand(), showCommand())
}

func checkCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "list the mistakes in a configuration file",
		Long: `Reads a site's configuration file as "candor up" does, and lists all mistakes,
each with file, line, column and a sentence. Exits with 0 if there is no
mistake. It remarks on programs and other files that the configuration names
and this machine does not have: check the file on a host that needs them.`,
		Example: `  candor config check site.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := (&settings{file: args[0]}).load()
			if err != nil {
				return err
			}
			unused := ""
			if len(c.Hosts) > 0 && c.Listen != embedded.Default().Listen {
				unused = "; listen is not used, because each of the hosts has its own listen"
			}
			remarks := ""
			for _, r := range absent(&c) {
				remarks += args[0] + ": " + r + "\n"
			}
			return say(cmd.OutOrStdout(), "%s: nothing is wrong: site %s, %s, %s, %s%s\n%s",
				args[0], c.Site, count(len(c.Markets), "market"), count(len(c.Nodes), "node"), count(len(c.Accounts), "account"), unused, remarks)
		},
	}
}

func showCommand() *cobra.Command {
	s := &settings{}
	var running bool
	cmd := &cobra.Command{
		Use:   "show",
		Short: "show the configuration in effect",
		Long: `Prints, as YAML, the configuration that "candor up" would use with the same
flags and environment. The file wins over the defaults, the environment over the
file, and the flags over the environment.

With --running the command prints the configuration of the running site of the
state directory: as the site was started, but with its present markets, which
"candor market apply" may have changed.`,
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
	cmd.Flags().BoolVar(&running, "running", false, "show the configuration of the running site")
	return cmd
}

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
			return nil, messages.Errorf(messages.Invalid, "--%s: cannot be used with --running; leave out one of the two", name)
		}
	}
	config, process, err := embedded.Running(cmp.Or(s.state, defaultState()))
	if err != nil {
		return nil, err
	}
	head := "# in effect since process " + process + " started\n"
	now, err := marketsOf(cmd.Context(), config)
	switch {
	case err != nil:
		head += fmt.Sprintf("# the markets are as at the start of the site; its present markets are not known: %s\n", messages.Detail(err))
	case now.Version > 1:
		head += fmt.Sprintf("# the markets were applied later: version %d\n", now.Version)
		config, err = withMarkets(config, now.Markets)
	}
	if err != nil && now.Version > 0 {
		return nil, err
	}
	text, err := yaml.JSONToYAML(config)
	return append([]byte(head), text...), err
}

// withMarkets replaces the markets in a configuration. The other parts stay the same, in the same order.
func withMarkets(config []byte, list []market.MarketStatus) ([]byte, error) {
	var whole yaml.MapSlice
	if err := yaml.UnmarshalWithOptions(config, &whole, yaml.UseOrderedMap()); err != nil {
		return nil, err
	}
	markets := make([]market.Market, len(list))
	for i := range list {
		markets[i] = list[i].Market
	}
	text, err := json.Marshal(markets)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(whole, func(item yaml.MapItem) bool { return item.Key == "markets" })
	if at < 0 {
		at, whole = len(whole), append(whole, yaml.MapItem{Key: "markets"})
	}
	if err := yaml.UnmarshalWithOptions(text, &whole[at].Value, yaml.UseOrderedMap()); err != nil {
		return nil, err
	}
	return yaml.MarshalWithOptions(whole, yaml.JSON())
}

const marketsWithin = 5 * time.Second

// marketsOf asks a running site on this host for its markets. It connects as an operator.
func marketsOf(ctx context.Context, config []byte) (reply market.MarketsReply, err error) {
	var c struct {
		Site      messages.Name
		State     string
		Operators []messages.Name
		TLS       *embedded.TLS
	}
	if err := json.Unmarshal(config, &c); err != nil {
		return reply, err
	}
	info, err := embedded.ReadInfo(c.State)
	if err != nil {
		return reply, err
	}
	who := cmp.Or(append(c.Operators, info.DefaultAccount)...)
	settings := bus.Config{URL: info.Server, Name: who, CredsFile: embedded.CredsFile(c.State, who)}
	if settings.TLS, err = c.TLS.Client(); err != nil {
		return reply, err
	}
	b, err := bus.Connect(settings)
	if err != nil {
		return reply, err
	}
	defer b.Close()
	ctx, cancel := context.WithTimeout(ctx, marketsWithin)
	defer cancel()
	return bus.Call[market.MarketsReply](ctx, b, messages.Subject(c.Site, messages.Auctioneer, messages.VerbMarkets, who), messages.Empty{})
}

// show writes a configuration as YAML. It first writes JSON, because the types know how to write amounts as JSON.
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

// count writes a number with a noun, such as "2 markets".
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
