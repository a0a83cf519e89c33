// Package books has the commands that check and export the bank's books, and ask for signatures of the books.
package books

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/money"
	"github.com/candor-grid/candor/messages/proof"
)

// Command returns the command that tells the bank to check its books.
func Command(a *cli.App) *cobra.Command {
	var full bool
	cmd := &cobra.Command{
		Use:   "books",
		Short: "check that the books of the bank balance",
		Long: `Ask the bank to check that its books balance: the sum of all accounts must be
the sum of all grants. With --full, for operators, the bank computes every
balance and every hold again from the first record. The exit code is 1 if the
books do not balance.`,
		Example: "  candor books\n  candor books --full\n  candor books --json | jq .balanced",
		RunE: a.OnlineAs(func() bool { return full }, func(ctx context.Context, s *cli.Session, _ []string) error {
			reply, err := cli.Call[money.BooksReply](ctx, s, messages.Bank, messages.VerbBooks, money.BooksRequest{Full: full})
			if err != nil {
				return err
			}
			return a.Verdict(reply, reply.Balanced, func(p *cli.Page) { writeBooks(p, reply) })
		}),
	}
	cmd.Flags().BoolVar(&full, "full", false, "compute everything again from the first record (operators)")
	return cmd
}

func writeBooks(p *cli.Page, r money.BooksReply) {
	verdict := p.Green("The books balance")
	if !r.Balanced {
		verdict = p.Red("The books do NOT balance")
	}
	p.Printf("%s\n", verdict)
	held := ""
	if r.Holds > 0 { // users do not get the number of holds
		held = cli.Credits(r.Held) + " in " + terminal.Plural(r.Holds, "hold")
	}
	p.Fields(
		"Issued", cli.Credits(r.Issued),
		"On accounts", cli.Credits(r.Balances),
		"Held", held,
		"Accounts", terminal.Count(r.Accounts),
		"Transfers", terminal.Count(r.Transfers),
		"Message", terminal.Safe(r.Message))
}

func signCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "sign VERB REQUEST",
		Short: "sign a request that another program sends to the bank",
		Long: `Print the header that proves that a request to the bank is yours. VERB is the
verb of the request, such as pay. REQUEST must be byte for byte what another
NATS client will send. That client must send it with this header and with your
credentials, within an hour.`,
		Example: `  request='{"key":"1","to":"bob","amount":5}'
  nats request -H "$(candor bank sign pay "$request")" \
      candor.west.bank.pay.alice "$request"`,
		RunE: func(_ *cobra.Command, args []string) error {
			t, err := a.Resolve(false)
			if err != nil {
				return err
			}
			if _, _, _, wants := proof.Wants(messages.Subject(t.Site, messages.Bank, args[0], t.Account)); !wants {
				return cli.Usagef("%q is no request to the bank that needs a proof; \"candor schema\" lists all requests", args[0])
			}
			principal, err := bus.ReadPrincipal(t.Creds)
			if err != nil {
				return err
			}
			signed, err := principal.Sign(t.Site, args[0], t.Account, messages.TimeOf(time.Now()), []byte(args[1]))
			if err != nil {
				return err
			}
			value, err := proof.EncodeHeader(&signed)
			if err != nil {
				return err
			}
			return a.Show(map[string]string{proof.Header: value}, func(p *cli.Page) { p.Printf("%s:%s\n", proof.Header, value) })
		},
	}
}
