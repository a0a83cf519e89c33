// Package peers has the commands about other sites: their terms, the debts between banks, and the links between sites.
package peers

import (
	"context"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/money"
)

// Commands returns the commands about the debts between sites.
func Commands(a *cli.App) []*cobra.Command {
	return a.Make(cli.Makers{"peer": peerCommand, "settle": settleCommand})
}

func peerCommand(a *cli.App) *cobra.Command {
	return cli.Group(&cobra.Command{
		Use:   "peer",
		Short: "settle with the banks of other sites (operators)",
		Long: `A peer is another site that exchanges jobs and credits with this site. A peer
can never cost this site more than three sums:

  - the limit, which the peer may owe;
  - its share of the reserve: settled debts that it has not paid yet;
  - the amounts that users of this site authorised the peer to charge.

While the books of two sites do not agree, neither site gives credit to the
other. The operators exchange the keys that "candor peer list" shows.`,
		Example: `  candor peer add west --key ADIOXP... --limit 5000
  candor peer list
  candor peer reconcile west --adopt`,
	}, peerAdd(a), peerKey(a), peerLimit(a), peerPart(a), peerReserve(a), a.Tabled(peerList(a)), peerReconcile(a))
}

func peerAdd(a *cli.App) *cobra.Command {
	var keys []string
	var limit, share string
	var retire bool
	cmd := &cobra.Command{
		Use:   "add SITE --key NKEY --limit AMOUNT [--share AMOUNT]",
		Short: "make another site a peer, or change its keys and limit",
		Long: `Make another site a peer, or change its keys and its limit. A key that is left
out is retired: it is never trusted again, and the command needs --retire for
this. Earlier disagreements with the peer count as settled, unless the command
only lowers the limit. The share is the most that the peer may owe by
settlements that are not paid yet. The default share is the limit. When a peer
changes its key, use candor peer key.`,
		Example: "  candor peer add west --key ADIOXP... --limit 5000",
		Args:    cobra.ExactArgs(1),
		RunE: a.Operating(func(ctx context.Context, s *cli.Session, args []string) error {
			amount, err := cli.AmountOf(limit)
			if err != nil {
				return err
			}
			r := clearing.PeerRequest{Peer: args[0], Keys: keys, Limit: amount, Retire: retire}
			if share != "" {
				of, err := cli.AmountOf(share)
				if err != nil {
					return err
				}
				r.Share = &of
			}
			return setPeer(ctx, a, s, r)
		}),
	}
	cmd.Flags().BoolVar(&retire, "retire", false, "retire the peer's other keys for ever")
	cmd.Flags().StringVar(&share, "share", "", "share of the reserve: the most `credits` that the peer may owe for settlements (default: the limit)")
	cmd.Flags().StringSliceVar(&keys, "key", nil, "the `nkey` that the peer's bank signs with; may be repeated")
	cmd.Flags().StringVar(&limit, "limit", "", "the most `credits` that the peer may owe")
	cmd.MarkFlagRequired("key")
	cmd.MarkFlagRequired("limit")
	return cmd
}

func setPeer(ctx context.Context, a *cli.App, s *cli.Session, r clearing.PeerRequest) error {
	return cli.Ask(ctx, a, s, messages.Bank, clearing.VerbPeer, r, func(p *cli.Page, reply clearing.PeerReply) {
		p.Printf("Site %s is a peer. It may owe up to %s; up to %s of this may be settlements that are not paid yet.\n", reply.Peer, cli.Credits(reply.Limit), cli.Credits(reply.Share))
		if reply.Standing == clearing.PeerParting {
			p.Printf("This site is still parting from %s: no new jobs or payments begin.\n", reply.Peer)
		}
	})
}

// known returns a peer from the bank's list. It returns an error if the sites have parted: only the command peer add
// may make the site a peer again.
func known(ctx context.Context, s *cli.Session, name messages.Name) (p clearing.PeerReply, err error) {
	all, err := cli.Call[clearing.PeersReply](ctx, s, messages.Bank, clearing.VerbPeers, messages.Empty{})
	if err != nil {
		return p, err
	}
	i := slices.IndexFunc(all.Peers, func(p clearing.PeerReply) bool { return p.Peer == name })
	if i < 0 {
		return p, messages.Errorf(messages.NotFound, "site %q is no peer: add it with `candor peer add`", name)
	}
	if p = all.Peers[i]; p.Standing == clearing.PeerParted {
		return p, messages.Errorf(messages.Conflict, "this site has parted from %q: \"candor peer add\" makes that site a peer again", name)
	}
	return p, nil
}

func peerKey(a *cli.App) *cobra.Command {
	var now bool
	cmd := &cobra.Command{
		Use:   "key SITE NKEY",
		Short: "trust the new key of a peer's bank, and retire its old keys",
		Long: `Trust a new key of a peer's bank. The older keys are valid until an hour after
the peer's first message with the new key. Then they are retired: the bank never
trusts them again. With --now they are retired at once, for example because a
key was stolen.`,
		Example: "  candor peer key west ABVGIRGNEWKEY\n  candor peer key west ABVGIRGNEWKEY --now",
		Args:    cobra.ExactArgs(2),
		RunE: a.Operating(func(ctx context.Context, s *cli.Session, args []string) error {
			p, err := known(ctx, s, args[0])
			if err != nil {
				return err
			}
			r := clearing.PeerRequest{Peer: p.Peer, Keys: []string{args[1]}, Limit: p.Limit, Retire: now}
			if !now {
				r.Keys = append(slices.DeleteFunc(p.Keys, func(key string) bool { return key == args[1] }), args[1])
			}
			return setPeer(ctx, a, s, r)
		}),
	}
	cmd.Flags().BoolVar(&now, "now", false, "retire the other keys at once")
	return cmd
}

func peerLimit(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "limit SITE AMOUNT",
		Short:   "set how much a peer may owe",
		Long:    "Set how much a peer may owe. A lower limit bounds new debts only. Old debts\nstay. The share of the reserve does not change.",
		Example: "  candor peer limit west 8000",
		RunE: a.Operating(cli.WithAmount(1, func(ctx context.Context, s *cli.Session, args []string, amount messages.Credits) error {
			p, err := known(ctx, s, args[0])
			if err != nil {
				return err
			}
			return setPeer(ctx, a, s, clearing.PeerRequest{Peer: p.Peer, Keys: p.Keys, Limit: amount})
		})),
	}
}

func peerPart(a *cli.App) *cobra.Command {
	var loss, reason, from string
	cmd := &cobra.Command{
		Use:   "part SITE [--loss AMOUNT --reason TEXT]",
		Short: "part from a peer, by agreement or alone",
		Long: `Part from a peer. Nothing new begins from now on: no jobs, no payments.

If both operators part, the sites go on until the jobs between them have ended
and the debts are settled and paid. Then they have parted.

With --loss the site parts alone and at once, for example because the peer is
gone. AMOUNT must be exactly what the peer owes. It is charged as a loss to your
own account, or to the account that --from names. Users get back what was
set aside for the peer, their jobs there end as PeerLost, and the peer's keys
are never trusted again. What this site owes the peer stays owed on the account
clearing--SITE: pay the amount, then withdraw it from there.

To make the site a peer again, use candor peer add.`,
		Example: `  candor peer part east
  candor peer part east --loss 120 --reason 'its hosts are gone'`,
		Args: cobra.ExactArgs(1),
		RunE: a.Operating(func(ctx context.Context, s *cli.Session, args []string) error {
			r := clearing.PartRequest{Peer: args[0], Account: from, Reason: reason}
			if (loss != "") != (reason != "") || loss == "" && from != "" {
				return cli.Usagef("to part alone, give both --loss and --reason; to part by agreement, neither, and no --from")
			}
			if loss != "" {
				amount, err := cli.AmountOf(loss)
				if err != nil {
					return err
				}
				r.Loss = &amount
			}
			return cli.Ask(ctx, a, s, messages.Bank, clearing.VerbPart, r, writeParted)
		}),
	}
	cmd.Flags().StringVar(&loss, "loss", "", "part alone, and write off these `credits`: exactly what the peer owes")
	cmd.Flags().StringVar(&reason, "reason", "", "why the site parts alone, a `text` for the books")
	cmd.Flags().StringVar(&from, "from", "", "the `account` that bears the loss (default: your own)")
	return cmd
}

func peerReserve(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "reserve AMOUNT",
		Short: "limit what all peers together may owe for unpaid settlements",
		Long: `Set how much all peers together may owe for settlements that are not paid yet
outside the banks. If the sum of the shares is more, each share is made smaller
in proportion. With 0, the default, all shares stay as they are. The share of a
peer is its limit, or the amount of candor peer add --share.`,
		Example: "  candor peer reserve 10000",
		RunE: a.Operating(cli.WithAmount(0, func(ctx context.Context, s *cli.Session, args []string, amount messages.Credits) error {
			return cli.Ask(ctx, a, s, messages.Bank, clearing.VerbReserve, clearing.ReserveRequest{Limit: amount}, func(p *cli.Page, reply money.AccountReply) {
				if reply.Credit == 0 {
					p.Printf("All peers together may owe the sum of their shares for settlements that are not paid yet.\n")
					return
				}
				p.Printf("All peers together may owe up to %s for settlements that are not paid yet.\n", cli.Credits(reply.Credit))
			})
		})),
	}
}

func peerList(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "show debts, open requests, retries and refusals of each peer",
		Long: `Show the debts between the site and each peer, the requests that a peer has not
answered, the numbers of the next messages from and to this site's bank, whether
the peer answers, and what was refused. The first lines show the site's own key,
for operators of other sites.`,
		Example: "  candor peer list\n  candor peer list --json | jq '.peers[] | select(.tries > 0)'\n  candor peer list --json | jq -r .key",
		RunE:    cli.Asking(a, a.Operating, messages.Bank, clearing.VerbPeers, writePeers),
	}
}

func settleCommand(a *cli.App) *cobra.Command {
	var cycle string
	var correct bool
	cmd := &cobra.Command{
		Use:   "settle",
		Short: "close a cycle with the peers, and show who pays whom (operators)",
		Long: `With --cycle, close a cycle: the bank offers each peer the sum that this site
owes. All sites of a federation number their cycles alike, from 1. Closing a
cycle again changes nothing. Then the command collects what each site owes and
is owed, and shows the fewest payments that the sites still have to make outside
the banks. It also lists the debts that are not settled, with the reason.
Without --cycle the command shows the latest cycle. The exit code is 1 while the
position of a site is missing or the sites disagree.

After a payment, the operator of the site that paid withdraws the same amount
from the account clearing--settlement. The operator of the other site grants the
amount to clearing--SITE, the account of the peer's settled debts. Then the peer
may settle as much again. If a site owes one peer and another peer owes the
site, the two sums cancel without a payment, and are withdrawn and granted in
the same way.

Only the next cycle can be closed, or a cycle that a peer has closed. --correct
first takes back later cycles that were closed by mistake, as long as no peer
accepted anything in them.`,
		Example: `  candor settle --cycle 7
  candor settle
  candor withdraw clearing--settlement 120 --reason 'cycle 7, paid'
  candor grant clearing--west 120 --reason 'cycle 7, west has paid'
  candor settle --cycle 8 --correct`,
		RunE: a.Operating(func(ctx context.Context, s *cli.Session, _ []string) error { return settle(ctx, a, s, cycle, correct) }),
	}
	cmd.Flags().BoolVar(&correct, "correct", false, "take back later cycles, closed by mistake")
	cmd.Flags().StringVar(&cycle, "cycle", "", "the `number` of the cycle to close (default: only show the latest)")
	return cmd
}

func settle(ctx context.Context, a *cli.App, s *cli.Session, cycle string, correct bool) error {
	var r clearing.CycleRequest
	if correct && cycle == "" {
		return cli.Usagef("--correct: also give --cycle with the number of the cycle to close instead")
	}
	if cycle != "" {
		var err error
		if r.Cycle, err = strconv.ParseUint(cycle, 10, 63); err != nil || r.Cycle == 0 {
			return cli.Usagef("--cycle %q: give the number of a cycle, from 1", cycle)
		}
		if _, err := cli.Call[clearing.SignedPosition](ctx, s, messages.Bank, clearing.VerbClose, clearing.CloseRequest{Cycle: r.Cycle, Correct: correct}); err != nil {
			return err
		}
	}
	report, err := cli.Call[clearing.NettingReport](ctx, s, messages.Bank, clearing.VerbNet, r)
	if err != nil {
		return err
	}
	bank, err := cli.Call[clearing.PeersReply](ctx, s, messages.Bank, clearing.VerbPeers, messages.Empty{})
	if err != nil {
		return err
	}
	return a.Verdict(report, report.Balanced, func(p *cli.Page) { writeNet(p, report); writeLeft(p, bank.Peers) })
}
