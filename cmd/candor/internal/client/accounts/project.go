package accounts

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

func projectCommand(a *cli.App) *cobra.Command {
	return cli.Group(&cobra.Command{
		Use:   "project",
		Short: "share an account: projects, their members and limits",
		Long: `A project is an account from which several people spend. Its owners decide who
takes part, in which role, and up to which limit. Auditors only see its
statement.`,
		Example: `  candor project create climate --owner alice --title 'Climate models'
  candor project member add climate bob --limit 50
  candor project role climate carol auditor
  candor project show climate
  candor submit --project climate --budget 10 run.sh`,
	}, projectCreate(a), a.Tabled(projectShow(a)), a.Tabled(projectList(a)), memberCommand(a), projectLimit(a), projectRole(a))
}

func projectCreate(a *cli.App) *cobra.Command {
	var title string
	var owners []string
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "make a project (operators)",
		Long: `Make a project: an account without credits, until an operator grants some. The
same command on an existing project changes the title and adds owners. An owner
needs no account of credits. The command says which owners have none.`,
		Example: "  candor project create climate --owner alice --owner bob \\\n      --title 'Climate models'",
		RunE: a.Operating(func(ctx context.Context, s *cli.Session, args []string) error {
			if err := showAccount(ctx, a, s, money.VerbProject, money.ProjectRequest{Account: args[0], Title: title, Owners: owners}); err != nil {
				return err
			}
			for _, owner := range owners {
				if _, err := cli.Call[money.AccountReply](ctx, s, messages.Bank, messages.VerbAccount, money.AccountRequest{Account: owner}); messages.KindOf(err) == messages.NotFound {
					a.Tell(fmt.Sprintf("candor project create: owner %s has no account of credits; if the name is wrong, remove the owner with candor project member remove %s %s", owner, args[0], owner))
				}
			}
			return nil
		}),
	}
	cmd.Flags().StringVar(&title, "title", "", "the title, in `words`")
	cmd.Flags().StringSliceVar(&owners, "owner", nil, "the `account` of an owner; may be repeated")
	cmd.RegisterFlagCompletionFunc("owner", a.CompleteAccounts())
	return cmd
}

func projectShow(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "show NAME",
		Short:   "show a project: credits, members, limits",
		Example: "  candor project show climate\n  candor project show climate --json | jq '.roles[]'",
		RunE: a.Online(func(ctx context.Context, s *cli.Session, args []string) error {
			return cli.Ask(ctx, a, s, messages.Bank, messages.VerbAccount, money.AccountRequest{Account: args[0]}, writeAccount)
		}),
		ValidArgsFunction: a.CompleteAccounts(),
	}
}

func projectList(a *cli.App) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "list the projects that you are a member of",
		Example: "  candor project list\n  candor project list --all",
		RunE: a.OnlineAs(func() bool { return all }, func(ctx context.Context, s *cli.Session, _ []string) error {
			reply, err := allAccounts(ctx, s, money.AccountsRequest{Projects: true})
			if err != nil {
				return err
			}
			return a.Show(reply, func(p *cli.Page) { writeProjects(p, reply) })
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "list all projects of the site (operators)")
	return cmd
}

func projectLimit(a *cli.App) *cobra.Command {
	return changeMember(a, &cobra.Command{
		Use:   "limit PROJECT ACCOUNT AMOUNT|none",
		Short: "limit the credits that a member may spend (owners, operators)",
		Long: `Limit the credits of a project that a member may spend and hold. Everything that
the member has spent so far counts. To let the member spend more, raise the
limit.`,
		Example: "  candor project limit climate bob 50\n  candor project limit climate bob none",
	}, func(r *money.MemberRequest, args []string) error { return setLimit(r, args[2]) })
}

func projectRole(a *cli.App) *cobra.Command {
	return changeMember(a, &cobra.Command{
		Use:   "role PROJECT ACCOUNT member|owner|auditor",
		Short: "change the role of a member (owners, operators)",
		Long: `Members spend credits of the project on their jobs. Owners also manage the
project and transfer credits from it. Auditors only see the account.`,
		Example: "  candor project role climate bob owner\n  candor project role climate carol auditor",
	}, func(r *money.MemberRequest, args []string) error { return setRole(r, args[2]) })
}
