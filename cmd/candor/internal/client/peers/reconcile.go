package peers

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
)

func peerReconcile(a *cli.App) *cobra.Command {
	var confirm, adopt bool
	cmd := &cobra.Command{
		Use:   "reconcile SITE [--confirm | --adopt]",
		Short: "compare the books with the books of a peer, or adopt its totals",
		Long: `Compare this site's books with the books that the bank of the peer signs. Each
bank numbers its messages to the other. Show the number of the first message in
which the books differ, and how many numbers a bank lost, for example because an
old backup was restored. Other messages that only one bank has are on their way.

A site that lost instructions goes on from the totals of the other site. This
takes one command at each site. --confirm, at the site that has the
instructions, signs its totals. --adopt, at the site that lost instructions,
signs that it goes on from these totals.
Accounts of users stay as the backup has them. The difference is booked to the
account clearing--correction, which candor peer list shows.

A restored site trades with a peer again when no instruction is missing. If the
books differ in another way, decide about the books with the other operator, and
see the command "candor peer part".

Exit codes:
  0  the books agree
  1  the books differ, or instructions are lost
  7  --adopt went on from the totals of the peer, and now the books agree`,
		Example: "  candor peer reconcile west\n  candor peer reconcile east --confirm\n  candor peer reconcile west --adopt",
		Args:    cobra.ExactArgs(1),
		RunE: a.Operating(func(ctx context.Context, s *cli.Session, args []string) error {
			reply, err := compared(ctx, s, args[0])
			switch {
			case err != nil:
				return err
			case confirm:
				return confirmed(ctx, a, s, reply)
			case adopt && reply.Adoption != nil:
				return adopted(ctx, a, s, reply)
			}
			return a.Verdict(reply, agrees(&reply), func(p *cli.Page) { writeReconciled(p, reply) })
		}),
	}
	cmd.Flags().BoolVar(&confirm, "confirm", false, "sign this site's totals, for the peer to adopt")
	cmd.Flags().BoolVar(&adopt, "adopt", false, "go on from the totals that the peer's operator confirmed")
	cmd.MarkFlagsMutuallyExclusive("confirm", "adopt")
	return cmd
}

func compared(ctx context.Context, s *cli.Session, peer messages.Name) (clearing.ReconcileReply, error) {
	return cli.Call[clearing.ReconcileReply](ctx, s, messages.Bank, clearing.VerbReconcile, clearing.ReconcileRequest{Peer: peer})
}

func agrees(r *clearing.ReconcileReply) bool {
	return r.Adoption == nil && !slices.ContainsFunc(r.Books, func(b clearing.ReconciledBook) bool { return !b.Agrees() })
}

// confirmed asks the bank to sign the totals that the comparison of the two banks' books showed.
func confirmed(ctx context.Context, a *cli.App, s *cli.Session, seen clearing.ReconcileReply) error {
	t, err := cli.Call[clearing.SignedTotals](ctx, s, messages.Bank, clearing.VerbConfirm, clearing.ConfirmRequest{Totals: seen.Totals})
	if err != nil {
		return err
	}
	return a.Show(t, func(p *cli.Page) {
		p.Printf("Confirmed for %s: the operator of that site now runs `candor peer reconcile %s --adopt`\n", seen.Peer, t.Totals.Site)
		p.Fields("Instructions of "+t.Totals.Site, terminal.Count(t.Totals.Sent.Number), "Instructions of "+seen.Peer, terminal.Count(t.Totals.Received.Number),
			"Debt", owed(t.Totals.Received.Owed-t.Totals.Sent.Owed), "Still to charge", cli.Amount(t.Totals.Authorised))
	})
}

// adoption is the result of a repair: the totals of the peer that this site took over, and how the books of both sites
// compare after this.
type adoption struct {
	Adopted clearing.Adoption       `json:"adopted"`
	After   clearing.ReconcileReply `json:"after"`
}

// adopted asks this site to take over the peer's totals. Then it compares the books of both sites again.
func adopted(ctx context.Context, a *cli.App, s *cli.Session, seen clearing.ReconcileReply) (err error) {
	var m adoption
	r := clearing.AdoptRequest{Totals: seen.Theirs, Correction: seen.Adoption.Correction}
	if m.Adopted, err = cli.Call[clearing.Adoption](ctx, s, messages.Bank, clearing.VerbAdopt, r); err != nil {
		return err
	}
	if m.After, err = compared(ctx, s, seen.Peer); err != nil {
		return err
	}
	err = a.Show(m, func(p *cli.Page) {
		p.Printf("Adopted the totals of %s: %s had been lost here\n", seen.Peer, terminal.Plural(int(m.Adopted.Numbers), "message number"))
		writeAdoption(p, &m.Adopted)
		writeReconciled(p, m.After)
	})
	switch {
	case err != nil:
		return err
	case agrees(&m.After):
		return cli.ExitStatus(cli.CodeRepaired)
	}
	return cli.ExitStatus(cli.CodeFailed)
}

func writeReconciled(p *cli.Page, r clearing.ReconcileReply) {
	lostThere := false
	for _, b := range r.Books {
		state := p.Green("agree")
		switch {
		case b.Difference != nil:
			state = p.Red("DIFFER")
		case !b.Agrees():
			state = p.Red("have a GAP")
		}
		p.Printf("Instructions of %s: %d here, %d at %s; the books %s\n", b.Sender, b.Ours, b.Theirs, r.Peer, state)
		if d := b.Difference; d != nil {
			earlier := ""
			if d.Earlier {
				earlier = " (the oldest number that both banks still have) or earlier"
			}
			p.Printf("  first difference at number %d%s\n", d.Number, earlier)
			p.Fields("Here", bookLine(d.Ours), "At "+r.Peer, bookLine(d.Theirs))
		}
		writeLost(p, "here", b.LostHere)
		writeLost(p, "at "+r.Peer, b.LostThere)
		lostThere = lostThere || b.LostThere > 0
	}
	if lostThere {
		p.Printf("Site %s lost the records of instructions. To go on from the totals of this site: candor peer reconcile %s --confirm\n", r.Peer, r.Peer)
	}
	if r.Adoption != nil {
		first := ""
		if !r.Theirs.Totals.Confirmed {
			first = ", after its operator confirmed them"
		}
		p.Printf("To go on from the totals of %s%s: candor peer reconcile %s --adopt\n", r.Peer, first, r.Peer)
		writeAdoption(p, r.Adoption)
	}
	if r.Waits {
		p.Printf("%s\n", p.Yellow("This site was restored, and does not trade with "+r.Peer+" until no instruction is missing"))
	}
}

func writeAdoption(p *cli.Page, r *clearing.Adoption) {
	p.Fields("For clearing--correction", p.Change(r.Correction), "Given back to users", cli.Amount(r.Returned), "Still to be charged, at most", cli.Amount(r.Authorised))
}

func writeLost(p *cli.Page, where string, n uint64) {
	if n > 0 {
		p.Printf("  %s\n", p.Red("Lost "+where+": "+terminal.Plural(int(n), "message number")))
	}
}

func bookLine(l clearing.ClearingLine) string {
	text := fmt.Sprintf("%s of %s; %v moved", l.Kind, cli.Credits(l.Asked), l.Moved)
	if l.Refused {
		text = fmt.Sprintf("%s of %s, refused", l.Kind, cli.Credits(l.Asked))
	}
	return fmt.Sprintf("%s (digest %.8x)", text, l.Digest)
}
