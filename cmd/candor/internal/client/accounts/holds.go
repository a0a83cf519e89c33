package accounts

import (
	"context"
	"fmt"
	"strings"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/money"
)

// showHeld shows an account with its holds. The bank does not know the job numbers of recent holds, so showHeld gets
// these numbers from the auctioneer.
func showHeld(ctx context.Context, a *cli.App, s *cli.Session, name messages.Name) error {
	reply, err := cli.Call[money.AccountReply](ctx, s, messages.Bank, messages.VerbAccount, money.AccountRequest{Account: name, Holds: true})
	if err != nil {
		return err
	}
	h := holders{caller: s.Account}
	if len(reply.Pending) > 0 {
		h.all, h.answered = h.number(ctx, s, reply.Pending, reply.Account != s.Account)
	}
	return a.Show(reply, func(p *cli.Page) {
		writeAccount(p, reply)
		writeHolds(p, reply, h)
	})
}

// holders describes a search for the jobs to which an account's holds belong. It has who asked, whether the auctioneer
// was asked for the jobs of all users, and whether its answer was complete.
type holders struct {
	caller   messages.Name
	all      bool // the auctioneer was asked for the jobs of all users, not only for the caller's
	answered bool // the auctioneer answered with all jobs
}

// number fills in the job numbers of the holds in `list`. For this it asks the auctioneer for jobs: for the jobs of all
// users if the argument `all` is true, and otherwise for the jobs of the caller.
func (h *holders) number(ctx context.Context, s *cli.Session, list []money.PendingHold, all bool) (every, answered bool) {
	q := job.JobsRequest{All: all, Active: true}
	jobs := map[string]messages.JobID{}
	answered = eachJob(ctx, quickly(s), &q, 0, func(j *job.JobSummary) { jobs[j.Hold] = j.Job })
	for i := range list {
		if job := jobs[list[i].ID]; job != 0 {
			list[i].Job = job
		}
	}
	return q.All, answered
}

// This method returns two phrases: the purpose of a hold, and the event that ends the hold.
func (h *holders) of(p *cli.Page, hold *money.PendingHold) (what, ends string) {
	at := "when " + terminal.Safe(hold.By) + " ends the hold"
	if hold.Expires != 0 {
		at = "at " + p.At(hold.Expires)
	}
	site, toPeer := strings.CutPrefix(hold.Payee, clearing.PeerAccountPrefix)
	switch {
	case hold.Job != 0 && toPeer:
		return fmt.Sprintf("job %d at site %s", hold.Job, terminal.Safe(site)), "when " + terminal.Safe(site) + " charges, or " + at
	case hold.Job != 0:
		return fmt.Sprintf("job %d", hold.Job), "with the job"
	case toPeer && hold.Expires == 0:
		return "a payment to site " + terminal.Safe(site), "when the site has answered"
	case toPeer:
		return fmt.Sprintf("authorisation %s for site %s", terminal.Safe(strings.TrimPrefix(hold.ID, clearing.AuthorisationHold)), terminal.Safe(site)), at
	case !strings.HasPrefix(hold.ID, "job/"):
		return terminal.Safe(hold.Payee), at
	case !h.answered:
		return "a job or submission; the site does not name it", "with the job, or " + at
	case h.all || hold.Member == h.caller:
		return "a submission that was not finished", at
	}
	return "a job or submission of " + terminal.Safe(hold.Member), "with the job, or " + at
}

func writeHolds(p *cli.Page, r money.AccountReply, h holders) {
	if len(r.Pending) == 0 {
		return
	}
	p.Title("Holds")
	t := terminal.NewTable(">AMOUNT|~24FOR|~30ENDS")
	for i := range r.Pending {
		what, ends := h.of(p, &r.Pending[i])
		t.Row(r.Pending[i].Amount.String(), what, ends)
	}
	p.Table(t, "  ")
	if n := r.Holds - len(r.Pending); n > 0 {
		p.Printf("  %s\n", p.Dim("and "+terminal.Plural(n, "older hold")))
	}
}
