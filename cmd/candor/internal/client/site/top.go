package site

import (
	"context"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/money"
)

func topCommand(a *cli.App) *cobra.Command {
	var interval time.Duration
	cmd := &cobra.Command{
		Use:   "top",
		Short: "watch shares, prices and slots as they change",
		Long: `Watch the markets of the site: prices, slots and the shares of the largest
bidders. The picture changes until you type q, Escape or Ctrl-C. The arrow keys,
Page Up and Page Down scroll. The key s sorts the bidders by the next column,
and r reverses the order. If the output is not a terminal, and with --json, the
picture is printed once.`,
		Example: "  candor top\n  candor top --interval 200ms\n  candor top --json | jq '.markets[0].prices'",
		RunE: a.Online(func(ctx context.Context, s *cli.Session, _ []string) error {
			if interval < minInterval {
				return cli.Usagef("--interval %v: must be at least %v", interval, minInterval)
			}
			if a.Flags.JSON || !terminal.IsTerminal(a.In) || !terminal.IsTerminal(a.Out) {
				o, err := survey(ctx, s)
				if err != nil {
					return err
				}
				return a.Show(o, func(p *cli.Page) { writeTop(p, o) })
			}
			return watchTop(ctx, a, s, interval)
		}),
	}
	cmd.Flags().DurationVar(&interval, "interval", time.Second, "`time` between two questions to the site")
	return cmd
}

// minInterval is the shortest time between two requests, so that no user keeps a site busy.
const minInterval = 50 * time.Millisecond

func survey(ctx context.Context, s *cli.Session) (o overview, err error) {
	markets, err := cli.Call[market.MarketsReply](ctx, s, messages.Auctioneer, messages.VerbMarkets, messages.Empty{})
	if err != nil {
		return o, err
	}
	nodes, err := cli.Call[market.NodesReply](ctx, s, messages.Auctioneer, messages.VerbNodes, messages.Empty{})
	if err != nil {
		return o, err
	}
	account, err := cli.Call[money.AccountReply](ctx, s, messages.Bank, messages.VerbAccount, money.AccountRequest{})
	if err != nil && messages.KindOf(err) != messages.NotFound { // the error NotFound means that nobody has granted credits to the account yet
		return o, err
	}
	if account.Account == "" {
		account.Account = s.Account
	}
	return overview{Site: s.Site, Account: account, Nodes: nodes.Nodes, Markets: markets.Markets, Windows: nodes.Windows}, nil
}

// watchTop redraws the overview until the user quits. Another goroutine asks the site, so keys work while the site does
// not answer.
func watchTop(ctx context.Context, a *cli.App, s *cli.Session, interval time.Duration) error {
	in, out := a.In.(*os.File), a.Out.(*os.File)
	screen, err := terminal.OpenScreen(in, out)
	if err != nil {
		return err
	}
	defer screen.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	looks := make(chan look)
	go watch(ctx, s, interval, looks)
	v := topView{}
	for {
		_, rows := screen.Size()
		screen.Draw(v.frame(a.Page(a.Out), rows))
		select {
		case v.look = <-looks:
		case <-ctx.Done():
			return nil
		case key, ok := <-screen.Keys():
			if !ok || v.press(key, rows) {
				return nil
			}
		}
	}
}

func watch(ctx context.Context, s *cli.Session, interval time.Duration, looks chan<- look) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		o, err := survey(ctx, s)
		select {
		case looks <- look{&o, err}:
		case <-ctx.Done():
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}
