package client

import (
	"context"
	"crypto/rand"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/jobfile"
	"github.com/candor-grid/candor/messages"
)

// prediction is an account before a job and after it, if nothing else
// happens.
type prediction struct {
	Account   messages.AccountReply `json:"account"` // that pays, as it is now
	Market    messages.Name         `json:"market"`
	Held      messages.Credits      `json:"held"`      // while the job lives, and the most it can cost
	Available messages.Credits      `json:"available"` // while it lives
	Least     messages.Credits      `json:"least"`     // the balance after it, if it costs all that is held
	Most      messages.Credits      `json:"most"`      // if it costs nothing
	// Limited says that the submitter's part in the project has a limit, of
	// which Left is left while the job lives.
	Limited bool             `json:"limited"`
	Left    messages.Credits `json:"left"`
	Draws   []draw           `json:"draws"`             // on what expires, the earliest first
	Refusal string           `json:"refusal,omitempty"` // why the account could not hold it, as it is now
}

// draw is what a job would hold of a grant that expires.
type draw struct {
	Grant   string           `json:"grant"`
	Expires messages.Time    `json:"expires"`
	Amount  messages.Credits `json:"amount"`
}

func (a *app) predictCommand() *cobra.Command {
	sub := &submission{options: jobfile.NewOptions(a.lookup)}
	cmd := &cobra.Command{
		Use:   "predict [flags] [FILE|-] [ARGUMENT...]",
		Short: "show what an account would have after a job",
		Long: `Have the site check a job as "candor submit --dry-run" does, and show what the account
that pays has now, while the job would run, and after it. Takes what submit takes.
Nothing is submitted. The exit code is that of the submission's refusal, if the
account could not hold its budget as it is now.`,
		Example: "  candor account predict job.yaml\n  candor account predict --budget 10 -A climate sort.sh input.txt",
		Args:    cobra.ArbitraryArgs,
		RunE:    func(cmd *cobra.Command, args []string) error { return a.predict(cmd.Context(), sub, args) },
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().AddFlagSet(sub.options.Flags)
	cmd.Flags().BoolVar(&sub.script, "script", false, "the file is a script, whatever it looks like")
	return cmd
}

func (a *app) predict(ctx context.Context, sub *submission, args []string) error {
	job, err := a.readJob(sub, args)
	if err != nil {
		return err
	}
	request := messages.SubmitRequest{Key: rand.Text(), Spec: job.Spec, DryRun: true}
	if err := request.Validate(); err != nil {
		return refused(err, job, request.Key)
	}
	s, err := a.dial(false)
	if err != nil {
		return err
	}
	defer s.bus.Close()
	checked, err := call[messages.SubmitReply](ctx, s, messages.Auctioneer, messages.VerbSubmit, request)
	if err != nil {
		return refused(err, job, request.Key)
	}
	account, err := call[messages.AccountReply](ctx, s, messages.Bank, messages.VerbAccount, messages.AccountRequest{Account: checked.Payer})
	if err != nil {
		return err
	}
	p := predictFor(account, checked, s.account)
	if err := a.show(p, func(page *page) { page.prediction(p) }); err != nil || p.Refusal == "" {
		return err
	}
	return exitStatus(exitCode(account.Affords(s.account, checked.Held)))
}

// predictFor adds a job's hold to an account as it stands.
func predictFor(account messages.AccountReply, job messages.SubmitReply, submitter messages.Name) prediction {
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
		p.Refusal = sentence(err)
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
