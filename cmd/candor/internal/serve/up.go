package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/candor-grid/candor/deploy/embedded"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/nodeagent/runner"
	"github.com/candor-grid/candor/nodeagent/runner/executor"
)

// up is the command that runs a whole site, or one host's share of it.
type up struct {
	common
	fresh bool
	leave bool // tasks go on when this ends
	asMe  bool // tasks run as this user
	sites []string
}

func upCommand() *cobra.Command {
	u := &up{}
	cmd := &cobra.Command{
		Use:   "up",
		Short: "run a whole site in one process",
		Long: `Runs a site until it is interrupted: a NATS server, three replicas each of the
auctioneer and of the bank, an estimator, and the agents of its nodes. Without a
configuration it is a site for a first look, on loopback, with the accounts
alice, bob and carol. What the site keeps is in the state directory; started
again there, it goes on where it stopped.

With --host it runs one host's share of a site that the configuration spreads
over several; the hosts need the same keys (see candor site init).

With --sites it runs several sites, each a peer of the others: they take work from
one another, and their banks settle. Commands speak to the first, and to another
with --at.`,
		Example: `  candor up
  candor up --nodes 8 --metrics 127.0.0.1:9090
  candor up --config site.yaml --state /var/lib/candor
  candor up --config site.yaml --host rack1
  candor up --sites west,east,north`,
		RunE: prepared(func(cmd *cobra.Command, _ []string) error {
			if len(u.sites) > 0 {
				return u.runSites(cmd)
			}
			return u.run(cmd)
		}),
	}
	u.flags(cmd.Flags())
	cmd.Flags().BoolVar(&u.leave, "leave-running", false, "leave the tasks to the next start when this one ends")
	cmd.Flags().BoolVar(&u.asMe, "tasks-as-me", false, "run tasks as this user, able to do all that the site can: for a site of your own alone")
	cmd.Flags().StringSliceVar(&u.sites, "sites", nil, "run several sites of these `names`, joined to one another")
	cmd.Flags().BoolVar(&u.fresh, "fresh", false, "first remove what an earlier site left in the state directory, keys and all")
	return cmd
}

func (u *up) run(cmd *cobra.Command) error {
	c, err := u.load()
	if err != nil {
		return err
	}
	log, err := u.logger(cmd)
	if err != nil {
		return err
	}
	door, err := c.MetricsDoor(u.settings.host)
	if err != nil {
		return err
	}
	site, err := embedded.Start(cmd.Context(), c, embedded.Options{
		Executor: executor.Self(), LeaveRunning: u.leave,
		Host: u.settings.host, Fresh: u.fresh, Metrics: door.Address != "", Log: log,
	})
	if err != nil {
		return unstarted(cmd.Context(), err)
	}
	return u.serve(cmd, oneSite(u, site, door), log)
}

// load makes the configuration of a site, or the first of several.
func (u *up) load() (embedded.Config, error) {
	c, err := u.settings.load()
	if u.asMe {
		if c.Tasks.Private {
			return c, messages.Errorf(messages.Invalid, "--tasks-as-me: tasks.private needs users other than yours")
		}
		c.Tasks.User = runner.UserSelf
	}
	return c, err
}

// serve prints where the site can be reached, and waits until the command is interrupted.
func (u *up) serve(cmd *cobra.Command, s served, log *zap.Logger) error {
	stop, err := observe(s.Metrics, s.Profile, s.Gather, log)
	if err != nil {
		return errors.Join(err, s.Close())
	}
	s.Announce(cmd.Context(), cmd.OutOrStdout())
	serving()
	<-cmd.Context().Done()
	leaving()
	fmt.Fprintln(cmd.OutOrStdout(), "stopping")
	return ended(errors.Join(stop(), s.Close()))
}

// announce tells the operator what runs and how to use it.
func (u *up) announce(ctx context.Context, w io.Writer, site *embedded.Site) {
	c, info := site.Config(), site.Info()
	title := "site " + c.Site
	if u.settings.host != "" {
		title += ", host " + u.settings.host
	}
	fmt.Fprintf(w, "%s is up\n", title)
	line := func(what, text string) { fmt.Fprintf(w, "  %-10s %s\n", what, text) }
	line("NATS", site.URL())
	line("state", tilde(c.State))
	line("accounts", accountList(ctx, site))
	line("operators", strings.Join(c.Operators, ", "))
	line("markets", marketList(c.Markets))
	line("nodes", nodeList(c.Nodes))
	line("tasks", reach(ctx, site))
	if len(c.Peers) > 0 {
		line("peers", peerList(c.Peers))
	}
	also := u.stateFlag(&c)
	fmt.Fprintf(w, "\nIn another terminal, as %s:\n", info.DefaultAccount)
	fmt.Fprintf(w, "  echo 'echo hello from $CANDOR_NODE' | candor submit %s--budget 1 --wait\n", also)
	fmt.Fprintf(w, "  candor jobs %s\n", strings.TrimSpace(also))
	fmt.Fprintf(w, "Stop with Ctrl-C.\n")
}

// reach says what tasks on the nodes of this process can reach: on the worst of them,
// if they differ.
func reach(ctx context.Context, site *embedded.Site) string {
	ctx, cancel := context.WithTimeout(ctx, balancesWithin)
	defer cancel()
	c := site.Config()
	b, err := site.Connect(c.Operators[0])
	if err != nil {
		return "candor nodes says what they can reach"
	}
	defer b.Close()
	nodes, err := bus.Call[messages.NodesReply](ctx, b, messages.Subject(c.Site, messages.Auctioneer, messages.VerbNodes, c.Operators[0]), messages.Empty{})
	if err != nil || len(nodes.Nodes) == 0 {
		return "candor nodes says what they can reach"
	}
	worst := nodes.Nodes[0].Abilities
	for _, n := range nodes.Nodes {
		if messages.Containment(n.Abilities) < messages.Containment(worst) {
			worst = n.Abilities
		}
	}
	return "can reach " + messages.Reach(worst)
}

// stateFlag is the flag with which commands find the site; "" where its state directory
// is the default.
func (u *up) stateFlag(c *embedded.Config) string {
	if c.State == defaultState() {
		return ""
	}
	return "--state " + c.State + " "
}

// balancesWithin bounds the question for balances, which only inform.
const balancesWithin = 2 * time.Second

// accountList gives the configured accounts with their balances, or without
// where the bank does not answer.
func accountList(ctx context.Context, site *embedded.Site) string {
	c := site.Config()
	balance := map[messages.Name]messages.Credits{}
	ctx, cancel := context.WithTimeout(ctx, balancesWithin)
	defer cancel()
	if b, err := site.Connect(c.Operators[0]); err == nil {
		defer b.Close()
		subject := messages.Subject(c.Site, messages.Bank, messages.VerbAccounts, c.Operators[0])
		reply, _ := bus.Call[messages.AccountsReply](ctx, b, subject, messages.Empty{})
		for _, a := range reply.Accounts {
			balance[a.Account] = a.Available
		}
	}
	var list []string
	for _, a := range c.Accounts {
		text := a.Name
		if b, ok := balance[a.Name]; ok {
			text += " " + b.String()
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}

func marketList(markets []messages.Market) string {
	var list []string
	for _, m := range markets {
		list = append(list, fmt.Sprintf("%s (%s: %s)", m.Name, m.Mechanism, strings.Join(m.Classes, ", ")))
	}
	return strings.Join(list, ", ")
}

func peerList(peers []embedded.Peer) string {
	var list []string
	for _, p := range peers {
		list = append(list, p.Name)
	}
	return strings.Join(list, ", ") + " (candor site status)"
}

// nodeList names few nodes and counts many.
func nodeList(nodes []embedded.Node) string {
	slots := map[messages.Name]int{}
	var classes, names []string
	for _, n := range nodes {
		names = append(names, n.Name)
		for _, s := range n.Slots {
			if slots[s.Class] == 0 {
				classes = append(classes, s.Class)
			}
			slots[s.Class] += s.Slots
		}
	}
	for i, class := range classes {
		classes[i] = fmt.Sprintf("%d %s", slots[class], class)
	}
	who := strings.Join(names, ", ")
	if len(names) > 8 {
		who = fmt.Sprintf("%d nodes", len(names))
	}
	return fmt.Sprintf("%s (slots: %s)", who, strings.Join(classes, ", "))
}
