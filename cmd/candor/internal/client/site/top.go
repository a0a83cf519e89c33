package site

import (
	"context"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
)

func topCommand(a *cli.App) *cobra.Command {
	var interval time.Duration
	cmd := &cobra.Command{
		Use:   "top",
		Short: "watch shares, prices and slots as they change",
		Long: `Watch the markets of the site: prices, slots and the shares of the largest bidders,
redrawn in place until q or Ctrl-C. Where the output is not a terminal, and with
--json, print it once.`,
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
	cmd.Flags().DurationVar(&interval, "interval", time.Second, "how `often` to look")
	return cmd
}

// minInterval keeps a user from making a site answer without pause.
const minInterval = 50 * time.Millisecond

// survey asks for all that top shows.
func survey(ctx context.Context, s *cli.Session) (o overview, err error) {
	markets, err := cli.Call[messages.MarketsReply](ctx, s, messages.Auctioneer, messages.VerbMarkets, messages.Empty{})
	if err != nil {
		return o, err
	}
	nodes, err := cli.Call[messages.NodesReply](ctx, s, messages.Auctioneer, messages.VerbNodes, messages.Empty{})
	if err != nil {
		return o, err
	}
	account, err := cli.Call[messages.AccountReply](ctx, s, messages.Bank, messages.VerbAccount, messages.AccountRequest{})
	if err != nil && messages.KindOf(err) != messages.NotFound { // nobody has granted it anything yet
		return o, err
	}
	if account.Account == "" {
		account.Account = s.Account
	}
	return overview{Site: s.Site, Account: account, Nodes: nodes.Nodes, Markets: markets.Markets}, nil
}

// watchTop redraws the overview until the user has enough.
func watchTop(ctx context.Context, a *cli.App, s *cli.Session, interval time.Duration) error {
	in, out := a.In.(*os.File), a.Out.(*os.File)
	screen, err := terminal.OpenScreen(in, out)
	if err != nil {
		return err
	}
	defer screen.Close()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		screen.Draw(topFrame(ctx, a, s))
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		case key, ok := <-screen.Keys():
			if !ok || key == 'q' || key == 'Q' || key == keyInterrupt || key == keyEscape {
				return nil
			}
		}
	}
}

// What a terminal in raw mode sends for Ctrl-C and Escape.
const (
	keyInterrupt = 0x03
	keyEscape    = 0x1b
)

// topFrame is one picture; a site that does not answer is one too.
func topFrame(ctx context.Context, a *cli.App, s *cli.Session) string {
	p := a.Page(a.Out)
	o, err := survey(ctx, s)
	if err != nil {
		p.Printf("%s\n\n%s\n", p.Bold("candor top"), p.Yellow("The site does not answer: "+terminal.Safe(cli.Sentence(err))))
	} else {
		writeTop(p, o)
	}
	p.Printf("\n%s\n", p.Dim("q quits"))
	return p.String()
}
