// Package accounts has the commands about accounts, projects and statements, and the commands that move credits.
package accounts

import (
	"cmp"
	"context"
	"crypto/rand"
	"strings"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

// Commands returns the commands of the package. The argument `predict` makes a subcommand of "account".
func Commands(a *cli.App, predict func(*cli.App) *cobra.Command) []*cobra.Command {
	account := func(a *cli.App) *cobra.Command { return accountCommand(a, predict(a)) }
	return append(a.MakeTabled(cli.Makers{"account": account, "statement": statementCommand, "usage": usageCommand}),
		a.Make(cli.Makers{"project": projectCommand, "transfer": transferCommand, "grant": grantCommand, "withdraw": withdrawCommand, "correct": correctCommand,
			"remit": remitCommand, "authorise": authoriseCommand, "revoke": revokeCommand})...)
}

func accountCommand(a *cli.App, predict *cobra.Command) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "account [NAME]",
		Short: "show an account: available credits, holds, expiring grants",
		Long: `Show an account, by default your own: its balance, the credits that are held
for jobs, its credit limit, and the credits that expire. You may see your own
account and the projects that you are a member of. Operators see all accounts.

Each hold is listed with its job and with the event that ends the hold. A
refused submission gives its hold back at once. If a part of the site failed
during a submission, the hold ends by itself within the hour.`,
		Example: `  candor account
  candor account climate
  candor account --all
  candor account predict job.yaml`,
		RunE: a.OnlineAs(func() bool { return all }, func(ctx context.Context, s *cli.Session, args []string) error {
			if all {
				return accounts(ctx, a, s, args)
			}
			return showHeld(ctx, a, s, optional(args))
		}),
		ValidArgsFunction: a.CompleteAccounts(),
	}
	cmd.Flags().BoolVar(&all, "all", false, "list every account that you may see")
	cmd.AddCommand(predict, freezeCommand(a, true), freezeCommand(a, false), creditCommand(a), memberCommand(a))
	return cmd
}

// showAccount asks the bank to change an account, and shows the changed account.
func showAccount(ctx context.Context, a *cli.App, s *cli.Session, verb string, request any) error {
	reply, err := cli.Call[money.AccountReply](ctx, s, messages.Bank, verb, request)
	if err != nil {
		return err
	}
	if whole, err := cli.Call[money.AccountReply](ctx, s, messages.Bank, messages.VerbAccount, money.AccountRequest{Account: reply.Account}); err == nil {
		reply = whole
	}
	return a.Show(reply, func(p *cli.Page) { writeAccount(p, reply) })
}

func accounts(ctx context.Context, a *cli.App, s *cli.Session, args []string) error {
	if len(args) > 0 {
		return cli.Usagef("--all lists every account: leave out %q", args[0])
	}
	reply, err := allAccounts(ctx, s, money.AccountsRequest{})
	if err != nil {
		return err
	}
	return a.Show(reply, func(p *cli.Page) { writeAccounts(p, reply) })
}

func allAccounts(ctx context.Context, s *cli.Session, r money.AccountsRequest) (all money.AccountsReply, err error) {
	for {
		reply, err := cli.Call[money.AccountsReply](ctx, s, messages.Bank, messages.VerbAccounts, r)
		if err != nil {
			return all, err
		}
		all.Accounts = append(all.Accounts, reply.Accounts...)
		if !reply.More || len(reply.Accounts) == 0 {
			return all, nil
		}
		r.After = reply.Accounts[len(reply.Accounts)-1].Account
	}
}

func grantCommand(a *cli.App) *cobra.Command {
	var reason, key, expires string
	var yes bool
	cmd := &cobra.Command{
		Use:   "grant NAME AMOUNT",
		Short: "issue credits to an account (operators)",
		Long: `Issue credits to an account. If the account does not exist, the command asks
whether to open it; without a terminal, --yes is needed. A second grant with the
same --key grants nothing more.

With --expires, credits that are unspent at that time go back by themselves.
Jobs use the credits that expire first. Credits that are held for a job stay
until the job has ended.`,
		Example: `  candor grant alice 100 --account operator --reason 'spring allocation'
  candor grant climate 5000 --expires 2027-01-01`,
		RunE: a.Operating(cli.WithAmount(1, func(ctx context.Context, s *cli.Session, args []string, amount messages.Credits) error {
			r := money.GrantRequest{Key: cmp.Or(key, rand.Text()), Account: args[0], Amount: amount, Reason: reason}
			if span, ok := cli.Span(strings.TrimPrefix(expires, "in ")); ok { // the span begins when the bank gets the request
				r.Lasts = messages.Duration(span)
			} else if at, err := a.Future("--expires", expires); err != nil {
				return err
			} else {
				r.Expires = at
			}
			if !yes {
				if err := confirmAccount(ctx, a, s, r.Account); err != nil {
					return err
				}
			}
			return askKeyed(ctx, a, s, messages.VerbGrant, r.Key, "grant", r, func(p *cli.Page, reply money.AccountReply) {
				writeGranted(p, r, reply)
			})
		})),
		ValidArgsFunction: a.CompleteAccounts(),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "the reason, a `text` for the statement")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "open the account without a question, if it does not exist")
	cmd.Flags().StringVar(&key, "key", "", "idempotency `key` of the grant (default: random)")
	cmd.Flags().StringVar(&expires, "expires", "", "`when` unspent credits go back: 2027-01-01, or from now, like 90d")
	return cmd
}

// confirmAccount asks whether to open an account that the bank does not know. The name may be misspelt.
func confirmAccount(ctx context.Context, a *cli.App, s *cli.Session, name messages.Name) error {
	_, err := cli.Call[money.AccountReply](ctx, s, messages.Bank, messages.VerbAccount, money.AccountRequest{Account: name})
	if messages.KindOf(err) != messages.NotFound {
		return nil // the grant itself reports any other error
	}
	return a.Confirm(ctx, "There is no account "+name+" yet. Open it?", "there is no account "+name+" yet: check the name, or open it with --yes")
}

// askKeyed sends a request with a key to the bank. If the outcome is unknown, it tells the user how to repeat the
// request. The bank carries out a request with the same key only once.
func askKeyed[Reply any](ctx context.Context, a *cli.App, s *cli.Session, verb, key, what string, request any, words func(*cli.Page, Reply)) error {
	reply, err := cli.Call[Reply](ctx, s, messages.Bank, verb, request)
	if err != nil && messages.KindOf(err).Retriable() {
		return cli.Within("repeat the command with --key "+key+", which cannot "+what+" twice", err)
	}
	if messages.KindOf(err) == messages.Conflict {
		return cli.Within("--key "+key+" belongs to an earlier request with other values; `candor statement` shows that request; choose another key for a new "+what, err)
	}
	if err != nil {
		return err
	}
	return a.Show(reply, func(p *cli.Page) { words(p, reply) })
}

func optional(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}
