package submit

import (
	"context"
	"crypto/rand"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/money"
)

// prediction compares an account now and after a job, if nothing else happens.
type prediction struct {
	Account   money.AccountReply `json:"account"` // the account that pays, in its present state
	Market    messages.Name      `json:"market"`
	Held      messages.Credits   `json:"held"`      // amount held until the job ends; the job cannot cost more
	Available messages.Credits   `json:"available"` // credits to spend until the job ends
	Least     messages.Credits   `json:"least"`     // balance after the job if it costs the whole hold
	Most      messages.Credits   `json:"most"`      // balance after the job if it costs nothing
	// Limited means that the submitter has a limit in the project. Left is the part of the limit that is still free
	// while the job's budget is held.
	Limited bool             `json:"limited"`
	Left    messages.Credits `json:"left"`
	Draws   []draw           `json:"draws"`             // expiring grants that the hold uses, in the order of expiry
	Refusal string           `json:"refusal,omitempty"` // why the account cannot hold the credits now
}

// draw is the amount that a job's hold takes from an expiring grant.
type draw struct {
	Grant   string           `json:"grant"`
	Expires messages.Time    `json:"expires"`
	Amount  messages.Credits `json:"amount"`
}

// PredictCommand returns the command that shows how many credits a job would leave in the paying account.
func PredictCommand(a *cli.App) *cobra.Command {
	cmd, sub := describing(a, &cobra.Command{
		Use:   "predict [flags] [FILE|-] [ARGUMENT...]",
		Short: "show the balance of an account after a job",
		Long: `Check a job as "candor submit --dry-run" does, and show the balance of the
account that pays: now, during the job, and after the job. The arguments are
those of candor submit. Nothing is submitted. If the site would refuse the job
now, the exit code is the code of the refusal.`,
		Example: "  candor account predict job.yaml\n  candor account predict --budget 10 -A climate sort.sh input.txt",
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return predict(cmd.Context(), a, sub, args) }
	cmd.Flags().BoolVar(&sub.script, "script", false, "read the file as a script")
	return cmd
}

func predict(ctx context.Context, a *cli.App, sub *submission, args []string) error {
	job, err := readUnpaid(a, sub, args)
	if err == nil {
		err = AssumeBudget(a, job)
	}
	if err != nil {
		return err
	}
	s, err := dialFor(ctx, a, job)
	if err != nil {
		return err
	}
	defer s.Bus.Close()
	request, err := prepare(a, job, rand.Text(), true)
	if err != nil {
		return err
	}
	checked, err := cli.Call[jobmsg.SubmitReply](ctx, s, messages.Auctioneer, messages.VerbSubmit, request)
	if err != nil {
		return refused(err, job, request.Key)
	}
	account, err := cli.Call[money.AccountReply](ctx, s, messages.Bank, messages.VerbAccount, money.AccountRequest{Account: checked.Payer})
	if err != nil {
		return err
	}
	p := predictFor(account, checked, s.Account)
	if err := a.Show(p, func(page *cli.Page) { writePrediction(page, p) }); err != nil || p.Refusal == "" {
		return err
	}
	return cli.ExitStatus(cli.ExitCode(account.Affords(s.Account, checked.Held)))
}

// predictFor predicts what an account would have after a job was submitted. It uses the present state of the account,
// and the credits that the bank would hold for the job.
func predictFor(account money.AccountReply, job jobmsg.SubmitReply, submitter messages.Name) prediction {
	p := prediction{
		Account: account, Market: job.Market, Held: job.Held, Available: account.Available - job.Held,
		Least: account.Balance - job.Held, Most: account.Balance,
	}
	for _, m := range account.Roles {
		if m.Member == submitter && m.Limit != 0 {
			p.Limited, p.Left = true, m.Limit-m.Spent-m.Held-job.Held
		}
	}
	if err := account.Affords(submitter, job.Held); err != nil {
		p.Refusal = cli.Sentence(err)
	}
	left := job.Held
	for _, e := range account.Expiring {
		if part := min(e.Free, left); part > 0 {
			p.Draws = append(p.Draws, draw{e.Grant, e.Expires, part})
			left -= part
		}
	}
	return p
}

func writePrediction(p *cli.Page, r prediction) {
	p.Printf("%s pays for a job on market %s. The job may cost up to %s\n", p.Bold("Account "+r.Account.Account), r.Market, cli.Credits(r.Held))
	t := terminal.NewTable("|>NOW|>DURING THE JOB|>AFTER THE JOB")
	t.Row("Balance", r.Account.Balance.String(), r.Account.Balance.String(), r.Least.String()+" to "+r.Most.String())
	t.Row("Held for jobs", r.Account.Reserved.String(), (r.Account.Reserved + r.Held).String(), r.Account.Reserved.String())
	t.Row("Available", r.Account.Available.String(), r.Available.String(), r.Available.String()+" to "+r.Account.Available.String())
	p.Table(t, "  ")
	for _, d := range r.Draws {
		p.Printf("  the job holds %s that expire on %s\n", cli.Credits(d.Amount), p.At(d.Expires))
	}
	if r.Limited {
		p.Printf("  %s of your limit in the project are left during the job\n", cli.Credits(max(r.Left, 0)))
	}
	if r.Refusal != "" {
		p.Printf("%s\n", p.Red("The site would refuse the job now: "+terminal.Safe(r.Refusal)))
	}
}
