package accounts

import (
	"cmp"
	"context"
	"crypto/rand"
	"strings"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
)

func remitCommand(a *cli.App) *cobra.Command {
	var m payment
	cmd := &cobra.Command{
		Use:   "remit ACCOUNT@SITE AMOUNT",
		Short: "give credits to an account of another site",
		Long: `Give credits to an account of another site, a peer of this site. The bank sets
the credits aside and asks the bank of the other site. If the other bank
refuses, for example because there is no such account, the credits are yours
again. If the other bank cannot be reached, your bank asks until it answers.
A second command with the same --key gives nothing more.

With --from, the account of a project that you own pays. Members who are not
owners cannot give its credits away; their jobs can run at other sites. Credits
that expire do not expire at the other site. A bank sends no amount below the
setting least_visit of its site (default: 0.01 credits).`,
		Example: "  candor remit bob@east 10 --reason 'thanks for the data'\n  candor remit bob@east 100 --from climate",
		RunE: a.Online(func(ctx context.Context, s *cli.Session, args []string) error {
			payee, peer, err := accountAt(args[0])
			if err != nil {
				return err
			}
			amount, err := cli.AmountOf(args[1])
			if err != nil {
				return err
			}
			r := clearing.RemitRequest{Key: cmp.Or(m.key, rand.Text()), Account: m.from, Peer: peer, Payee: payee, Amount: amount, Reason: m.reason}
			return askKeyed(ctx, a, s, clearing.VerbRemit, r.Key, "remit", r, func(p *cli.Page, reply clearing.ClearingReply) {
				p.Printf("The bank has set aside %s for %s at %s", cli.Credits(amount), r.Payee, r.Peer)
				writeAsked(p, reply, peer)
			})
		}),
	}
	m.flags(a, cmd)
	return cmd
}

// accountAt splits "bob@east" into the account bob and the site east.
func accountAt(text string) (account, site messages.Name, err error) {
	account, site, ok := strings.Cut(text, "@")
	if !ok || !messages.ValidFreeName(account) || !messages.ValidName(site) {
		return "", "", cli.Usagef("%q: write the account and its site, like bob@east", text)
	}
	return account, site, nil
}

// writeAsked writes the end of a sentence about a request to a peer's bank. It writes the number of the request. If the
// number is 0, it writes that the bank already has the request.
func writeAsked(p *cli.Page, r clearing.ClearingReply, peer messages.Name) {
	if r.Number == 0 {
		p.Printf("; the bank of %s has this request already\n", peer)
		return
	}
	p.Printf("; this is request %d to the bank of %s\n", r.Number, peer)
}

func authoriseCommand(a *cli.App) *cobra.Command {
	var m payment
	var lasting string
	cmd := &cobra.Command{
		Use:   "authorise SITE AMOUNT",
		Short: "let another site charge you once, up to an amount",
		Long: `Set credits aside for one charge by another site, and print the authorisation
that your bank signs. The other site trusts the signature. The site can charge
the authorisation once, up to the amount, during the time of --for. The rest is
free again soon after this time, or when the site gives the authorisation up
(candor revoke). Jobs that run at other sites need no such command.

With --from, credits of a project are set aside. A member who does not own the
project needs a limit in it (candor project member --limit).`,
		Example: "  candor authorise east 20 --for 2d\n  candor authorise east 20 --for 12h --json > authorisation.json",
		RunE: a.Online(cli.WithAmount(1, func(ctx context.Context, s *cli.Session, args []string, amount messages.Credits) error {
			interval, ok := cli.Span(lasting)
			if !ok {
				return cli.Usagef("--for %q: write a length of time, like 12h or 2d", lasting)
			}
			r := clearing.AuthoriseRequest{Key: cmp.Or(m.key, rand.Text()), Account: m.from, Peer: args[0], Amount: amount,
				Interval: messages.Duration(interval), Reason: m.reason}
			return askKeyed(ctx, a, s, clearing.VerbAuthorise, r.Key, "authorise", r, func(p *cli.Page, reply clearing.SignedAuthorisation) {
				r := reply.Authorisation
				p.Printf("Site %s may charge %s once, up to %s, until %s\n", r.Peer, r.Account, cli.Credits(r.Amount), p.At(r.Ends()))
				p.Fields("Authorisation", r.ID, "Free again", p.At(r.Frees())+" at the latest")
			})
		})),
	}
	cmd.Flags().StringVar(&lasting, "for", "7d", "`time` during which the site may charge the authorisation")
	m.flags(a, cmd)
	return cmd
}

func revokeCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke AUTHORISATION",
		Short: "ask another site to give up an authorisation",
		Long: `Ask another site to give up an authorisation that it has not charged. The
credits are free when that site has agreed. Until then the site may still
charge. An owner of a project, and an operator, can also revoke authorisations
of members: candor account NAME lists them.`,
		Example: "  candor revoke alice/k2",
		RunE: a.Online(func(ctx context.Context, s *cli.Session, args []string) error {
			reply, err := cli.Call[clearing.ClearingReply](ctx, s, messages.Bank, clearing.VerbRevoke, clearing.RevokeRequest{ID: args[0]})
			if err != nil {
				return err
			}
			return a.Show(reply, func(p *cli.Page) {
				p.Printf("Revoked %s", args[0])
				writeAsked(p, reply, "the other site")
			})
		}),
	}
}
