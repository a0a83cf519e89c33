package client

import (
	"context"
	"crypto/rand"
	"fmt"
	"math"
	"time"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/messages"
)

func (a *app) accountCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "account [NAME]",
		Short: "show an account: balance, what is held for jobs, what was spent",
		Long: `Show an account, by default your own. You may see accounts that you are a member
of; operators see all.`,
		Example: "  candor account\n  candor account climate\n  candor account --all\n  candor account member add climate alice",
		Args:    cobra.MaximumNArgs(1),
		RunE: a.onlineAs(func() bool { return all }, func(ctx context.Context, s *session, args []string) error {
			if all {
				return a.accounts(ctx, s, args)
			}
			r := messages.AccountRequest{Account: optional(args)}
			reply, err := call[messages.AccountReply](ctx, s, messages.Bank, messages.VerbAccount, r)
			if err != nil {
				return err
			}
			return a.show(reply, func(p *page) { p.account(reply) })
		}),
		ValidArgsFunction: a.completeAccounts,
	}
	cmd.Flags().BoolVar(&all, "all", false, "list every account that you may see")
	cmd.AddCommand(a.memberCommand())
	return cmd
}

func (a *app) accounts(ctx context.Context, s *session, args []string) error {
	if len(args) > 0 {
		return usagef("--all: lists every account: leave out %q", args[0])
	}
	reply, err := call[messages.AccountsReply](ctx, s, messages.Bank, messages.VerbAccounts, messages.Empty{})
	if err != nil {
		return err
	}
	return a.show(reply, func(p *page) { p.accounts(reply) })
}

func (a *app) memberCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "member",
		Short:   "say who may spend from a project's account (operators)",
		Example: "  candor account member add climate alice\n  candor account member remove climate alice",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return usagef("say what to do: add or remove\nSee: %s --help", cmd.CommandPath())
		},
	}
	cmd.AddCommand(a.memberChange("add", "let an account spend from a project's", false),
		a.memberChange("remove", "let an account spend from a project's no longer", true))
	return cmd
}

func (a *app) memberChange(verb, short string, remove bool) *cobra.Command {
	return &cobra.Command{
		Use:     verb + " PROJECT ACCOUNT",
		Short:   short + " (operators)",
		Example: "  candor account member " + verb + " climate alice",
		Args:    cobra.ExactArgs(2),
		RunE: a.operating(func(ctx context.Context, s *session, args []string) error {
			r := messages.MemberRequest{Account: args[0], Member: args[1], Remove: remove}
			reply, err := call[messages.AccountReply](ctx, s, messages.Bank, messages.VerbMember, r)
			if err != nil {
				return err
			}
			return a.show(reply, func(p *page) { p.account(reply) })
		}),
		ValidArgsFunction: a.completeAccounts,
	}
}

func (a *app) grantCommand() *cobra.Command {
	var reason, key string
	cmd := &cobra.Command{
		Use:   "grant NAME AMOUNT",
		Short: "issue credits to an account (operators)",
		Long: `Issue credits to an account, which is opened if it does not exist. Without
--account or --creds it is done as "operator", where this machine has that one's
credentials. Repeating a grant with the same --key grants
nothing more.`,
		Example: "  candor grant alice 100 --reason 'spring allocation'",
		Args:    cobra.ExactArgs(2),
		RunE: a.operating(func(ctx context.Context, s *session, args []string) error {
			amount, err := messages.ParseCredits(args[1])
			if err != nil {
				return usagef("%v", err)
			}
			r := messages.GrantRequest{Key: first(key, rand.Text()), Account: args[0], Amount: amount, Reason: reason}
			reply, err := callKeyed[messages.AccountReply](ctx, s, messages.Bank, messages.VerbGrant, r)
			if messages.KindOf(err).Retriable() && err != nil {
				return within("repeat with --key "+r.Key+", which cannot grant twice", err)
			}
			if err != nil {
				return err
			}
			return a.show(reply, func(p *page) { p.granted(r, reply) })
		}),
		ValidArgsFunction: a.completeAccounts,
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the `statement`")
	cmd.Flags().StringVar(&key, "key", "", "idempotency `key` of the grant (default: random)")
	return cmd
}

func (a *app) booksCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "books",
		Short: "have the bank check its books",
		Long: `Have the bank check that its books balance: that the sum of all accounts is what was
issued, and every hold is backed. The exit code is 1 if they do not.`,
		Example: "  candor books\n  candor books --json | jq .balanced",
		Args:    cobra.NoArgs,
		RunE: a.online(func(ctx context.Context, s *session, _ []string) error {
			reply, err := call[messages.BooksReply](ctx, s, messages.Bank, messages.VerbBooks, messages.Empty{})
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
}

func (a *app) statementCommand() *cobra.Command {
	var from, to string
	var limit int
	cmd := &cobra.Command{
		Use:   "statement [NAME]",
		Short: "show the history of an account, oldest first",
		Long:  "Show every movement of an account's credits, by default your own, with the reason for each.",
		Example: `  candor statement
  candor statement climate --from 2026-01-01 --to 2026-02-01
  candor statement --from 24h --json | jq '.entries[].change'`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.online(func(ctx context.Context, s *session, args []string) error {
			r := messages.StatementRequest{Account: optional(args)}
			var err error
			if r.From, err = a.instant("--from", from); err != nil {
				return err
			}
			if r.To, err = a.instant("--to", to); err != nil {
				return err
			}
			reply, err := fullStatement(ctx, s, r, limit)
			if err != nil {
				return err
			}
			return a.show(reply, func(p *page) { p.statement(reply) })
		}),
		ValidArgsFunction: a.completeAccounts,
	}
	cmd.Flags().StringVar(&from, "from", "", "from this `time` on: 2026-01-31, 2026-01-31T12:00:00Z, or how long ago, like 24h")
	cmd.Flags().StringVar(&to, "to", "", "before this `time`")
	cmd.Flags().IntVarP(&limit, "limit", "n", 0, "at most this `number` of entries (default: all)")
	return cmd
}

// fullStatement reads page after page and joins them; limit 0 reads all.
func fullStatement(ctx context.Context, s *session, r messages.StatementRequest, limit int) (messages.StatementReply, error) {
	if limit < 0 {
		return messages.StatementReply{}, usagef("--limit %d: must be a whole number from 1 on", limit)
	}
	if limit == 0 {
		limit = math.MaxInt
	}
	var all messages.StatementReply
	for {
		r.Limit = min(limit-len(all.Entries), maxPage)
		reply, err := call[messages.StatementReply](ctx, s, messages.Bank, messages.VerbStatement, r)
		if err != nil {
			return all, err
		}
		if r.After == 0 {
			all.Account, all.Opening = reply.Account, reply.Opening
		}
		all.Entries, all.More = append(all.Entries, reply.Entries...), reply.More
		if !reply.More || len(reply.Entries) == 0 || len(all.Entries) >= limit {
			return all, nil
		}
		r.After = reply.Entries[len(reply.Entries)-1].Number
	}
}

// instant reads a point in time: a date or time of the local zone, RFC 3339,
// or a span before now.
func (a *app) instant(flag, text string) (messages.Time, error) {
	if text == "" {
		return 0, nil
	}
	if span, err := time.ParseDuration(text); err == nil && span >= 0 {
		return messages.TimeOf(a.now().Add(-span)), nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02", "2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02 15:04:05"} {
		if t, err := time.ParseInLocation(layout, text, a.zone); err == nil {
			return messages.TimeOf(t), nil
		}
	}
	return 0, usagef("%s %q: write it like 2026-01-31, 2026-01-31T12:00:00Z, or how long ago, like 24h", flag, text)
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
