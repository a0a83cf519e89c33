package accounts

import (
	"cmp"
	"context"
	"crypto/rand"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

type payment struct{ from, reason, key string }

func (m *payment) flags(a *cli.App, cmd *cobra.Command) {
	cmd.Flags().StringVar(&m.from, "from", "", "the `account` that pays (default: your own)")
	cmd.Flags().StringVar(&m.reason, "reason", "", "the reason, a `text` for the statement")
	cmd.Flags().StringVar(&m.key, "key", "", "idempotency `key` (default: random)")
	cmd.RegisterFlagCompletionFunc("from", a.CompleteAccounts())
}

func transferCommand(a *cli.App) *cobra.Command {
	var m payment
	cmd := &cobra.Command{
		Use:   "transfer ACCOUNT AMOUNT",
		Short: "give credits to an account, from your account or your project",
		Long: `Transfer credits to an account, from your own account or, with --from, from a
project that you own. Credits that expire keep their expiry. A second transfer
with the same --key transfers nothing more.`,
		Example: "  candor transfer bob 5 --reason 'thanks for the data'\n  candor transfer bob 100 --from climate",
		RunE: a.Online(cli.WithAmount(1, func(ctx context.Context, s *cli.Session, args []string, amount messages.Credits) error {
			r := money.PayRequest{Key: cmp.Or(m.key, rand.Text()), From: m.from, To: args[0], Amount: amount, Reason: m.reason}
			return askKeyed(ctx, a, s, money.VerbPay, r.Key, "transfer", r, func(p *cli.Page, reply money.AccountReply) {
				writeMoved(p, "Transferred", amount, "to "+r.To, reply)
			})
		})),
		ValidArgsFunction: a.CompleteAccounts(),
	}
	m.flags(a, cmd)
	return cmd
}

func withdrawCommand(a *cli.App) *cobra.Command {
	var reason, key string
	cmd := &cobra.Command{
		Use:   "withdraw NAME AMOUNT",
		Short: "take available credits back from an account (operators)",
		Long: `Take available credits back from an account. A second command with the same
--key takes nothing more.`,
		Example: "  candor withdraw climate 20 --reason 'the project ends early'",
		RunE: a.Operating(cli.WithAmount(1, func(ctx context.Context, s *cli.Session, args []string, amount messages.Credits) error {
			r := money.WithdrawRequest{Key: cmp.Or(key, rand.Text()), Account: args[0], Amount: amount, Reason: reason}
			return askKeyed(ctx, a, s, money.VerbWithdraw, r.Key, "withdraw", r, func(p *cli.Page, reply money.AccountReply) {
				writeMoved(p, "Withdrew", amount, "from "+r.Account, reply)
			})
		})),
		ValidArgsFunction: a.CompleteAccounts(),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "the reason, a `text` for the statement")
	cmd.Flags().StringVar(&key, "key", "", "idempotency `key` (default: random)")
	cmd.MarkFlagRequired("reason")
	return cmd
}

func correctCommand(a *cli.App) *cobra.Command {
	var reason, amount string
	cmd := &cobra.Command{
		Use:   "correct TRANSFER",
		Short: "reverse a transfer or a part of it (operators)",
		Long: `Take back the credits of a transfer, or a part of them. The old record stays: a
new transfer goes the other way and names the old transfer. A transfer can be
corrected once, and its correction can be corrected too. "candor statement
--json" has the identifiers of transfers.`,
		Example: "  candor correct job/west/alice/hello-1/charge \\\n      --reason 'the node was faulty'\n  candor correct '$grant/operator/spring' --amount 10 \\\n      --reason 'granted too much'",
		RunE: a.Operating(func(ctx context.Context, s *cli.Session, args []string) (err error) {
			r := money.CorrectRequest{Transfer: args[0], Reason: reason}
			if amount != "" {
				if r.Amount, err = cli.AmountOf(amount); err != nil {
					return err
				}
			}
			reply, err := cli.Call[money.CorrectReply](ctx, s, messages.Bank, money.VerbCorrect, r)
			if err != nil {
				return err
			}
			return a.Show(reply, func(p *cli.Page) {
				p.Printf("Corrected %s: moved %s from %s back to %s\n", r.Transfer, cli.Credits(reply.Amount), reply.Debit, reply.Credit)
			})
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "the reason, a `text` for the statement")
	cmd.Flags().StringVar(&amount, "amount", "", "how many `credits` to take back (default: all)")
	cmd.MarkFlagRequired("reason")
	return cmd
}
