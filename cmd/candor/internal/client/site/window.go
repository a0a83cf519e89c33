package site

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/jobfile"
	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/hostlist"
	"github.com/candor-grid/candor/messages/market"
)

func windowCommand(a *cli.App) *cobra.Command {
	return cli.Group(&cobra.Command{
		Use:   "window",
		Short: "keep nodes free for maintenance at a later time",
		Long: `Keep nodes free for maintenance at a later time. Before a window, a task
starts on its nodes only if the task's time limit ends before the window begins.
When the window begins, the nodes drain, as with candor node drain. When the
window ends, the nodes take tasks again. candor node resume takes a node out of
a window that has begun.`,
		Example: "  candor window add --nodes n[1-4] --from 2026-12-01T08:00 --to 2026-12-01T12:00\n  candor window list\n  candor window remove 3",
	}, windowAddCommand(a), a.Tabled(windowListCommand(a)), windowRemoveCommand(a))
}

func windowAddCommand(a *cli.App) *cobra.Command {
	var nodes, from, to, notice string
	var w market.Window
	cmd := &cobra.Command{
		Use:   "add",
		Short: "add a window",
		Long: `Add a window. Tasks without a time limit do not start on its nodes from now on.
Tasks that still run when the window begins run to their end; with --notice the
site ends them after this time, and runs them on other nodes.`,
		Example: "  candor window add --nodes n[1-4] --from 2026-12-01T08:00 --to 2026-12-01T12:00\n  candor window add --nodes n1,n[3-5] --from 24h --to 28h --reason 'new disks'",
		RunE: a.Operating(func(ctx context.Context, s *cli.Session, _ []string) (err error) {
			if w.Nodes, err = jobfile.NodeList(nodes); err == nil && len(w.Nodes) == 0 {
				err = fmt.Errorf("%q: name the nodes, like n1,n[2-4]", nodes)
			}
			if err != nil {
				return cli.Usagef("--nodes: %v", err)
			}
			if w.From, err = a.Future("--from", from); err != nil {
				return err
			}
			if w.To, err = a.Future("--to", to); err != nil {
				return err
			}
			if w.From == 0 {
				w.From = messages.TimeOf(a.Now())
			}
			if notice != "" {
				d, err := messages.ParseDuration(notice)
				if err != nil {
					return cli.Usagef("--notice: %v", err)
				}
				w.Notice = &d
			}
			r := market.WindowRequest{Add: &w}
			if err := r.Validate(); err != nil {
				return cli.Usagef("--%s", messages.Detail(err))
			}
			return cli.Ask(ctx, a, s, messages.Auctioneer, market.VerbWindow, r, func(p *cli.Page, w market.Window) {
				p.Printf("Window %d keeps %s free from %s to %s\n", w.ID, terminal.Safe(hostlist.Join(w.Nodes)), p.At(w.From), p.At(w.To))
			})
		}),
	}
	cmd.Flags().StringVar(&nodes, "nodes", "", "the `nodes`, like n1,n[2-4]")
	cmd.Flags().StringVar(&from, "from", "", "the beginning, a `time`: 2026-12-01T08:00, or a span from now, like 24h (default: now)")
	cmd.Flags().StringVar(&to, "to", "", "the end, a `time` within a year from now")
	cmd.Flags().StringVar(&notice, "notice", "", "`time` after the beginning at which the site ends tasks that still run (default: they run to their end)")
	cmd.Flags().StringVar(&w.Reason, "reason", "", "the reason, a `text`; \"candor nodes\" and \"candor why\" show it")
	_ = cmd.MarkFlagRequired("nodes")
	_ = cmd.MarkFlagRequired("to")
	return cmd
}

func windowListCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "list the windows that are not over",
		Example: "  candor window list\n  candor window list --json | jq '.windows[].nodes'",
		RunE: a.Online(func(ctx context.Context, s *cli.Session, _ []string) error {
			nodes, err := cli.Call[market.NodesReply](ctx, s, messages.Auctioneer, messages.VerbNodes, messages.Empty{})
			if err != nil {
				return err
			}
			windows := windowList{nodes.Windows}
			return a.Show(windows, func(p *cli.Page) {
				if len(windows.Windows) == 0 {
					p.Printf("No windows.\n")
				}
				writeWindows(p, windows.Windows)
			})
		}),
	}
}

type windowList struct {
	Windows []market.Window `json:"windows"`
}

func windowRemoveCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "remove WINDOW",
		Short:   "remove a window",
		Long:    "Remove a window. If the window has begun, its nodes take tasks again.",
		Example: "  candor window remove 3",
		RunE: a.Operating(func(ctx context.Context, s *cli.Session, args []string) error {
			id, err := strconv.ParseUint(args[0], 10, 32)
			if err != nil || id == 0 {
				return cli.Usagef("%q is not the number of a window; \"candor window list\" shows the numbers", args[0])
			}
			return cli.Ask(ctx, a, s, messages.Auctioneer, market.VerbWindow, market.WindowRequest{Remove: uint32(id)}, func(p *cli.Page, w market.Window) {
				p.Printf("Window %d is removed\n", w.ID)
			})
		}),
	}
}

func writeWindows(p *cli.Page, windows []market.Window) {
	if len(windows) == 0 {
		return
	}
	t := terminal.NewTable(">WINDOW|FROM|TO|~NODES|>NOTICE|~REASON").Spare("REASON|NOTICE")
	for _, w := range windows {
		notice := "" // without a notice period, tasks run to their end
		if w.Notice != nil {
			notice = terminal.Span(w.Notice.Std())
		}
		t.Row(strconv.Itoa(int(w.ID)), p.At(w.From), p.At(w.To), terminal.Safe(hostlist.Join(w.Nodes)), notice, terminal.Safe(strings.TrimSpace(w.Reason)))
	}
	p.Table(t, "")
}
