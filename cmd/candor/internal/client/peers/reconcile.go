package peers

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
)

func peerReconcile(a *cli.App) *cobra.Command {
	var repair bool
	var from string
	cmd := &cobra.Command{
		Use:   "reconcile SITE [--repair]",
		Short: "compare the books with the books of a peer, and repair them",
		Long: `Compare this site's books with the books that the bank of the peer signs, in
both directions. Name the first number at which they differ, and each number
that a bank lost, for example because an old backup was restored. Other numbers
that only one bank has are still on their way.

If this site lost numbers, the command shows the plan of a repair: what is
entered again, and what the repair changes on which account. --repair carries
the plan out. This site's own signatures, which the peer kept, prove the plan.
Users pay and are paid as before. Your own account, or the account that --from
names, stands in for an account that does not exist any more or has too little.
The operator of the site that lost numbers repairs; the other site waits.

A restored site trades with a peer again when nothing is lost. What cannot be
proved stays lost: decide about it with the other operator (candor peer part).

Exit codes:
  0  the books agree
  1  the books differ, or numbers are lost
  7  --repair entered numbers again, and now the books agree`,
		Example: "  candor peer reconcile west\n  candor peer reconcile west --repair",
		Args:    cobra.ExactArgs(1),
		RunE: a.Operating(func(ctx context.Context, s *cli.Session, args []string) error {
			if from != "" && !repair {
				return cli.Usagef("--from: names who stands in for users in a repair; give --repair too")
			}
			reply, err := compared(ctx, s, args[0])
			if err != nil {
				return err
			}
			if !repair || reply.Plan == nil {
				return a.Verdict(reply, agrees(&reply), func(p *cli.Page) { writeReconciled(p, reply) })
			}
			return mend(ctx, a, s, from, reply)
		}),
	}
	cmd.Flags().BoolVar(&repair, "repair", false, "enter again what this site lost")
	cmd.Flags().StringVar(&from, "from", "", "the `account` that stands in for users (default: your own)")
	return cmd
}

func compared(ctx context.Context, s *cli.Session, peer messages.Name) (messages.ReconcileReply, error) {
	return cli.Call[messages.ReconcileReply](ctx, s, messages.Bank, messages.VerbReconcile, messages.ReconcileRequest{Peer: peer})
}

func agrees(r *messages.ReconcileReply) bool {
	return r.Plan == nil && !slices.ContainsFunc(r.Books, func(b messages.ReconciledBook) bool { return !b.Agrees() })
}

// mended is a repair, and how the books stand after it.
type mended struct {
	Repaired messages.RepairReply    `json:"repaired"`
	After    messages.ReconcileReply `json:"after"`
}

// mend carries out the plan of a comparison, and compares again.
func mend(ctx context.Context, a *cli.App, s *cli.Session, from messages.Name, seen messages.ReconcileReply) (err error) {
	var m mended
	r := messages.RepairRequest{Peer: seen.Peer, Account: from, Digest: seen.Plan.Digest}
	if m.Repaired, err = cli.Call[messages.RepairReply](ctx, s, messages.Bank, messages.VerbRepair, r); err != nil {
		return err
	}
	if m.After, err = compared(ctx, s, seen.Peer); err != nil {
		return err
	}
	err = a.Show(m, func(p *cli.Page) {
		p.Printf("Entered again: %s\n", terminal.Plural(m.Repaired.Done.Numbers, "number"))
		writeChanges(p, &m.Repaired.Done)
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

func writeReconciled(p *cli.Page, r messages.ReconcileReply) {
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
				earlier = ", or before: it is the oldest that both still have"
			}
			p.Printf("  first at number %d%s\n", d.Number, earlier)
			p.Fields("Here", bookLine(d.Ours), "At "+r.Peer, bookLine(d.Theirs))
		}
		writeLost(p, "here", r.Peer, b.LostHere)
		writeLost(p, "at "+r.Peer, "this site", b.LostThere)
		lostThere = lostThere || len(b.LostThere) > 0
	}
	if lostThere {
		p.Printf("Site %s lost numbers: its operator repairs them with candor peer reconcile --repair\n", r.Peer)
	}
	if r.Plan != nil {
		writePlan(p, r)
	}
	if r.Waits {
		p.Printf("%s\n", p.Yellow("This site was restored, and does not trade with "+r.Peer+" until nothing is lost"))
	}
}

// writePlan shows what a repair would do.
func writePlan(p *cli.Page, r messages.ReconcileReply) {
	needs := ""
	if r.Plan.Borne > 0 {
		needs = ", with " + cli.Credits(r.Plan.Borne) + " of your own account"
	}
	p.Printf("To enter %s again%s: candor peer reconcile %s --repair\n", terminal.Plural(r.Plan.Numbers, "number"), needs, r.Peer)
	writeChanges(p, r.Plan)
}

func writeChanges(p *cli.Page, r *messages.RepairPlan) {
	t := terminal.NewTable("~OF|>NUMBER|~WHAT|~ACCOUNT|>CREDITS|~NOTE").Spare("NOTE")
	for _, c := range r.Changes {
		number, note := terminal.Count(c.Number), []string{}
		if c.Number == 0 {
			number = ""
			note = append(note, "authorised")
		}
		if c.Held {
			note = append(note, "set aside")
		}
		if c.Borne {
			note = append(note, "stands in for a user")
		}
		t.Row(terminal.Safe(c.Sender), number, c.Kind.String(), terminal.Safe(c.Account), p.Change(c.Amount), strings.Join(note, ", "))
	}
	if len(r.Changes) > 0 {
		p.Table(t, "  ")
	}
	for _, why := range r.Unproven {
		p.Printf("  %s\n", p.Red("Not to be repaired: "+terminal.Safe(why)))
	}
}

// writeLost names what a bank lost, and what it came to.
func writeLost(p *cli.Page, where, keeper messages.Name, lost []messages.ClearingLine) {
	if len(lost) == 0 {
		return
	}
	p.Printf("  %s\n", p.Red("Lost "+where+", as the books of "+keeper+" have it:"))
	t := terminal.NewTable(">NUMBER|~WHAT")
	for _, l := range lost {
		t.Row(terminal.Count(l.Number), bookLine(l))
	}
	p.Table(t, "    ")
}

func bookLine(l messages.ClearingLine) string {
	text := fmt.Sprintf("%s of %s, of which %v moved", l.Kind, cli.Credits(l.Asked), l.Moved)
	if l.Refused {
		text = fmt.Sprintf("%s of %s, refused", l.Kind, cli.Credits(l.Asked))
	}
	return fmt.Sprintf("%s (digest %.8x)", text, l.Digest)
}
