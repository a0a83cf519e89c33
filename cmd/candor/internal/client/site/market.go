package site

import (
	"cmp"
	"context"
	"crypto/rand"
	"os"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/yamlfile"
)

func marketCommand(a *cli.App) *cobra.Command {
	return cli.Group(&cobra.Command{
		Use:     "market",
		Short:   "change the markets of a running site",
		Example: "  candor market apply site.yaml",
	}, marketApplyCommand(a))
}

func marketApplyCommand(a *cli.App) *cobra.Command {
	var r market.ApplyRequest
	cmd := &cobra.Command{
		Use:   "apply FILE",
		Short: "replace the markets of the site by the markets of a file",
		Long: `Replace the markets of the running site by the markets of a file. The file is a
list of markets, or a configuration: then only its markets are read. Jobs stay
in their markets. A market with active jobs cannot be removed, and cannot change
its mechanism or its classes. The new markets stay in force after a restart,
even if the configuration file differs; candor markets shows them.

Each change gives the markets a new version, which this command prints. With
--if-version nothing changes if somebody else has changed the markets since. A
change repeated with the same --key changes nothing more.`,
		Example: "  candor config check site.yaml && candor market apply site.yaml\n  candor market apply --dry-run site.yaml\n  candor market apply --if-version 3 site.yaml",
		RunE: a.Operating(func(ctx context.Context, s *cli.Session, args []string) error {
			if err := readMarkets(args[0], &r); err != nil {
				return err
			}
			r.Key = cmp.Or(r.Key, rand.Text())
			reply, err := cli.Call[market.ApplyReply](ctx, s, messages.Auctioneer, market.VerbApply, r)
			if err != nil {
				return cli.Within(args[0], err)
			}
			return a.Show(reply, func(p *cli.Page) { writeApplied(p, reply, r.DryRun) })
		}),
	}
	cmd.Flags().BoolVar(&r.DryRun, "dry-run", false, "check everything, and change nothing")
	cmd.Flags().Uint64Var(&r.Version, "if-version", 0, "change nothing if the markets have another `version`")
	cmd.Flags().StringVar(&r.Key, "key", "", "idempotency `key` (default: random)")
	return cmd
}

func readMarkets(path string, r *market.ApplyRequest) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return cli.Usagef("%v", err)
	}
	file, err := yamlfile.Parse(path, text)
	if err != nil {
		return err
	}
	reader := yamlfile.Reader{File: file}
	if _, list := file.Root.(*ast.SequenceNode); list {
		reader.Decode(&r.Markets)
		return reader.Err()
	}
	if reader.File = file.Only("markets"); reader.Root == nil {
		return messages.Errorf(messages.Invalid, "%s has no markets: the file must be a site's configuration, or a list of markets", path)
	}
	var site struct {
		Markets []market.Market `json:"markets"`
	}
	reader.Decode(&site)
	r.Markets = site.Markets
	return reader.Err()
}

func writeApplied(p *cli.Page, r market.ApplyReply, dryRun bool) {
	if len(r.Added)+len(r.Changed)+len(r.Removed) == 0 {
		p.Printf("Nothing changed: the site has these markets.\n")
		return
	}
	did := [3]string{"Added", "Changed", "Removed"}
	if dryRun {
		did = [3]string{"Would add", "Would change", "Would remove"}
	}
	for i, names := range [][]messages.Name{r.Added, r.Changed, r.Removed} {
		if len(names) > 0 {
			p.Printf("%s %s\n", did[i], strings.Join(names, ", "))
		}
	}
	p.Printf("The markets are at version %d\n", r.Version)
}

func reservationsCommand(a *cli.App) *cobra.Command {
	var r market.ReservationsRequest
	return &cobra.Command{
		Use:   "reservations [MARKET]",
		Short: "show the timetable: which jobs have slots, and when",
		Long: `Show the jobs that have reserved slots, now or later, in the order of time. Bids
are sealed until the market decides. Then everybody sees which slots are
reserved. Only owners and operators see whose job has them.`,
		Example:           "  candor reservations\n  candor reservations night --json | jq '.reservations[].start'",
		ValidArgsFunction: a.CompleteMarkets(),
		RunE: a.Online(func(ctx context.Context, s *cli.Session, args []string) error {
			if len(args) > 0 {
				r.Market = args[0]
			}
			return cli.Ask(ctx, a, s, messages.Auctioneer, market.VerbReservations, r, writeReservations)
		}),
	}
}

func writeReservations(p *cli.Page, r market.ReservationsReply) {
	if len(r.Reservations) == 0 {
		p.Printf("No reservations.\n")
		return
	}
	t := terminal.NewTable("START|END|~MARKET|>SLOTS|~CLASS|>JOB|~ACCOUNT|STATE").Spare("CLASS|MARKET")
	for _, e := range r.Reservations {
		t.Row(p.At(e.Start), p.At(e.End), e.Market, terminal.Count(e.Slots), e.Class, cli.OrBlank(e.Job), e.Account, p.State(e.State))
	}
	p.Table(t, "")
}

func nodeCommand(a *cli.App) *cobra.Command {
	return cli.Group(&cobra.Command{
		Use:     "node",
		Short:   "drain, resume and remove nodes, and let new nodes join",
		Example: "  candor node drain node3\n  candor node resume node3\n  candor node token node7 > node7.token",
	}, nodeDrainCommand(a), nodeResumeCommand(a), nodeRemoveCommand(a), nodeTokenCommand(a), a.Tabled(nodeTokensCommand(a)))
}

func nodeDrainCommand(a *cli.App) *cobra.Command {
	var notice, reason string
	var undo bool
	cmd := &cobra.Command{
		Use:   "drain NODE",
		Short: "stop giving work to a node",
		Long: `Give a node no more work. Its tasks run to their end. With --notice they run for
that time at most: then the site ends the remaining tasks and runs them on other
nodes; their attempts do not count as failed. The owners of the jobs see the
reason with candor why. --undo gives the node work again, as candor node resume
does.`,
		Example: "  candor node drain node3 --reason 'new disk'\n  candor node drain node3 --notice 10m\n  candor node drain node3 --undo",
		RunE: a.Operating(func(ctx context.Context, s *cli.Session, args []string) error {
			r := market.DrainRequest{Node: args[0], Undo: undo, Reason: reason}
			if notice != "" {
				d, err := messages.ParseDuration(notice)
				if err != nil {
					return cli.Usagef("--notice: %v", err)
				}
				r.Notice = &d
			}
			return cli.Ask(ctx, a, s, messages.Auctioneer, market.VerbDrain, r, writeDrained)
		}),
	}
	cmd.Flags().StringVar(&notice, "notice", "", "`time` after which the site ends the tasks of the node (default: they run to their end)")
	cmd.Flags().StringVar(&reason, "reason", "", "the reason, a `text`; \"candor nodes\" shows it")
	cmd.Flags().BoolVar(&undo, "undo", false, "give the node work again")
	return cmd
}

func nodeResumeCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "resume NODE",
		Short: "give work to a drained or quarantined node again",
		Long: `Give work again to a node that was drained or is in quarantine. The site tests a
node with a probe: a task that does nothing. The site puts a node in quarantine
when a probe fails on the node, or when tasks of several accounts fail there at
once and end well on other nodes. candor nodes shows the reason. The site
repeats the probe, and the node leaves quarantine when a probe ends well.`,
		Example: "  candor node resume node3",
		RunE: a.Operating(func(ctx context.Context, s *cli.Session, args []string) error {
			return cli.Ask(ctx, a, s, messages.Auctioneer, market.VerbDrain, market.DrainRequest{Node: args[0], Undo: true}, writeDrained)
		}),
	}
}

func nodeRemoveCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "remove NODE",
		Short: "remove a lost or stopped node from the list",
		Long: `Remove a node from the list of nodes, if the node does not come back. A node
that is up cannot be removed: stop its agent first. An agent that starts with
the same name brings the node back. To prevent this, revoke the node's
credentials with candor user revoke NODE --node.`,
		Example: "  candor node remove node3",
		RunE: a.Operating(func(ctx context.Context, s *cli.Session, args []string) error {
			r := market.DrainRequest{Node: args[0], Remove: true}
			return cli.Ask(ctx, a, s, messages.Auctioneer, market.VerbDrain, r, func(p *cli.Page, r market.DrainReply) {
				p.Printf("Node %s is removed\n", r.Node)
			})
		}),
	}
}

func writeDrained(p *cli.Page, r market.DrainReply) {
	switch {
	case !r.Draining:
		p.Printf("Node %s takes work again\n", r.Node)
	case r.Until == 0:
		p.Printf("Node %s takes no more work; %s may run there to the end\n", r.Node, terminal.Plural(r.Tasks, "task"))
	default:
		p.Printf("Node %s takes no more work; %s may run there until %s\n", r.Node, terminal.Plural(r.Tasks, "task"), p.At(r.Until))
	}
}
