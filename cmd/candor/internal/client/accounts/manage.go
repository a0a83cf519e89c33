package accounts

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

func memberCommand(a *cli.App) *cobra.Command {
	return cli.Group(&cobra.Command{
		Use:     "member",
		Short:   "add and remove the members of an account (owners, operators)",
		Example: "  candor project member add climate alice\n  candor project member remove climate alice",
	}, memberAdd(a), memberRemove(a))
}

func memberAdd(a *cli.App) *cobra.Command {
	var role, limit string
	cmd := changeMember(a, &cobra.Command{
		Use:   "add PROJECT ACCOUNT",
		Short: "make an account a member of a project (owners, operators)",
		Long: `Make an account a member of a project. By default the member may spend the
credits of the project on jobs, without a limit.`,
		Example: "  candor project member add climate alice\n  candor project member add climate bob --role auditor\n  candor project member add climate carol --limit 50",
	}, func(r *money.MemberRequest, _ []string) error {
		if role != "" {
			if err := setRole(r, role); err != nil {
				return err
			}
		}
		if limit != "" {
			return setLimit(r, limit)
		}
		return nil
	})
	cmd.Flags().StringVar(&role, "role", "", "the `role` of the member: member, owner or auditor")
	cmd.Flags().StringVar(&limit, "limit", "", "the most `credits` that the member may spend and hold in the project, or none")
	return cmd
}

func memberRemove(a *cli.App) *cobra.Command {
	return changeMember(a, &cobra.Command{
		Use:     "remove PROJECT ACCOUNT",
		Short:   "remove a member from a project (owners, operators)",
		Example: "  candor project member remove climate alice",
	}, func(r *money.MemberRequest, _ []string) error {
		r.Remove = true
		return nil
	})
}

// changeMember makes cmd change a member of a project. The arguments of cmd are the project and the member.
func changeMember(a *cli.App, cmd *cobra.Command, change func(r *money.MemberRequest, args []string) error) *cobra.Command {
	cmd.ValidArgsFunction = a.CompleteAccounts()
	cmd.RunE = a.Online(func(ctx context.Context, s *cli.Session, args []string) error {
		r := money.MemberRequest{Account: args[0], Member: args[1]}
		if err := change(&r, args); err != nil {
			return err
		}
		return showAccount(ctx, a, s, messages.VerbMember, r)
	})
	return cmd
}

func setRole(r *money.MemberRequest, text string) error {
	var role money.Role
	if err := role.UnmarshalText([]byte(text)); err != nil || role == money.RoleSelf {
		return cli.Usagef("role %q: use member, owner or auditor", text)
	}
	r.Role = &role
	return nil
}

// setLimit sets a member's limit. The text "none" removes the limit.
func setLimit(r *money.MemberRequest, text string) error {
	r.Limit = new(messages.Credits)
	if text == "none" {
		return nil
	}
	amount, err := cli.AmountOf(text)
	switch {
	case err != nil:
		return err
	case amount <= 0:
		return cli.Usagef("limit %q: give an amount above 0, or none; to keep a member from spending, use --role auditor", text)
	}
	*r.Limit = amount
	return nil
}

func freezeCommand(a *cli.App, frozen bool) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "freeze NAME",
		Short: "refuse new holds and payments from an account (owners, operators)",
		Long: `Freeze an account: the bank refuses new holds on the account and payments from
it. Holds that exist can still be charged, and the account can receive credits.
Only an operator unfreezes an account that an operator froze.`,
		Example:           "  candor account freeze climate --reason 'audit until Friday'",
		ValidArgsFunction: a.CompleteAccounts(),
	}
	if frozen {
		cmd.Flags().StringVar(&reason, "reason", "", "the reason, a `text` for users whose jobs are refused")
	} else {
		cmd.Use, cmd.Short, cmd.Long = "unfreeze NAME", "unfreeze an account (owners, operators)", ""
		cmd.Example = "  candor account unfreeze climate"
	}
	cmd.RunE = a.Online(func(ctx context.Context, s *cli.Session, args []string) error {
		return showAccount(ctx, a, s, money.VerbFreeze, money.FreezeRequest{Account: args[0], Frozen: frozen, Reason: reason})
	})
	return cmd
}

func creditCommand(a *cli.App) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:     "credit NAME AMOUNT",
		Short:   "set how far below zero the balance may go (operators)",
		Example: "  candor account credit climate 500 --reason 'until the grant comes'\n  candor account credit climate 0",
		RunE: a.Operating(cli.WithAmount(1, func(ctx context.Context, s *cli.Session, args []string, amount messages.Credits) error {
			return showAccount(ctx, a, s, money.VerbCredit, money.CreditRequest{Account: args[0], Credit: amount, Reason: reason})
		})),
		ValidArgsFunction: a.CompleteAccounts(),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "the reason, a `text` for the journal")
	return cmd
}
