// Package books has the commands that check the bank's books and take them elsewhere:
// the check of the balances, export and verification of the journal, and the
// signatures of those who asked.
package books

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
)

// Command has the bank check its books.
func Command(a *cli.App) *cobra.Command {
	var full bool
	cmd := &cobra.Command{
		Use:   "books",
		Short: "have the bank check its books",
		Long: `Have the bank check that its books balance: that the sum of all accounts is what was
issued. With --full, which is for operators, it recomputes every balance and every
hold from the first record. The exit code is 1 if they do not balance.`,
		Example: "  candor books\n  candor books --full\n  candor books --json | jq .balanced",
		RunE: a.OnlineAs(func() bool { return full }, func(ctx context.Context, s *cli.Session, _ []string) error {
			reply, err := cli.Call[messages.BooksReply](ctx, s, messages.Bank, messages.VerbBooks, messages.BooksRequest{Full: full})
			if err != nil {
				return err
			}
			return a.Verdict(reply, reply.Balanced, func(p *cli.Page) { writeBooks(p, reply) })
		}),
	}
	cmd.Flags().BoolVar(&full, "full", false, "recompute everything from the first record (operators)")
	return cmd
}

func writeBooks(p *cli.Page, r messages.BooksReply) {
	verdict := p.Green("The books balance")
	if !r.Balanced {
		verdict = p.Red("The books do NOT balance")
	}
	p.Printf("%s\n", verdict)
	p.Fields(
		"Issued", cli.Credits(r.Issued),
		"On accounts", cli.Credits(r.Balances),
		"Of that held", cli.Credits(r.Held)+" in "+terminal.Plural(r.Holds, "hold"),
		"Accounts", terminal.Count(r.Accounts),
		"Transfers", terminal.Count(r.Transfers),
		"Message", terminal.Safe(r.Message))
}
