package serve

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/deploy/embedded"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/money"
	"github.com/candor-grid/candor/nodeagent/runner"
	"github.com/candor-grid/candor/nodeagent/runner/dumps"
)

// up is the command that runs a whole site, or one host of it.
type up struct {
	common
	fresh bool
	leave bool // tasks continue when this process ends
	asMe  bool // tasks run as the user of this process
	sites []string
	clock string // file with the error of the clock, for tests
}

func upCommand() *cobra.Command {
	u := &up{}
	cmd := &cobra.Command{
		Use:         "up",
		Annotations: map[string]string{dumps.StartsTasks: ""},
		Short:       "run a whole site in one process",
		Long: `Runs a site until it is interrupted: a NATS server, three replicas each of the
auctioneer and of the bank, an estimator, and the agents of its nodes. Without a
configuration it sells this machine, on loopback: a slot is one processor and
its part of the memory, and the accounts are alice, bob and carol. If nvidia-smi
or rocm-smi finds GPUs, a slot of the class gpu is one GPU with its part of
the processors and the memory. The data of the site are in the state directory.
A site that is started again with its state directory goes on where it stopped.

With --host the command runs the part of one host, if the configuration has
several hosts. The hosts need the same keys (see candor site init).

With --sites the command runs several sites, and each is a peer of the others:
they accept jobs of one another, and their banks settle. Commands speak to the
first site, or with --at to another.`,
		Example: `  candor up
  candor up --nodes 8 --metrics 127.0.0.1:9090
  candor up --console 127.0.0.1:8470
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
	u.settings.siteFlags(cmd.Flags())
	u.logging.flags(cmd.Flags())
	cmd.Flags().StringVar(&u.clock, "clock", "", "`file` with a number of nanoseconds by which this host's clock is changed, for tests")
	_ = cmd.Flags().MarkHidden("clock") // the flag is declared above
	cmd.Flags().BoolVar(&u.leave, "leave-running", false, "when this process ends, leave the tasks running for the next start")
	cmd.Flags().BoolVar(&u.asMe, "tasks-as-me", false, "run tasks as this user, so that tasks can do all that the site can: only for a site that you use alone")
	cmd.Flags().StringSliceVar(&u.sites, "sites", nil, "run several sites of these `names`, joined to one another")
	cmd.Flags().BoolVar(&u.fresh, "fresh", false, "first remove all data of an earlier site from the state directory, with its keys")
	return cmd
}

func (u *up) run(cmd *cobra.Command) error {
	c, err := u.load()
	if err != nil {
		return err
	}
	o, door, err := u.options(cmd, &c)
	if err != nil {
		return err
	}
	o.LeaveRunning, o.Fresh, o.Wall = u.leave, u.fresh, wrongClock(u.clock)
	o.Changed = u.settings.changed()
	site, err := embedded.Start(cmd.Context(), c, o)
	if err != nil {
		return unstarted(cmd.Context(), err)
	}
	c = site.Config()
	return serve(cmd, served{
		Gather: site.Gatherer, Ready: site.Ready, Metrics: door, Profile: profileSocket(&c, ""), Close: site.Close, Stopping: sayStopping,
		Announce: func(ctx context.Context, w io.Writer) { u.announce(ctx, w, site) },
	}, o.Log)
}

// load returns the configuration of the site. If the flag --sites names several sites, load returns the configuration
// of the first one.
func (u *up) load() (embedded.Config, error) {
	c, err := u.settings.load()
	if u.asMe {
		if c.Tasks.Private {
			return c, messages.Errorf(messages.Invalid, "--tasks-as-me: tasks.private needs tasks that run as other users; leave out --tasks-as-me or tasks.private")
		}
		c.Tasks.User = runner.UserSelf
	}
	return c, err
}

func (u *up) announce(ctx context.Context, w io.Writer, site *embedded.Site) {
	c, info := site.Config(), site.Info()
	title := "site " + c.Site
	if u.settings.host != "" {
		title += ", host " + u.settings.host
	}
	fmt.Fprintf(w, "%s is up\n", title)
	fact(w, "NATS", site.URL())
	if info.Console != "" {
		fact(w, "console", info.Console)
	}
	fact(w, "state", tilde(c.State))
	if len(c.Accounts) > 0 {
		fact(w, "accounts", accountList(ctx, site))
	}
	announceFacts(ctx, w, site)
	if len(c.Peers) > 0 {
		fact(w, "peers", peerList(c.Peers))
	}
	fmt.Fprintf(w, "\nIn another terminal, as %s:\n%s", info.DefaultAccount, exportState(&c))
	fmt.Fprint(w, firstCommands(&c))
	fmt.Fprintf(w, "Stop with Ctrl-C.\n")
}

// firstCommands returns commands to try on a site. If the configuration opens no account, nobody can submit before an
// operator's first grant.
func firstCommands(c *embedded.Config) string {
	if len(c.Accounts) == 0 {
		return fmt.Sprintf("  candor grant alice 1000 --yes --account %s   # opens an account\n  candor nodes\n", c.Operators[0])
	}
	return "  echo 'echo hello from $CANDOR_NODE' | candor submit --cpus 1 --wait\n  candor jobs\n"
}

// announceFacts prints the facts that hold for all sites of this process.
func announceFacts(ctx context.Context, w io.Writer, site *embedded.Site) {
	c := site.Config()
	fact(w, "operators", strings.Join(c.Operators, ", "))
	fact(w, "markets", marketList(c.Markets))
	fact(w, "nodes", nodeList(site.Nodes()))
	fact(w, "tasks", reach(ctx, site))
}

func fact(w io.Writer, what, text string) {
	const column = 13
	if width := terminal.Columns(w); width > column {
		text = terminal.WrapAt(text, column, width)
	}
	fmt.Fprintf(w, "  %-10s %s\n", what, text)
}

// ask sends a request to an actor of a site in this process, as the operator. It waits at most askWithin, because the
// answer is not needed.
func ask[Reply any](ctx context.Context, site *embedded.Site, actor, verb string) (reply Reply, err error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	c := site.Config()
	b, err := site.Connect(c.Operators[0])
	if err != nil {
		return reply, err
	}
	defer b.Close()
	return bus.Call[Reply](ctx, b, messages.Subject(c.Site, actor, verb, c.Operators[0]), messages.Empty{})
}

const askWithin = 2 * time.Second

// reach says what tasks on the site's nodes can reach. It describes the node with the weakest protection.
func reach(ctx context.Context, site *embedded.Site) string {
	reply, err := ask[market.NodesReply](ctx, site, messages.Auctioneer, messages.VerbNodes)
	if err != nil || len(reply.Nodes) == 0 {
		return "candor nodes shows what tasks can reach"
	}
	worst := slices.MinFunc(reply.Nodes, func(a, b market.NodeStatus) int {
		return cmp.Compare(agent.Containment(a.Abilities), agent.Containment(b.Abilities))
	})
	text := "can reach " + agent.Reach(worst.Abilities)
	for _, more := range []string{agent.Lingers(worst.Abilities), agent.Unbounded(worst.Abilities)} {
		if more != "" {
			text += "; " + more
		}
	}
	return text
}

// exportState returns a shell command that sets the state directory in a variable, or "" for the default. Not all
// commands have a flag for it: in candor jobs, --state is the state of a job.
func exportState(c *embedded.Config) string {
	if c.State == defaultState() {
		return ""
	}
	return "  export CANDOR_STATE=" + c.State + "\n"
}

// accountList lists the configured accounts, with their balances if the bank answers.
func accountList(ctx context.Context, site *embedded.Site) string {
	c := site.Config()
	balance := map[messages.Name]messages.Credits{}
	reply, _ := ask[money.AccountsReply](ctx, site, messages.Bank, messages.VerbAccounts)
	for _, a := range reply.Accounts {
		balance[a.Account] = a.Available
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

func marketList(markets []market.Market) string {
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

// nodeList lists the names of the nodes, or only their number if there are many.
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
