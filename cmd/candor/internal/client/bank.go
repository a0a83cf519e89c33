package client

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/messages"
)

func (a *app) accountCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "account [NAME]",
		Short: "show an account: what is available, held for jobs, and expiring",
		Long: `Show an account, by default your own: its balance, what of it is held for jobs, how
far below zero it may go, and what of it expires when. You may see accounts that you
have a part in; operators see all.`,
		Example: `  candor account
  candor account climate
  candor account --all
  candor account predict job.yaml`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.onlineAs(func() bool { return all }, func(ctx context.Context, s *session, args []string) error {
			if all {
				return a.accounts(ctx, s, args)
			}
			return a.showAccount(ctx, s, messages.VerbAccount, messages.AccountRequest{Account: optional(args)})
		}),
		ValidArgsFunction: a.completeAccounts,
	}
	cmd.Flags().BoolVar(&all, "all", false, "list every account that you may see")
	cmd.AddCommand(a.predictCommand(), a.freezeCommand(true), a.freezeCommand(false), a.creditCommand(), a.memberCommand())
	return cmd
}

// showAccount asks the bank for something that it answers with an account.
func (a *app) showAccount(ctx context.Context, s *session, verb string, request any) error {
	return ask(ctx, a, s, messages.Bank, verb, request, (*page).account)
}

func (a *app) accounts(ctx context.Context, s *session, args []string) error {
	if len(args) > 0 {
		return usagef("--all: lists every account: leave out %q", args[0])
	}
	reply, err := allAccounts(ctx, s, messages.AccountsRequest{})
	if err != nil {
		return err
	}
	return a.show(reply, func(p *page) { p.accounts(reply) })
}

// allAccounts reads page after page and joins them.
func allAccounts(ctx context.Context, s *session, r messages.AccountsRequest) (all messages.AccountsReply, err error) {
	for {
		reply, err := call[messages.AccountsReply](ctx, s, messages.Bank, messages.VerbAccounts, r)
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

func (a *app) grantCommand() *cobra.Command {
	var reason, key, expires string
	cmd := &cobra.Command{
		Use:   "grant NAME AMOUNT",
		Short: "issue credits to an account (operators)",
		Long: `Issue credits to an account, which is opened if it does not exist. Without
--account or --creds it is done as "operator", where this machine has that one's
credentials. Repeating a grant with the same --key grants nothing more.

What is unspent of a grant that --expires goes back by itself at that time. Jobs draw
on what expires first; what is held for a job stays until the job has ended.`,
		Example: `  candor grant alice 100 --reason 'spring allocation'
  candor grant climate 5000 --expires 2027-01-01`,
		Args: cobra.ExactArgs(2),
		RunE: a.operating(func(ctx context.Context, s *session, args []string) error {
			amount, err := amountOf(args[1])
			if err != nil {
				return err
			}
			r := messages.GrantRequest{Key: first(key, rand.Text()), Account: args[0], Amount: amount, Reason: reason}
			if r.Expires, err = a.future("--expires", expires); err != nil {
				return err
			}
			reply, err := keyed[messages.AccountReply](ctx, s, messages.VerbGrant, r.Key, "grant", r)
			if err != nil {
				return err
			}
			return a.show(reply, func(p *page) { p.granted(r, reply) })
		}),
		ValidArgsFunction: a.completeAccounts,
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the `statement`")
	cmd.Flags().StringVar(&key, "key", "", "idempotency `key` of the grant (default: random)")
	cmd.Flags().StringVar(&expires, "expires", "", "`when` what is unspent goes back: 2027-01-01, or from now, like 90d")
	return cmd
}

// keyed sends the bank a request with a key, and says how to repeat it where
// its outcome is not known.
func keyed[Reply any](ctx context.Context, s *session, verb, key, what string, request any) (Reply, error) {
	reply, err := callKeyed[Reply](ctx, s, messages.Bank, verb, request)
	if err != nil && messages.KindOf(err).Retriable() {
		return reply, within("repeat with --key "+key+", which cannot "+what+" twice", err)
	}
	return reply, err
}

// amountOf reads an amount from the command line.
func amountOf(text string) (messages.Credits, error) {
	amount, err := messages.ParseCredits(text)
	if err != nil {
		return 0, usagef("%v", err)
	}
	return amount, nil
}

func (a *app) booksCommand() *cobra.Command {
	var full bool
	cmd := &cobra.Command{
		Use:   "books",
		Short: "have the bank check its books",
		Long: `Have the bank check that its books balance: that the sum of all accounts is what was
issued. With --full, which is for operators, it recomputes every balance and every
hold from the first record. The exit code is 1 if they do not balance.`,
		Example: "  candor books\n  candor books --full\n  candor books --json | jq .balanced",
		Args:    cobra.NoArgs,
		RunE: a.onlineAs(func() bool { return full }, func(ctx context.Context, s *session, _ []string) error {
			reply, err := call[messages.BooksReply](ctx, s, messages.Bank, messages.VerbBooks, messages.BooksRequest{Full: full})
			if err != nil {
				return err
			}
			if err := a.show(reply, func(p *page) { p.books(reply) }); err != nil {
				return err
			}
			if !reply.Balanced {
				return exitStatus(codeFailed)
			}
			return nil
		}),
	}
	cmd.Flags().BoolVar(&full, "full", false, "recompute everything from the first record (operators)")
	return cmd
}

// optional is the one argument of a command that may have none.
func optional(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// warn says what does not end a command, on standard error.
func (a *app) warn(command string, sentences []string) {
	for _, sentence := range sentences {
		fmt.Fprintf(a.err, "candor %s: %s\n", command, sentence)
	}
}
